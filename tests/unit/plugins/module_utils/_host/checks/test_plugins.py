# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.checks.directory import check_plugins
from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import ConfFile
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError


def problems(tmp_path, plugins, versions=("1.0.0",)):
    def ask(name):
        if not versions:
            raise HostError(f"there is no plugin {name!r}", code="missing_plugin")
        return str(tmp_path / name), list(versions)

    file = ConfFile("10-net.conflist", "/etc/cni/net.d/10-net.conflist")
    file.network, file.cni_version, file.plugins, file.error, file.inlined_only = "net", "1.0.0", plugins, "", True
    binaries = SimpleNamespace(ask=ask, bin_dirs=[str(tmp_path)], is_changing=lambda plugin: False)
    found = check_plugins(binaries, [file], True)
    return [(entry.level, entry.code, entry.pointer) for entry in found]


@pytest.fixture
def without_tools(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))


def test_missing_tool_is_a_warning_for_the_plugin_that_needs_it(without_tools, tmp_path):
    bridge = {"type": "bridge", "ipMasq": True, "ipam": {"type": "host-local"}}
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    assert problems(tmp_path, [dict(bridge, ipMasq=False), portmap, {"type": "firewall"}]) == [
        ("warning", "missing_tool", "/plugins/1"),
        ("warning", "missing_tool", "/plugins/2"),
    ]
    assert problems(tmp_path, [bridge]) == [("warning", "missing_tool", "/plugins/0")]
    assert problems(tmp_path, [{"type": "loopback"}]) == []
    (tmp_path / "iptables").touch(mode=0o755)
    assert problems(tmp_path, [bridge, portmap]) == []


def test_a_missing_plugin_is_not_asked_for_its_tools(without_tools, tmp_path):
    assert [code for _level, code, _pointer in problems(tmp_path, [{"type": "firewall"}], ())] == ["missing_plugin"]
