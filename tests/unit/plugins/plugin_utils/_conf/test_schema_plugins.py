# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

"""The reference plugins: what each takes, and what each refuses, as releases 1.1.1 and 1.9.1 did."""

from __future__ import annotations

import pytest

LOCAL = {"type": "host-local", "subnet": "10.1.0.0/24"}
BRIDGE = {"type": "bridge", "ipam": LOCAL}
EVERYWHERE = {
    "name": "x",
    "cniVersion": "0.3.1",
    "capabilities": {"mac": True, "acme.com/own": False, "ips": None},
    "args": {"cni": {"labels": [{"key": "a", "value": "b"}], "ips": ["10.1.0.7"], "acme": 1}, "other": {}},
    "dns": {"nameservers": ["192.0.2.1", "::1"], "domain": "a", "search": ["b"], "options": ["c"]},
    "runtimeConfig": {},
    "prevResult": {},
    "cni.dev/valid-attachments": [{}],
    "_comment": "keys like this are comments",
    "cni.dev/x": 1,
}

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
        "vlanTrunk": [{"id": 5}, {"minID": 10, "maxID": 20}, {"id": 7, "minID": 1, "maxID": 4094, "_": "x"}],
        "preserveDefaultVlan": True,
        "macspoofchk": True,
        "enabledad": True,
        "disableContainerInterface": False,
        "portIsolation": True,
        "ipam": LOCAL,
        **EVERYWHERE,
    },
    {"type": "bridge", "mtu": None, "ipam": {}, "dns": {}, "args": {"cni": {"mac": "02:00:00:00:00:01"}}},
    {"type": "bridge", "disableContainerInterface": True, "ipam": {}},
    {
        "type": "bridge",
        "disableContainerInterface": True,
        "ipam": {"type": ""},
        "hairpinMode": None,
        "promiscMode": True,
    },
    {"type": "ptp", "ipam": LOCAL, "ipMasq": True, "ipMasqBackend": "iptables", "mtu": 0, **EVERYWHERE},
    {"type": "macvlan"},
    {"type": "macvlan", "master": "eth0", "mode": "passthru", "mtu": 9000, "mac": "", "linkInContainer": True},
    {"type": "macvlan", "master": "", "mode": "", "bcqueuelen": 4294967295, "ipam": LOCAL, **EVERYWHERE},
    {"type": "ipvlan", "master": "eth0", "mode": "l3s", "mtu": 1500, "linkInContainer": False, "ipam": LOCAL},
    {"type": "vlan", "master": "eth0", "vlanId": 0, "mtu": 0, "linkInContainer": True, "ipam": LOCAL, **EVERYWHERE},
    {"type": "host-device", "device": "eth1"},
    {"type": "host-device", "hwaddr": "02:00:00:00:00:01", "device": "", "ipam": LOCAL},
    {"type": "host-device", "kernelpath": "/sys/devices/pci0000:00/0000:00:1f.6"},
    {"type": "host-device", "pciBusID": "0000:00:1f.6"},
    {"type": "host-device", "capabilities": {"deviceID": True}},
    {"type": "loopback", **EVERYWHERE},
    {"type": "dummy", "ipam": LOCAL, **EVERYWHERE},
    {"type": "tap"},
    {
        "type": "tap",
        "multiQueue": True,
        "mtu": 1500,
        "mac": "02:00:00:00:00:01",
        "owner": 0,
        "group": 4294967295,
        "selinuxContext": "a:b:c:s0",
        "bridge": "br0",
        "ipam": LOCAL,
    },
    {"type": "portmap", "capabilities": {"portMappings": True}, "snat": False, "masqAll": True, "markMasqBit": 0},
    {"type": "portmap", "backend": "iptables", "externalSetMarkChain": "X", "conditionsV4": ["!", "-d", "1.2.3.4"]},
    {"type": "portmap", "backend": "nftables", "conditionsV6": ["ip6", "daddr", "::1"], "conditionsV4": []},
    {"type": "portmap", "markMasqBit": 31, "externalSetMarkChain": None},
    {"type": "bandwidth", "capabilities": {"bandwidth": True}},
    {"type": "bandwidth", "ingressRate": 1, "ingressBurst": 34359738359, "egressRate": 0},
    {"type": "bandwidth", "egressRate": 18446744073709551615, "egressBurst": 1, "ingressBurst": 0},
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
        "sysctl": {"net.core.somaxconn": "500", "/net/ipv4/conf/IFNAME/arp_notify": "1", "net/a": None},
        "mac": "02:00:00:00:00:01",
        "promisc": True,
        "mtu": 1400,
        "allmulti": False,
        "txQLen": 0,
        "dataDir": "/run/x",
        "args": {"cni": {"sysctl": {"net.a": "1"}, "mac": "0200.0000.0001", "promisc": True, "mtu": 1, "txQLen": 9}},
    },
    {"type": "sbr"},
    {"type": "sbr", "table": 100, "gateways": ["10.1.0.1", "::1"], "addSourceHints": True},
    {"type": "vrf", "vrfname": "blue", "table": 0},
    {
        "type": "bridge",
        "ipam": {
            "type": "host-local",
            "ranges": [
                [
                    {"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.5", "rangeEnd": "10.1.0.9", "gateway": "1.1.1.1"},
                    {"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.10", "rangeEnd": "", "gateway": ""},
                ],
                [{"subnet": "fd00::/64"}],
            ],
            "routes": [
                {"dst": "0.0.0.0/0", "gw": ""},
                {"dst": "::/0", "gw": "fe80::1", "mtu": 1, "advmss": 9, "priority": 3, "table": 5, "scope": 253},
            ],
            "resolvConf": "/etc/resolv.conf",
            "dataDir": "/run/leases",
        },
    },
    {"type": "bridge", "capabilities": {"ipRanges": True}, "ipam": {"type": "host-local"}},
    {"type": "bridge", "ipam": {**LOCAL, "ranges": [], "gateway": "::ffff:10.1.0.1"}},
    {
        "type": "bridge",
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.3.0.0/24"}], [{"subnet": "10.2.0.0/24"}]]},
    },
    {
        "type": "ptp",
        "ipam": {
            "type": "static",
            "addresses": [{"address": "10.1.0.9/24", "gateway": "10.1.0.1"}, {"address": "::2/64", "gateway": "::1"}],
            "routes": [{"dst": "::/0"}],
            "dns": {"domain": "x"},
        },
    },
    {"type": "bridge", "capabilities": {"ips": True}, "ipam": {"type": "static", "routes": [{"dst": "::/0"}]}},
    {"type": "macvlan", "ipam": {"type": "dhcp"}},
    {
        "type": "macvlan",
        "ipam": {
            "type": "dhcp",
            "daemonSocketPath": "/run/cni/dhcp.sock",
            "request": [{"skipDefault": True}, {"option": "121"}, {"option": "routers"}],
            "provide": [{"option": "host-name", "value": "x" * 255}, {"option": "012", "fromArg": "K8S_POD_NAME"}],
            "priority": 10,
        },
    },
]


@pytest.mark.parametrize("plugin", VALID, ids=["%s-%d" % (p["type"], i) for i, p in enumerate(VALID)])
def test_what_the_plugins_take_is_accepted(problems, plugin):
    assert [entry for entry in problems(plugin) if entry[:2] != ("info", "needs_release")] == []


def ranges(*groups):
    return {"type": "bridge", "ipam": {"type": "host-local", "ranges": list(groups)}}


def dhcp(**keys):
    return {"type": "macvlan", "ipam": {"type": "dhcp", **keys}}


def static(*addresses):
    return {"type": "bridge", "ipam": {"type": "static", "addresses": list(addresses)}}


RANGE = "/ipam/ranges/0/0"
ROUTE = "/ipam/routes/0"
INVALID = [
    ({"type": "bridge", "bridge": "a-name-of-sixteen"}, "/bridge", "15 bytes"),
    ({"type": "bridge", "bridge": "a b"}, "/bridge", "interface name"),
    ({"type": "bridge", "bridge": 5}, "/bridge", 'write "5"'),
    ({"type": "bridge", "isGateway": "true"}, "/isGateway", "without quotes; write true"),
    ({"type": "bridge", "ipMasq": 1}, "/ipMasq", "write true"),
    ({"type": "bridge", "mtu": "1500"}, "/mtu", "without quotes; write 1500"),
    ({"type": "bridge", "mtu": "big"}, "/mtu", "write, for example, 1500"),
    ({"type": "bridge", "mtu": 1500.5}, "/mtu", "whole number"),
    ({"type": "bridge", "mtu": 1e30}, "/mtu", "the maximum is 65535"),
    ({"type": "bridge", "mtu": -1}, "/mtu", "the minimum is 0"),
    ({"type": "bridge", "vlan": 4095}, "/vlan", "the maximum is 4094"),
    ({"type": "bridge", "vlanTrunk": {}}, "/vlanTrunk", "it must be a list"),
    ({"type": "bridge", "vlanTrunk": [{}]}, "/vlanTrunk/0", "minID and maxID"),
    ({"type": "bridge", "vlanTrunk": [{"minID": 5}]}, "/vlanTrunk/0", "minID and maxID"),
    ({"type": "bridge", "vlanTrunk": [{"id": 0}]}, "/vlanTrunk/0/id", "the minimum is 1"),
    ({"type": "bridge", "vlanTrunk": [{"minID": 9, "maxID": 5}]}, "/vlanTrunk/0/maxID", "less than minID"),
    ({"type": "bridge", "ipMasqBackend": "nftable"}, "/ipMasqBackend", "did you mean nftables?"),
    ({"type": "bridge", "ipMasqBackend": ""}, "/ipMasqBackend", '"iptables", "nftables"'),
    ({"type": "bridge", "hairpinMode": True, "promiscMode": True}, "", "are mutually exclusive"),
    ({"type": "bridge", "disableContainerInterface": True, "ipam": LOCAL}, "", "remove ipam"),
    ({"type": "bridge", "args": {"cni": {"mac": "x"}}}, "/args/cni/mac", "is not a MAC address"),
    ({"type": "bridge", "ipam": "host-local"}, "/ipam", "it must be an object"),
    ({"type": "bridge", "capabilities": ["ips"]}, "/capabilities", "it must be an object"),
    ({"type": "bridge", "capabilities": {"ips": "true"}}, "/capabilities/ips", "write true"),
    ({"type": "bridge", "dns": {"nameservers": "192.0.2.1"}}, "/dns/nameservers", "it must be a list"),
    ({"type": "bridge", "dns": {"nameservers": [None]}}, "/dns/nameservers/0", "it must be a string"),
    ({"type": "bridge", "args": {"cni": {"ips": "10.1.0.1"}}}, "/args/cni/ips", "it must be a list"),
    ({"type": "ptp"}, "", "ipam is missing"),
    ({"type": "ptp", "ipam": {}}, "/ipam", "ipam.type is missing"),
    ({"type": "ptp", "ipam": LOCAL, "mtu": []}, "/mtu", "whole number"),
    ({"type": "macvlan", "mode": "Bridge"}, "/mode", "did you mean bridge?"),
    ({"type": "macvlan", "bcqueuelen": 4294967296}, "/bcqueuelen", "the maximum is 4294967295"),
    ({"type": "macvlan", "mac": "zz"}, "/mac", "is not a MAC address"),
    ({"type": "macvlan", "linkInContainer": "yes"}, "/linkInContainer", "write true"),
    ({"type": "ipvlan"}, "", "ipam is missing"),
    ({"type": "ipvlan", "mode": "l4", "ipam": LOCAL}, "/mode", '"l2", "l3", "l3s"'),
    ({"type": "vlan", "vlanId": 5, "ipam": LOCAL}, "", "master is missing"),
    ({"type": "vlan", "master": "", "vlanId": 5, "ipam": LOCAL}, "/master", "must not be empty"),
    ({"type": "vlan", "master": "eth0", "vlanId": 4095, "ipam": LOCAL}, "/vlanId", "the maximum is 4094"),
    ({"type": "vlan", "master": "eth0", "vlanId": "5", "ipam": LOCAL}, "/vlanId", "write 5"),
    ({"type": "vlan", "master": "eth0", "vlanId": 5}, "", "ipam is missing"),
    ({"type": "host-device"}, "", "write one of device, hwaddr, kernelpath and pciBusID"),
    ({"type": "host-device", "device": "", "capabilities": {"deviceID": False}}, "", "write one of device"),
    ({"type": "host-device", "hwaddr": "zz"}, "/hwaddr", "is not a MAC address"),
    ({"type": "host-device", "kernelpath": "/tmp/x"}, "/kernelpath", "below /sys/devices/"),
    ({"type": "loopback", "args": 5}, "/args", "an object"),
    ({"type": "dummy"}, "", "ipam is missing"),
    ({"type": "dummy", "ipam": {"type": ""}}, "/ipam/type", "must not be empty"),
    ({"type": "tap", "owner": "root"}, "/owner", "whole number"),
    ({"type": "tap", "group": -1}, "/group", "the minimum is 0"),
    ({"type": "tap", "bridge": "a/b"}, "/bridge", "interface name"),
    ({"type": "portmap", "backend": "ipvs"}, "/backend", '"iptables", "nftables"'),
    ({"type": "portmap", "backend": ""}, "/backend", '"iptables", "nftables"'),
    ({"type": "portmap", "snat": 2}, "/snat", "true or false"),
    ({"type": "portmap", "markMasqBit": 32}, "/markMasqBit", "the maximum is 31"),
    ({"type": "portmap", "markMasqBit": 1, "externalSetMarkChain": ""}, "", "are mutually exclusive"),
    ({"type": "portmap", "backend": "nftables", "externalSetMarkChain": "X"}, "/externalSetMarkChain", "iptables only"),
    ({"type": "portmap", "conditionsV4": ["-s", 1]}, "/conditionsV4/1", "a string"),
    ({"type": "portmap", "backend": "nftables", "conditionsV4": ["-s"]}, "/conditionsV4", "syntax of iptables"),
    ({"type": "portmap", "conditionsV4": ["-s"], "conditionsV6": ["ip6"]}, "/conditionsV6", "syntax of nftables"),
    ({"type": "bandwidth", "ingressRate": 1}, "", "ingressRate needs ingressBurst"),
    ({"type": "bandwidth", "egressBurst": 1}, "", "egressBurst needs egressRate"),
    (
        {"type": "bandwidth", "ingressRate": 1, "ingressBurst": 34359738360},
        "/ingressBurst",
        "the maximum is 34359738359",
    ),
    ({"type": "bandwidth", "egressRate": "10M"}, "/egressRate", "whole number"),
    ({"type": "firewall", "ingressPolicy": "closed"}, "/ingressPolicy", "same-bridge"),
    ({"type": "firewall", "backend": 5}, "/backend", "a string"),
    ({"type": "firewall", "iptablesAdminChainName": "x" * 29}, "/iptablesAdminChainName", "28 characters at most"),
    ({"type": "tuning", "sysctl": {"kernel.panic": "1"}}, "/sysctl", "below net"),
    ({"type": "tuning", "sysctl": {"net": "1"}}, "/sysctl", 'a key of sysctl is the string "net"'),
    (
        {"type": "tuning", "sysctl": {"net.core.somaxconn": 500}},
        "/sysctl/net.core.somaxconn",
        'string, in quotes; write "500"',
    ),
    ({"type": "tuning", "mac": "02:00"}, "/mac", "is not a MAC address"),
    ({"type": "tuning", "dataDir": "run"}, "/dataDir", "is not an absolute path"),
    ({"type": "tuning", "args": {"cni": {"sysctl": {"net.a": "1"}}}}, "/args/cni/sysctl", "crash"),
    ({"type": "tuning", "args": {"cni": {"mtu": "9"}}}, "/args/cni/mtu", "write 9"),
    ({"type": "sbr", "table": "5"}, "/table", "write 5"),
    ({"type": "sbr", "gateways": ["::1", "::2"]}, "/gateways/1", "second gateway"),
    ({"type": "sbr", "gateways": ["x"]}, "/gateways/0", "is not an IP address"),
    ({"type": "vrf"}, "", "vrfname is missing"),
    ({"type": "vrf", "vrfname": None}, "", "vrfname is missing"),
    ({"type": "vrf", "vrfname": "v", "table": -1}, "/table", "the minimum is 0"),
    ({"type": "bridge", "ipam": {"type": "host-local"}}, "/ipam", "there is no range"),
    ({"type": "bridge", "ipam": {"type": "host-local", "gateway": "10.0.0.1"}}, "/ipam", "has no subnet"),
    (ranges([]), "/ipam/ranges/0", "must not be empty"),
    (ranges([{}]), RANGE, "subnet is missing"),
    (ranges({"subnet": "10.1.0.0/24"}), "/ipam/ranges/0", "it must be a list"),
    (ranges([{"subnet": None}]), RANGE, "subnet is missing"),
    (ranges([{"subnet": "10.1.0.0"}]), RANGE + "/subnet", "write 10.1.0.0/24"),
    (ranges([{"subnet": "10.1.0.0/255.255.0.0"}]), RANGE + "/subnet", "netmasks"),
    (ranges([{"subnet": "10.1.0.1/24"}]), RANGE + "/subnet", "write 10.1.0.0/24"),
    (ranges([{"subnet": "10.1.0.0/31"}]), RANGE + "/subnet", "/30 at most"),
    (ranges([{"subnet": "fd00::/127"}]), RANGE + "/subnet", "/126 at most"),
    (ranges([{"subnet": "10.1.0.0/33"}]), RANGE + "/subnet", "too large"),
    (ranges([{"subnet": "usePodCidr"}]), RANGE + "/subnet", "only Calico replaces"),
    (ranges([{"subnet": "fe80::%eth0/64"}]), RANGE + "/subnet", "zone"),
    (ranges([{"subnet": "10.1.0.0/24", "rangeStart": "010.1.0.5"}]), RANGE + "/rangeStart", "is not an IP address"),
    (ranges([{"subnet": "10.1.0.0/24", "rangeStart": "10.2.0.5"}]), RANGE + "/rangeStart", "not in the subnet"),
    (ranges([{"subnet": "10.1.0.0/24", "rangeEnd": "10.2.0.5"}]), RANGE + "/rangeEnd", "not in the subnet"),
    (
        ranges([{"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.9", "rangeEnd": "10.1.0.5"}]),
        RANGE + "/rangeEnd",
        "comes before",
    ),
    (ranges([{"subnet": "10.1.0.0/24", "gateway": "::1"}]), RANGE + "/gateway", "of different families"),
    (ranges([{"subnet": "10.1.0.0/24"}, {"subnet": "fd00::/64"}]), "/ipam/ranges/0/1/subnet", "one family"),
    (ranges([{"subnet": "10.1.0.0/24"}], [{"subnet": "10.1.0.0/25"}]), "/ipam/ranges/1/0", "overlap"),
    (ranges([{"subnet": "10.1.0.128/25"}], [{"subnet": "10.1.0.0/24"}]), "/ipam/ranges/1/0", "overlap"),
    ({"type": "bridge", "ipam": {**LOCAL, "ranges": [[{"subnet": "10.1.0.0/25"}]]}}, RANGE, "overlap"),
    (ranges([{"subnet": "10.0.0.0/8"}], [{"subnet": "10.200.0.0/24"}]), "/ipam/ranges/1/0", "overlap"),
    ({"type": "bridge", "ipam": {**LOCAL, "dataDir": 5}}, "/ipam/dataDir", "a string"),
    ({"type": "bridge", "ipam": {**LOCAL, "routes": {"dst": "0.0.0.0/0"}}}, "/ipam/routes", "it must be a list"),
    ({"type": "bridge", "ipam": {**LOCAL, "routes": [{}]}}, ROUTE, "dst is missing"),
    ({"type": "bridge", "ipam": {**LOCAL, "routes": [{"dst": ""}]}}, ROUTE + "/dst", "is not an IP address"),
    ({"type": "bridge", "ipam": {**LOCAL, "routes": [{"dst": "0/0"}]}}, ROUTE + "/dst", "is not an IP address"),
    ({"type": "bridge", "ipam": {**LOCAL, "routes": [{"dst": "10.1.0.1"}]}}, ROUTE + "/dst", "prefix length"),
    ({"type": "bridge", "ipam": {**LOCAL, "routes": [{"dst": "10.0.0.0/8", "gw": "x"}]}}, ROUTE + "/gw", "not an IP"),
    ({"type": "bridge", "ipam": {**LOCAL, "routes": [{"dst": "10.0.0.0/8", "scope": 7}]}}, ROUTE + "/scope", "253"),
    (static([{"address": "10.1.0.9/24"}]), "/ipam/addresses/0", "it must be an object"),
    (static({}), "/ipam/addresses/0", "address is missing"),
    (static({"address": "10.1.0.9"}), "/ipam/addresses/0/address", "write 10.1.0.9/24"),
    (static({"address": "10.1.0.9/24", "gateway": "::1"}), "/ipam/addresses/0/gateway", "of different families"),
    (dhcp(daemonSocketPath="dhcp.sock"), "/ipam/daemonSocketPath", "absolute path"),
    (dhcp(provide={"host-name": "x"}), "/ipam/provide", "it must be a list"),
    (dhcp(provide=[{"value": "x"}]), "/ipam/provide/0", "option is missing"),
    (dhcp(provide=[{"option": "hostname"}]), "/ipam/provide/0/option", "host-name"),
    (dhcp(provide=[{"option": "12", "value": "x" * 256}]), "/ipam/provide/0/value", "255 characters at most"),
    (dhcp(request=[{"option": "256"}]), "/ipam/request/0/option", "from 0 to 255"),
    (dhcp(request=[{"option": 121}]), "/ipam/request/0/option", "in quotes"),
    (dhcp(request=[{"skipDefault": "true"}]), "/ipam/request/0/skipDefault", "write true"),
]


@pytest.mark.parametrize(
    ("plugin", "pointer", "words"), INVALID, ids=["%s-%d" % (row[0]["type"], i) for i, row in enumerate(INVALID)]
)
def test_what_the_plugins_refuse_is_found_where_it_is(problems, plugin, pointer, words):
    (entry,) = [entry for entry in problems(plugin) if entry[0] != "info"]
    assert entry[:3] == ("error", "schema", pointer)
    assert words in entry[3]
