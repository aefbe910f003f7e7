# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Reading all chains of real firewalls, and putting lost rules back at their places."""

from __future__ import annotations

import json
import random
import subprocess
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from ansible_collections.podwire.cni.plugins.module_utils._host import commands
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import chains, order
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.chains import CHAIN, FoundChains, read_chains
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.change import ChainRepair, change
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.order import arranged, misplaced, places
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.owners import FoundRules
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

IPTABLES = """
iptables{suffix} -N CNI-ONE
iptables{suffix} -A CNI-ONE -s 10.1.0.2/32 -m comment --comment 'name: "a" id: "b c"' -j ACCEPT
iptables{suffix} -A CNI-ONE -s 10.1.0.3/32 -j ACCEPT
iptables{suffix} -A CNI-ONE -s 10.1.0.4/32 -j ACCEPT
iptables{suffix} -A FORWARD -s 192.0.2.1/32 -j ACCEPT
iptables{suffix} -A FORWARD -j CNI-ONE
iptables{suffix} -A FORWARD -s 192.0.2.2/32 -j DROP
iptables{suffix} -t nat -N CNI-NAT
iptables{suffix} -t nat -A CNI-NAT -j MASQUERADE
iptables{suffix} -t nat -A POSTROUTING -s 10.1.0.2/32 -j CNI-NAT
ip6tables{suffix} -A FORWARD -s fd00::2/128 -j ACCEPT
"""
NATIVE = """
table inet cni_test {
  comment "rules of a test"
  set known {
    type ipv4_addr
    elements = { 10.1.0.2, 10.1.0.3 }
  }
  chain other {
    tcp dport 80 counter accept
    meta mark set 0x2000
  }
  chain base {
    type filter hook forward priority 5; policy accept;
    ip saddr 192.0.2.1 accept
    ip saddr @known counter accept comment "one"
    ip saddr 10.1.0.9 jump other
    ip saddr 192.0.2.2 drop
  }
}
"""
FLUSH = """
nft flush ruleset
for tool in iptables-legacy ip6tables-legacy; do
  for table in filter nat; do $tool -t $table -F; $tool -t $table -X; done
done
"""


@pytest.fixture(params=["iptables-nft", "iptables-legacy", "native"])
def firewall(request):
    """A firewall with rules of one backend."""
    if request.param == "native":
        subprocess.run(["nft", "-f", "-"], input=NATIVE, text=True, check=True)
    else:
        suffix = request.param.partition("iptables")[2]
        subprocess.run(["bash", "-ec", IPTABLES.replace("{suffix}", suffix)], check=True)
    yield request.param
    subprocess.run(["bash", "-c", FLUSH], check=True)


def content(found):
    """The chains that have a rule, or that somebody made."""
    return {key: chain for key, chain in found.chains.items() if chain.rules or chain.body != "ACCEPT"}


def repairs_of(found):
    return [ChainRepair(key, chain.body, chain.rules, chain.rules) for key, chain in content(found).items()]


def put_back(found):
    """Put back each table by itself, as a repair does."""
    repairs = repairs_of(found)
    for table in {repair.key[1:4] for repair in repairs}:
        change([repair for repair in repairs if repair.key[1:4] == table], present=read_chains())


def test_a_flushed_firewall_is_put_back(firewall):
    before = read_chains()
    assert len(content(before)) >= 4
    subprocess.run(["bash", "-c", FLUSH], check=True)
    assert content(read_chains()) == {}
    put_back(before)
    assert content(read_chains()) == content(before)
    # Nothing is lost, nothing is added.
    put_back(before)
    assert content(read_chains()) == content(before)


def test_each_rule_is_put_back_at_its_place(firewall):
    before = read_chains()
    for key, chain in content(before).items():
        for rule in chain.rules if key[0] == "chain" else ():
            delete(key, rule)
            assert content(read_chains()) != content(before)
            change([ChainRepair(key, chain.body, chain.rules, [rule])], present=read_chains())
            assert content(read_chains()) == content(before), (key, rule)


def delete(key, rule):
    _chain, backend, family, table, name = key
    if backend == "nftables":
        listed = json.loads(subprocess.check_output(["nft", "-j", "list", "chain", family, table, name]))["nftables"]
        handles = [one["rule"]["handle"] for one in listed if "rule" in one and chains.rule_text(one["rule"]) == rule]
        subprocess.run(["nft", "delete", "rule", family, table, name, "handle", str(handles[0])], check=True)
        return
    tool = f"{'ip' if family == 'ipv4' else 'ip6'}tables-{backend.partition('-')[2]}-restore"
    subprocess.run([tool, "--noflush"], input=f"*{table}\n-D {name} {rule}\nCOMMIT\n", text=True, check=True)


def test_rules_of_others_stay_between(firewall):
    before = read_chains()
    key = next(key for key, chain in content(before).items() if len(chain.rules) >= 3 and key[0] == "chain")
    chain = before.chains[key]
    ours = [chain.rules[0], chain.rules[-1]]
    for rule in ours:
        delete(key, rule)
    change([ChainRepair(key, chain.body, chain.rules, ours)], present=read_chains())
    assert read_chains().chains[key] == chain


def test_rules_in_another_order_are_moved(firewall):
    before = read_chains()
    key = next(key for key, chain in content(before).items() if len(chain.rules) >= 3 and key[0] == "chain")
    chain = before.chains[key]
    wrong = [*chain.rules[1:], chain.rules[0]]
    change([ChainRepair(key, chain.body, wrong, wrong)], present=read_chains())
    assert read_chains().chains[key].rules == wrong
    change([ChainRepair(key, chain.body, chain.rules, chain.rules)], present=read_chains())
    assert read_chains().chains[key] == chain


def test_elements_of_sets_are_put_back():
    subprocess.run(["nft", "-f", "-"], input=NATIVE, text=True, check=True)
    try:
        before = read_chains()
        key = ("set", "nftables", "inet", "cni_test", "known")
        subprocess.run(["nft", "delete", "element", "inet", "cni_test", "known", "{ 10.1.0.3 }"], check=True)
        there = before.chains[key]
        change([ChainRepair(key, there.body, (), there.rules)], present=read_chains())
        assert read_chains().chains == before.chains
    finally:
        subprocess.run(["bash", "-c", FLUSH], check=True)


def test_a_table_keeps_its_comment(monkeypatch):
    """nft 1.1 shows and takes it, as portmap's; older releases do neither."""
    table = {"family": "ip", "name": "cni_hostport", "comment": "CNI portmap plugin"}
    monkeypatch.setattr(chains, "_query_nft", lambda found: [{"table": {**table, "handle": 1}}])
    key = ("table", "nftables", "ip", "cni_hostport")
    shown = read_chains().chains[key]
    scripts = []

    def run(argv, timeout, script):
        scripts.append(json.loads(script))
        return commands.Done(0, b"", "")

    monkeypatch.setattr(commands, "run_command", run)
    change([ChainRepair(key, shown.body, (), ())], present=FoundChains())
    assert scripts == [{"nftables": [{"add": {"table": table}}]}]


def without(monkeypatch, *names):
    real = commands.find_command
    monkeypatch.setattr(commands, "find_command", lambda name, *more: None if name in names else real(name, *more))


def test_without_nft_its_tables_are_unread(monkeypatch):
    without(monkeypatch, "nft")
    found = read_chains()
    assert "package nftables" in found.why_unread(("chain", "nftables", "inet", "cni_test", "base")).msg
    with pytest.raises(HostError, match="package nftables"):
        change([ChainRepair(("table", "nftables", "inet", "cni_test"), {}, (), ())], present=found)


def test_without_iptables_its_tables_are_unread(monkeypatch):
    names = ("iptables-nft", "iptables", "ip6tables-nft", "ip6tables")
    without(monkeypatch, *(f"{name}-{verb}" for name in names for verb in ("save", "restore")))
    found = read_chains()
    key = ("chain", "iptables-nft", "ipv4", "filter", "CNI-X")
    assert "package iptables" in found.why_unread(key).msg
    with pytest.raises(HostError, match="package iptables"):
        change([ChainRepair(key, "-", (), ())], present=found)


def test_rules_that_iptables_cannot_show_are_not_taken_for_lost(monkeypatch):
    dump = "# Table `nat' is incompatible, use 'nft' tool.\n*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n"
    real = commands.run_command

    def run(argv, *more):
        return commands.Done(0, dump.encode(), "") if argv[0].endswith("iptables-nft-save") else real(argv, *more)

    monkeypatch.setattr(commands, "run_command", run)
    subprocess.run(["nft", "add", "table", "ip", "nat"], check=True)
    found = read_chains()
    subprocess.run(["nft", "flush", "ruleset"], check=True)
    assert "cannot show" in found.why_unread(("chain", "iptables-nft", "ipv4", "nat", "CNI-X")).msg
    assert found.why_unread(("chain", "iptables-nft", "ipv4", "filter", "FORWARD")) is None


@pytest.mark.parametrize(
    ("backend", "rule", "targets"),
    [
        ("iptables-nft", "-s 10.1.0.2/32 -m comment --comment x -j CNI-a", ["CNI-a"]),
        ("iptables-nft", "-p tcp -g CNI-b", ["CNI-b"]),
        ("iptables-nft", "-p tcp", []),
        ("nftables", '{"expr": [{"jump": {"target": "x"}}]}', ["x"]),
        ("nftables", '{"expr": [{"accept": null}]}', []),
    ],
)
def test_jumps(backend, rule, targets):
    assert chains.jumps_of(backend, rule) == targets


# ---- places

RULES = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1)


@given(RULES, st.randoms(use_true_random=False))
def test_missing_rules_get_their_order_and_others_keep_theirs(order, chance):
    present = [rule for rule in order if chance.random() < 0.5]
    for number in range(chance.randrange(4)):
        present.insert(chance.randrange(len(present) + 1), f"foreign{number}")
    now = list(present)
    for position, rule in places(order, order, present):
        now.insert(position, rule)
    assert [rule for rule in now if rule in order] == order
    assert [rule for rule in now if rule not in order] == [rule for rule in present if rule not in order]


@given(RULES, st.randoms(use_true_random=False))
def test_the_fewest_rules_move(order, chance):
    present = list(order)
    chance.shuffle(present)
    moving = misplaced(order, order, present)
    left = [rule for rule in present if rule not in moving]
    assert left == sorted(left, key=order.index)
    # One more that stays would be out of order.
    for rule in moving:
        more = [one for one in present if one not in moving or one == rule]
        assert more != sorted(more, key=order.index)


@given(RULES, st.randoms(use_true_random=False))
def test_rules_go_back_to_where_they_stood_among_others(order, chance):
    """Others may have moved theirs, added some and removed some; what is put back is in order after one repair."""
    ours = [rule for rule in order if chance.random() < 0.5]
    present = [rule for rule in order if chance.random() < 0.8]
    for rule in ours:
        if rule in present:
            present.remove(rule)
            present.insert(chance.randrange(len(present) + 1), rule)
    others = [rule for rule in present if rule not in ours]
    if chance.random() < 0.3:
        chance.shuffle(others)
        places_of_others = iter(others)
        present = [rule if rule in ours else next(places_of_others) for rule in present]
    now = arranged(order, ours, present)
    assert [rule for rule in now if rule not in ours] == others
    assert misplaced(order, ours, now) == []
    assert sorted(now) == sorted(present)
    if others == sorted(others, key=order.index):
        assert now == sorted(now, key=order.index)


def test_the_order_of_rules_that_others_moved_is_not_judged():
    order = ["drop", "jump", "accept"]
    assert misplaced(order, ["jump"], ["accept", "jump", "drop"]) == []
    assert misplaced(order, ["jump"], ["drop", "accept", "jump"]) == ["jump"]
    assert misplaced(order, ["jump"], ["jump", "drop"]) == ["jump"]
    assert misplaced(order, ["jump"], ["new", "jump", "newer", "accept"]) == []


def test_rules_that_stand_twice():
    order = ["a", "b", "a", "c"]
    assert places(order, order, ["b"]) == [(0, "a"), (2, "a"), (3, "c")]
    assert misplaced(order, order, ["c", "a", "b", "a"]) in (["b"], ["c"])


def test_without_a_known_neighbour_a_rule_goes_to_the_end():
    assert places([], ["new"], ["x", "y"]) == [(2, "new")]


def test_random_chains_of_iptables_are_put_back():
    """Whatever was deleted: what is left and what others added keep their order, and nothing is there twice."""
    chance = random.Random(7)
    rules = [f"-s 10.9.0.{number}/32 -j ACCEPT" for number in range(12)]
    key = ("chain", "iptables-nft", "ipv4", "filter", "CNI-RANDOM")
    try:
        for _round in range(8):
            subprocess.run(["bash", "-c", FLUSH], check=True)
            change([ChainRepair(key, "-", rules, rules)], present=read_chains())
            kept = sorted(chance.sample(range(12), chance.randrange(12)))
            script = "".join(f"-D CNI-RANDOM {rule}\n" for place, rule in enumerate(rules) if place not in kept)
            for number in range(chance.randrange(3)):
                script += f"-I CNI-RANDOM {chance.randrange(len(kept) + 1) + 1} -s 192.0.2.{number}/32 -j DROP\n"
            command, text = ["iptables-nft-restore", "--noflush"], f"*filter\n{script}COMMIT\n"
            subprocess.run(command, input=text, text=True, check=True)
            others = [rule for rule in read_chains().chains[key].rules if rule not in rules]
            change([ChainRepair(key, "-", rules, rules)], present=read_chains())
            now = read_chains().chains[key].rules
            assert [rule for rule in now if rule in rules] == rules
            assert [rule for rule in now if rule not in rules] == others
    finally:
        subprocess.run(["bash", "-c", FLUSH], check=True)


def test_a_transaction_that_fails_changes_nothing():
    key = ("chain", "iptables-nft", "ipv4", "filter", "CNI-BAD")
    with fails_with("rules_not_restored", "no rule was restored"):
        change([ChainRepair(key, "-", [], ["-s 10.9.0.1/32 -j ACCEPT", "--no-such-option"])], present=FoundChains())
    assert key not in read_chains().chains
    subprocess.run(["bash", "-c", FLUSH], check=True)


def test_a_family_without_tables_of_iptables_is_not_asked_for(monkeypatch):
    ran, real = [], commands.run_command
    monkeypatch.setattr(commands, "run_command", lambda argv, *more: ran.append(argv[0]) or real(argv, *more))
    subprocess.run(["bash", "-c", FLUSH], check=True)
    chains.read_iptables(FoundChains(), "iptables-nft", "ipv4")
    save4, legacy = ran[0], [name for name in ran if "legacy" in name]
    ran.clear()
    for script, asked in (
        ("nft flush ruleset", []),
        ("iptables-nft -t nat -A POSTROUTING -j ACCEPT; nft add table ip6 other", [save4]),
        ("ip6tables-nft -t nat -A POSTROUTING -j ACCEPT", [save4, save4.replace("iptables", "ip6tables")]),
    ):
        subprocess.run(["bash", "-c", script], check=True)
        ran.clear()
        found = read_chains()
        assert [name for name in ran if "legacy" not in name and not name.endswith("/nft")] == asked
        assert len([name for name in ran if name.endswith("/nft")]) == 1
        assert not legacy and not found.unread
    assert found.table("iptables-nft", "ipv6", "nat")["POSTROUTING"] == ["-j ACCEPT"]
    assert ("table", "nftables", "ip6", "other") in found.chains
    subprocess.run(["bash", "-c", "nft flush ruleset"], check=True)


# ---- places of rules, and rules that are in no set: what reading whole dumps does not tell apart

KEY = (CHAIN, "iptables-nft", "ipv4", "filter", "FORWARD")


def test_rules_that_others_have_moved_tell_a_place_if_nothing_else_does():
    assert order.places(["ours", "first", "second"], ["ours"], ["second", "first"]) == [(1, "ours")]


def test_only_rules_that_are_there_and_in_no_set_are_unknown():
    chains = FoundChains()
    chains.chains[KEY] = SimpleNamespace(rules=["-j there"])
    recorded = [(*KEY, "-j there"), (*KEY, "-j gone"), (*KEY[:-1], "INPUT", "-j there")]
    assert FoundRules(chains.chains).unknown(recorded) == [(*KEY, "-j there")]
