# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import dead_netns
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.dead_netns import DeadNetnsExecutor
from ansible_collections.podwire.cni.plugins.module_utils._host.executor import SafeExecutor
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError


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
    monkeypatch.setattr(dead_netns, "EmptyNetns", lambda ifname: contextlib.nullcontext(f"/empty/{ifname}"))
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
    monkeypatch.setattr(dead_netns, "EmptyNetns", lambda ifname: contextlib.nullcontext("/broken"))
    with pytest.raises(PluginError, match="failed in ''"):
        run("DEL", "")

    def impossible(ifname):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(dead_netns, "EmptyNetns", impossible)
    with pytest.raises(PluginError, match="failed in ''"):
        run("DEL", "")
