# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""What the recorded cases do not have: places of errors, rules beyond Multus, order, default routes as documented."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from ansible_collections.podwire.cni.plugins.module_utils.libcni import gojson, types
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import CNIError, PluginError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.multi import (
    configuration,
    definitions,
    delegates,
    errors,
    pod,
    routes,
    runner,
    runtime,
    selection,
    status,
)

BRIDGE = {"cniVersion": "1.0.0", "name": "cluster", "type": "bridge"}
CONF = {"cniVersion": "1.0.0", "name": "multus", "type": "multus", "delegates": [BRIDGE]}
DEFINITIONS = {
    (namespace, name): definitions.NetworkDefinition(
        namespace, name, json.dumps({"cniVersion": "1.0.0", "type": "macvlan"})
    )
    for namespace in ("default", "other", "kube-system")
    for name in ("storage", "backup")
}


def networks_of(annotation="", conf=None, **annotations):
    found = configuration.load_multus_conf(json.dumps(conf or CONF).encode())
    texts = {selection.NETWORKS: annotation, **annotations}
    return pod.pod_networks(found, pod.Pod("default", "web", texts), DEFINITIONS)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        ("storage,a/b/c", "annotation k8s.v1.cni.cncf.io/networks, /1: write [NAMESPACE/]NAME[@INTERFACE]"),
        ("Storage", '/0: "Storage" must consist of lower-case letters'),
        ("storage@sixteencharacters", "at most 15 bytes"),
        ('[{"name": "storage"},\n {"name" "x"}]', "line 2:10: invalid JSON"),
        ('[{"name": "storage", "mac": 5}]', "/0: json: cannot unmarshal number 5 into field /0/mac of type string"),
        ('[{"name": "storage", "mac": "zz"}]', '/0/mac: "zz" is not a hardware address, such as 02:'),
        ('[{"name": "storage", "ips": ["10.1.0.5", "x"]}]', '/0/ips/1: "x" is not an address'),
        ("[null]", "/0: an element is null; write an object with the key name"),
        ('[{"name": "storage", "portMappings": [null]}]', "/0: json: cannot unmarshal null"),
        ("storage,nope", "/1: there is not a NetworkAttachmentDefinition default/nope"),
        (
            '[{"name": "storage", "default-route": ["fd00::1"]}, {"name": "storage", "default-route": ["fd00::2"]}]',
            "/1/default-route: at most one IPv4 and one IPv6 address may be in default-route of all networks of a pod",
        ),
    ],
)
def test_an_error_says_where_and_which_rule(annotation, words):
    with pytest.raises(errors.NetworksError) as caught:
        networks_of(annotation)
    assert words in caught.value.explain()


def test_isolation_names_the_allowed_namespaces():
    with pytest.raises(errors.NetworksError) as caught:
        networks_of("storage,other/storage", {**CONF, "namespaceIsolation": True, "globalNamespaces": "a,b"})
    assert caught.value.pointer == "/1/namespace"
    assert "of that namespace and of a, b only" in caught.value.msg


def test_without_the_annotation_there_is_no_place_to_name():
    conf = {**CONF, "delegates": [], "clusterNetwork": "nope"}
    with pytest.raises(errors.NetworksError) as caught:
        networks_of("", conf)
    words = "/clusterNetwork: there is not a NetworkAttachmentDefinition kube-system/nope, and no file in "
    assert caught.value.explain().startswith(words)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        ("storage@eth0", "interface name eth0 is that of network cluster"),
        ("storage@a,backup@a", "interface name a is that of network default/storage"),
        ("storage@net2,backup", "interface name net2 is that of network default/storage"),
        ('[{"name": "storage", "interface": "sixteencharacters"}]', "too long"),
        ('[{"name": "storage", "interface": "a/b"}]', "contains /"),
    ],
)
def test_interface_names_that_only_add_would_refuse(annotation, words):
    with pytest.raises(errors.NetworksError, match=words) as caught:
        pod.pod_interface_names(networks_of(annotation), "eth0")
    assert caught.value.pointer == ("/1" if "backup" in annotation else "/0")


def test_interface_names_of_a_pod():
    assert pod.pod_interface_names(networks_of("storage,backup@x"), "eth0") == ["eth0", "net1", "x"]


@pytest.mark.parametrize("text", ["storage,", ",", '[{"name": "a/b"}]', '[{"name": ".."}]', '[{"namespace": "x"}]'])
def test_names_that_multus_looks_up(text):
    with pytest.raises(errors.NetworksError, match=r"name is empty|is not a name"):
        selection.check_selections(selection.parse_networks(text, "default"))
    selection.check_selections(selection.parse_networks("storage,other/backup", "default"))


def test_an_old_name_of_the_interface_counts_if_there_is_no_new_one():
    (found,) = selection.parse_networks('[{"name": "a", "interfaceRequest": "old0"}]', "x")
    assert found.interface == "old0"


@pytest.mark.parametrize(
    ("mac", "good"),
    [
        ("02:00:00:00:00:01", True),
        ("02-00-00-00-00-01", True),
        ("02:00-00:00:00:01", False),
        ("0200.0000.0001", True),
        ("020000000001", True),
        ("02:00:00:00:00:00:01", False),
        ("02:00:00:00:00:0", False),
        ("c2:11:22:33:44:55:66:77", True),
        (":".join(["00"] * 20), True),
        ("02:00:00:00:00:01\n", False),
    ],
)
def test_hardware_addresses(mac, good):
    text = json.dumps([{"name": "a", "mac": mac}])
    if good:
        assert selection.parse_networks(text, "x")[0].mac == mac
    else:
        with pytest.raises(errors.NetworksError, match="not a hardware address"):
            selection.parse_networks(text, "x")


def test_the_name_of_a_definition_is_the_network():
    assert [one.network for one in networks_of("storage").delegates] == ["cluster", "storage"]


def test_keys_of_the_runtime_match_regardless_of_case():
    found = runtime.decode_capabilities(
        {"PortMappings": [{"HostPort": 1, "ContainerPort": 2, "Protocol": "tcp", "HostIP": ""}], "MAC": None}
    )
    assert found == {"portMappings": [{"hostPort": 1, "containerPort": 2, "protocol": "tcp"}]}
    assert runtime.decode_capabilities(None) == {}


def test_requests_are_arguments_too():
    asked = selection.parse_networks('[{"name": "a", "mac": "02:00:00:00:00:01", "ips": ["10.0.0.1", "fd00::1"]}]', "x")
    args = runtime.parse_pod_args("IgnoreUnknown=1;K8S_POD_NAME=web;A=b")
    pairs = runtime.network_args(args, delegates.load_delegate(json.dumps(BRIDGE).encode(), asked[0]))
    assert pairs[2] == ("K8S_POD_NAME", "web")
    assert pairs[-3:] == [("A", "b"), ("MAC", "02:00:00:00:00:01"), ("IP", "10.0.0.1,fd00::1")]


@pytest.mark.parametrize("value", ["yes", "", "on"])
def test_a_boolean_of_cni_args(value):
    with pytest.raises(CNIError, match=f"invalid input {value}"):
        runtime.parse_pod_args(f"IgnoreUnknown={value}")


# ---- default routes


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([None, None], [(False, False, []), (False, False, [])]),
        ([None, []], [(False, False, []), (False, False, [])]),
        ([None, ["10.1.0.1"]], [(True, False, []), (True, False, ["10.1.0.1"])]),
        ([None, ["fd00::1"], None], [(False, True, []), (False, True, ["fd00::1"]), (False, True, [])]),
        ([["10.1.0.1"], ["fd00::1"]], [(True, True, ["10.1.0.1"]), (True, True, ["fd00::1"])]),
        ([None, [""]], [(False, False, []), (False, False, [])]),
    ],
)
def test_default_routes_move_by_family(requests, expected):
    changes = routes.default_route_changes(requests)
    assert [("4" in one.families, "6" in one.families, one.gateways) for one in changes] == expected


def result_of(**data):
    return types.create_from_bytes(gojson.dumps(data))


IPV6_DEFAULTS = [{"dst": "::/0"}, {"dst": "::0/0"}, {"dst": "0:0:0:0:0:0:0:0/0"}, {"gw": "fd00::1"}]


@pytest.mark.parametrize("route", IPV6_DEFAULTS)
def test_the_ipv6_default_route_is_removed_however_it_is_written(route):
    result = result_of(cniVersion="1.0.0", routes=[route, {"dst": "0.0.0.0/0"}, {"dst": "10.0.0.0/8"}])
    left = routes.with_default_routes(result, ["6"], [])
    assert (left.version, [route.dst for route in left.routes]) == ("1.0.0", ["0.0.0.0/0", "10.0.0.0/8"])
    assert routes.with_default_routes(left, ["6"], []) == left
    assert len(result.routes) == 3


@pytest.mark.parametrize("version", ["0.2.0", "0.4.0", "1.1.0"])
def test_a_route_that_was_added_is_one_that_can_be_removed(version):
    ips = [{"address": "10.1.0.2/24"}, {"address": "fd00::2/64"}]
    result = result_of(cniVersion="1.1.0", ips=ips).as_version(version)
    added = routes.with_default_routes(result, ["4", "6"], ["10.1.0.1", "fd00::1"])
    assert (added.version, [route.dst for route in added.routes]) == (version, ["0.0.0.0/0", "::/0"])
    assert routes.with_default_routes(added, ["4", "6"], []) == result


def test_an_old_result_takes_routes_of_its_families_only():
    result = result_of(cniVersion="0.2.0", ip4={"ip": "10.1.0.2/24"})
    assert routes.with_default_routes(result, ["6"], ["fd00::1"]) == result
    empty = result_of(cniVersion="0.2.0")
    assert routes.with_default_routes(empty, ["4"], ["10.1.0.1"]) == empty


# ---- order


class Host:
    """Networks that are added and deleted; those in *bad_add* and *bad_del* fail."""

    def __init__(self, bad_add=(), bad_del=()):
        self.calls = []
        self.bad_add, self.bad_del = bad_add, bad_del

    def add(self, delegate):
        self.calls.append("+" + delegate.network)
        if delegate.network in self.bad_add:
            raise PluginError(11, f"no {delegate.network}")
        return delegate.network.upper()

    def delete(self, delegate):
        self.calls.append("-" + delegate.network)
        if delegate.network in self.bad_del:
            raise PluginError(11, f"{delegate.network} is busy")


THREE = [delegates.Delegate(b"{}", name, "bridge", None) for name in "abc"]


def test_networks_are_added_in_order_and_deleted_in_reverse():
    host = Host()
    assert runner.add_networks(THREE, host.add, host.delete) == ["A", "B", "C"]
    runner.delete_networks(THREE, host.delete)
    assert host.calls == ["+a", "+b", "+c", "-c", "-b", "-a"]


def test_an_add_that_fails_takes_everything_back_and_tells_both_errors():
    host = Host(bad_add="b", bad_del="a")
    with pytest.raises(runner.AddNetworksError) as caught:
        runner.add_networks(THREE, host.add, host.delete)
    assert host.calls == ["+a", "+b", "-b", "-a"]
    assert str(caught.value) == (
        'error adding container to network "b": no b; DEL of what was added failed, too: network "a": a is busy'
    )
    assert (caught.value.index, [index for index, _error in caught.value.left]) == (1, [0])
    assert [str(one) for one in caught.value.errors] == ["no b", "a is busy"]


def test_a_del_that_fails_stops_no_other():
    host = Host(bad_del="bc")
    with pytest.raises(runner.DelNetworksError, match="c is busy / b is busy"):
        runner.delete_networks(THREE, host.delete)
    assert host.calls == ["-c", "-b", "-a"]


# ---- whatever comes in

TEXTS = ["", "a", "10.0.0.1", "::/0", "02:00:00:00:00:01"]
KEYS = ["name", "namespace", "ips", "mac", "interface", "portMappings", "bandwidth"]
KEYS += ["default-route", "cni-args", "type", "plugins", "args", "cni", "delegates", "clusterNetwork", "runtimeConfig"]
KEYS += ["prevResult", "routes", "interfaces", "dst", "gw", "cniVersion", "deviceID"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 99) | st.sampled_from(TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


@settings(deadline=None)
@given(JSON)
def test_any_json_gives_an_answer_or_an_error_of_this_package(value):
    text = json.dumps(value)
    for use in (
        lambda: selection.check_selections(selection.parse_networks(json.dumps([value]), "x")),
        lambda: networks_of(json.dumps([value])),
        lambda: networks_of("storage", {**CONF, **value} if isinstance(value, dict) else CONF),
        lambda: delegates.load_delegate(text.encode(), selection.NetworkSelection("a")),
        lambda: runtime.decode_capabilities(value),
        lambda: routes.with_default_routes(types.create_from_bytes(text.encode()), ["4", "6"], ["10.0.0.1", "fd00::1"]),
        lambda: definitions.NetworkDefinition("a", "b", text).configuration("/nonexistent"),
        lambda: status.network_statuses(types.create_from_bytes(text.encode()), "a", True),
    ):
        with contextlib.suppress(CNIError):
            use()


@settings(deadline=None)
@given(st.text())
def test_any_text_gives_an_answer_or_an_error_of_this_package(text):
    try:
        selection.parse_networks(text, "x")
    except errors.NetworksError as exc:
        assert exc.explain()
    with contextlib.suppress(CNIError):
        runtime.parse_pod_args(text)


def test_the_package_needs_the_standard_library_alone():
    """It is imported without the collection and without site-packages, as a plugin on a host would."""
    root = Path(selection.__file__).parents[2]
    names = sorted(path.stem for path in Path(selection.__file__).parent.glob("*.py") if path.stem != "__init__")
    imports = ", ".join(f"libcni.multi.{name}" for name in names)
    code = f"import sys; sys.path.insert(0, {str(root)!r}); import {imports}"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
