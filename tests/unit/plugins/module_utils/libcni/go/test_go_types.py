# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Results, addresses and routes (Go: pkg/types/types_test.go, 020, 040 and 100)."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import fields, types
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import JSONError, PluginError, ResultError

DNS = {
    "nameservers": ["1.2.3.4", "1::cafe"],
    "domain": "acompany.com",
    "search": ["somedomain.com", "otherdomain.net"],
    "options": ["foo", "bar"],
}
ROUTES = [{"dst": "15.5.6.0/24", "gw": "15.5.6.8"}, {"dst": "1111:dddd::/80", "gw": "1111:dddd::aaaa"}]
NIC = {"name": "eth0", "mac": "00:11:22:33:44:55", "sandbox": "/proc/3553/ns/net"}
IPS = [
    {"interface": 0, "address": "1.2.3.30/24", "gateway": "1.2.3.1"},
    {"interface": 0, "address": "abcd:1234:ffff::cdde/64", "gateway": "abcd:1234:ffff::1"},
]


def result_020(version, gateways=True):
    routes = ROUTES if gateways else [{"dst": route["dst"]} for route in ROUTES]
    return {
        "cniVersion": version,
        "ip4": {"ip": "1.2.3.30/24", "gateway": "1.2.3.1", "routes": routes[:1]},
        "ip6": {"ip": "abcd:1234:ffff::cdde/64", "gateway": "abcd:1234:ffff::1", "routes": routes[1:]},
        "dns": DNS,
    }


def result_040(version):
    ips = [{"version": family, **ip} for family, ip in zip("46", IPS)]
    return {"cniVersion": version, "interfaces": [NIC], "ips": ips, "routes": ROUTES, "dns": DNS}


def result_100(version):
    nic = {**NIC, "mtu": 1500, "pciID": "8086:9a01", "socketPath": "/path/to/vhost/fd"}
    return {"cniVersion": version, "interfaces": [nic], "ips": IPS, "routes": ROUTES, "dns": DNS}


def make(value):
    return types.create_from_bytes(json.dumps(value).encode())


@pytest.mark.parametrize(
    "value",
    [result_020("0.2.0"), result_020("0.1.0"), result_040("0.3.1"), result_100("1.1.0")],
    ids=lambda value: value["cniVersion"],
)
def test_encoding(value):
    assert make(value).to_dict() == value


@pytest.mark.parametrize(
    ("value", "version", "converted"),
    [
        (result_020("0.2.0"), "0.1.0", result_020("0.1.0")),
        (result_020("0.1.0"), "0.2.0", result_020("0.2.0")),
        (result_040("0.3.1"), "0.1.0", result_020("0.1.0")),
        (result_100("1.1.0"), "0.1.0", result_020("0.1.0")),
        (result_100("1.1.0"), "0.4.0", result_040("0.4.0")),
        (result_100("1.1.0"), "1.0.0", result_100("1.0.0")),
        (result_100("1.0.0"), "1.1.0", result_100("1.1.0")),
    ],
)
def test_conversion(value, version, converted):
    assert make(value).as_version(version).to_dict() == converted


@pytest.mark.parametrize("gateways", [True, False])
def test_round_trip_of_0_2_0(gateways):
    value = result_020("0.2.0", gateways)
    assert make(value).as_version("0.4.0").as_version("0.2.0").to_dict() == value


def test_empty_version_is_0_1_0():
    assert types.create("", json.dumps(result_020("")).encode()).version == "0.1.0"
    assert make(result_100("1.0.0")).as_version("").version == "0.1.0"


@pytest.mark.parametrize("version", ["0.4.0", "1.1.0"])
@pytest.mark.parametrize("keys", [{"interface": 0}, {}])
def test_interface_index(version, keys):
    family = {"version": "4"} if version == "0.4.0" else {}
    ip = {**family, **keys, "address": "10.1.2.3/24"}
    assert make({"cniVersion": version, "ips": [ip]}).to_dict()["ips"] == [ip]


def test_downconversion_without_addresses():
    value = result_040("0.3.1")
    del value["ips"], value["routes"]
    with pytest.raises(ResultError, match=r"^cannot convert: no valid IP addresses$"):
        make(value).as_version("0.2.0")


@pytest.mark.parametrize("version", ["0.4.0", "1.1.0"])
def test_address_of_the_wrong_type(version):
    with pytest.raises(JSONError, match=r"^json: cannot unmarshal"):
        make({"cniVersion": version, "ips": [{"address": 5}]})


# ---- types_test.go


@pytest.mark.parametrize("text", ["1.2.3.4/24", "2001:db8::/32"])
def test_addresses_with_prefix(text):
    assert fields.decode_cidr(text, "x") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1.2.3/45", "invalid CIDR address: 1.2.3/45"),
        ("1.2.3.4/99", "invalid CIDR address: 1.2.3.4/99"),
        (1, "json: cannot unmarshal number"),
    ],
)
def test_what_is_no_address_with_prefix(value, text):
    with pytest.raises(JSONError, match=text):
        fields.decode_cidr(value, "x")


def test_route():
    route = {
        "dst": "1.2.3.0/24",
        "gw": "1.2.3.1",
        "mtu": 1500,
        "advmss": 1340,
        "priority": 100,
        "table": 50,
        "scope": 253,
    }
    assert fields.decode_route(route, "x") == route
    with pytest.raises(JSONError, match=r"invalid IP address: 1\.2\.3\.x$"):
        fields.decode_route({"dst": "1.2.3.0/24", "gw": "1.2.3.x"}, "x")


def test_error():
    error = PluginError(1234, "some message", "some details")
    assert (error.code, error.msg, error.details) == (1234, "some message", "some details")
    assert str(error) == "some message; some details"
    assert str(PluginError(1234, "some message")) == "some message"
