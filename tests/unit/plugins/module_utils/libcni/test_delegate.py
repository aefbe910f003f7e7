# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Delegation out of a plugin (Go: pkg/invoke/delegate_test.go)."""

from __future__ import annotations

import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import delegate, skel
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import (
    CNIError,
    PluginError,
    PluginNotFoundError,
)

RESULT = '{"cniVersion":"1.0.0","ips":[{"address":"10.1.2.3/24"}]}'


@pytest.fixture
def conf(world, monkeypatch):
    """A configuration whose noop records; the environment of a plugin that is about to delegate."""
    debug = world.debug(ReportResult=RESULT)
    monkeypatch.setenv("CNI_PATH", f"/nowhere:{world.bin}")
    monkeypatch.setenv("CNI_COMMAND", "caller's")
    monkeypatch.setenv("CNI_CONTAINERID", "cid")
    monkeypatch.setenv("CNI_NETNS", "/ns")
    monkeypatch.setenv("CNI_IFNAME", "eth7")
    monkeypatch.setenv("CNI_ARGS", f"DEBUG={debug.path};FOO=BAR")
    return debug, b'{"name":"delegated","cniVersion":"1.1.0","type":"noop"}'


def test_delegate_add(conf):
    debug, text = conf
    result = delegate.delegate_add("noop", text)
    assert result.addresses == ["10.1.2.3/24"]
    assert debug.command == "ADD"
    assert os.environ["CNI_COMMAND"] == "caller's"
    args = debug.args
    assert (args["CONTAINERID"], args["NETNS"], args["IFNAME"]) == ("cid", "/ns", "eth7")
    assert args["ARGS"] == f"DEBUG={debug.path};FOO=BAR"
    assert args["StdinData"].encode() == text


@pytest.mark.parametrize(
    ("function", "command"),
    [
        (delegate.delegate_check, "CHECK"),
        (delegate.delegate_delete, "DEL"),
        (delegate.delegate_status, "STATUS"),
        (delegate.delegate_gc, "GC"),
    ],
)
def test_delegates_without_result(conf, function, command):
    debug, text = conf
    assert function("noop", text) is None
    assert debug.command == command
    debug.set(ReportError="banana")
    with pytest.raises(PluginError, match=r"^banana$"):
        function("noop", text)


def test_delegate_that_is_not_there(conf, monkeypatch):
    with pytest.raises(PluginNotFoundError, match=r'failed to find plugin "nope"'):
        delegate.delegate_add("nope", conf[1])
    monkeypatch.delenv("CNI_PATH")
    with pytest.raises(PluginNotFoundError, match=r"^no paths provided$"):
        delegate.delegate_delete("noop", conf[1])


@pytest.mark.parametrize("command", ["A", None])
def test_delegate_args_leave_the_environment_alone(monkeypatch, command):
    if command:
        monkeypatch.setenv("CNI_COMMAND", command)
    before = dict(os.environ)
    assert delegate.delegate_args("B") == {**before, "CNI_COMMAND": "B"}
    assert dict(os.environ) == before


def test_ipam(world, monkeypatch):
    monkeypatch.setenv("CNI_PATH", str(world.bin))
    log = world.path / "log"
    args = skel.CmdArgs(stdin_data=b'{"cniVersion": "1.0.0", "name": "n", "ipam": {"type": "pool"}}')
    answer = '{"cniVersion": "1.0.0", "ips": [{"address": "10.1.0.2/24"}]}'
    world.script(
        "pool", f"echo $CNI_COMMAND >> {log}; cat > {log}.stdin; [ $CNI_COMMAND = ADD ] && echo '{answer}' || :"
    )
    assert delegate.ipam_add(args).addresses == ["10.1.0.2/24"]
    for call in (delegate.ipam_check, delegate.ipam_delete, delegate.ipam_status, delegate.ipam_gc):
        call(args)
    assert log.read_text().split() == ["ADD", "CHECK", "DEL", "STATUS", "GC"]
    assert (world.path / "log.stdin").read_bytes() == args.stdin_data
    world.script("pool", "echo '{}'")
    with pytest.raises(CNIError, match="IPAM plugin returned missing IP config"):
        delegate.ipam_add(args)
    with pytest.raises(PluginError, match="names no IPAM plugin") as caught:
        delegate.ipam_add(skel.CmdArgs())
    assert caught.value.code == 7
