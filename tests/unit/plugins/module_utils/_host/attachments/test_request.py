# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import (
    Key,
    default_container_id,
    parse_attachments,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError


def entry(**changed):
    return dict({"network": "demo", "container_id": "web", "netns": "web", "ifname": "eth0"}, **changed)


def refused(*entries):
    with pytest.raises(HostError) as caught:
        parse_attachments(entries)
    return caught.value


def test_a_name_is_a_namespace_in_run_and_a_path_is_taken_as_it_is():
    one, two = parse_attachments([entry(), entry(container_id="db", netns="/proc/7/ns/net")])
    assert one.netns == "/run/netns/web"
    assert two.netns == "/proc/7/ns/net"


def test_the_default_container_id_is_cnitools():
    # cnitool: "cnitool-" + hex(sha512("/var/run/netns/testing")[:10])
    assert default_container_id("/var/run/netns/testing") == "cnitool-77383ca0a0715733ca6f"
    (wanted,) = parse_attachments([entry(container_id=None, netns="/var/run/netns/testing")])
    assert wanted.key == Key("demo", "cnitool-77383ca0a0715733ca6f", "eth0")


@pytest.mark.parametrize(
    ("changed", "option"),
    [
        ({"container_id": "../x"}, "container_id"),
        ({"container_id": "a b"}, "container_id"),
        ({"container_id": "web\n"}, "container_id"),
        ({"network": "../../etc"}, "network"),
        ({"ifname": "eth/0"}, "ifname"),
        ({"ifname": "a-name-too-long-for-it"}, "ifname"),
        ({"ifname": ".."}, "ifname"),
    ],
)
def test_ids_that_break_the_rules_are_refused_with_their_place(changed, option):
    error = refused(entry(container_id="ok"), entry(**changed))
    assert error.code == "bad_id"
    assert f"attachments[1].{option}" in error.msg


@pytest.mark.parametrize(
    ("netns", "code"),
    [
        ("../x", "path_not_absolute"),
        ("a/b", "path_not_absolute"),
        ("/run/netns/../x", "path_not_clean"),
        ("-x", "bad_netns"),
        ("a b", "bad_netns"),
        ("..", "bad_netns"),
    ],
)
def test_namespaces_that_are_no_clean_path_or_name_are_refused(netns, code):
    assert refused(entry(netns=netns)).code == code


def test_namespace_or_container_is_needed():
    assert refused(entry(container_id="", netns="")).code == "bad_id"
    assert refused(entry(netns="")).code == "bad_netns"
    (wanted,) = parse_attachments([entry(netns="", state="absent")])
    assert wanted.netns == ""


def test_one_interface_name_twice_in_a_container_is_refused():
    assert refused(entry(), entry(network="other")).code == "duplicate_ifname"
    assert len(parse_attachments([entry(), entry(network="other", ifname="eth1"), entry(container_id="db")])) == 3


def test_arguments_become_text():
    (wanted,) = parse_attachments([entry(args={"IgnoreUnknown": True, "N": 12, "K": "v", "E": ""})])
    assert wanted.args == [("IgnoreUnknown", "true"), ("N", "12"), ("K", "v"), ("E", "")]


def test_what_a_pod_is_asked_for_one_interface_reaches_its_own_network_alone():
    """Another network gets the rest, and what it is asked for itself."""
    own = {"network": "demo", "ifname": "eth0", "name": "demo"}
    other = {"network": "more", "ifname": "net1", "name": "default/more", "args": {"IP": "10.2.0.7/24"}}
    other["capability_args"] = {"ips": ["10.2.0.7/24"]}
    ports = [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]
    capability_args = {"portMappings": ports, "ips": ["10.1.0.9/24"], "cgroupPath": "/x"}
    args = {"X": "y", "IP": "10.1.0.9/24", "MAC": "02:00:00:00:00:01"}
    pod = {"pod": {"name": "web"}, "_networks": [own, other]}
    first, second = parse_attachments([entry(args=args, capability_args=capability_args, **pod)])
    assert first.args[-3:] == [("X", "y"), ("IP", "10.1.0.9/24"), ("MAC", "02:00:00:00:00:01")]
    assert first.capability_args.items() >= capability_args.items()
    assert second.args[-2:] == [("X", "y"), ("IP", "10.2.0.7/24")] and "MAC" not in dict(second.args)
    assert (second.capability_args["ips"], second.capability_args["cgroupPath"]) == (["10.2.0.7/24"], "/x")
    assert "portMappings" not in second.capability_args


@pytest.mark.parametrize(
    "args", [{"a": "x;y"}, {"a": "x=y"}, {"a=b": "x"}, {"": "x"}, {"a": 1.5}, {"a": None}, {"a": []}]
)
def test_arguments_that_cni_args_cannot_carry_are_refused(args):
    error = refused(entry(args=args))
    assert error.code == "bad_args"
    assert "attachments[0].args" in error.msg


def test_a_refused_value_is_not_shown():
    assert "hunter2" not in refused(entry(args={"PASSWORD": "hunter2;"})).msg
