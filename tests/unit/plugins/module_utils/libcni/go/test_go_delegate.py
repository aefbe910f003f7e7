# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Delegation out of a plugin (Go: pkg/invoke/delegate_test.go and, of args_test.go, DelegateArgs)."""

from __future__ import annotations

import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import delegate
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginNotFoundError

CONF = b'{"cniVersion":"1.1.0","name":"delegate-test"}'
RESULT = '{"cniVersion":"1.1.0","ips":[{"address":"10.1.2.3/24"}]}'
DELEGATES = [
    (delegate.delegate_add, "ADD"),
    (delegate.delegate_check, "CHECK"),
    (delegate.delegate_delete, "DEL"),
    (delegate.delegate_status, "STATUS"),
]


@pytest.fixture
def debug(world, monkeypatch):
    debug = world.debug(ReportResult=RESULT)
    for name, value in {
        "ARGS": f"DEBUG={debug.path}",
        "PATH": str(world.bin),
        "NETNS": "/tmp/some/netns/path",
        "IFNAME": "eth7",
        "CONTAINERID": "container",
    }.items():
        monkeypatch.setenv(f"CNI_{name}", value)
    return debug


@pytest.mark.parametrize(("function", "command"), DELEGATES)
@pytest.mark.parametrize("own_command", ["the same", "NOPE"])
def test_finds_and_runs_the_plugin(debug, monkeypatch, function, command, own_command):
    own_command = command if own_command == "the same" else own_command
    monkeypatch.setenv("CNI_COMMAND", own_command)
    result = function("noop", CONF)
    if command == "ADD":
        assert result.to_json() == RESULT.encode()
    assert (debug.command, debug.args["IFNAME"]) == (command, "eth7")
    assert os.environ["CNI_COMMAND"] == own_command


@pytest.mark.parametrize(("function", "command"), DELEGATES)
def test_plugin_that_is_not_there(debug, monkeypatch, function, command):
    monkeypatch.setenv("CNI_COMMAND", command)
    with pytest.raises(PluginNotFoundError, match=r"^failed to find plugin"):
        function("non-existent-plugin", CONF)


def test_command_is_added_to_an_environment_without(monkeypatch):
    monkeypatch.delenv("CNI_COMMAND", raising=False)
    assert delegate.delegate_args("ADD") == {**os.environ, "CNI_COMMAND": "ADD"}
    assert "CNI_COMMAND" not in os.environ
