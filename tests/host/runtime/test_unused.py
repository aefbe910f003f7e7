# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A runtime that searches another directory for plugins than where a run installs them, as Debian's containerd."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import bridge, network

pytestmark = pytest.mark.usefixtures("crio")

CRIO = Path("/etc/crio")
NETWORK = network("pwrunused", bridge("pwrunused0", "10.96.8.0/24"), version="0.4.0")
PLUGINS = ["bridge", "host-local"]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The directory where the tasks install plugins."""
    return tmp_path_factory.mktemp("own")


@pytest.fixture
def host(host, own, work):
    nets = work / "net.d"
    nets.mkdir()
    yield host.with_defaults(conf_dir=str(nets), bin_dirs=[str(own)], cache_dir=str(work / "cache"))
    sh(
        f"""
        [ ! -e /sys/class/net/pwrunused0 ] || ip link delete pwrunused0
        rm -rf /var/lib/podwire /var/lib/cni {own}/*
        """
    )


@pytest.fixture
def install(generations):
    return {"src": str(generations["new"]), "remote_src": True, "plugins": PLUGINS}


def unused(result, bins, own):
    """Return the codes about directories; each message names both directories and both remedies."""
    found = [finding for finding in result["findings"] if finding["code"].endswith("_unused")]
    for finding in found:
        texts = (str(bins), str(own), "crio", "bridge, host-local", "cni_bin_dirs", "cni_runtime")
        assert [text for text in texts if text not in finding["message"]] == []
    return [finding["code"] for finding in found]


def test_every_module_says_so_each_time(host, install, bins, own):
    for options in ({"check_mode": True}, {}, {}, {"check_mode": True}):
        assert unused(host.run("cni_plugins", **install, **options), bins, own) == ["bin_dir_unused"]
    for options in ({"check_mode": True}, {}, {}, {"check_mode": True}):
        assert unused(host.run("cni_conf", networks=[NETWORK], **options), bins, own) == ["bin_dir_unused"]
    [obstacle] = host.run("cni_info", gather=["readiness"])["readiness"]["obstacles"][:1]
    assert (obstacle["code"], obstacle["level"], obstacle["runtime"]) == ("not_running", "error", "crio")
    codes = [row["code"] for row in host.run("cni_info", gather=["readiness"])["readiness"]["obstacles"]]
    assert codes.count("bin_dir_unused") == 1
    assert unused(host.run("cni_smoke", check_mode=True), bins, own) == ["bin_dir_unused"]


@pytest.mark.parametrize("networks", [None, {"networks": [NETWORK]}])
@pytest.mark.parametrize("runtime", [None, {}])
def test_a_whole_host_says_it_once(host, install, bins, own, networks, runtime):
    sections = {"plugins": install, "networks": networks, "runtime": runtime}
    expected = ["bin_dir_unused"] if networks or runtime is None else []
    for options in ({"check_mode": True}, {}, {}):
        assert unused(host.run("cni_host", **sections, **options), bins, own) == expected


def test_both_remedies_help(host, install, bins, own):
    configured = {"runtime": ["crio"], "configure": {"state": "present"}}
    sections = {"plugins": install, "networks": {"networks": [NETWORK]}}
    assert unused(host.run("cni_host", check_mode=True, **sections, runtime=configured), bins, own) == []
    assert unused(host.run("cni_host", **sections, runtime=configured), bins, own) == []
    shutil.rmtree(CRIO / "crio.conf.d")
    there = host.with_defaults(bin_dirs=[str(bins), str(own)])
    assert unused(there.run("cni_conf", networks=[NETWORK]), bins, own) == []


def test_the_networks_are_tested_with_the_plugins_of_the_runtime(host, bins, own):
    # In the directory of the tasks is no plugin at all.
    host.with_defaults(bin_dirs=[str(bins)]).run("cni_conf", networks=[NETWORK])
    [row] = host.run("cni_smoke")["networks"]
    assert (row["status"], row["bin_dirs"]) == ("passed", [str(bins)])


def test_networks_that_no_runtime_reads(host, install, bins, own, work):
    elsewhere = host.with_defaults(conf_dir=str(work / "other"), bin_dirs=[str(bins)])
    for options in ({"check_mode": True}, {}, {}):
        result = elsewhere.run("cni_conf", networks=[NETWORK], **options)
        [finding] = [entry for entry in result["findings"] if entry["code"] == "conf_dir_unused"]
        assert host.defaults["conf_dir"] in finding["message"] and "cni_conf_dir" in finding["message"]
    [row] = elsewhere.run("cni_smoke")["networks"]
    assert (row["status"], row["bin_dirs"]) == ("passed", [str(bins)])
    # Those of attachments are used by whoever attaches.
    attachments = {"attachments": [{"network": "pwrunused", "container_id": "c", "netns": "pwrunused"}]}
    sections = {"networks": {"networks": [NETWORK]}, "netns": {"names": ["pwrunused"]}, "attachments": attachments}
    try:
        for options in ({"check_mode": True}, {}, {}):
            result = elsewhere.run("cni_host", **sections, **options)
            assert [entry for entry in result["findings"] if entry["code"] == "conf_dir_unused"] == []
        result = elsewhere.run("cni_conf", networks=[NETWORK])
        assert [entry for entry in result["findings"] if entry["code"] == "conf_dir_unused"] == []
    finally:
        attachments["attachments"][0]["state"] = "absent"
        host.run("cni_host", attachments=attachments, bin_dirs=[str(bins)], conf_dir=str(work / "other"))
        host.run("cni_netns", names=["pwrunused"], state="absent")
