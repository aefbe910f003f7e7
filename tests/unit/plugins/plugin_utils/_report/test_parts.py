# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import shlex

import pytest
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.splitter import parse_kv

from ansible_collections.podwire.cni.plugins.plugin_utils._report.commands import MOST_NAMES, Commands
from ansible_collections.podwire.cni.plugins.plugin_utils._report.findings import repairs
from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build
from ansible_collections.podwire.cni.plugins.plugin_utils._report.view import (
    MOST_LINES,
    MOST_ROWS,
    Bounded,
    containers_of,
    diff,
    files_of,
)


@pytest.mark.parametrize(
    "host",
    [
        "web1.example.net",
        "a b",
        "a'b",
        "$(id)",
        "all:!web",
        "a,b",
        "~x",
        "*",
        "-x",
        "@x",
        "{{x}}",
        "[a]",
        "a\\b",
        "\u05d0",
    ],
)
def test_a_command_is_for_that_host_and_no_other(host):
    words = shlex.split(Commands().playbook("drift", [host]))
    assert words[:3] == ["ansible-playbook", "podwire.cni.drift", "--limit"] and len(words) == 4
    # Hosts whose names differ in one character, and those that Ansible would find if it took the name apart.
    others = {host[:at] + "x" + host[at + 1 :] for at in range(len(host))} | {
        host + "x",
        "x" + host,
        "a",
        "b",
        "all-web",
    }
    assert limited(words[3], others | {host}) == [host]


def limited(limit, hosts):
    inventory = InventoryManager(DataLoader(), parse=False)
    for name in hosts:
        inventory.add_host(name)
    inventory.reconcile_inventory()
    inventory.subset(limit)
    return sorted(found.name for found in inventory.get_hosts())


def test_what_differs_between_commands_comes_first():
    commands = Commands(["/etc/a.yml", "/etc/b.yml"], folder="/srv/report")
    assert shlex.split(commands.playbook("remediate", ["k8s2"], cni_remediate_classes=["safe"])) == [
        "ansible-playbook",
        "podwire.cni.remediate",
        "--limit",
        "k8s2",
        "-e",
        '{"cni_remediate_classes": ["safe"]}',
        *("-i", "/etc/a.yml", "-i", "/etc/b.yml"),
        *("-e", "cni_report_dir=/srv/report"),
    ]


def test_hosts_are_named_by_their_group_only_if_it_has_no_others():
    groups = {"all": ["a1", "a2", "b"], "web": ["a1", "a2"], "odd name": ["b"], "one": ["b"]}
    commands = Commands(groups=groups)
    assert commands.limit(["a2", "a1"]) == "web"
    assert commands.limit(["a1", "a2", "b"]) == "all"
    # One host is named, and a part of a group, too.
    assert (commands.limit(["b"]), commands.limit(["a1", "b"])) == ("b", "a1,b")
    assert commands.limit([]) == commands.playbook("drift", []) == ""


@pytest.mark.parametrize("name", ["all", "ungrouped", "web"])
def test_a_host_with_the_name_of_a_group_has_no_command(name):
    assert Commands(groups={"web": ["x"]}).playbook("remediate", [name, "y"]) == ""


def test_many_hosts_are_in_a_file_whose_name_is_that_of_its_content(tmp_path):
    hosts = [f"h{number}" for number in range(MOST_NAMES)] + ["a b"]
    commands = Commands(folder=str(tmp_path))
    limit = commands.limit(hosts)
    [(name, content)] = list(commands.files.items())
    assert limit == f"@{tmp_path}/limits/{name}" and name.startswith("13-hosts-")
    (tmp_path / "limits").mkdir()
    (tmp_path / "limits" / name).write_text(content)
    assert limited(limit, {*hosts, "h99", "a", "b"}) == sorted(hosts)
    assert commands.limit([*hosts[:-1], "c"]) != limit
    # Ansible would take this path apart.
    assert limited(Commands(folder="/a, b").limit(hosts), {*hosts, "x"}) == sorted(hosts)


def test_a_folder_with_an_odd_name_survives_the_shell_and_ansible():
    words = shlex.split(Commands(["/my inventory"], folder="/a b/$(id)").playbook("remediate", ["h"]))
    assert words[4:6] == ["-i", "/my inventory"]
    assert json.loads(words[-1]) == {"cni_report_dir": "/a b/$(id)"}
    assert parse_kv(shlex.split(Commands(folder="/srv/x").playbook("remediate", ["h"]))[-1]) == {
        "cni_report_dir": "/srv/x"
    }


def host_with(name, *classes, leaks=0):
    steps = [{"kind": "write", "target": "/x", "class": step_class} for step_class in classes]
    return build(name, {"networks": {"actions": steps}}, {"garbage": [{"collectable": True}] * leaks})


def test_what_there_is_to_repair_has_a_command():
    assert list(repairs([host_with("h", "foreign", "foreign")], Commands())) == []
    hosts = [host_with("h", "safe"), host_with("i", "safe", "safe", "disruptive"), host_with("j", leaks=3)]
    found = [[what, *command.split()[1:4]] for what, command in repairs(hosts, Commands())]
    assert found == [
        ["Repair 2 hosts: no interruption", "podwire.cni.remediate", "--limit", "h,i"],
        ["Repair 1 host: containers lose their networks for a moment", "podwire.cni.remediate", "--limit", "i"],
        ["Collect what dead containers left on 1 host: no interruption", "podwire.cni.gc", "--limit", "j"],
    ]
    # Containers do not lose their networks because a plugin may become older.
    step = {"kind": "replace", "target": "/opt/cni/bin/bridge", "class": "disruptive"}
    older = build("o", {"plugins": {"actions": [step]}}, {})
    assert next(repairs([older], Commands()))[0].startswith("Replace plugins on 1 host: later calls run another")
    assert [what for what, _command in repairs([older, hosts[1]], Commands())][1].startswith("Repair 2 hosts")


def test_a_difference_has_some_lines_around_it():
    before = "".join(f"{letter}\n" for letter in "abcdefghijk")
    assert diff(before, before.replace("f", "F")).lines == [
        (" ", "c"),
        (" ", "d"),
        (" ", "e"),
        ("-", "f"),
        ("+", "F"),
        (" ", "g"),
        (" ", "h"),
        (" ", "i"),
    ]
    assert [sign for sign, _line in diff(before, before.replace("a", "A").replace("k", "K")).lines].count("@") == 1


def test_what_is_nested_too_deeply_has_no_difference():
    deep = [1]
    for _level in range(100_000):
        deep = [deep]
    assert diff({"a": deep}, {"a": [[deep]]}).lines == []


@pytest.mark.parametrize(("before", "after"), [(None, "a\n"), ("", "a"), (None, "a"), ("", "a\n")])
def test_what_is_not_there_has_no_lines(before, after):
    assert diff(before, after).lines == [("+", "a")]
    assert diff(before=after, after=before).lines == [("-", "a")]


def test_a_long_difference_says_what_is_left_out():
    made = diff("", "x\n" * 5000)
    assert len(made.lines) == MOST_LINES
    assert len(made.lines) + made.more == 5000


def test_all_of_what_appears_or_goes_is_marked():
    assert [diff(*states).whole for states in (("", "a"), ("a", None), ("a", "b"), ("", ""))] == ["+", "-", "", ""]


def attachment(name, **more):
    return {"network": "a", "container_id": name, "ifname": "eth0", "interface": True, "netns_state": "same", **more}


def test_containers_that_are_wrong_come_first():
    found = [attachment(name) for name in ("c1", "c2", "c3", "c4")]
    found[1]["netns_state"] = "gone"
    ports = [{"hostPort": 80, "containerPort": 8}, {"hostIP": "10.0.0.1", "hostPort": 53, "protocol": "UDP"}]
    found[3]["capability_args"] = {"portMappings": ports}
    made = containers_of({"attachments": found}, {"a/c3/eth0": "has lost its address"})
    assert [(row["container_id"], row["level"], row["state"]) for row in made] == [
        ("c2", "bad", "gone"),
        ("c3", "warn", "has lost its address"),
        ("c1", "good", "attached"),
        ("c4", "good", "attached"),
    ]
    assert made[3]["ports"] == ["80 \u2192 8/tcp", "10.0.0.1:53 \u2192 0/udp"]


def test_containers_of_runtimes_are_known_by_their_leases():
    owners = [{"container_id": "mine", "ips": ["1"]}, {"container_id": "its", "ips": ["10.1.0.2"]}]
    pools = [{"network": "a", "owners": owners}, {"network": "a", "owners": [{**owners[1], "ips": ["fd00::2"]}]}]
    drifted = {"a/its/net1": "the rules of its port mappings are gone"}
    its, mine = containers_of({"attachments": [attachment("mine")], "pools": pools}, drifted)
    assert (its["ips"], its["ifname"], its["state"]) == (["10.1.0.2", "fd00::2"], "net1", drifted["a/its/net1"])
    assert mine["state"] == "attached"


def test_what_a_dead_container_left_is_no_live_one():
    pool = {"network": "a", "owners": [{"container_id": name, "ips": ["1"]} for name in ("dead", "live", "young")]}
    leaks = [{"network": "a", "container_id": "dead", "collectable": True}]
    leaks += [{"network": "a", "container_id": "young", "collectable": False}]
    made = containers_of({"pools": [pool], "garbage": leaks}, {})
    assert [(row["container_id"], row["level"]) for row in made] == [
        ("dead", "muted"),
        ("live", "good"),
        ("young", "good"),
    ]


def test_a_file_has_the_device_of_its_network_and_how_pods_get_it():
    conf = [
        {"network": "n", "config": {"plugins": [{"type": "bridge"}, {"type": "portmap"}]}},
        {"network": "storage", "config": {"type": "macvlan", "master": "eth1"}},
    ]
    info = {"conf": conf, "kernel": {"links": [{"name": "cni0", "addresses": ["10.0.0.1/24"]}]}}
    info["runtime"] = [{"network": "m", "through": [{"network": "storage", "interface": "net1"}]}]
    assert [(row["device"], row["through"]) for row in files_of(info)] == [
        (["cni0", "10.0.0.1/24"], ""),
        (["eth1"], "m as net1"),
    ]


def test_lists_are_bounded():
    bounded = Bounded(list(range(MOST_ROWS + 5)))
    assert (len(bounded.shown), bounded.more, bounded.all) == (MOST_ROWS, 5, MOST_ROWS + 5)
