# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._conf.validate import Checked, DataSource, TextSource

RANGE = "/ipam/ranges/0/0"


@pytest.fixture()
def places(problems):
    return lambda plugin: [entry[:3] for entry in problems(plugin)]


def test_an_unknown_key_is_a_warning_with_the_nearest_known_one(problems, places):
    ((level, code, place, message),) = problems({"type": "bridge", "isGatway": True})
    assert (level, code, place) == ("warning", "unknown_key", "/isGatway")
    assert "did you mean 'isGateway'?" in message
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24", "rangeStrat": "x"}]]}
    assert places({"type": "bridge", "ipam": ipam}) == [("warning", "unknown_key", RANGE + "/rangeStrat")]
    ((_level, _code, _place, message),) = problems({"type": "bridge", "xyz": 1})
    assert "check its name" in message


def test_a_capability_that_looks_like_another_is_a_warning_and_any_other_is_somebodys(problems, places):
    ((level, code, place, message),) = problems({"type": "portmap", "capabilities": {"portmappings": True}})
    assert (level, code, place) == ("warning", "unknown_key", "/capabilities/portmappings")
    assert "portMappings" in message
    assert places({"type": "portmap", "capabilities": {"acme": True, "portMappings": True}}) == []


def test_keys_that_are_comments_or_belong_to_somebody_pass_everywhere(places):
    extra = {"_c": 1, "#c": 1, "$c": 1, "cni.dev/a": 1, "acme.com": 1}
    local = {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24", **extra}]], **extra}
    assert places({"type": "bridge", "ipam": local, "dns": extra, "args": extra, **extra}) == []


def test_a_key_in_another_case_is_known_and_validated(places):
    assert places({"type": "bridge", "MTU": 1500}) == [("info", "key_case", "/MTU")]
    assert places({"type": "bridge", "MTU": "1500"}) == [("info", "key_case", "/MTU"), ("error", "schema", "/MTU")]
    assert places({"type": "bridge", "IPAM": {"TYPE": "host-local", "Subnet": "x"}}) == [
        ("info", "key_case", "/IPAM"),
        ("info", "key_case", "/IPAM/TYPE"),
        ("info", "key_case", "/IPAM/Subnet"),
        ("error", "schema", "/IPAM/Subnet"),
    ]
    assert places({"type": "bridge", "Ipam": {"TYPE": "static", "addresses": [{"address": "10.1.0.2/24"}]}}) == [
        ("info", "key_case", "/Ipam"),
        ("info", "key_case", "/Ipam/TYPE"),
    ]


def test_of_two_types_the_one_in_small_letters_counts(places):
    assert ("warning", "unknown_key", "/isGateway") in places({"type": "ptp", "Type": "bridge", "isGateway": True})


@pytest.mark.parametrize("plugin", [{"type": "bridge", "mtu": 9, "MTU": "x"}, {"type": "bridge", "MTU": "x", "mtu": 9}])
def test_of_two_spellings_the_one_in_small_letters_counts_as_libcni_sorts_them(problems, plugin):
    found = [entry for entry in problems(plugin) if entry[1] == "duplicate_key"]
    assert [entry[:2] for entry in found] == [("warning", "duplicate_key")]
    assert "only 'mtu' counts" in found[0][3]
    assert not any(entry[0] == "error" for entry in problems(plugin))


def test_null_is_as_good_as_nothing(problems):
    assert (
        problems({"type": "bridge", "mtu": None, "ipam": None, "dns": {"nameservers": None}, "vlanTrunk": None}) == []
    )


def test_plugins_without_a_schema_pass_with_an_info_and_what_all_share_is_validated(problems, places):
    assert places({"type": "acme", "own": 1, "ipam": {"type": "acme-ipam", "x": 1}}) == [
        ("info", "unknown_plugin", ""),
        ("info", "unknown_plugin", "/ipam"),
    ]
    assert ("error", "schema", "/dns/domain") in places({"type": "acme", "dns": {"domain": 5}})
    assert "did you mean" not in problems({"type": "acme"})[0][3]
    found = problems({"type": "acme", "capabilites": {"dns": True}, "capability": 1})
    assert [entry[:3] for entry in found if entry[0] != "info"] == [("warning", "unknown_key", "/capabilites")]


def test_what_libcni_refuses_is_told_with_its_place_if_the_schema_knows_it(places):
    assert places({"type": "acme", "capabilities": 5}) == [
        ("info", "unknown_plugin", ""),
        ("error", "schema", "/capabilities"),
    ]
    data = {"cniVersion": "1.0.0", "name": "a", "plugins": [{"type": "acme", "capabilities": 5}]}
    (entry,) = Checked(DataSource(data), "here", None, ("syntax",)).problems
    assert entry.code == "refused_by_libcni"


def test_secrets_do_not_get_into_messages(problems):
    text = json.dumps(problems({"type": "tuning", "sysctl": {"net.secret_token": 123456789}}))
    assert "123456789" not in text


def test_an_unknown_key_of_the_list_is_a_warning(problems):
    data = {"cniVersion": "1.0.0", "name": "a", "disablCheck": True, "plugins": [{"type": "loopback"}]}
    (entry,) = Checked(DataSource(data), "here", None, ("syntax", "schema")).problems
    assert (entry.code, entry.pointer) == ("unknown_key", "/disablCheck")
    assert "disableCheck" in entry.message


# ---- huge and deep input


def check_text(text):
    return Checked(TextSource(text), "here", "a", ("syntax", "schema")).problems


@pytest.mark.parametrize("depth", [200, 500, 900, 5000, 200000])
def test_deep_input_is_refused_and_not_died_of(depth):
    inner = "[" * depth + "]" * depth
    for text in ('{"plugins": %s}' % inner, '{"plugins": [{"type": "bridge", "dns": %s}]}' % inner):
        found = check_text(text)
        assert any(entry.level == "error" for entry in found)


def test_depth_in_what_is_free_passes():
    inner = '{"a": ' * 50 + "1" + "}" * 50
    text = '{"cniVersion": "1.0.0", "plugins": [{"type": "bridge", "args": {"x": %s}}]}' % inner
    assert check_text(text) == []


@pytest.mark.parametrize(
    "member",
    [
        {"k%d" % number: 1 for number in range(5000)},
        {"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}]] * 5000}},
        {"ipam": {"type": "host-local", "routes": [{"dst": "x"}] * 5000, "subnet": "10.1.0.0/24"}},
        {"vlanTrunk": [{}] * 5000},
        {"bridge": "x" * 1000000},
        {"x" * 1000000: 1},
        {"args": {"a": "{{" * 500000}},
        {"dns": {"search": ["{% " * 100, "__A" * 100000]}},
    ],
    ids=["keys", "ranges", "routes", "trunk", "value", "key", "braces", "marks"],
)
def test_huge_input_gives_few_findings_of_readable_length(member):
    data = {"cniVersion": "1.0.0", "plugins": [{"type": "bridge", **member}]}
    found = check_text(json.dumps(data))
    assert len(found) <= 200
    assert all(len(entry.message) < 1000 for entry in found)


def test_a_huge_number_is_refused_from_text_and_from_a_mapping():
    assert [entry.code for entry in check_text('{"plugins": [{"type": "bridge", "mtu": 1%s}]}' % ("0" * 400))] == [
        "json_number"
    ]
    data = {"cniVersion": "1.0.0", "name": "a", "plugins": [{"type": "bridge", "mtu": 10**5000}]}
    (entry,) = Checked(DataSource(data), "here", None, ("syntax", "schema")).problems
    assert (entry.code, entry.pointer) == ("json_number", "/plugins/0/mtu")
