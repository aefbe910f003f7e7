# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""With what nft printed of the rules of real plugins; the kernel itself is in modules/cni_gc_rules."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import commands
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import chains, owners
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.change import change
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

DUMPS = Path(__file__).parent / "dumps"
MASQUERADE = ("inet", "cni_plugins_masquerade")


def dump(name):
    return json.loads((DUMPS / (name + ".json")).read_text())["nftables"]


def sets_in(entries):
    found = chains.FoundChains()
    chains.parse_nftables(found, entries)
    return owners.group_rules(found).sets


def read_sets():
    found = chains.FoundChains()
    chains.read_nftables(found)
    return owners.group_rules(found).sets


def chains_of(one):
    return tuple(key[-1] for key in one.chains)


def test_each_container_has_its_sets():
    sets = sets_in(dump("nftables-1.9.1"))
    assert [(one.family, one.plugin, *one.owner[:3], one.addresses) for one in sets] == [
        ("inet", "ipmasq", "net-a", "web1", "eth0", ("10.77.0.2", "fd77::2")),
        ("inet", "ipmasq", "net-a", "web2", "eth0", ("10.77.0.3", "fd77::3")),
        ("inet", "ipmasq", "net-b", "db", "eth0", ("10.78.0.2",)),
        ("ipv4", "portmap", None, "db", None, ("10.78.0.2",)),
        ("ipv4", "portmap", None, "web1", None, ("10.77.0.2",)),
        ("ipv4", "portmap", None, "web2", None, ("10.77.0.3",)),
        ("ipv6", "portmap", None, "web1", None, ("fd77::2",)),
        ("ipv6", "portmap", None, "web2", None, ("fd77::3",)),
    ]
    assert [len(one.rules) for one in sets] == [2, 2, 1, 1, 4, 3, 2, 2]
    assert not [one for one in sets if one.unclear or one.chains]


def test_macspoofchk_has_two_chains_and_their_jump():
    one, other = sets_in(dump("macspoofchk-1.9.1"))
    assert (one.owner.container_id, one.owner.ifname, other.owner.container_id) == ("web1", "eth0", "web2")
    assert chains_of(one) == ("cni-br-iface-web1-eth0", "cni-br-iface-web1-eth0-mac")
    assert [rule.handle for rule in one.rules] == [4, 5, 6, 7]
    assert not one.inert
    assert not one.unclear


# ---- whose it is


def masquerade(comment, handle=9):
    return {
        "rule": dict(zip(("family", "table"), MASQUERADE), chain="masq_checks", handle=handle, comment=comment, expr=[])
    }


def comment_of(network, ifname, container_id):
    told = owners.instance_hash(network, ifname, container_id)
    return f"{told}, net: {network}, if: {ifname}, id: {container_id}"[:128]


def owner_of(*comments):
    [one] = sets_in([masquerade(comment) for comment in comments])
    return one


def test_a_cut_comment_tells_its_container_among_known_ones():
    container = "0123456789abcdef" * 4
    one = owner_of(comment_of("a-network-of-some-length", "eth0", container))
    assert (one.owner.network, one.owner.ifname, one.owner.container_id) == ("a-network-of-some-length", "eth0", None)
    assert one.owner.claimed
    assert container.startswith(one.owner.claimed)
    assert one.text.endswith("... (the end of the ID is unknown)")
    twin = one.owner.claimed + "0"
    [one] = owners.attribute([one], [], [twin, "other"])
    assert one.owner.container_id is None
    [one] = owners.attribute([one], [], [twin, "other", container])
    assert one.owner.container_id == container


def test_a_comment_of_exactly_the_greatest_length_is_whole():
    container = "c" * (128 - len(comment_of("net", "eth0", "")))
    one = owner_of(comment_of("net", "eth0", container))
    assert (one.owner.container_id, one.owner.claimed) == (container, "")


def test_a_comment_that_is_longer_than_the_plugins_write_is_left_alone():
    genuine = comment_of("net", "eth0", "c" * 80)
    assert len(genuine) == 128
    assert owner_of(genuine).owner.claimed
    one = owner_of(genuine + "c")
    assert one.unclear == "its comment and its hash identify different containers"
    assert not one.owner.claimed


@pytest.mark.parametrize("length", [69, 71, 72, 74, 77, 78, 80])
def test_a_comment_that_is_cut_around_the_interface_s_name(length):
    """Either the hash still tells the container, or the set is left alone."""
    network = "n" * length
    one = owner_of(comment_of(network, "eth0", "web"))
    [one] = owners.attribute([one], [network], ["db", "web"])
    assert one.unclear or one.owner.container_id == "web"
    assert bool(one.unclear) == (length > 77)


def test_a_comment_that_the_hash_belies_is_not_believed():
    genuine = comment_of("net", "eth0", "live")
    for comment in (genuine.replace("live", "dead"), genuine + '", id: dead', genuine[:33], "mine", ""):
        one = owner_of(comment)
        assert one.unclear
        [one] = owners.attribute([one], ["net"], ["live", "dead"])
        assert one.owner.container_id is None
    assert owner_of(genuine, genuine.replace("live", "dead")).unclear == "its comments name several containers"


def test_a_comment_of_portmap_that_is_no_id_is_left_alone():
    entries = dump("nftables-1.9.1")
    for entry in entries:
        if entry.get("rule", {}).get("comment") == "db":
            entry["rule"]["comment"] = "db, or so"
    [one] = [one for one in sets_in(entries) if one.unclear]
    assert (one.owner.container_id, one.unclear) == (None, "its comment is not a container ID")


def renamed(text):
    """The dump of macspoofchk with `web1` renamed, chains and comments alike."""
    return json.loads(json.dumps(dump("macspoofchk-1.9.1")).replace("web1-eth0", text))


def test_dashes_leave_open_where_the_id_ends():
    [one] = [one for one in sets_in(renamed("a-b-c0")) if one.name == "a-b-c0"]
    assert (one.owner.container_id, one.owner.claimed) == (None, "a-b-c0")
    [one] = owners.attribute([one], [], ["a-b-c0", "b"])
    assert one.owner.container_id is None
    [one] = owners.attribute([one], [], ["a", "a-b"])
    assert (one.owner.container_id, one.owner.ifname) == ("a-b", "c0")


def test_an_interface_named_like_the_second_chain():
    assert [one.name for one in sets_in(renamed("web1-mac"))] == ["web1-mac", "web2-eth0"]
    [one] = [one for one in sets_in(renamed("web1-mac")) if one.name == "web1-mac"]
    assert chains_of(one) == ("cni-br-iface-web1-mac", "cni-br-iface-web1-mac-mac")


def test_half_of_macspoofchk_is_found_and_foreign_rules_protect_it():
    entries = dump("macspoofchk-1.9.1")
    without_jump = [entry for entry in entries if entry.get("rule", {}).get("handle") != 4]
    one = sets_in(without_jump)[0]
    assert (one.owner.container_id, one.inert, len(one.rules)) == ("web1", True, 3)
    empty = [entry for entry in entries if "rule" not in entry]
    one = sets_in(empty)[0]
    assert (one.owner.container_id, one.inert, one.rules) == ("web1", True, ())
    foreign = copy.deepcopy(next(entry for entry in entries if entry.get("rule", {}).get("handle") == 4))
    foreign["rule"].update(handle=90, comment="mine")
    assert sets_in([*entries, foreign])[0].unclear == "rules that the plugin does not make are in it, or jump to it"


def test_tables_of_others_are_not_looked_at():
    entries = json.loads(json.dumps(dump("nftables-1.9.1")).replace("cni_hostport", "hostports"))
    assert {one.plugin for one in sets_in(entries)} == {"ipmasq"}


# ---- reading and removing


class Host:
    """A host with nft and these tables."""

    def __init__(self, monkeypatch):
        self.entries = dump("nftables-1.9.1") + dump("macspoofchk-1.9.1")
        self.script = None
        self.rc = 0
        monkeypatch.setattr(commands, "find_command", lambda name: "/usr/sbin/nft")
        monkeypatch.setattr(commands, "run_command", self.run)

    def run(self, argv, timeout, stdin=None):
        if "-f" in argv:
            self.script = json.loads(stdin)["nftables"]
            return commands.Done(self.rc, b"", "it said no")
        return commands.Done(0, json.dumps({"nftables": self.entries}).encode(), "")


def test_sets_are_removed_by_handle_in_one_transaction(monkeypatch):
    host = Host(monkeypatch)
    sets = [one for one in read_sets() if one.owner.container_id == "web1"]
    change(drop=sets)
    rules = [entry["delete"]["rule"] for entry in host.script if "rule" in entry["delete"]]
    assert sorted((rule["family"], rule["table"], rule["handle"]) for rule in rules) == [
        *(("bridge", "nat", handle) for handle in (4, 5, 6, 7)),
        *(("inet", "cni_plugins_masquerade", handle) for handle in (6, 7)),
        *(("ip", "cni_hostport", handle) for handle in (11, 12, 13, 14)),
        *(("ip6", "cni_hostport", handle) for handle in (11, 12)),
    ]
    # Chains after the rules that hold them.
    assert [entry["delete"]["chain"]["name"] for entry in host.script[len(rules) :]] == [
        "cni-br-iface-web1-eth0",
        "cni-br-iface-web1-eth0-mac",
    ]


def test_what_is_gone_needs_no_transaction(monkeypatch):
    host = Host(monkeypatch)
    sets = read_sets()
    host.entries = []
    change(drop=sets)
    assert host.script is None


def test_a_rule_that_was_exchanged_or_added_is_left(monkeypatch):
    host = Host(monkeypatch)
    [one] = [one for one in read_sets() if (one.family, one.owner.container_id) == ("ipv6", "web1")]
    for exchanged in ({"handle": 99}, {"expr": [{"accept": None}]}):
        host.entries = dump("nftables-1.9.1")
        [rule] = [
            entry["rule"]
            for entry in host.entries
            if "rule" in entry and entry["rule"]["family"] == "ip6" and entry["rule"]["handle"] == 11
        ]
        rule.update(exchanged)
        with fails_with("rules_changed"):
            change(drop=[one])
    assert host.script is None


def test_rules_stay_without_nft(monkeypatch):
    host = Host(monkeypatch)
    sets = read_sets()
    monkeypatch.setattr(commands, "find_command", lambda name: None)
    with fails_with("rules_not_removed", "nft is not installed"):
        change(drop=sets)
    assert host.script is None


def test_a_failing_transaction_is_told(monkeypatch):
    host = Host(monkeypatch)
    host.rc = 1
    with fails_with("rules_not_removed", "exit status 1: it said no; no rule was removed"):
        change(drop=read_sets()[:1])


def test_output_that_is_no_json_is_told(monkeypatch):
    Host(monkeypatch)
    for output in (b"", b"{", b"[]", b"null", b"[" * 100000, b"\xff"):
        monkeypatch.setattr(commands, "run_command", lambda *_arguments, output=output: commands.Done(0, output, ""))
        found = chains.FoundChains()
        chains.read_nftables(found)
        assert found.unread[("nftables",)].code == "command_failed"
