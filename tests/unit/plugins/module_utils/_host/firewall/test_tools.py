# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which rules and which commands a plugin needs; tests/host has the plugins themselves."""

from __future__ import annotations

import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import tools
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.kinds import made_by

MASQUERADING = {"type": "bridge", "ipMasq": True, "ipam": {"type": "host-local"}}
MAPPINGS = {"portMappings": [{"hostPort": 80, "containerPort": 80}]}
PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}


@pytest.mark.parametrize(
    ("plugin", "capability_args", "kinds"),
    [
        ({"type": "bridge", "ipMasq": True}, {}, ["ipmasq"]),
        ({"type": "ptp", "ipMasq": True}, {}, ["ipmasq"]),
        ({"type": "bridge", "ipMasq": False}, {}, []),
        ({"type": "bridge"}, {}, []),
        ({"type": "macvlan", "ipMasq": True}, {}, []),
        ({"type": "bridge", "macspoofchk": True}, {}, ["macspoofchk"]),
        ({"type": "bridge", "macspoofchk": True, "ipMasq": True}, {}, ["ipmasq", "macspoofchk"]),
        ({"type": "ptp", "macspoofchk": True}, {}, []),
        (PORTMAP, MAPPINGS, ["portmap"]),
        (PORTMAP, {}, []),
        ({"type": "tuning", "capabilities": {"portMappings": True}}, MAPPINGS, []),
        ({"type": "portmap", "capabilities": {"portMappings": False}}, MAPPINGS, []),
        ({"type": "portmap", "capabilities": ["portMappings"]}, MAPPINGS, []),
        ({"type": "portmap"}, MAPPINGS, []),
        ({"type": "firewall"}, {}, ["firewall"]),
        ({"type": "firewall", "backend": ""}, {}, ["firewall"]),
        ({"type": "firewall", "backend": "iptables"}, {}, ["firewall"]),
        ({"type": "firewall", "backend": "firewalld"}, {}, []),
        ({"type": "tuning", "backend": "iptables"}, {}, []),
    ],
)
def test_the_rules_of_a_plugin(plugin, capability_args, kinds):
    assert made_by(plugin, capability_args) == kinds


class Host:
    """A host with these commands and plugins, and with or without a system bus."""

    def __init__(self, path, monkeypatch):
        self.commands = set()
        self.bin = path / "bin"
        self.bin.mkdir()
        self.bus = path / "bus"
        monkeypatch.setattr(tools.shutil, "which", lambda name: f"/usr/sbin/{name}" if name in self.commands else None)
        monkeypatch.setattr(tools, "_BUS", str(self.bus))

    def plugin(self, name, *words):
        path = self.bin / name
        path.write_text(" ".join(words))
        path.chmod(0o755)

    def missing(self, plugin, capability_args=None, bin_dirs=()):
        return tools.missing_tool([plugin], capability_args or {}, [str(self.bin)] if bin_dirs == () else bin_dirs)


@pytest.fixture
def fake(tmp_path, monkeypatch):
    return Host(tmp_path, monkeypatch)


def test_a_bridge_masquerades_only_addresses(fake):
    assert fake.missing({"type": "bridge"}) is fake.missing({"type": "bridge", "ipMasq": True}) is None
    assert fake.missing(MASQUERADING) == ("bridge", "iptables")
    # ptp needs an ipam.
    assert fake.missing({"type": "ptp", "ipMasq": True}) == ("ptp", "iptables")


def test_a_plugin_that_knows_only_iptables(fake):
    fake.plugin("bridge", "iptables")
    fake.commands = {"nft"}
    assert fake.missing(MASQUERADING) == ("bridge", "iptables")
    # It does not know the option.
    assert fake.missing({**MASQUERADING, "ipMasqBackend": "nftables"}) == ("bridge", "iptables")
    # A binary that is not there is not a newer one.
    assert fake.missing({**MASQUERADING, "type": "ptp"}) == ("ptp", "iptables")
    fake.commands = {"iptables"}
    assert fake.missing({**MASQUERADING, "ipMasqBackend": "nftables"}) is None


def test_a_plugin_that_knows_both(fake):
    fake.plugin("bridge", "cni_plugins_masquerade")
    assert fake.missing(MASQUERADING) == ("bridge", "iptables")
    assert fake.missing({**MASQUERADING, "ipMasqBackend": "nftables"}) == ("bridge", "nft")
    fake.commands = {"nft"}
    assert fake.missing(MASQUERADING) is None
    assert fake.missing({**MASQUERADING, "ipMasqBackend": "nftables"}) is None
    assert fake.missing({**MASQUERADING, "ipMasqBackend": "iptables"}) == ("bridge", "iptables")
    fake.commands = {"iptables"}
    assert fake.missing(MASQUERADING) is None
    assert fake.missing({**MASQUERADING, "ipMasqBackend": "nftables"}) == ("bridge", "nft")


def test_a_plugin_that_is_still_to_be_installed_may_know_both(fake):
    fake.commands = {"nft"}
    assert fake.missing(MASQUERADING, bin_dirs=None) is None
    assert fake.missing(MASQUERADING, bin_dirs=[]) == ("bridge", "iptables")


def test_port_mappings(fake):
    assert fake.missing(PORTMAP) is None
    assert fake.missing(PORTMAP, MAPPINGS) == ("portmap", "iptables")
    assert fake.missing({"type": "portmap", "runtimeConfig": MAPPINGS}) == ("portmap", "iptables")
    assert fake.missing({"type": "portmap", "runtimeConfig": {"portMappings": []}}) is None
    assert fake.missing({"type": "tuning", "runtimeConfig": MAPPINGS}) is None
    fake.plugin("portmap", "cni_hostport")
    assert fake.missing({**PORTMAP, "backend": "nftables"}, MAPPINGS) == ("portmap", "nft")


def test_without_a_port_portmap_needs_no_command(fake):
    (finding,) = tools.tool_obstacles([PORTMAP], MAPPINGS, [])
    assert (finding.level, finding.evidence[:8]) == ("warning", "PATH is ")
    assert "plugin portmap needs iptables, which is not in PATH, to publish ports" in finding.what
    (finding,) = tools.tool_obstacles([MASQUERADING, PORTMAP], MAPPINGS, [])
    assert (finding.level, finding.what) == ("error", "plugin bridge needs iptables, which is not in PATH")


@pytest.mark.parametrize(("conditions", "missing"), [(["!", "-s", "10.0.0.0/8"], True), (["ip", "saddr"], False)])
def test_conditions_of_iptables_need_it_in_any_case_where_portmap_would_take_nft(fake, conditions, missing):
    fake.plugin("portmap", "cni_hostport")
    plugin = {**PORTMAP, "conditionsV4": conditions}
    assert fake.missing(plugin) is None
    fake.commands = {"nft"}
    assert fake.missing(plugin) == (("portmap", "iptables") if missing else None)
    fake.plugin("portmap", "")
    assert fake.missing(plugin) is None


def test_macspoofchk_needs_nft(fake):
    fake.commands = {"iptables"}
    assert fake.missing({"type": "bridge", "macspoofchk": True}) == ("bridge", "nft")


def test_the_backends_of_firewall(fake):
    assert fake.missing({"type": "firewall"}) == ("firewall", "iptables")
    assert fake.missing({"type": "firewall", "backend": "firewalld"}) == ("firewall", "firewalld")
    fake.commands = {"firewalld"}
    assert fake.missing({"type": "firewall", "backend": "firewalld"}) is None
    assert fake.missing({"type": "firewall"}) == ("firewall", "iptables")
    # firewalld can be reached through the bus only.
    fake.bus.touch()
    assert fake.missing({"type": "firewall"}) is None
    assert fake.missing({"type": "firewall", "backend": "iptables"}) == ("firewall", "iptables")
    # The policy is made of rules of iptables, whatever the backend.
    for policy in ("same-bridge", "isolated"):
        plugin = {"type": "firewall", "backend": "firewalld", "ingressPolicy": policy}
        assert fake.missing(plugin) == ("firewall", "iptables")
    assert fake.missing({"type": "firewall", "ingressPolicy": "open"}) is None


def test_the_message_names_the_package(fake):
    (iptables,) = tools.tool_obstacles([MASQUERADING], {}, [])
    error = iptables.error("cannot attach pods")
    needs = "plugin bridge needs iptables, which is not in PATH"
    text = f"cannot attach pods: {needs} (PATH is {os.environ['PATH']}); install it (package iptables)"
    assert (error.code, error.msg) == ("missing_tool", text)
    (nft,) = tools.tool_obstacles([{"type": "macvlan"}, {"type": "bridge", "macspoofchk": True}], {}, [])
    assert (nft.what[-31:], nft.remedy) == ("needs nft, which is not in PATH", "install it (package nftables)")
    fake.commands = {"iptables"}
    assert list(tools.tool_obstacles([MASQUERADING], {}, [])) == []


class Commands:
    """Commands that end with this status and message."""

    def __init__(self, path, monkeypatch):
        self.path = path
        monkeypatch.setattr(tools.shutil, "which", self.which)

    def which(self, name):
        path = self.path / name
        return str(path) if path.exists() else None

    def add(self, name, status=0, said=""):
        script = self.path / name
        script.write_text(f'#!/bin/sh\necho "$@" >>{self.path}/log\necho "{said}" >&2\nexit {status}\n')
        script.chmod(0o755)

    def log(self):
        log = self.path / "log"
        text = log.read_text() if log.exists() else ""
        log.write_text("")
        return text.splitlines()


@pytest.fixture
def commands(tmp_path, monkeypatch):
    return Commands(tmp_path, monkeypatch)


def test_the_commands_are_tried(commands):
    commands.add("iptables")
    commands.add("nft")
    tools.try_tools("x", [MASQUERADING], {}, [])
    assert commands.log() == ["-w 5 -t nat -S POSTROUTING"]
    tools.try_tools("x", [{"type": "firewall"}], {}, [])
    assert commands.log() == ["-w 5 -t filter -S FORWARD"]
    tools.try_tools("x", [PORTMAP], MAPPINGS, [])
    assert commands.log() == ["-w 5 -t nat -S POSTROUTING"]
    tools.try_tools("x", [{"type": "bridge", "macspoofchk": True}], {}, [])
    assert commands.log() == ["list tables"]


def test_nothing_is_tried_of_firewalld_or_of_what_is_missing(commands):
    commands.add("firewalld", status=1)
    tools.try_tools("x", [{"type": "firewall", "backend": "firewalld"}, MASQUERADING], {}, [])
    assert commands.log() == []


def test_a_command_that_others_than_root_can_change_is_not_run(commands):
    commands.add("iptables")
    (commands.path / "iptables").chmod(0o775)
    with pytest.raises(HostError) as caught:
        tools.try_tools("x", [MASQUERADING], {}, [])
    assert (caught.value.code, commands.log()) == ("unsafe_permissions", [])
