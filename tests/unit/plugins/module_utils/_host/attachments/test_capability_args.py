# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What plugins of both generations read, and what they refuse in ADD and DEL alike."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import capability_args
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import parse_attachments
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import web
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

PORT = {"hostPort": 8001, "containerPort": 80, "protocol": "tcp"}
SUBNET = {"subnet": "10.11.0.0/24"}
SOUND = [
    {},
    {"portMappings": [PORT]},
    {"portMappings": [PORT, dict(PORT, protocol="UDP", hostIP=""), dict(PORT, hostIP="::1", protocol="sctp")]},
    {"portMappings": [dict(PORT, hostPort=8001.0, hostIP="0.0.0.0")]},
    {"bandwidth": {"ingressRate": 1000, "ingressBurst": 8000}},
    {"bandwidth": {"egressRate": 2**64 - 1, "egressBurst": 2**35 - 9, "ingressRate": 0, "ingressBurst": 0}},
    {"bandwidth": {"ingressRate": 1e6, "ingressBurst": 8000, "unshapedSubnets": ["10.0.0.0/8", "fd00::/8"]}},
    {"bandwidth": {}},
    {"ips": ["10.9.0.9", "10.9.0.9/24", "fd00::9/64", "::ffff:10.9.0.9"]},
    {"mac": "c2:b0:57:49:47:f1"},
    {"mac": "C2-B0-57-49-47-F1"},
    {"mac": "c2b0.5749.47f1"},
    {"mac": ""},
    {"ipRanges": [[SUBNET], [{"subnet": "fd00::/64", "rangeStart": "fd00::9", "gateway": "fd00::1"}]]},
    {"ipRanges": [[dict(SUBNET, rangeStart="10.11.0.9", rangeEnd="10.11.0.9", gateway="")]]},
    {"ipRanges": [[dict(SUBNET, rangeEnd="10.11.0.9"), dict(SUBNET, rangeStart="10.11.0.10")]]},
    {"dns": {"servers": ["10.0.0.10", "fd00::10"], "searches": ["example.org"], "options": ["ndots:2"]}},
    {"aliases": ["web", "www"]},
    {"aliases": {"demo": ["web"]}},
    {"infinibandGUID": "c2:11:22:33:44:55:66:77"},
    {"deviceID": "0000:04:00.5"},
    {"cgroupPath": "/kubelet.slice/pod1"},
    {"podAnnotations": {"example.org/size": "1"}},
    {"io.kubernetes.cri.pod-annotations": {"example.org/size": "1"}},
    {"another.example.org/capability": [1, {"any": None}]},
    # As containerd writes them.
    {"portMappings": [{"HostPort": 8001, "ContainerPort": 80, "Protocol": "tcp", "HostIP": ""}]},
    {"bandwidth": {"IngressRate": 0, "IngressBurst": 0, "EgressRate": 10, "EgressBurst": 4294967295}},
    {"dns": {"Servers": ["10.0.0.10"], "Searches": None, "Options": []}},
    {"ipRanges": [[{"Subnet": "10.11.0.0/24", "RangeStart": "10.11.0.9"}]]},
    {"io.kubernetes.cri.pod-annotations": None},
]
UNSOUND = [
    ({"portMappings": [dict(PORT, HostPort=8002)]}, ".portMappings[0]", "hostPort is given twice"),
    (
        {"portMappings": [{"HostPort": "9001", "ContainerPort": 80, "Protocol": "tcp"}]},
        ".portMappings[0].HostPort",
        "9001",
    ),
    ({"bandwidth": {"IngressRate": 10}}, ".bandwidth", "go together"),
    ({"ipRanges": [[{"Subnet": "10.11.0.5/24"}]]}, ".ipRanges[0][0].subnet", "host bits"),
    # What each of them does to ADD and DEL was tried with the plugins.
    ({"portMappings": [dict(PORT, hostPort="9001")]}, ".portMappings[0].hostPort", "write 9001 without quotes"),
    ({"portMappings": [PORT, dict(PORT, containerPort="80")]}, ".portMappings[1].containerPort", "80"),
    ({"portMappings": [dict(PORT, hostPort=0)]}, ".portMappings[0].hostPort", "from 1 to 65535, found 0"),
    ({"portMappings": [dict(PORT, hostPort=65536)]}, ".portMappings[0].hostPort", "65536"),
    ({"portMappings": [dict(PORT, hostPort=-1)]}, ".portMappings[0].hostPort", "-1"),
    ({"portMappings": [dict(PORT, hostPort=80.5)]}, ".portMappings[0].hostPort", "80.5"),
    ({"portMappings": [dict(PORT, hostPort=True)]}, ".portMappings[0].hostPort", "true"),
    ({"portMappings": [dict(PORT, hostPort="²")]}, ".portMappings[0].hostPort", "a whole number"),
    ({"portMappings": [dict(PORT, containerPort=float("inf"))]}, ".portMappings[0].containerPort", "a whole number"),
    ({"portMappings": [dict(PORT, containerPort=float("nan"))]}, ".portMappings[0].containerPort", "a whole number"),
    ({"portMappings": [dict(PORT, protocol="icmp")]}, ".portMappings[0].protocol", "tcp, udp or sctp"),
    ({"portMappings": [dict(PORT, protocol=None)]}, ".portMappings[0]", "protocol is missing"),
    ({"portMappings": [dict(PORT, hostIP="x")]}, ".portMappings[0].hostIP", "an IP address"),
    (
        {"portMappings": [dict(PORT, host_ip="127.0.0.1")]},
        ".portMappings[0]",
        'unknown key "host_ip"; known keys: hostPort',
    ),
    ({"portMappings": [{"hostPort": 1}]}, ".portMappings[0]", "containerPort is missing"),
    ({"portMappings": PORT}, ".portMappings", "a list, found a mapping"),
    ({"portMappings": [None]}, ".portMappings[0]", "a mapping, found null"),
    ({"portMappings": "8001:80"}, ".portMappings", 'found "8001:80"'),
    ({"bandwidth": {"ingressRate": "1000", "ingressBurst": 1}}, ".bandwidth.ingressRate", "write 1000 without"),
    ({"bandwidth": {"ingressRate": 1000}}, ".bandwidth", "ingressRate and ingressBurst go together"),
    ({"bandwidth": {"egressBurst": 1000}}, ".bandwidth", "egressRate and egressBurst go together"),
    ({"bandwidth": {"ingressRate": 1, "ingressBurst": 2**35 - 8}}, ".bandwidth.ingressBurst", "from 0 to"),
    ({"bandwidth": {"ingressRate": 2**64, "ingressBurst": 8}}, ".bandwidth.ingressRate", "from 0 to"),
    ({"bandwidth": {"ingress_rate": 1}}, ".bandwidth", "ingress_rate"),
    ({"bandwidth": [1]}, ".bandwidth", "a mapping, found a list"),
    ({"bandwidth": {"shapedSubnets": ["10.0.0.0"]}}, ".bandwidth.shapedSubnets[0]", "a subnet"),
    ({"ips": "10.9.0.9"}, ".ips", "a list"),
    ({"ips": ["x"]}, ".ips[0]", "an IP address"),
    ({"ips": [""]}, ".ips[0]", "an IP address"),
    ({"ips": ["10.9.0.9/33"]}, ".ips[0]", "10.9.0.9/33"),
    ({"ips": ["10.9.0.9/"]}, ".ips[0]", "10.9.0.9/"),
    ({"ips": ["10.9.0.09"]}, ".ips[0]", "10.9.0.09"),
    ({"ips": [None]}, ".ips[0]", "null"),
    ({"mac": 1}, ".mac", "a MAC address"),
    ({"mac": "c2b0574947f1"}, ".mac", "a MAC address"),
    ({"mac": "c3:b0:57:49:47:f1"}, ".mac", "multicast"),
    ({"mac": "00:00:00:00:00:00"}, ".mac", "all zeros"),
    ({"mac": "c2:b0-57:49:47:f1"}, ".mac", "a MAC address"),
    ({"ipRanges": [SUBNET]}, ".ipRanges[0]", "a list, found a mapping"),
    ({"ipRanges": [[]]}, ".ipRanges[0]", "at least one range"),
    ({"ipRanges": [[{"subnet": "10.11.0.1/24"}]]}, ".ipRanges[0][0].subnet", "write 10.11.0.0/24"),
    ({"ipRanges": [[{"subnet": "10.11.0.0/31"}]]}, ".ipRanges[0][0].subnet", "too small"),
    ({"ipRanges": [[{"rangeStart": "10.11.0.2"}]]}, ".ipRanges[0][0]", "subnet is missing"),
    ({"ipRanges": [[dict(SUBNET, rangeStart="10.12.0.1")]]}, ".ipRanges[0][0].rangeStart", "10.12.0.1 is not in"),
    ({"ipRanges": [[dict(SUBNET, rangeEnd="fd00::1")]]}, ".ipRanges[0][0].rangeEnd", "fd00::1 is not in"),
    ({"ipRanges": [[dict(SUBNET, rangeStart="10.11.0.9", rangeEnd="10.11.0.8")]]}, ".ipRanges[0][0]", "before"),
    ({"ipRanges": [[SUBNET, {"subnet": "fd00::/64"}]]}, ".ipRanges[0]", "one address family"),
    ({"ipRanges": [[SUBNET], [{"subnet": "10.11.0.0/25"}]]}, ".ipRanges[1][0]", "overlaps"),
    ({"dns": {"servers": "10.0.0.10"}}, ".dns.servers", "a list"),
    ({"dns": {"servers": ["dns.example.org"]}}, ".dns.servers[0]", "an IP address"),
    ({"dns": {"nameservers": []}}, ".dns", "known keys: servers, searches, options"),
    ({"aliases": "web"}, ".aliases", "a list"),
    ({"aliases": {"demo": "web"}}, ".aliases.demo", "a list"),
    ({"aliases": [1]}, ".aliases[0]", "a string"),
    ({"infinibandGUID": "c2:11:22:33:44:55"}, ".infinibandGUID", "a GUID"),
    ({"deviceID": 4}, ".deviceID", "a string, found 4"),
    ({"cgroupPath": ["/x"]}, ".cgroupPath", "a string"),
    ({"podAnnotations": {"size": 1}}, ".podAnnotations.size", "quotes"),
    ({"podAnnotations": ["size"]}, ".podAnnotations", "a mapping"),
]


@pytest.mark.parametrize("arguments", SOUND)
def test_sound_capability_args_pass(arguments):
    given = copy.deepcopy(arguments)
    capability_args.check_capability_args(arguments, "x")
    assert capability_args.sound(arguments) == arguments == given
    capability_args.check_capability_args(dict.fromkeys(arguments), "x")


@pytest.mark.parametrize(("arguments", "where", "words"), UNSOUND)
def test_a_wrong_type_in_capability_args_is_refused_before_anything_runs(arguments, where, words):
    with fails_with("bad_capability_args") as caught:
        parse_attachments([web(), web(container_id="db", capability_args=arguments)])
    assert caught.value.msg.startswith(f"attachments[1].capability_args{where}: ")
    assert words in caught.value.msg
    assert capability_args.sound(dict(arguments, other="x")) == {"other": "x"}
    # Who detaches is not kept from it by what is still in the inventory.
    assert parse_attachments([web(state="absent", capability_args=arguments)])[0].capability_args == arguments


def values(value):
    """Return the value, and every value in it, with a function that puts another one in its place."""
    yield lambda new: new
    if isinstance(value, dict):
        for key in value:
            for put in values(value[key]):
                yield lambda new, key=key, put=put: dict(value, **{key: put(new)})
    elif isinstance(value, list):
        for index in range(len(value)):
            for put in values(value[index]):
                yield lambda new, index=index, put=put: [*value[:index], put(new), *value[index + 1 :]]


STRANGE = [None, True, False, 0, -1, 2**70, 0.5, float("nan"), "", "x", "1", "\n", "é", [], [[]], {}, {"x": {}}]


@pytest.mark.parametrize("arguments", SOUND)
def test_any_value_in_any_place_is_sound_or_refused(arguments):
    for put in values(arguments):
        for new in STRANGE:
            given = put(new)
            if isinstance(given, dict):
                try:
                    capability_args.check_capability_args(given, "x")
                except HostError as error:
                    assert error.code == "bad_capability_args"
                    assert error.msg.startswith("x.")
                    assert "\n" not in error.msg
