# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries import packages
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.packages import DPKG, RPM, Package, packages_of
from ansible_collections.podwire.cni.plugins.module_utils._host.commands import Done
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import raising

FILE = "/etc/cni/net.d/87-podman-bridge.conflist"
OTHER = "/etc/cni/net.d/10-mine.conflist"


@pytest.fixture
def answers(monkeypatch):
    """Answers by command and first argument; a command without an answer is not installed."""
    answers = {}

    def run(argv, timeout):
        return answers[argv[0]][argv[1]](argv)

    monkeypatch.setattr(packages, "find_command", lambda name: name if name in answers else None)
    monkeypatch.setattr(packages, "run_command", run)
    return answers


def say(text, rc=0):
    return lambda argv: Done(rc, text.encode(), "")


def test_dpkg(answers):
    answers["dpkg-query"] = {
        "--search": say("diversion by x from: %s\npodman, y: %s\nz:amd64: %s.bak\n" % (FILE, FILE, FILE), rc=1),
        "--show": say("podman 4.3.1+ds1-8\n"),
    }
    assert packages_of([FILE, OTHER]) == {FILE: Package("podman", "4.3.1+ds1-8", DPKG)}


@pytest.mark.parametrize("shown", ["cri-o:amd64", "cri-o"])
def test_dpkg_with_an_architecture(answers, shown):
    answers["dpkg-query"] = {"--search": say("cri-o:amd64: %s\n" % FILE), "--show": say("%s 1.28\n" % shown)}
    assert packages_of([FILE]) == {FILE: Package("cri-o", "1.28", DPKG)}


@pytest.mark.skipif(not os.path.exists("/usr/bin/dpkg-query"), reason="this is not Debian")
def test_the_dpkg_of_this_machine():
    (package,) = packages_of(["/usr/bin/dpkg-query", OTHER]).values()
    assert (package.name, bool(package.version), package.manager) == ("dpkg", True, DPKG)


def test_rpm(answers):
    def query(argv):
        return Done(0, b"cri-o 1.30.1-1.el9\n", "") if argv[-1] == FILE else Done(1, b"not owned by any package\n", "")

    answers["rpm"] = {"--query": query}
    assert packages_of([FILE, OTHER]) == {FILE: Package("cri-o", "1.30.1-1.el9", RPM)}


def test_a_host_without_either(answers):
    assert packages_of([FILE]) == {}


def test_nobody_is_asked_for_nothing(answers):
    answers["dpkg-query"] = {}
    assert packages_of([]) == {}


def test_a_command_that_fails_tells_nothing(answers, monkeypatch):
    answers["dpkg-query"] = answers["rpm"] = {}
    monkeypatch.setattr(packages, "run_command", raising(HostError("timeout", code="command_failed")))
    assert packages_of([FILE]) == {}
