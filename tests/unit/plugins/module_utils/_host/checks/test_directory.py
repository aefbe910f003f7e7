# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.usable import Binaries
from ansible_collections.podwire.cni.plugins.module_utils._host.checks.directory import (
    check_plugins,
    directory_problems,
    file_problems,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.checks.view import ConfView, network_problems
from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import ConfFile, sort_key
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.model import uses_of_network

LO = {"type": "loopback"}


@pytest.fixture
def check(directory, tmp_path):
    def run(before=(), wanted=(), managed=(), after=None):
        files = directory.files if after is None else after
        files = sorted(files, key=lambda file: sort_key(file.name))
        view = ConfView(directory.path, list(before), files, set(managed), set(wanted))
        binaries = Binaries([str(tmp_path)], HostView(Manifest(str(tmp_path / "state"))))
        return directory_problems(view, binaries)

    return run


def found(problems):
    return [(entry.level, entry.code, entry.file) for entry in problems]


def test_a_clean_directory_has_no_problems(directory, check):
    before = [directory.add("a", LO)]
    directory.add("b", LO, name="20-b.conflist")
    assert check(before, wanted=["20-b.conflist"], managed=["10-a.conflist"]) == []


def test_another_network_in_front_is_a_flip(directory, check):
    before = [directory.add("podman", LO, name="87-podman.conflist")]
    directory.add("a", LO)
    (problem,) = check(before, wanted=["10-a.conflist"])
    assert found([problem]) == [("warning", "order_flip", "/net.d/10-a.conflist")]
    assert all(word in problem.message for word in ("87-podman.conflist", "'podman'", "'a'", "priority"))


def test_a_flip_by_a_network_that_goes_needs_no_priority(directory, check):
    going, staying = directory.add("a", LO), directory.add("podman", LO, name="87-podman.conflist")
    (problem,) = check([going, staying], after=[staying])
    assert found([problem]) == [("warning", "order_flip", "/net.d/87-podman.conflist")]
    assert "priority" not in problem.message


def test_a_flip_is_seen_as_text_and_by_network(directory, check):
    before = [directory.add("a", LO, name="20-a.conflist")]
    directory.add("b", LO, name="100-b.conflist")
    assert found(check(before)) == [("warning", "order_flip", "/net.d/100-b.conflist")]
    again = directory.add("a", LO, name="10-a.conflist")
    assert check(before, after=[again]) == []
    assert check(after=[again]) == []
    assert check(before, after=[]) == []


def test_a_file_without_a_network_is_no_first_one(directory, check):
    broken = directory.put("05-broken.conflist", b"{")
    network = directory.add("a", LO)
    assert "order_flip" not in [problem.code for problem in check([broken], after=[network])]
    assert "order_flip" not in [problem.code for problem in check([network], after=[broken, network])]


def test_another_name_in_the_first_file_is_a_flip_of_the_name(directory, check):
    before = [directory.add("a", LO, name="main.conflist")]
    after = [directory.add("b", LO, name="main.conflist")]
    (problem,) = check(before, wanted=["main.conflist"], after=after)
    assert (problem.code, problem.pointer) == ("name_flip", "/name")
    assert all(word in problem.message for word in ("'a'", "'b'", "detach"))


def test_one_name_in_two_files_is_reported_at_the_second(directory, check):
    directory.add("a", LO)
    directory.add("a", LO, name="20-a.conflist")
    assert found(check(directory.files)) == [("warning", "duplicate_name", "/net.d/20-a.conflist")]


@pytest.mark.parametrize("single", ["05-a.conf", "20-a.json"])
def test_one_network_as_list_and_single_plugin(directory, check, single):
    directory.add("a", LO)
    directory.add("a", LO, name=single)
    problems = [entry for entry in check(directory.files) if entry.level == "warning"]
    assert found(problems) == [("warning", "conf_and_conflist", "/net.d/" + single)]
    first = min("10-a.conflist", single)
    assert f"loads the conflist (10-a.conflist); by order, runtimes load {first}," in problems[0].message


def test_drop_ins_are_told_of_whoever_has_the_list(tmp_path, directory, check):
    directory.path = str(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "50-x.conf").write_text('{"type": "loopback"}')
    directory.add("a", LO)
    path = str(tmp_path / "a" / "50-x.conf")
    assert found(check(directory.files, wanted=["10-a.conflist"])) == [("warning", "drop_in", path)]
    assert found(check(directory.files)) == [("info", "drop_in", path)]
    (tmp_path / "a" / "50-x.conf").write_text("{")
    directory.files[0].folder = None
    assert found(check(directory.files, wanted=["10-a.conflist"])) == [("error", "drop_in_broken", path)]
    assert found(check(directory.files)) == [("warning", "drop_in_broken", path)]


LIST = b'{"cniVersion": "1.0.0", "name": "x", "plugins": [{"type": "loopback"}]}'
SINGLE = b'{"cniVersion": "1.0.0", "name": "x", "type": "loopback"}'


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (".ansible_tmpabc10-a.conflist", b"", [("warning", "temp_file")]),
        (".10-a.conflist", LIST, [("warning", "hidden_file")]),
        ("05-broken.conflist", b"", [("warning", "broken_file")]),
        (".05-broken.conflist", b"", [("warning", "broken_file"), ("warning", "hidden_file")]),
        ("50-x-backup.conflist", LIST, [("warning", "backup_file")]),
        ("50-x.old.conflist", LIST, [("warning", "backup_file")]),
        ("50-x_bak2.conf", SINGLE, [("warning", "backup_file")]),
        ("50-goldfish.conflist", LIST, []),
        ("50-x.conf", SINGLE, [("info", "single_plugin")]),
        ("50-x.json", SINGLE, [("info", "single_plugin")]),
        ("50-x.json", b'{"hello": "world"}', [("warning", "stray_json")]),
        ("50-x.json", b"[1]", [("warning", "stray_json")]),
        ("50-x.json", b"{", [("warning", "broken_file")]),
        ("50-x.conf", b'{"hello": "world"}', [("warning", "broken_file")]),
        ("50-x.conf", LIST, [("warning", "list_in_conf")]),
        ("50-x.json", LIST, [("warning", "list_in_conf")]),
    ],
)
def test_files_of_others_that_a_runtime_reads_by_mistake(directory, name, text, expected):
    directory.put(name, text)
    directory.add("a", {"type": "loopback"})
    found = list(file_problems(directory.view(managed=["10-a.conflist"], wanted=[])))
    assert [(entry.level, entry.code) for entry in found] == expected
    assert {entry.file for entry in found} <= {"/net.d/" + name}


def test_a_list_in_a_conf_is_to_be_renamed(directory):
    directory.put("50-x.conf", LIST)
    (problem,) = file_problems(directory.view(wanted=[]))
    assert "rename it to 50-x.conflist" in problem.message


def test_our_own_files_are_not_complained_about(directory):
    directory.put("50-x.bak.conflist", LIST)
    assert list(file_problems(directory.view(wanted=[], managed=["50-x.bak.conflist"]))) == []
    assert list(file_problems(directory.view())) == []


@pytest.mark.parametrize(("name", "fatal"), [("05-x.conflist", True), ("20-x.conflist", False)])
def test_what_a_broken_file_does_depends_on_where_it_sorts(directory, name, fatal):
    directory.put(name, b"")
    directory.add("a", {"type": "loopback"})
    (problem,) = file_problems(directory.view(wanted=["10-a.conflist"]))
    assert ("no network at all" in problem.message) == fatal


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


# ---- single networks

BRIDGE = {"type": "bridge"}
PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}


def problems_of(view, file):
    return network_problems(view, file, uses_of_network(file))


@pytest.fixture
def alone(directory, codes):
    def run(*plugins, **options):
        file = directory.add("a", *plugins)
        return codes(problems_of(directory.view(**options), file))

    return run


@pytest.mark.parametrize("kind", ["portmap", "bandwidth", "firewall", "tuning", "sbr", "vrf"])
def test_a_plugin_that_needs_an_interface_cannot_come_first(alone, kind):
    found = alone({"type": kind, "capabilities": {"portMappings": True, "bandwidth": True}}, BRIDGE)
    assert found == [("error", "chain_order", "/net.d/10-a.conflist", "/plugins/0")]


@pytest.mark.parametrize("kind", ["bridge", "ptp", "macvlan", "vlan", "host-device", "dummy", "flannel"])
def test_a_second_interface_of_the_same_name_cannot_be_made(alone, kind):
    assert alone(BRIDGE, PORTMAP, {"type": kind}) == [("error", "chain_order", "/net.d/10-a.conflist", "/plugins/2")]


@pytest.mark.parametrize("kind", ["loopback", "tap", "ipvlan", "tuning", "istio-cni", "tc-redirect-tap"])
def test_these_may_follow(alone, kind):
    assert alone(BRIDGE, {"type": kind}) == []


def test_between_others_it_is_only_to_be_known(alone):
    assert alone({"type": "tuning"}, wanted=[])[0][:2] == ("info", "chain_order")
    assert alone({"type": "tuning"}, wanted=[], managed=["10-a.conflist"])[0][:2] == ("warning", "chain_order")


def test_the_message_says_where_it_belongs(directory):
    first = directory.add("a", {"type": "tuning"}, {"type": "ptp"})
    assert "put it after ptp" in next(problems_of(directory.view(), first)).message
    other = directory.add("b", {"type": "tuning"})
    assert "begin with one such as bridge" in next(problems_of(directory.view(), other)).message


@pytest.mark.parametrize(
    "plugin",
    [
        {"type": "portmap"},
        {"type": "portmap", "capabilities": {"portMappings": False}},
        {"type": "portmap", "capabilities": {"portmappings": True}},
        {"type": "bandwidth"},
        {"type": "bandwidth", "ingressRate": 0},
        {"type": "bandwidth", "runtimeConfig": {"bandwidth": {}}},
        {"type": "portmap", "runtimeConfig": {"portMappings": []}},
        # The plugin reads limits beside its type, or under runtimeConfig; tried with 1.1.1 and 1.9.1.
        {"type": "bandwidth", "bandWidth": {"ingressRate": 1000, "ingressBurst": 1000}},
    ],
)
def test_a_capability_that_is_not_declared_never_arrives(alone, plugin):
    assert alone(BRIDGE, plugin) == [("warning", "capability_missing", "/net.d/10-a.conflist", "/plugins/1")]


@pytest.mark.parametrize(
    "plugin",
    [
        PORTMAP,
        {"type": "portmap", "Capabilities": {"portMappings": True}},
        {"type": "bandwidth", "capabilities": {"bandwidth": True}},
        {"type": "bandwidth", "ingressrate": 1000, "ingressBurst": 1000},
        {"type": "bandwidth", "runtimeConfig": {"bandWidth": {"egressRate": 1000, "egressBurst": 1000}}},
        {"type": "bandwidth", "RuntimeConfig": {"bandwidth": {"ingressrate": 1000, "ingressBurst": 1000}}},
        {"type": "bandwidth", "capabilities": {"bandWidth": True}},
        {"type": "portmap", "runtimeConfig": {"PortMappings": [{"hostPort": 80, "containerPort": 80}]}},
    ],
)
def test_declared_in_any_way_or_written_under_runtimeconfig_as_bandwidth_it_arrives(alone, plugin):
    assert alone(BRIDGE, plugin) == []


def test_a_single_plugin_has_no_place_in_a_list(directory, codes):
    file = directory.add("a", {"type": "portmap"}, name="10-a.conf")
    assert {entry[3] for entry in codes(problems_of(directory.view(), file))} == {""}
