# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import os
import subprocess

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import verbs
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.verbs import DeadNetnsExecutor, empty_netns
from ansible_collections.podwire.cni.plugins.module_utils._host.executor import SafeExecutor
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import raising


@pytest.fixture
def calls(monkeypatch):
    """A plugin that fails without a namespace, and an empty namespace that is only a path."""
    made = []

    def exec_plugin(self, path, stdin, env, timeout=None):
        made.append(env["CNI_NETNS"])
        if not env["CNI_NETNS"] or env["CNI_NETNS"] == "/broken":
            raise PluginError(999, f"failed in {env['CNI_NETNS']!r}", plugin="sbr")
        return b"fine"

    monkeypatch.setattr(SafeExecutor, "exec_plugin", exec_plugin)
    monkeypatch.setattr(verbs, "empty_netns", lambda ifname: contextlib.nullcontext(f"/empty/{ifname}"))
    return made


def run(command, netns):
    env = {"CNI_COMMAND": command, "CNI_NETNS": netns, "CNI_IFNAME": "eth0"}
    return DeadNetnsExecutor().exec_plugin("/opt/cni/bin/sbr", b"{}", env, 5)


def test_a_del_that_fails_without_a_namespace_gets_an_empty_one(calls):
    assert run("DEL", "") == b"fine"
    assert calls == ["", "/empty/eth0"]


def test_nothing_else_is_tried_twice(calls):
    assert run("DEL", "/run/netns/web") == b"fine"
    for command, netns in (("DEL", "/broken"), ("ADD", ""), ("CHECK", "")):
        with pytest.raises(PluginError):
            run(command, netns)
    assert calls == ["/run/netns/web", "/broken", "", ""]


def test_if_that_fails_too_the_first_failure_counts(calls, monkeypatch):
    monkeypatch.setattr(verbs, "empty_netns", lambda ifname: contextlib.nullcontext("/broken"))
    with pytest.raises(PluginError, match="failed in ''"):
        run("DEL", "")

    monkeypatch.setattr(verbs, "empty_netns", raising(OSError(1, "Operation not permitted")))
    with pytest.raises(PluginError, match="failed in ''"):
        run("DEL", "")


# ---- the namespace itself


def links(path):
    done = subprocess.run(["nsenter", f"--net={path}", "ip", "-o", "link"], check=True, capture_output=True, text=True)
    return [line.split(":")[1].strip() for line in done.stdout.splitlines()]


def test_the_namespace_is_another_one_and_ends():
    here = os.stat("/proc/self/ns/net").st_ino
    with empty_netns() as path:
        assert os.stat(path).st_ino != here
        assert links(path) == ["lo"]
        assert os.stat("/proc/self/ns/net").st_ino == here
    # The kernel ends the namespace with its last descriptor.
    assert not os.path.exists(path)


def test_its_only_interface_has_the_name_of_the_container_s():
    with empty_netns("eth0") as path:
        assert links(path) == ["eth0"]


def test_a_namespace_that_cannot_be_made(monkeypatch):
    monkeypatch.setattr(verbs, "unshare", raising(OSError(1, "Operation not permitted")))
    with pytest.raises(OSError, match="Operation not permitted"):
        empty_netns("eth0").__enter__()
