# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import jsonschema
import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._conf import schema
from ansible_collections.podwire.cni.plugins.plugin_utils._conf.source import DataSource
from ansible_collections.podwire.cni.plugins.plugin_utils._conf.validate import Checked

LOCAL = {"type": "host-local", "subnet": "10.1.0.0/24"}


def problems(plugin):
    data = {"cniVersion": "1.0.0", "name": "a", "plugins": [plugin]}
    entries = Checked(DataSource(data), "here", None, ("syntax", "schema")).problems
    return [(e["level"], e["code"], e["pointer"].replace("/plugins/0", "", 1), e["message"]) for e in entries]


def places(plugin):
    return [entry[:3] for entry in problems(plugin)]


VALID = [
    {"type": "bridge"},
    {
        "type": "bridge",
        "bridge": "apps0",
        "isGateway": True,
        "isDefaultGateway": False,
        "forceAddress": True,
        "ipMasq": True,
        "ipMasqBackend": "nftables",
        "mtu": 1500.0,
        "hairpinMode": True,
        "promiscMode": False,
        "vlan": 4094,
        "vlanTrunk": [{"id": 5}, {"minID": 10, "maxID": 20}],
        "preserveDefaultVlan": True,
        "macspoofchk": True,
        "enabledad": True,
        "disableContainerInterface": False,
        "portIsolation": True,
        "capabilities": {"mac": True},
        "args": {"cni": {"labels": []}},
        "dns": {"nameservers": ["192.0.2.1"], "domain": "a", "search": ["b"], "options": ["c"]},
        "ipam": LOCAL,
        "_comment": "keys like this are comments",
        "cni.dev/x": 1,
    },
    {"type": "bridge", "mtu": None, "ipam": {}, "dns": {}},
    {"type": "bridge", "disableContainerInterface": True, "ipam": {}},
    {"type": "ptp", "ipam": LOCAL, "ipMasq": True, "ipMasqBackend": "iptables", "mtu": 0},
    {"type": "loopback"},
    {"type": "portmap", "capabilities": {"portMappings": True}, "snat": False, "masqAll": True, "markMasqBit": 0},
    {"type": "portmap", "backend": "iptables", "externalSetMarkChain": "X", "conditionsV4": ["!", "-d", "1.2.3.4"]},
    {"type": "portmap", "backend": "nftables", "conditionsV6": ["ip6", "daddr", "::1"]},
    {"type": "firewall"},
    {
        "type": "firewall",
        "backend": "",
        "iptablesAdminChainName": "A",
        "firewalldZone": "z",
        "ingressPolicy": "isolated",
    },
    {
        "type": "tuning",
        "sysctl": {"net.core.somaxconn": "500", "net/ipv4/conf/IFNAME/arp_notify": "1"},
        "mac": "02:00:00:00:00:01",
        "promisc": True,
        "mtu": 1400,
        "allmulti": False,
        "txQLen": 0,
        "dataDir": "/run/x",
    },
    {
        "type": "bridge",
        "ipam": {
            "type": "host-local",
            "ranges": [
                [
                    {"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.5", "rangeEnd": "10.1.0.9", "gateway": "1.1.1.1"},
                    {"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.10"},
                ],
                [{"subnet": "2001:db8::/64"}],
            ],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0", "gw": "fe80::1", "mtu": 1, "table": 5, "scope": 253}],
            "resolvConf": "/etc/resolv.conf",
            "dataDir": "/run/leases",
        },
    },
    {"type": "bridge", "capabilities": {"ipRanges": True}, "ipam": {"type": "host-local"}},
    {
        "type": "ptp",
        "ipam": {
            "type": "static",
            "addresses": [{"address": "10.1.0.9/24", "gateway": "10.1.0.1"}, {"address": "::2/64"}],
            "routes": [{"dst": "::/0"}],
            "dns": {"domain": "x"},
        },
    },
    {"type": "bridge", "capabilities": {"ips": True}, "ipam": {"type": "static"}},
]


@pytest.mark.parametrize("plugin", VALID, ids=range(len(VALID)))
def test_what_the_plugins_take_is_accepted(plugin):
    assert problems(plugin) == []


def ranges(*groups):
    return {"type": "bridge", "ipam": {"type": "host-local", "ranges": list(groups)}}


RANGE = "/ipam/ranges/0/0"
INVALID = [
    ({"type": "bridge", "bridge": "a-name-of-sixteen"}, "/bridge", "15 bytes"),
    ({"type": "bridge", "bridge": "a b"}, "/bridge", "interface name"),
    ({"type": "bridge", "bridge": 5}, "/bridge", "it must be a string"),
    ({"type": "bridge", "isGateway": "true"}, "/isGateway", "without quotes"),
    ({"type": "bridge", "mtu": "1500"}, "/mtu", "whole number"),
    ({"type": "bridge", "mtu": 1500.5}, "/mtu", "whole number"),
    ({"type": "bridge", "mtu": -1}, "/mtu", "the minimum is 0"),
    ({"type": "bridge", "vlan": 4095}, "/vlan", "the maximum is 4094"),
    ({"type": "bridge", "vlanTrunk": {}}, "/vlanTrunk", "it must be a list"),
    ({"type": "bridge", "vlanTrunk": [{}]}, "/vlanTrunk/0", "minID and maxID"),
    ({"type": "bridge", "vlanTrunk": [{"minID": 5}]}, "/vlanTrunk/0", "minID and maxID"),
    ({"type": "bridge", "vlanTrunk": [{"id": 0}]}, "/vlanTrunk/0/id", "the minimum is 1"),
    ({"type": "bridge", "vlanTrunk": [{"minID": 9, "maxID": 5}]}, "/vlanTrunk/0/maxID", "less than minID"),
    ({"type": "bridge", "ipMasqBackend": "nft"}, "/ipMasqBackend", "did you mean nftables?"),
    ({"type": "bridge", "hairpinMode": True, "promiscMode": True}, "", "exclude each other"),
    ({"type": "bridge", "disableContainerInterface": True, "ipam": LOCAL}, "", "remove ipam"),
    ({"type": "bridge", "dns": {"nameservers": ["ns1"]}}, "/dns/nameservers/0", "is no IP address"),
    ({"type": "ptp"}, "", "ipam is missing"),
    ({"type": "ptp", "ipam": {}}, "/ipam", "ipam.type is missing"),
    ({"type": "ptp", "ipam": LOCAL, "mtu": []}, "/mtu", "whole number"),
    ({"type": "loopback", "args": 5}, "/args", "an object"),
    ({"type": "portmap", "backend": "ipvs"}, "/backend", '"iptables", "nftables"'),
    ({"type": "portmap", "snat": 1}, "/snat", "true or false"),
    ({"type": "portmap", "markMasqBit": 32}, "/markMasqBit", "the maximum is 31"),
    ({"type": "portmap", "markMasqBit": 1, "externalSetMarkChain": "X"}, "", "exclude each other"),
    ({"type": "portmap", "backend": "nftables", "externalSetMarkChain": "X"}, "/externalSetMarkChain", "iptables only"),
    ({"type": "portmap", "conditionsV4": ["-s", 1]}, "/conditionsV4/1", "a string"),
    ({"type": "portmap", "backend": "nftables", "conditionsV4": ["-s"]}, "/conditionsV4", "words of iptables"),
    ({"type": "portmap", "conditionsV4": ["-s"], "conditionsV6": ["ip6"]}, "/conditionsV6", "words of nftables"),
    ({"type": "firewall", "ingressPolicy": "closed"}, "/ingressPolicy", "same-bridge"),
    ({"type": "firewall", "iptablesAdminChainName": "x" * 29}, "/iptablesAdminChainName", "28 characters at most"),
    ({"type": "tuning", "sysctl": {"kernel.panic": "1"}}, "/sysctl", "below net"),
    ({"type": "tuning", "sysctl": {"net.core.somaxconn": 500}}, "/sysctl/net.core.somaxconn", "in quotes"),
    ({"type": "tuning", "mac": "02:00"}, "/mac", "is no MAC address"),
    ({"type": "tuning", "dataDir": "run"}, "/dataDir", "is no absolute path"),
    ({"type": "bridge", "ipam": {"type": "host-local"}}, "/ipam", "there is no range"),
    ({"type": "bridge", "ipam": {"type": "host-local", "gateway": "10.0.0.1"}}, "/ipam", "subnet is missing"),
    (ranges([]), "/ipam/ranges/0", "at least 1 entries"),
    (ranges([{}]), RANGE, "subnet is missing"),
    (ranges({"subnet": "10.1.0.0/24"}), "/ipam/ranges/0", "it must be a list"),
    (ranges([{"subnet": "10.1.0.0"}]), RANGE + "/subnet", "write 10.1.0.0/24"),
    (ranges([{"subnet": "10.1.0.0/255.255.0.0"}]), RANGE + "/subnet", "netmasks"),
    (ranges([{"subnet": "10.1.0.1/24"}]), RANGE + "/subnet", "write 10.1.0.0/24"),
    (ranges([{"subnet": "10.1.0.0/31"}]), RANGE + "/subnet", "/30 at most"),
    (ranges([{"subnet": "2001:db8::/127"}]), RANGE + "/subnet", "/126 at most"),
    (ranges([{"subnet": "10.1.0.0/33"}]), RANGE + "/subnet", "too large"),
    (ranges([{"subnet": "usePodCidr"}]), RANGE + "/subnet", "prefix length"),
    (ranges([{"subnet": "fe80::%eth0/64"}]), RANGE + "/subnet", "zone"),
    (ranges([{"subnet": "10.1.0.0/24", "rangeStart": "10.2.0.5"}]), RANGE + "/rangeStart", "not in the subnet"),
    (ranges([{"subnet": "10.1.0.0/24", "rangeEnd": "10.2.0.5"}]), RANGE + "/rangeEnd", "not in the subnet"),
    (
        ranges([{"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.9", "rangeEnd": "10.1.0.5"}]),
        RANGE + "/rangeEnd",
        "comes before",
    ),
    (ranges([{"subnet": "10.1.0.0/24", "gateway": "::1"}]), RANGE + "/gateway", "not of the family"),
    (ranges([{"subnet": "10.1.0.0/24"}, {"subnet": "::/64"}]), "/ipam/ranges/0/1/subnet", "one family"),
    (ranges([{"subnet": "10.1.0.0/24"}], [{"subnet": "10.1.0.0/25"}]), "/ipam/ranges/1/0", "overlap"),
    ({"type": "bridge", "ipam": {**LOCAL, "routes": [{}]}}, "/ipam/routes/0", "dst is missing"),
    ({"type": "bridge", "ipam": {**LOCAL, "routes": [{"dst": "0/0"}]}}, "/ipam/routes/0/dst", "is no IP address"),
    ({"type": "bridge", "ipam": {**LOCAL, "routes": [{"dst": "::/0", "scope": 7}]}}, "/ipam/routes/0/scope", "253"),
    (
        {"type": "ptp", "ipam": {"type": "static", "addresses": [[{"address": "10.1.0.9/24"}]]}},
        "/ipam/addresses/0",
        "it must be an object",
    ),
    ({"type": "ptp", "ipam": {"type": "static", "addresses": [{}]}}, "/ipam/addresses/0", "address is missing"),
    (
        {"type": "ptp", "ipam": {"type": "static", "addresses": [{"address": "10.1.0.9"}]}},
        "/ipam/addresses/0/address",
        "write 10.1.0.9/24",
    ),
    (
        {"type": "ptp", "ipam": {"type": "static", "addresses": [{"address": "10.1.0.9/24", "gateway": "::1"}]}},
        "/ipam/addresses/0/gateway",
        "not of the family",
    ),
]


@pytest.mark.parametrize(("plugin", "pointer", "words"), INVALID, ids=range(len(INVALID)))
def test_what_the_plugins_refuse_is_found_where_it_is(plugin, pointer, words):
    ((level, code, place, message),) = problems(plugin)
    assert (level, code, place) == ("error", "schema", pointer)
    assert words in message


def test_an_unknown_key_is_a_warning_with_the_nearest_known_one():
    ((level, code, place, message),) = problems({"type": "bridge", "isGatway": True})
    assert (level, code, place) == ("warning", "unknown_key", "/isGatway")
    assert "isGateway" in message
    assert places({**ranges([{"subnet": "10.1.0.0/24", "rangeStrat": "x"}])}) == [
        ("warning", "unknown_key", RANGE + "/rangeStrat")
    ]


def test_a_key_in_another_case_is_known_and_validated():
    assert places({"type": "bridge", "MTU": 1500}) == [("info", "key_case", "/MTU")]
    assert places({"type": "bridge", "MTU": "1500"}) == [("info", "key_case", "/MTU"), ("error", "schema", "/MTU")]
    assert places({"type": "bridge", "IPAM": {"TYPE": "host-local", "Subnet": "x"}}) == [
        ("info", "key_case", "/IPAM"),
        ("info", "key_case", "/IPAM/TYPE"),
        ("info", "key_case", "/IPAM/Subnet"),
        ("error", "schema", "/IPAM/Subnet"),
    ]


def test_a_backend_that_firewall_silently_ignores_is_a_warning():
    assert places({"type": "firewall", "backend": "iptabels"}) == [("warning", "schema", "/backend")]


def test_static_without_addresses_is_a_warning():
    assert places({"type": "bridge", "ipam": {"type": "static"}}) == [("warning", "static_no_address", "/ipam")]


def test_plugins_without_a_schema_pass_with_an_info():
    assert places({"type": "acme", "own": 1, "ipam": {"type": "acme-ipam", "x": 1}}) == [
        ("info", "unknown_plugin", ""),
        ("info", "unknown_plugin", "/ipam"),
    ]
    assert ("error", "schema", "/dns/nameservers/0") in places({"type": "acme", "dns": {"nameservers": ["x"]}})


def test_secrets_do_not_get_into_messages():
    data = {"type": "acme", "args": {}, "capabilities": {}, "dns": {"domain": "x"}}
    assert problems(data)
    text = json.dumps(problems({"type": "tuning", "sysctl": {"net.secret_token": 123456789}}))
    assert "123456789" not in text


def test_an_unknown_key_of_the_list_is_a_warning():
    data = {"cniVersion": "1.0.0", "name": "a", "disablCheck": True, "plugins": [{"type": "loopback"}]}
    (entry,) = Checked(DataSource(data), "here", None, ("syntax", "schema")).problems
    assert (entry["code"], entry["pointer"]) == ("unknown_key", "/disablCheck")
    assert "disableCheck" in entry["message"]


def all_schemas():
    for folder, _folders, files in os.walk(schema._FOLDER):
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), schema._FOLDER)


@pytest.mark.parametrize("path", sorted(all_schemas()))
def test_every_schema_is_valid_itself_and_explains_every_key(path):
    with open(os.path.join(schema._FOLDER, path), encoding="utf-8") as stream:
        data = json.load(stream)
    jsonschema.Draft202012Validator.check_schema(data)
    assert data["title"]
    for key, rule in data["properties"].items():
        assert "description" in rule or "$ref" in rule or "const" in rule, key
        for example in rule.get("examples", []):
            checker = jsonschema.Draft202012Validator({**rule, "$defs": data.get("$defs", {})})
            assert not list(checker.iter_errors(example)), key
