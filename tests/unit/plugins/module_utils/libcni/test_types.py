# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Results and their conversions (Go: pkg/types tests; libcni.md 1.5)."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import types
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import CNIError, JSONError, ResultError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.types import fixup_result_version

FULL = {
    "cniVersion": "1.1.0",
    "interfaces": [
        {
            "mac": "00:11:22:33:44:55",
            "mtu": 1500,
            "name": "eth0",
            "pciID": "8086:9a01",
            "sandbox": "/proc/3553/ns/net",
            "socketPath": "/path/to/vhost/fd",
        }
    ],
    "ips": [
        {"address": "1.2.3.30/24", "gateway": "1.2.3.1", "interface": 0},
        {"address": "abcd:1234:ffff::cdde/64", "gateway": "abcd:1234:ffff::1", "interface": 0},
    ],
    "routes": [
        {"advmss": 1400, "dst": "15.5.6.0/24", "gw": "15.5.6.8", "mtu": 1450, "priority": 5, "scope": 253, "table": 50},
        {"dst": "1111:dddd::/80", "gw": "1111:dddd::aaaa"},
    ],
    "dns": {"domain": "acompany.com", "nameservers": ["1.2.3.4", "1::cafe"], "options": ["foo"], "search": ["x.com"]},
}


def make(value):
    return types.create_from_bytes(json.dumps(value).encode())


def test_full_result():
    result = make(FULL)
    assert result.version == "1.1.0"
    assert result.addresses == ["1.2.3.30/24", "abcd:1234:ffff::cdde/64"]
    assert result.to_dict() == FULL
    assert list(result.to_dict()) == ["cniVersion", "dns", "interfaces", "ips", "routes"]
    assert result.to_json() == json.dumps(FULL, sort_keys=True, separators=(",", ":")).encode()
    assert result.to_json(4) == json.dumps(FULL, sort_keys=True, indent=4).encode()


def test_to_dict_is_a_copy():
    result = make(FULL)
    result.to_dict()["ips"][0]["address"] = "changed"
    assert result.to_dict() == FULL
    old = result.as_version("0.4.0")
    old.to_dict()["ips"][0]["address"] = "changed"
    assert old.addresses[0] == "1.2.3.30/24"


def test_same_shape_changes_the_version_only():
    result = make(FULL)
    assert result.as_version("1.0.0").to_dict() == {**FULL, "cniVersion": "1.0.0"}
    assert result.as_version("1.0.0").as_version("1.1.0") == result
    assert result.as_version("1.1.0") is result
    old = result.as_version("0.4.0")
    assert old.as_version("0.3.0").to_json() == old.to_json().replace(b"0.4.0", b"0.3.0")
    older = result.as_version("0.2.0")
    assert older.as_version("0.1.0").to_json() == older.to_json().replace(b"0.2.0", b"0.1.0")
    assert older.as_version("").version == "0.1.0"


def test_1x_to_04x():
    assert make(FULL).as_version("0.4.0").to_json() == (
        b'{"cniVersion":"0.4.0","interfaces":[{"name":"eth0","mac":"00:11:22:33:44:55","sandbox":"/proc/3553/ns/net"}],'
        b'"ips":[{"version":"4","interface":0,"address":"1.2.3.30/24","gateway":"1.2.3.1"},'
        b'{"version":"6","interface":0,"address":"abcd:1234:ffff::cdde/64","gateway":"abcd:1234:ffff::1"}],'
        b'"routes":[{"dst":"15.5.6.0/24","gw":"15.5.6.8","mtu":1450,"advmss":1400,"priority":5,"table":50,"scope":253},'
        b'{"dst":"1111:dddd::/80","gw":"1111:dddd::aaaa"}],'
        b'"dns":{"nameservers":["1.2.3.4","1::cafe"],"domain":"acompany.com","search":["x.com"],"options":["foo"]}}'
    )


def test_1x_to_02x():
    assert make(FULL).as_version("0.1.0").to_json() == (
        b'{"cniVersion":"0.1.0","ip4":{"ip":"1.2.3.30/24","gateway":"1.2.3.1",'
        b'"routes":[{"dst":"15.5.6.0/24","gw":"15.5.6.8"}]},'
        b'"ip6":{"ip":"abcd:1234:ffff::cdde/64","gateway":"abcd:1234:ffff::1",'
        b'"routes":[{"dst":"1111:dddd::/80","gw":"1111:dddd::aaaa"}]},'
        b'"dns":{"nameservers":["1.2.3.4","1::cafe"],"domain":"acompany.com","search":["x.com"],"options":["foo"]}}'
    )


def test_04x_to_1x():
    result = make(FULL).as_version("0.4.0").as_version("1.0.0")
    expected = {**FULL, "cniVersion": "1.0.0"}
    expected["interfaces"] = [{key: FULL["interfaces"][0][key] for key in ("name", "mac", "sandbox")}]
    assert result.to_dict() == expected


@pytest.mark.parametrize("gateways", [True, False])
def test_02x_to_04x_and_back(gateways):
    gw4, gw6 = ({"gw": "15.5.6.8"}, {"gw": "1111:dddd::aaaa"}) if gateways else ({}, {})
    raw = {
        "cniVersion": "0.2.0",
        "ip4": {"ip": "1.2.3.30/24", "gateway": "1.2.3.1", "routes": [{"dst": "15.5.6.0/24", **gw4}]},
        "ip6": {"ip": "abcd::cdde/64", "gateway": "abcd::1", "routes": [{"dst": "1111:dddd::/80", **gw6}]},
        "dns": {"nameservers": ["1.2.3.4"]},
    }
    result = make(raw)
    assert result.addresses == ["1.2.3.30/24", "abcd::cdde/64"]
    assert result.to_json() == json.dumps(raw, separators=(",", ":")).encode()
    newer = result.as_version("0.4.0")
    assert newer.to_dict() == {
        "cniVersion": "0.4.0",
        "ips": [
            {"version": "4", "address": "1.2.3.30/24", "gateway": "1.2.3.1"},
            {"version": "6", "address": "abcd::cdde/64", "gateway": "abcd::1"},
        ],
        "routes": [{"dst": "15.5.6.0/24", **gw4}, {"dst": "1111:dddd::/80", **gw6}],
        "dns": {"nameservers": ["1.2.3.4"]},
    }
    assert newer.as_version("0.2.0").to_json() == result.to_json()
    assert result.as_version("1.1.0").as_version("0.2.0").to_json() == result.to_json()


def test_downconversion_keeps_the_first_address_of_each_family_only():
    result = make(
        {
            "cniVersion": "0.3.1",
            "ips": [
                {"version": "6", "address": "fd00::1/64"},
                {"version": "4", "address": "10.0.0.1/24"},
                {"version": "4", "address": "10.0.0.2/24"},
                {"version": "6", "address": "fd00::2/64"},
            ],
        }
    ).as_version("0.2.0")
    assert result.to_dict() == {
        "cniVersion": "0.2.0",
        "ip4": {"ip": "10.0.0.1/24"},
        "ip6": {"ip": "fd00::1/64"},
        "dns": {},
    }


def test_downconversion_loses_routes_of_a_family_without_address():
    raw = {
        "cniVersion": "1.0.0",
        "ips": [{"address": "10.0.0.1/24"}],
        "routes": [{"dst": "::/0"}, {"dst": "0.0.0.0/0", "mtu": 1400, "table": 0}],
    }
    assert make(raw).as_version("0.2.0").to_dict()["ip4"] == {"ip": "10.0.0.1/24", "routes": [{"dst": "0.0.0.0/0"}]}


@pytest.mark.parametrize(
    "raw",
    [
        {"cniVersion": "1.1.0"},
        {"cniVersion": "0.4.0"},
        # An address without a version counts as neither.
        {"cniVersion": "0.4.0", "ips": [{"address": "10.0.0.1/24"}]},
    ],
)
def test_downconversion_without_address(raw):
    with pytest.raises(ResultError, match=r"^cannot convert: no valid IP addresses$"):
        make(raw).as_version("0.2.0")


def test_unknown_target_version():
    with pytest.raises(ResultError, match=r"^no converter for CNI result version 1.1.0 to 1.2.0$"):
        make(FULL).as_version("1.2.0")


def test_every_pair_of_versions_converts():
    raw = {"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "10.0.0.1/24"}]}
    for first in ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"):
        for second in ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"):
            result = make(raw).as_version(first).as_version(second)
            assert result.version == second
            assert result.addresses == ["10.0.0.1/24"]
            assert types.create(second, result.to_json()) == result


def test_interface_index():
    for version in ("0.4.0", "1.0.0"):
        raw = {"cniVersion": version, "ips": [{"address": "10.0.0.1/24", "interface": 0}, {"address": "10.0.0.2/24"}]}
        for result in (make(raw), make(raw).as_version("1.1.0"), make(raw).as_version("0.3.1")):
            ips = result.to_dict()["ips"]
            assert ips[0]["interface"] == 0
            assert "interface" not in ips[1]


def test_empty_dns():
    for version in ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0"):
        assert make({"cniVersion": version, "dns": {"search": []}}).to_dict()["dns"] == {}
    for version in ("1.0.0", "1.1.0"):
        assert "dns" not in make({"cniVersion": version, "dns": {"domain": ""}}).to_dict()


def test_empty_results():
    assert types.create_from_bytes(b"null").to_json() == b'{"cniVersion":"0.1.0","dns":{}}'
    assert types.create_from_bytes(b"{}").to_json() == b'{"cniVersion":"0.1.0","dns":{}}'
    empty = b'{"cniVersion":"0.4.0","ips":null,"interfaces":[],"routes":null,"dns":null}'
    assert types.create_from_bytes(empty).to_json() == b'{"cniVersion":"0.4.0","dns":{}}'
    assert types.create_from_bytes(b'{"cniVersion":"0.2.0","ip4":null}').addresses == []


def test_unknown_keys_are_dropped():
    raw = {
        "cniVersion": "1.0.0",
        "custom": 1,
        "interfaces": [{"name": "a", "x": 1}],
        "ips": [{"address": "10.0.0.1/8", "version": "4"}],
        "routes": [{"dst": "0.0.0.0/0", "x": 1}],
        "dns": {"x": 1, "domain": "d"},
    }
    assert make(raw).to_json() == (
        b'{"cniVersion":"1.0.0","dns":{"domain":"d"},"interfaces":[{"name":"a"}],"ips":[{"address":"10.0.0.1/8"}],'
        b'"routes":[{"dst":"0.0.0.0/0"}]}'
    )
    assert make({"cniVersion": "0.4.0", "interfaces": [{"name": "a", "mtu": 5}]}).to_dict()["interfaces"] == [
        {"name": "a"}
    ]


@pytest.mark.parametrize(
    ("raw", "printed"),
    [
        (
            b'{"cniVersion":"0.4.0","dns":{"domain":"a","options":["o"]},"DNS":{"domain":null,"search":["s"]},"dns":null}',
            b'{"cniVersion":"0.4.0","dns":{"domain":"a","search":["s"],"options":["o"]}}',
        ),
        (
            b'{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.1/8","gateway":"10.0.0.2"},"IP4":{"ip":"10.0.0.3/8"}}',
            b'{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.3/8"},"dns":{}}',
        ),
        (
            b'{"cniVersion":"0.4.0","interfaces":[{"name":"a","mac":"m"},{"name":"b"}],"Interfaces":[{"name":"c"}]}',
            b'{"cniVersion":"0.4.0","interfaces":[{"name":"c","mac":"m"}],"dns":{}}',
        ),
        (
            b'{"cniVersion":"1.0.0","interfaces":[{"mtu":5}],"interfaces":[{"mtu":null,"name":"a"},{}]}',
            b'{"cniVersion":"1.0.0","interfaces":[{"mtu":5,"name":"a"},{"name":""}]}',
        ),
        (b'{"cniVersion":"0.4.0","interfaces":[{"name":"a"}],"interfaces":null}', b'{"cniVersion":"0.4.0","dns":{}}'),
        (
            b'{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.1/8"},"ip4":null,"cniVersion":null}',
            b'{"cniVersion":"0.2.0","dns":{}}',
        ),
    ],
)
def test_repeated_keys_as_in_go(raw, printed):
    assert types.create_from_bytes(raw).to_json() == printed


def test_keys_match_whatever_their_case():
    raw = {"CNIVERSION": "1.0.0", "IPs": [{"Address": "10.0.0.1/8"}], "interfaces": [{}]}
    assert make(raw).to_dict() == {
        "cniVersion": "1.0.0",
        "ips": [{"address": "10.0.0.1/8"}],
        "interfaces": [{"name": ""}],
    }


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("10.0.0.1/24", "10.0.0.1/24"),
        ("10.0.0.1/024", "10.0.0.1/24"),
        ("FD00:0:0::AB/64", "fd00::ab/64"),
        ("1:0:0:2:0:0:0:3/128", "1:0:0:2::3/128"),
        ("::/0", "::/0"),
        ("::1.2.3.4/128", "::102:304/128"),
        ("::ffff:10.0.0.1/120", "10.0.0.1/24"),
        ("::ffff:a00:1/128", "10.0.0.1/32"),
        ("::ffff:10.0.0.1/64", "10.0.0.1/0"),
    ],
)
def test_addresses_are_canonical(text, canonical):
    assert make({"cniVersion": "1.0.0", "ips": [{"address": text}]}).addresses == [canonical]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10.0.0.1",
        "10.0.0.1/",
        "10.0.0.1/33",
        "10.0.0.1/-1",
        "10.0.0.1/+8",
        "10.0.0.1/255.0.0.0",
        "10.0.0.01/8",
        "010.0.0.1/8",
        "10.0.0/8",
        "10.0.0.256/8",
        " 10.0.0.1/8",
        "10.0.0.1/8 ",
        "\u0661.0.0.1/8",
        "fe80::1%eth0/64",
        "fe80::1/129",
        "1::2::3/64",
        "12345::/64",
        "::ffff:10.0.0.01/120",
        "<nil>",
        "/8",
        ":" * 100000 + "x/8",
        "::/" + "9" * 5000,
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_what_is_no_address(text):
    with pytest.raises(JSONError, match=r"^ips/0/address: invalid CIDR address: "):
        make({"cniVersion": "1.0.0", "ips": [{"address": text}]})


def test_gateways():
    def gateway(text):
        raw = {"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.2/8", "gateway": text}]}
        return make(raw).to_dict()["ips"][0].get("gateway")

    assert gateway("::FFFF:10.0.0.1") == "10.0.0.1"
    assert gateway("FE80::1") == "fe80::1"
    assert gateway("") is None
    assert gateway(None) is None
    for text in ("10.0.0.1/8", "fe80::1%eth0", "x", "01.2.3.4"):
        with pytest.raises(JSONError, match=r"^ips/0/gateway: invalid IP address: "):
            gateway(text)


def test_missing_address_prints_as_in_go():
    result = make({"cniVersion": "1.0.0", "ips": [{}], "routes": [{}]})
    assert result.to_json() == (
        b'{"cniVersion":"1.0.0","ips":[{"address":"\\u003cnil\\u003e"}],"routes":[{"dst":"\\u003cnil\\u003e"}]}'
    )
    assert result.as_version("0.4.0").to_dict()["ips"] == [{"version": "6", "address": "<nil>"}]


def test_route_attributes():
    text = b'{"cniVersion":"1.0.0","routes":[{"dst":"0.0.0.0/0","mtu":0,"priority":0,"table":0,"scope":null}]}'
    assert types.create_from_bytes(text).to_dict()["routes"] == [{"dst": "0.0.0.0/0", "table": 0}]


@pytest.mark.parametrize(
    "raw",
    [
        b"[]",
        b'"x"',
        b'{"address":5',
        b'{"cniVersion":1}',
        b'{"cniVersion":"1.0.0","ips":{}}',
        b'{"cniVersion":"1.0.0","ips":[null]}',
        b'{"cniVersion":"1.0.0","ips":[5]}',
        b'{"cniVersion":"1.0.0","ips":[{"address":5}]}',
        b'{"cniVersion":"1.0.0","ips":[{"address":null}]}',
        b'{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.1/8","interface":1.0}]}',
        b'{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.1/8","interface":"1"}]}',
        b'{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.1/8","interface":9223372036854775808}]}',
        b'{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.1/8","gateway":1}]}',
        b'{"cniVersion":"1.0.0","interfaces":[null]}',
        b'{"cniVersion":"1.0.0","interfaces":[{"name":1}]}',
        b'{"cniVersion":"1.0.0","interfaces":[{"mtu":"1500"}]}',
        b'{"cniVersion":"1.0.0","routes":[null]}',
        b'{"cniVersion":"1.0.0","routes":[{"dst":null}]}',
        b'{"cniVersion":"1.0.0","routes":[{"dst":"0.0.0.0/0","mtu":1.5}]}',
        b'{"cniVersion":"1.0.0","routes":[{"dst":"1.2.3.0/24","gw":"1.2.3.x"}]}',
        b'{"cniVersion":"1.0.0","dns":[]}',
        b'{"cniVersion":"0.4.0","ips":[{"version":4,"address":"10.0.0.1/8"}]}',
        b'{"cniVersion":"0.2.0","ip4":[]}',
        b'{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.1"}}',
        b'{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.1/8","routes":[null]}}',
        b'{"cniVersion":"1.0.0","a":' + b"[" * 100000,
        b'{"cniVersion":"1.0.0","a":1e999}',
        b"\xff\xfe",
        b"",
    ],
    ids=lambda raw: ascii(raw[:60]),
)
def test_garbage_is_an_error(raw):
    with pytest.raises(CNIError):
        types.create_from_bytes(raw)


def test_create_by_version():
    with pytest.raises(ResultError, match=r'^unsupported CNI result version "0.4567.0"$'):
        types.create_from_bytes(b'{"cniVersion":"0.4567.0"}')
    with pytest.raises(ResultError, match=r'^unsupported CNI result version "1.0"$'):
        types.create("1.0", b"{}")
    with pytest.raises(ResultError) as caught:
        types.create("1.0.0", b'{"cniVersion":"0.4.0"}')
    assert str(caught.value) == 'result type supports [1.0.0 1.1.0] but unmarshalled CNIVersion is "0.4.0"'
    with pytest.raises(ResultError) as caught:
        types.create("0.2.0", b'{"cniVersion":"1.0.0"}')
    assert str(caught.value) == 'result type supports [ 0.1.0 0.2.0] but unmarshalled CNIVersion is "1.0.0"'
    with pytest.raises(ResultError, match=r'unmarshalled CNIVersion is ""$'):
        types.create("1.0.0", b"{}")
    assert types.create("", b"{}").version == "0.1.0"


@pytest.mark.parametrize(
    ("conf", "data", "version", "fixed"),
    [
        (b'{"cniVersion":"0.3.1"}', b'{"cniVersion":"0.4.0", "x": 1.0}', "0.4.0", b'{"cniVersion":"0.4.0", "x": 1.0}'),
        (b'{"cniVersion":"0.3.1"}', b'{"x": 1.0}', "0.3.1", b'{"cniVersion":"0.3.1","x":1}'),
        (b'{"cniVersion":"0.3.1"}', b'{"cniVersion":""}', "0.3.1", b'{"cniVersion":"0.3.1"}'),
        (b'{"cniVersion":"0.3.1"}', b'{"cniVersion":5}', "0.3.1", b'{"cniVersion":"0.3.1"}'),
        (b'{"cniVersion":""}', b'{"cniVersion":""}', "0.1.0", b'{"cniVersion":"0.1.0"}'),
        (b"{}", b"null", "0.1.0", b'{"cniVersion":"0.1.0"}'),
    ],
)
def test_fixup_result_version(conf, data, version, fixed):
    assert fixup_result_version(conf, data) == (version, fixed)


def test_fixup_result_version_of_garbage():
    with pytest.raises(JSONError, match=r"^failed to unmarshal raw result: unexpected end of JSON input"):
        fixup_result_version(b"{}", b"")
    with pytest.raises(JSONError, match=r"^failed to unmarshal raw result: "):
        fixup_result_version(b"{}", b"[1]")
    with pytest.raises(JSONError, match=r"^decoding version from network config: "):
        fixup_result_version(b"x", b"{}")


def test_parse_prev_result():
    assert types.parse_prev_result("1.0.0", None) is None
    raw = {"ips": [{"address": "10.0.0.1/8"}]}
    assert types.parse_prev_result("1.0.0", raw).addresses == ["10.0.0.1/8"]
    assert raw == {"ips": [{"address": "10.0.0.1/8"}]}
    assert types.parse_prev_result("1.0.0", {"CNIVersion": "", **raw}).version == "1.0.0"
    # Go puts the version in where there is none, and null is one.
    with pytest.raises(ResultError, match=r'unmarshalled CNIVersion is ""$'):
        types.parse_prev_result("1.0.0", {"CNIVersion": None, **raw})
    with pytest.raises(ResultError, match=r'^could not parse prevResult: unsupported CNI result version "9.8.7"'):
        types.parse_prev_result("9.8.7", raw)
    with pytest.raises(ResultError, match=r"^could not parse prevResult: result type supports"):
        types.parse_prev_result("1.0.0", {"cniVersion": "0.4.0"})


def test_equality_and_repr():
    assert make({"cniVersion": "1.0.0"}) == make({"cniVersion": "1.0.0", "x": 1})
    assert make({"cniVersion": "1.0.0"}) != make({"cniVersion": "1.1.0"})
    assert make({"cniVersion": "1.0.0"}) != {"cniVersion": "1.0.0"}
    assert repr(make({"cniVersion": "1.0.0"})) == 'Result({"cniVersion":"1.0.0"})'
