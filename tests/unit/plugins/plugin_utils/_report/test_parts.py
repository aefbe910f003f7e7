# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import shlex

import pytest
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.splitter import parse_kv

from ansible_collections.podwire.cni.plugins.plugin_utils._report.commands import pattern, playbook, repairs
from ansible_collections.podwire.cni.plugins.plugin_utils._report.differences import MOST_LINES, diff
from ansible_collections.podwire.cni.plugins.plugin_utils._report.drawing import MOST_CONTAINERS, MOST_NETWORKS, draw
from ansible_collections.podwire.cni.plugins.plugin_utils._report.view import MOST_ROWS, Bounded


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
    words = shlex.split(playbook("drift", host))
    assert words[:3] == ["ansible-playbook", "podwire.cni.drift", "-e"] and len(words) == 4
    chosen = parse_kv(words[3])["cni_hosts"]
    # Hosts whose names differ in one character, and those that Ansible would find if it took the name apart.
    others = {host[:at] + "x" + host[at + 1 :] for at in range(len(host))} | {
        host + "x",
        "x" + host,
        "a",
        "b",
        "all-web",
    }
    inventory = InventoryManager(DataLoader(), parse=False)
    for name in others | {host}:
        inventory.add_host(name)
    assert [found.name for found in inventory.get_hosts(pattern=chosen)] == [host]


def test_a_plain_name_stays_readable_in_a_command():
    assert playbook("drift", "web1.example.net") == "ansible-playbook podwire.cni.drift -e cni_hosts=web1.example.net"
    assert pattern("a b.c") == r"~^a\x20b\x2ec$"


def test_what_there_is_to_repair_has_a_command():
    assert repairs("h", {"foreign": 2}, 0) == []
    found = [command for _what, command in repairs("h", {"safe": 1, "disruptive": 1}, 3)]
    assert [command.split()[1] for command in found] == [
        "podwire.cni." + name for name in ("remediate", "remediate", "gc")
    ]


def test_a_difference_has_some_lines_around_it():
    before = dict.fromkeys("abcdefghijk", 1)
    assert diff(before, {**before, "f": 2}).lines == [
        (" ", '  "c": 1,'),
        (" ", '  "d": 1,'),
        (" ", '  "e": 1,'),
        ("-", '  "f": 1,'),
        ("+", '  "f": 2,'),
        (" ", '  "g": 1,'),
        (" ", '  "h": 1,'),
        (" ", '  "i": 1,'),
    ]
    assert [sign for sign, _line in diff({**before, "a": 2}, {**before, "k": 2}).lines].count("@") == 1


@pytest.mark.parametrize(("before", "after"), [(None, "a\n"), ("", "a"), (None, "a"), ("", "a\n")])
def test_what_is_not_there_has_no_lines(before, after):
    assert diff(before, after).lines == [("+", "a")]
    assert diff(before=after, after=before).lines == [("-", "a")]


def test_a_long_difference_says_what_is_left_out():
    made = diff("", "x\n" * 5000)
    assert len(made.lines) == MOST_LINES
    assert len(made.lines) + made.more == 5000


def attachment(name, **more):
    return {"network": "a", "container_id": name, "ifname": "eth0", "interface": True, "netns_state": "same", **more}


def test_a_drawing_shows_first_what_is_wrong_and_counts_the_rest():
    rows = [attachment("c%03d" % number) for number in range(440)]
    rows[300]["netns_state"] = "gone"
    rows[400]["capability_args"] = {"portMappings": [{"hostPort": 80 + n, "containerPort": 8} for n in range(5)]}
    made = draw({"attachments": rows}, {"a/c350/eth0"})
    (network,) = made.networks
    assert [(one.name, one.state) for one in network.containers[:4]] == [
        ("c300", "gone"),
        ("c350", "drift"),
        ("c400", "good"),
        ("c000", "good"),
    ]
    assert network.containers[2].ports == ["80 \u2192 8/tcp", "81 \u2192 8/tcp", "and 3 more"]
    assert (len(network.containers), network.more) == (MOST_CONTAINERS, 440 - MOST_CONTAINERS)


def test_a_drawing_knows_containers_of_runtimes_by_their_leases():
    pool = {"network": "a", "owners": [{"container_id": "mine", "ips": ["1"]}, {"container_id": "its", "ips": ["2"]}]}
    (network,) = draw({"attachments": [attachment("mine")], "pools": [pool]}, set()).networks
    assert [one.name for one in network.containers] == ["its", "mine"]


def test_a_container_with_leases_of_both_families_is_drawn_once():
    pools = [{"network": "a", "owners": [{"container_id": "its", "ips": [ip]}]} for ip in ("10.1.0.2", "fd00::2")]
    (network,) = draw({"pools": pools}, set()).networks
    assert [one.ips for one in network.containers] == [["10.1.0.2", "fd00::2"]]


def test_a_drawing_knows_the_bridge_and_its_addresses():
    config = {"plugins": [{"type": "bridge"}, {"type": "portmap"}]}
    info = {"conf": [{"network": "n%d" % number, "config": config} for number in range(9)]}
    info["kernel"] = {"links": [{"name": "cni0", "addresses": ["10.0.0.1/24"]}]}
    made = draw(info, set())
    assert (len(made.networks), made.more) == (MOST_NETWORKS, 9 - MOST_NETWORKS)
    assert (made.networks[0].device, made.networks[0].addresses) == ("cni0", ["10.0.0.1/24"])
    assert all(one.y + one.height < other.y for one, other in zip(made.networks, made.networks[1:]))


def test_nothing_is_drawn_of_nothing():
    assert draw({}, set()) is None
    assert draw({"conf": [{"network": "lo", "config": {"type": "loopback"}}]}, set()) is None


def test_lists_are_bounded():
    bounded = Bounded(list(range(MOST_ROWS + 5)))
    assert (len(bounded.shown), bounded.more, bounded.all) == (MOST_ROWS, 5, MOST_ROWS + 5)
