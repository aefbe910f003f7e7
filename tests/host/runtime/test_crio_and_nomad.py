# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Debian has no packages of CRI-O and Nomad. Programs of these names stand for them, and cni_info reads their files."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh

CRIO = Path("/etc/crio")
NOMAD = Path("/etc/nomad.d")


@pytest.fixture(autouse=True)
def _programs(sbin):
    for name in ("crio", "nomad"):
        shutil.copy("/bin/true", sbin / name)
    try:
        (CRIO / "crio.conf.d").mkdir(parents=True)
        NOMAD.mkdir()
        (CRIO / "crio.conf").write_text('[crio.network]\nnetwork_dir = "/etc/cni/net.d"\n')
        (NOMAD / "nomad.hcl").write_text("client {\n  enabled = true\n}\n")
        yield
    finally:
        shutil.rmtree(CRIO)
        shutil.rmtree(NOMAD)


@pytest.fixture
def host(host, bins):
    return host.with_defaults(bin_dirs=[str(bins), "/opt/cni/bin"])


@pytest.fixture
def configured(host, configurations):
    """The results of configuring both."""
    return host.change(
        "cni_conf", configurations, networks=[], runtime=["crio", "nomad"], configure={"state": "present"}
    )


def test_both_read_the_directory(host, configured, nets, bins):
    assert configured.check["configured"] == configured.run["configured"]
    rows = host.run("cni_info", gather=["runtime"])["runtime"]
    assert [row["runtime"] for row in rows] == ["crio", "nomad", "nomad-bridge"]
    assert [row["conf_dir"] for row in rows[:2]] == [str(nets)] * 2
    assert [row["bin_dirs"] for row in rows] == [[str(bins), "/opt/cni/bin"]] * 3
    assert {network["network"] for row in rows[:2] for network in row["networks"]} == {"pwrpods"}


def test_a_crio_that_does_not_run_has_not_loaded_a_network(host, configured):
    refused = host.fail(
        "cni_conf",
        networks=[],
        runtime=["crio", "nomad"],
        configure={"state": "present", "wait": 0.5},
        ensure_effective="pwrpods",
    )
    # Nothing else is in the way.
    assert [problem["code"] for problem in refused["problems"] if problem["level"] == "error"] == ["not_loaded"]
    assert re.search("crio has not loaded .* it is not running", refused["msg"])


def test_a_change_that_a_later_file_would_override_is_refused(host, configured, configurations, bins):
    (CRIO / "crio.conf.d" / "99-zz.conf").write_text('[crio.network]\nnetwork_dir = "/etc/cni/other"\n')
    before = configurations()
    refused = host.fail("cni_conf", networks=[], runtime=["crio"], configure={"state": "present"}, bin_dirs=[str(bins)])
    assert refused["code"] == "overridden"
    assert "crio would still read /etc/cni/other" in refused["msg"]
    assert configurations() == before
    assert "/opt/cni/bin" in (CRIO / "crio.conf.d" / "99-podwire-cni.conf").read_text()


def test_all_that_was_written_is_removed(host, configurations):
    before = configurations()
    host.run("cni_conf", networks=[], runtime=["crio", "nomad"], configure={"state": "present"})
    assert configurations() != before
    later = CRIO / "crio.conf.d" / "99-zz.conf"
    later.write_text('[crio.network]\nnetwork_dir = "/etc/cni/other"\n')
    host.change("cni_conf", configurations, networks=[], runtime=["crio", "nomad"], configure={"state": "absent"})
    assert configurations() == {**before, str(later): later.read_bytes()}


def test_the_network_that_nomad_builds_is_tried(host, bins):
    (NOMAD / "nomad.hcl").write_text(f'client {{\n  enabled = true\n  cni_path = "{bins}"\n}}\n')

    def bridge():
        rows = host.run("cni_info", gather=["readiness"])["readiness"]
        [row] = [row for row in rows["runtimes"] if row["runtime"] == "nomad-bridge"]
        mine = ("nomad-bridge", "error")
        return row["ready"], [one["code"] for one in rows["obstacles"] if (one["runtime"], one["level"]) == mine]

    breaks = {
        "": "true",
        "packets_lost": "iptables -t mangle -A FORWARD -o nomad -j DROP; iptables -P FORWARD DROP",
        "state_unwritable": "mkdir /var/lib/cni; touch /var/lib/cni/results",
    }
    for code, script in breaks.items():
        sh(script)
        try:
            told = bridge()
        finally:
            sh("nft flush ruleset; rm -rf /var/lib/cni")
        assert told == (not code, [code] * bool(code))
