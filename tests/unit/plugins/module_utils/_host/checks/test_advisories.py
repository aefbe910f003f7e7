# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries import packages as pluginrelease
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.packages import DPKG, Package
from ansible_collections.podwire.cni.plugins.module_utils._host.checks import advisories
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils.libcni import process
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import raising

OLD = ["0.1.0", "0.2.0", "0.3.0", "0.3.1"]
MIDDLE = [*OLD, "0.4.0", "1.0.0"]
NEW = [*MIDDLE, "1.1.0"]
NFT = {"type": "portmap", "backend": "nftables"}


class Binaries:
    """Plugins of one release, and which of them were asked for it."""

    def __init__(self, versions, release):
        self.versions = versions
        self.entry = {"release": release}

    def ask(self, name):
        return "/x/" + name, self.versions

    def memory(self, name):
        return self.entry


@pytest.fixture
def check(directory, codes):
    def run(plugin, versions, release, **options):
        directory.files.clear()
        directory.add("a", plugin)
        return codes(advisories.security_problems(directory.view(**options), Binaries(versions, release)))

    return run


PLACE = ("known_vulnerability", "/net.d/10-a.conflist", "/plugins/0")


@pytest.mark.parametrize(
    ("plugin", "versions", "release", "expected"),
    [
        (NFT, NEW, "1.6.0", "warning"),
        (NFT, NEW, "1.8.0", "warning"),
        (NFT, NEW, "1.9.0", None),
        (NFT, NEW, "1.10.0", None),
        (NFT, NEW, "", "info"),
        (NFT, MIDDLE, "", None),
        ({"type": "portmap", "backend": "iptables"}, NEW, "1.8.0", None),
        ({"type": "portmap"}, OLD, "0.7.4", "warning"),
        ({"type": "portmap"}, OLD, "0.7.5", None),
        ({"type": "tap", "selinuxContext": "a:b:c"}, NEW, "1.9.0", "warning"),
        ({"type": "tap", "selinuxContext": "a:b:c"}, NEW, "1.9.1", None),
        ({"type": "tap"}, NEW, "1.9.0", None),
        ({"type": "bridge"}, [*OLD, "0.4.0"], "0.8.5", "warning"),
        ({"type": "ptp"}, [*OLD, "0.4.0"], "0.8.5", "warning"),
        ({"type": "bridge"}, [*OLD, "0.4.0"], "0.8.6", None),
        ({"type": "bridge"}, MIDDLE, "", None),
        ({"type": "macvlan"}, OLD, "0.1.0", None),
    ],
)
def test_release_and_what_is_in_use_decide(check, monkeypatch, plugin, versions, release, expected):
    monkeypatch.setattr(advisories, "find_command", lambda command: "/usr/sbin/" + command)
    assert check(plugin, versions, release) == ([(expected, *PLACE)] if expected else [])


@pytest.mark.parametrize(
    ("commands", "affected"), [(["nft"], True), (["nft", "iptables"], False), (["iptables"], False), ([], False)]
)
def test_without_iptables_portmap_takes_nftables(check, monkeypatch, commands, affected):
    monkeypatch.setattr(advisories, "find_command", lambda command: command if command in commands else None)
    assert bool(check({"type": "portmap"}, NEW, "1.8.0")) == affected


def test_a_command_that_root_must_not_run_is_there_all_the_same(check, monkeypatch):
    monkeypatch.setattr(advisories, "find_command", raising(HostError("no", code="unsafe_permissions")))
    assert check({"type": "portmap"}, NEW, "1.8.0") == []


def test_the_message_says_what_and_what_to_do(directory):
    directory.add("a", NFT)
    (problem,) = advisories.security_problems(directory.view(), Binaries(NEW, "1.7.1"))
    words = ("/x/portmap", "1.7.1", "CVE-2025-67499", "backend nftables", "install 1.9.0 or later")
    assert all(word in problem.message for word in words)


def test_networks_of_others_are_not_looked_at(check):
    assert check(NFT, NEW, "1.8.0", wanted=[]) == []
    assert len(check(NFT, NEW, "1.8.0", wanted=[], managed=["10-a.conflist"])) == 1


def test_a_binary_that_is_not_there_is_the_affair_of_another_level(directory):
    class Missing(Binaries):
        def ask(self, name):
            raise HostError("no", code="missing_plugin")

    directory.add("a", NFT)
    assert list(advisories.security_problems(directory.view(), Missing(NEW, ""))) == []


def test_the_release_is_asked_for_once(directory, monkeypatch):
    asked = []
    monkeypatch.setattr(pluginrelease, "release_of", lambda path: asked.append(path) or "1.8.0")
    directory.add("a", NFT)
    directory.add("b", NFT)
    binaries = Binaries(NEW, "")
    binaries.entry.clear()
    assert len(list(advisories.security_problems(directory.view(), binaries))) == 2
    assert (asked, binaries.entry) == (["/x/portmap"], {"release": "1.8.0"})


# ---- what a binary tells


@pytest.mark.parametrize(
    ("about", "package", "release"),
    [
        (b"CNI portmap plugin v1.7.1\nCNI protocol versions supported: 0.1.0\n", None, "1.7.1"),
        (b"CNI portmap plugin v1.7.1\n", "9.9.9-1", "1.7.1"),
        (b"CNI portmap plugin version unknown\n", None, ""),
        (b"CNI portmap plugin version unknown\n", "1.1.1+ds1-3+b1", "1.1.1"),
        (b"", "2:v1.6.2-1.el9", "1.6.2"),
        (b"", "20240101", ""),
    ],
)
def test_the_release_of_a_binary(monkeypatch, tmp_path, about, package, release):
    names = [str(tmp_path / name) for name in ("bridge", "portmap")]
    for name in names:
        (tmp_path / name).touch()
    asked = []
    pluginrelease._packages_beside.cache_clear()
    monkeypatch.setattr(pluginrelease, "check_executable", lambda path: path)
    monkeypatch.setattr(process, "run_program", lambda *args: process.Ended(b"", about, "", 0, False))
    packages = {name: Package("cni", package, DPKG) for name in names} if package else {}
    monkeypatch.setattr(pluginrelease, "packages_of", lambda paths: asked.append(paths) or packages)
    assert [pluginrelease.release_of(name) for name in names] == [release, release]
    # One question for all files of a directory.
    assert asked in ([], [names])


def test_what_root_must_not_run_is_not_asked(tmp_path):
    script = tmp_path / "portmap"
    script.write_text("#!/bin/sh\ntouch %s/executed\n" % tmp_path)
    script.chmod(0o755)
    with pytest.raises(HostError):
        pluginrelease.release_of(str(script))
    assert not (tmp_path / "executed").exists()
