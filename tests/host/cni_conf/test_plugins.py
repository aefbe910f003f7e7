# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from ansible_collections.podwire.cni.tests.host.networks import network


@pytest.mark.parametrize(("generation", "version", "common"), [("old", "1.1.0", "1.0.0"), ("new", "0.3.1", "1.1.0")])
def test_a_version_that_no_plugin_supports_is_refused_with_the_highest_common_one(refuse, conf_dir, version, common):
    refuse(
        "unsupported_by_plugin",
        [f"{conf_dir}/10-ver.conflist", "/plugins/", version, f'"cniVersion": "{common}"'],
        [network("ver", {"type": "bridge"}, {"type": "firewall"}, version=version)],
    )


@pytest.mark.parametrize("generation", ["old", "new"])
@pytest.mark.parametrize(
    ("name", "code"),
    [("open", "unsafe_permissions"), ("text", "not_elf"), ("script", "bad_interpreter"), ("silent", "plugin_failed")],
)
def test_a_plugin_is_not_executed_or_does_not_answer(host, conf_dir, work, bin_dir, name, code):
    folder = work / "bin"
    folder.mkdir()
    shutil.copy(bin_dir / "bridge", folder / "open")
    (folder / "open").chmod(0o777)
    for other, first in (("text", ""), ("script", "#!/usr/bin/env sh")):
        (folder / other).write_text(f"{first}\ntouch {work}/executed\n")
        (folder / other).chmod(0o755)
    shutil.copy("/bin/true", folder / "silent")
    refused = host.fail("cni_conf", bin_dirs=[str(folder)], networks=[network("ver", {"type": name})])
    assert refused["code"] == code
    assert not (work / "executed").exists()


@pytest.fixture
def portmap(work, bin_dir):
    """Return a function that makes a portmap of a release: that of a distribution does not tell its release."""

    def make(release):
        unknown = b"version unknown"
        program = work / f"v{release}" / "portmap"
        program.parent.mkdir()
        program.write_bytes((bin_dir / "portmap").read_bytes().replace(unknown, f"v{release}".encode().ljust(15)))
        program.chmod(0o755)
        about = subprocess.run([program], check=False, text=True, capture_output=True, stdin=subprocess.DEVNULL)
        assert f"plugin v{release}" in about.stderr
        return program

    return make


@pytest.mark.parametrize(
    ("release", "backend", "codes"),
    [
        ("1.8.0", "nftables", ["needs_release", "known_vulnerability"]),
        ("1.8.0", "iptables", ["needs_release"]),
        ("1.9.0", "nftables", ["needs_release"]),
        ("1.9.0", "iptables", ["needs_release"]),
    ],
)
def test_only_the_release_with_a_problem_is_warned_of_where_its_backend_is_in_use(
    host, conf_dir, bin_dir, portmap, release, backend, codes
):
    program = portmap(release)
    ports = network(
        "ports",
        {"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.69.0.0/24"}},
        {"type": "portmap", "backend": backend, "capabilities": {"portMappings": True}},
    )
    bin_dirs = [str(program.parent), str(bin_dir)]
    problems = host.run("cni_conf", check_mode=True, bin_dirs=bin_dirs, networks=[ports])["problems"]
    assert [entry["code"] for entry in problems] == codes
    for found in problems[1:]:
        assert found["level"] == "warning"
        assert found["file"] == f"{conf_dir}/10-ports.conflist"
        assert found["pointer"] == "/plugins/1"
        assert re.search(f"{program} is release 1.8.0.*CVE-2025-67499.*nftables.*install 1.9.0", found["message"])
    # What was learned of the binary is remembered.
    for changed in (True, False):
        result = host.run("cni_conf", bin_dirs=bin_dirs, networks=[ports])
        assert (result["changed"], [entry["code"] for entry in result["problems"]]) == (changed, codes)
