# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever iptables-save and nft print: what is not understood is an item of `unread`, and the rest is read."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import owners
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.chains import (
    CHAIN,
    NFT,
    FoundChains,
    parse_iptables,
    parse_nftables,
    read_chains,
    rule_line,
    survives,
)
from ansible_collections.podwire.cni.tests.tools import sample

DUMPS = Path(__file__).parent / "dumps"
BYTES = ["", "\0", "\n", " ", '"', "\\", "*", ":", "#", "-", "é", "\udcff", "x"]


def parsed(dump):
    found = FoundChains()
    parse_iptables(found, NFT, "ipv4", dump)
    owners.group_rules(found)
    return found


def rules_in(found):
    return {(*key[3:], rule) for key, chain in found.chains.items() for rule in chain.rules}


def damaged(line):
    yield line + "\n" + line
    for place in range(0, len(line), sample.STEP):
        yield line[:place]
        for byte in BYTES:
            yield line[:place] + byte + line[place + 1 :]


@pytest.mark.parametrize("name", [path.name for path in sorted(DUMPS.glob("*.txt"))])
def test_a_damaged_line_hides_no_other(name):
    lines = (DUMPS / name).read_text().split("\n")
    for place, line in enumerate(lines):
        others = rules_in(parsed("\n".join(lines[:place] + lines[place + 1 :])))
        for text in damaged(line) if line.startswith("-A") and place % 11 == 7 else [line[:-1], line + "\n" + line]:
            found = parsed("\n".join([*lines[:place], text, *lines[place + 1 :]]))
            if line.startswith(("-A", ":")):
                assert others <= rules_in(found), text
            if line.startswith("*") and text == line[:-1]:
                continue
            for key in found.unread:
                assert len(key) == 4, text


@pytest.mark.parametrize(
    ("dump", "unread"),
    [
        ("*filter\n-A ACCT\n", []),
        ("*filter\n-A\n", [(NFT, "ipv4", "filter", "-A")]),
        ('*filter\n-A X --comment "\n-A X -j Y\n', [(NFT, "ipv4", "filter", "X")]),
        ("*filter\n:X\n", [(NFT, "ipv4", "filter", "X")]),
        ("*\n-A X -j Y\n", [(NFT, "ipv4")]),
        ("-A X -j Y\n", [(NFT, "ipv4")]),
        ("\0" * 100, [(NFT, "ipv4")]),
        ("", []),
    ],
)
def test_what_is_unread(dump, unread):
    found = parsed(dump)
    assert list(found.unread) == unread
    for key in unread:
        assert "is not understood" in found.why_unread(("chain", *key, *("filter", "X")[len(key) - 2 :])).msg


# ---- nft


def places_in(part, path=()):
    yield path
    for key, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        yield from places_in(value, (*path, key))


@pytest.mark.parametrize("value", [None, 1, -1, True, "", "x", [], {}, [None], [1], {"jump": 1}, {"x": {"y": None}}])
@pytest.mark.parametrize("name", ["nftables-1.9.1", "macspoofchk-1.9.1"])
def test_any_part_of_nft_s_json_may_be_anything(name, value):
    for entry in json.loads((DUMPS / (name + ".json")).read_text())["nftables"]:
        text = json.dumps(entry)
        for path in list(places_in(entry))[1:]:
            damaged_entry = json.loads(text)
            part = damaged_entry
            for key in path[:-1]:
                part = part[key]
            part[path[-1]] = value
            found = FoundChains()
            parse_nftables(found, [damaged_entry])
            owners.group_rules(found)
    found = FoundChains()
    parse_nftables(found, value)
    assert not found.chains


RULE = {"family": "inet", "table": "t", "chain": "x", "handle": 1, "expr": ["drop"]}


@pytest.mark.parametrize(
    ("entry", "unread"),
    [
        ({"rule": RULE}, ["x"]),
        ({"rule": {**RULE, "chain": None}}, ["x", "y"]),
        ({"rule": {**RULE, "table": None}}, []),
        ("drop", []),
    ],
)
def test_what_of_nft_s_json_is_unread(entry, unread):
    found = FoundChains()
    parse_nftables(found, [entry, {"rule": {**RULE, "chain": "y", "expr": []}}])
    places = (CHAIN, "nftables", "inet", "t", "x"), (CHAIN, "nftables", "inet", "t", "y")
    assert [place[-1] for place in places if found.why_unread(place)] == unread
    assert [problem.code for problem in owners.group_rules(found).problems] == ["rules_unreadable"]
    assert found.chains[places[1]].rules == ['{"expr": []}']


# ---- what is put back


@pytest.fixture
def firewall():
    yield
    subprocess.run("nft flush ruleset; iptables-legacy -F; iptables-legacy -X", shell=True, check=True)


def test_a_line_break_in_a_comment_begins_no_rule(firewall):
    comment = "x\n-A INPUT -p tcp --dport 6666 -j ACCEPT"
    for tool in ("iptables-nft", "iptables-legacy"):
        subprocess.run([tool, "-A", "FORWARD", "-m", "comment", "--comment", comment, "-j", "ACCEPT"], check=True)
        subprocess.run([tool, "-N", "ACCT"], check=True)
        subprocess.run([tool, "-A", "ACCT"], check=True)
    found = read_chains()
    for backend in ("iptables-nft", "iptables-legacy"):
        assert found.chains["chain", backend, "ipv4", "filter", "INPUT"].rules == []
        assert found.chains["chain", backend, "ipv4", "filter", "ACCT"].rules == [""]
        [rule] = found.chains["chain", backend, "ipv4", "filter", "FORWARD"].rules
        assert not survives((CHAIN, backend), rule)
    assert not found.unread


@pytest.mark.parametrize(
    "rule", ["", "-j ACCEPT", '-m comment --comment "a \\"b\\" \\\\ it\\\'s" -j X', '--log-prefix "x "']
)
def test_a_rule_is_put_back_as_it_was_read(rule):
    assert rule_line(rule) == rule


@pytest.mark.parametrize(
    "rule", ["-j\nACCEPT", '--comment "a\nb"', '--comment "', 'a"b', '"a"b', "x\0", "a\tb", " -j X\n"]
)
def test_what_would_be_another_rule_is_refused(rule):
    assert not survives((CHAIN, NFT), rule)


@pytest.mark.parametrize(
    "rule", ["", "[]", "{}", '{"expr": 1}', '{"expr": [], "table": "x"}', '{"expr": [], "handle": 1}', "[" * 100000]
)
def test_what_is_no_rule_of_nft_is_refused(rule):
    assert not survives((CHAIN, "nftables"), rule)
