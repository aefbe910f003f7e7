# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The message for each code of the levels syntax and schema names what is wrong, and line and column lead to it."""

from __future__ import annotations

import datetime
import json

import codes
import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._conf.networks import CheckedNetworks
from ansible_collections.podwire.cni.tests.unit.plugins.plugin_utils._conf.test_source import BAD

# Stands where line and column must lead to; it is not in the text that is checked.
HERE = "\u2023"


def text(plugin):
    return '{"cniVersion": "1.0.0", "name": "x",\n "plugins": [' + plugin + "]}"


def chain(*plugins, version="1.0.0"):
    return json.dumps({"cniVersion": version, "name": "x", "plugins": list(plugins)})


def bridge(**ipam):
    return {"type": "bridge", "ipMasq": True, "ipam": {"type": "host-local", **ipam}}


def ranges(*subnets, **more):
    return bridge(ranges=[[{"subnet": subnet}] for subnet in subnets], **more)


GOOD = text('{"type": "bridge"}')
# The code -> the configuration, and words that the message has. test_source has those of what is no JSON.
CASES = {
    "json_invalid": ('{"name": "x", "plugins": [{"type": "x", "y": %s1%s}]}' % ("[" * 5000, "]" * 5000), "libcni"),
    "not_object": ("[1]", "{"),
    "key_not_string": ({"conflist": {"cniVersion": "1.0.0", "plugins": [{"type": "a", 1: 2}]}}, "key 1"),
    "not_json_type": ({"conflist": {"plugins": [{"type": "a", "x": datetime.date(2026, 1, 1)}]}}, "'2026-01-01'"),
    "key_case": (text('{\u2023"Type": "bridge"}'), "'Type'", "'type'"),
    "duplicate_key": (text('{"type": "bridge", \u2023"type": "ptp"}'), "'type'"),
    "no_name": ({"content": '{"cniVersion": "1.0.0", "plugins": [{"type": "bridge"}]}'}, "no name"),
    "bad_name": (GOOD.replace('"x"', HERE + '"a b"'), '"a b"'),
    "name_differs": ({"name": "y", "content": GOOD}, "'x'", "'y'"),
    "no_version": ('{"name": "x", "plugins": [{"type": "bridge"}]}', "without cniVersion"),
    "version_not_string": (GOOD.replace('"1.0.0"', HERE + "1.0"), "1.0"),
    "unsupported_version": (GOOD.replace('"1.0.0"', HERE + '"3.0.0"'), '"3.0.0"'),
    "not_boolean": (GOOD.replace('"name"', '"disableCheck": \u2023"yes", "name"'), "disableCheck", '"yes"'),
    "no_plugins": (text(""), "'plugins' is []"),
    "no_type": (text('\u2023{"mtu": 1}'), "no 'type'"),
    "bad_type": (text('{"type": \u2023"a/b"}'), '"a/b"'),
    "template": (text('{"type": "bridge", "bridge": \u2023"{{ x }}"}'), "template"),
    "refused_by_libcni": (text('{"type": "unknown", "capabilities": {"mac": 1}}'), "libcni"),
    "schema": (text('{"type": "bridge", "mtu": \u2023"1500"}'), '"1500"', "write 1500"),
    "version_too_old": (chain({"type": "bandwidth"}, version="0.2.0"), "0.2.0", "0.3.0"),
    "unknown_key": (text('{"type": "bridge", \u2023"brige": "b"}'), "'brige'", "'bridge'"),
    "no_ipam_type": (text('{"type": "bridge", "ipam": \u2023{"subnet": "10.1.0.0/24"}}'), "type"),
    "no_effect": (chain({"type": "bridge", "isDefaultGateway": True}), "isDefaultGateway", "ipam"),
    "plugin_twice": (
        chain({"type": "bridge"}, {"type": "portmap"}, {"type": "portmap"}),
        "portmap is in the chain twice",
    ),
    "public_subnet": (chain(ranges("2001:4860:4860::/64")), "2001:4860:4860::/64"),
    "route_family": (chain(ranges("10.1.0.0/24", routes=[{"dst": "::/0"}])), "::/0", "IPv6"),
    "gateway_outside": (
        chain(ranges("10.1.0.0/24", routes=[{"dst": "0.0.0.0/0", "gw": "10.2.0.1"}])),
        "10.2.0.1",
        "10.1.0.0/24",
    ),
    "route_twice": (chain(ranges("10.1.0.0/24", routes=[{"dst": "0.0.0.0/0"}] * 2)), "0.0.0.0/0"),
    "own_gateway": (
        chain(bridge(type="static", addresses=[{"address": "10.1.0.1/24", "gateway": "10.1.0.1"}])),
        "10.1.0.1",
    ),
    "ptp_no_gateway": (chain({"type": "ptp", "capabilities": {"ips": True}, "ipam": {"type": "static"}}), "ips"),
    "static_no_address": (chain(bridge(type="static")), "no addresses"),
    "subnet_exchanged": (chain(bridge(subnet="10.1.0.1", gateway="10.1.0.0/24")), '"subnet": "10.1.0.0/24"'),
    "range_filled_in": (chain({**bridge(), "bridge": "kube-bridge"}), "no range"),
    "needs_release": (chain({**bridge(), "vlanTrunk": [{"id": 1}]}), "vlanTrunk", "1.1.1"),
    "deprecated_key": (
        chain({"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.1.0.0/24", "etcd_host": "h"}}),
        "etcd_host",
    ),
    "unknown_plugin": (chain({"type": "brigde"}), "brigde", "bridge"),
}


@pytest.mark.parametrize("code", CASES)
def test_the_message_names_what_is_wrong(code):
    given, *words = CASES[code]
    entry = given if isinstance(given, dict) else {"content": given.replace(HERE, "")}
    # With a schema, what libcni would refuse is found before libcni is asked.
    problems = [
        problem
        for levels in (["syntax"], ["syntax", "schema"])
        for problem in CheckedNetworks([{**entry}], levels, lambda _src: ("", b"")).problems
    ]
    found = [problem for problem in problems if problem.code == code]
    assert found, [(problem.code, problem.message) for problem in problems]
    message = found[0].message
    assert [word for word in words if word not in message] == [], message
    if isinstance(given, str) and HERE in given:
        before = given[: given.index(HERE)]
        place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        assert (found[0].line, found[0].column) == place, message


def test_every_code_of_both_levels_is_tried():
    entries = [entry for entry in codes.entries() if entry.heading in ("Level `syntax`", "Level `schema`")]
    assert {entry.heading[7:-1] for entry in entries} == {"syntax", "schema"}
    assert {code for entry in entries for code in entry.codes} - set(CASES) - {case[1] for case in BAD} == set()
