# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import json
import random

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.changes import SAME, change_in_words, reduce_change

BRIDGE = {"type": "bridge", "bridge": "cni0", "mtu": 1450, "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"}}
PORTMAP = {"type": "portmap", "snat": True}
FIREWALL = {"type": "firewall"}


def network(*plugins, **keys):
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": list(plugins), **keys}


# ---- the diff


@pytest.mark.parametrize(
    ("before", "after", "left", "right"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, {"b": 2}, {"b": 3}),
        ({"a": {"b": 1, "c": 1}}, {"a": {"b": 1}}, {"a": {"c": 1}}, {"a": {}}),
        ({"type": "x", "a": 1}, {"type": "x", "a": 2}, {"type": "x", "a": 1}, {"type": "x", "a": 2}),
        ({"type": "x"}, {"type": "y"}, {"type": "x"}, {"type": "y"}),
        ([1, 2, 3], [1, 5, 3], [SAME, 2, SAME], [SAME, 5, SAME]),
        # The elements of lists of different lengths are compared with those that are equal to them.
        ([1, 2, 3], [0, 1, 2, 3], [SAME] * 3, [0, SAME, SAME, SAME]),
        ([{"dst": "a"}], [{"dst": "b"}, {"dst": "a"}], [SAME], [{"dst": "b"}, SAME]),
        ({"a": True}, {"a": 1}, {"a": True}, {"a": 1}),
        ({"a": None}, {}, {"a": None}, {}),
        ("one\n", "two\n", "one\n", "two\n"),
        ({"a": 1}, "text", {"a": 1}, "text"),
        # An equal element in another place is a difference.
        (["...", 1], [1, "..."], ["...", 1], [1, "..."]),
    ],
)
def test_only_what_differs_is_left(before, after, left, right):
    found = reduce_change(before, after)
    assert json.dumps(found) == json.dumps((left, right))


def test_plugins_are_compared_with_those_of_their_type():
    left, right = reduce_change(network(BRIDGE, PORTMAP), network(dict(BRIDGE, mtu=1500), FIREWALL, PORTMAP))
    assert left == {"plugins": [{"type": "bridge", "mtu": 1450}, SAME]}
    assert right == {"plugins": [{"type": "bridge", "mtu": 1500}, FIREWALL, SAME]}


def test_another_order_of_plugins_is_a_difference():
    left, right = reduce_change(network(BRIDGE, PORTMAP), network(PORTMAP, BRIDGE))
    assert left != right
    assert [shown for side in (left, right) for shown in side["plugins"] if shown != SAME] == [PORTMAP] * 2


def test_what_is_left_of_one_element_is_not_taken_for_another():
    before = [{"type": "a", "y": 3}, {"type": "a", "y": 2, "x": 1}]
    after = [{"type": "a", "y": 2, "x": 1}, {"type": "a", "y": 3}]
    left, right = reduce_change(before, after)
    assert left != right


def test_very_long_lists_are_compared_place_by_place():
    before = [[number] for number in range(50_000)]
    left, right = reduce_change(before, [[-1], *before])
    assert (len(left), len(right)) == (50_000, 50_001)


def dice_value(dice, depth=0):
    kinds = ["number", "text", "flag", "nothing"] + (["object", "list", "chain"] if depth < 4 else [])
    kind = dice.choice(kinds)
    if kind == "object":
        return {dice.choice("abcdef"): dice_value(dice, depth + 1) for _n in range(dice.randrange(4))}
    if kind == "list":
        return [dice_value(dice, depth + 1) for _n in range(dice.randrange(4))]
    if kind == "chain":
        return [
            {"type": dice.choice("xyz"), dice.choice("abc"): dice_value(dice, depth + 2)}
            for _n in range(dice.randrange(4))
        ]
    return {"number": dice.randrange(3), "text": dice.choice(["", "...", "t"]), "flag": True, "nothing": None}[kind]


def changed(dice, value):
    """Return *value* with a change somewhere, at times with none."""
    value = copy.deepcopy(value)
    if isinstance(value, dict) and value and dice.random() < 0.8:
        key = dice.choice(sorted(value))
        if dice.random() < 0.2:
            del value[key]
        else:
            value[key] = changed(dice, value[key])
        return value
    if isinstance(value, list) and value and dice.random() < 0.8:
        place = dice.randrange(len(value))
        action = dice.random()
        if action < 0.2:
            del value[place]
        elif action < 0.4:
            value.insert(place, dice_value(dice, 3))
        elif action < 0.5:
            dice.shuffle(value)
        else:
            value[place] = changed(dice, value[place])
        return value
    return dice_value(dice, 2)


def same(one, other):
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def test_a_difference_is_never_hidden_and_nothing_else_is_shown():
    dice = random.Random(3)
    for _time in range(20_000):
        before = dice_value(dice)
        after = changed(dice, before)
        left, right = reduce_change(before, after)
        if same(before, after):
            assert (left, right) == ("", ""), (before, after)
            assert change_in_words(before, after) == ""
        else:
            assert not same(left, right), (before, after)
            assert change_in_words(before, after), (before, after)


def leaves(value):
    if isinstance(value, dict):
        for entry in value.values():
            yield from leaves(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from leaves(entry)
    else:
        yield value


def mark(dice, value, first, where):
    """Replace some values by numbers from *first* on, and add these to *where*."""
    for key, entry in list(value.items() if isinstance(value, dict) else enumerate(value)):
        if isinstance(entry, (dict, list)):
            mark(dice, entry, first, where)
        elif dice.random() < 0.3 and key != "type":
            value[key] = first + len(where)
            where.append(value[key])


def test_every_value_that_only_one_side_has_is_shown_there():
    dice = random.Random(4)
    for time in range(5_000):
        before = dice_value(dice)
        after = changed(dice, before)
        marked, where = json.loads(json.dumps(after)), []
        if isinstance(marked, (dict, list)):
            mark(dice, marked, 1_000 * (time + 1), where)
        _left, right = reduce_change(before, marked)
        assert set(where) <= set(leaves(right)), (before, marked)
        left, _right = reduce_change(marked, before)
        assert set(where) <= set(leaves(left))


# ---- the words


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (network(BRIDGE), network(dict(BRIDGE, mtu=1500)), "bridge: mtu 1450, want 1500"),
        (network(BRIDGE), network(BRIDGE, PORTMAP), "plugin portmap is missing"),
        (network(BRIDGE, PORTMAP), network(BRIDGE), "plugin portmap is not wanted"),
        (network(BRIDGE, PORTMAP), network(PORTMAP, BRIDGE), "the plugins are in another order"),
        (network(BRIDGE), network(dict(BRIDGE, ipam={})), None),
        (network(BRIDGE), network(dict(BRIDGE, isGateway=True)), "bridge: isGateway is not set, want true"),
        (network(dict(BRIDGE, isGateway=True)), network(BRIDGE), "bridge: isGateway true is not wanted"),
        (network(BRIDGE), network(dict(BRIDGE, mtu="1450")), 'bridge: mtu 1450, want "1450"'),
        (network(BRIDGE), network(dict(BRIDGE, bridge="a b")), 'bridge: bridge cni0, want "a b"'),
        (network(BRIDGE), network(dict(BRIDGE, bridge="x" * 99)), "bridge: bridge differs"),
        (network(BRIDGE), network(BRIDGE, x="y" * 99), "x is not set"),
        (network(BRIDGE), network(BRIDGE, cniVersion="1.1.0"), "cniVersion 1.0.0, want 1.1.0"),
        (network(BRIDGE, BRIDGE), network(BRIDGE, dict(BRIDGE, mtu=1)), "plugins[1]: mtu 1450, want 1"),
        (
            network(dict(BRIDGE, mtu=1), dict(PORTMAP, snat=False)),
            network(BRIDGE, PORTMAP),
            "bridge: mtu 1, want 1450; portmap: snat false, want true",
        ),
        (
            network(dict(BRIDGE, a=1, b=1, c=1, d=1)),
            network(dict(BRIDGE, mtu=1500)),
            "bridge: mtu 1450, want 1500, and 4 other values differ",
        ),
        (
            network(dict(BRIDGE, ipam={"ranges": [[{"subnet": "10.1.0.0/24"}]]})),
            network(dict(BRIDGE, ipam={"ranges": [[{"subnet": "10.2.0.0/24"}]]})),
            "bridge: ipam.ranges[0][0].subnet 10.1.0.0/24, want 10.2.0.0/24",
        ),
        ({"mode": "0700", "owner": "0:0"}, {"mode": "0755", "owner": "0:0"}, "mode 0700, want 0755"),
        ({"plugins": [1]}, {"plugins": [2]}, "plugins[0] 1, want 2"),
        ([1], {"a": 1}, 'its content [1], want {"a": 1}'),
        ([1], {"a": "x" * 99}, "its content differs"),
        ({"a": [1]}, {"a": [1, 2]}, "a [1], want [1, 2]"),
    ],
)
def test_a_change_in_words(before, after, words):
    found = change_in_words(before, after)
    assert found == words or (words is None and found)


def test_what_a_hostile_file_says_does_not_become_long():
    before = network(BRIDGE, **{"k" * 10_000: 1, "p": {"q" * 10_000: "v" * 10_000}})
    assert len(change_in_words(before, network(dict(BRIDGE, type="t" * 10_000)))) < 400


# ---- secrets

SECRETS = ("password", "etcd_key", "token", "clientKeyData", "kubeconfig")


def secret_value(dice, value, found):
    """Return *value* with secrets at some places; *found* gets them."""

    def new():
        found.append(f"hunter{len(found)}x{dice.randrange(10**6)}")
        return found[-1]

    if isinstance(value, list):
        value = [secret_value(dice, entry, found) for entry in value]
        return [*value, "--password", new()] if dice.random() < 0.2 else value
    if not isinstance(value, dict):
        return f"postgres://me:{new()}@db/x" if dice.random() < 0.1 else value
    value = {key: secret_value(dice, entry, found) for key, entry in value.items()}
    if dice.random() < 0.4:
        value[dice.choice(SECRETS)] = new()
    if dice.random() < 0.3:
        value.update(name="DB_PASSWORD", value=new())
    return value


def test_no_secret_is_in_a_diff_or_in_a_reason():
    dice, tried = random.Random(5), 0
    for _time in range(5_000):
        found = []
        plain = dice_value(dice)
        before, after = (secret_value(dice, value, found) for value in (plain, changed(dice, plain)))
        shown = json.dumps(reduce_change(before, after)) + change_in_words(before, after)
        assert [secret for secret in found if secret in shown] == [], (before, after)
        tried += bool(found)
    assert tried > 1_000


def test_a_change_of_nothing_but_a_secret():
    before, after = ({"type": "x", "password": value} for value in ("one", "two"))
    assert change_in_words(before, after) == "a secret differs"
    assert reduce_change(before, after) == ("", "")
