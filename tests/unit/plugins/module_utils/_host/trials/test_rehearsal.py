# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What can be rehearsed, and what a rehearsal means on the host. Integration tests run them."""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import processes
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import Attached
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.chains import Chain, FoundChains
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.footprint import rows_of
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.object_kinds import HOST
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.rehearsed import order_rules
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.state import Reading
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.links import pack_attribute
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.objects import LINK, KernelObject
from ansible_collections.podwire.cni.plugins.module_utils._host.netlink import attributes_in
from ansible_collections.podwire.cni.plugins.module_utils._host.trials import rehearsal
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.rehearsal import Rehearsal
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes

KEY = Key("demo", "one", "eth0")
HOST_LOCAL = {"type": "host-local", "dataDir": "/srv/leases", "ranges": [[{"subnet": "10.1.0.0/24"}]]}
BRIDGE = {"type": "bridge", "ipam": HOST_LOCAL}
RESULT = {
    "cniVersion": "1.0.0",
    "interfaces": [
        {"name": "cni0", "mac": "02:00:00:00:00:01"},
        {"name": "veth1", "mac": "02:00:00:00:00:02"},
        {"name": "eth0", "mac": "02:00:00:00:00:03", "sandbox": "/run/netns/one"},
    ],
    "ips": [{"address": "10.1.0.2/24", "gateway": "10.1.0.1", "interface": 2}],
    "routes": [{"dst": "0.0.0.0/0"}],
}
PLACE = ("chain", "iptables-nft", "ipv4", "nat", "POSTROUTING")


@pytest.fixture
def bin_dir(tmp_path, monkeypatch):
    """A directory with a file for each reference plugin; no firewalld runs."""
    for name in rehearsal.REFERENCE:
        (tmp_path / name).touch()
    monkeypatch.setattr(processes, "is_running", lambda _name: False)
    monkeypatch.setattr(rehearsal, "_ALTERNATIVES", ())
    return tmp_path


@pytest.fixture
def rehearse(bin_dir):
    def make(*plugins, written=None, **given):
        text = json.dumps({"cniVersion": "1.0.0", "name": "demo", "plugins": list(plugins)}).encode()
        attached = Attached(KEY, network_conf_from_bytes(text), "/run/netns/one", [], {}, given.get("result", RESULT))
        return Rehearsal(attached, time.time() + 60 if written is None else written, [str(bin_dir)], {})

    return make


def plugins_of(made):
    return [plugin.network for plugin in made._config.plugins]


@pytest.mark.parametrize(
    ("plugin", "why"),
    [
        ({"type": "calico"}, "it is not known what the plugin calico needs and changes"),
        ({"type": "dhcp"}, "addresses of dhcp come from a server"),
        ({"type": "bridge", "ipam": {"type": "dhcp"}}, "addresses of dhcp come from a server"),
        ({"type": "macvlan", "master": "eth9", "linkInContainer": True}, "the parent of macvlan is in the container"),
        ({"type": "host-device", "pciBusID": "0000:01:00.0"}, "host-device names its device by hardware"),
    ],
)
def test_what_is_never_rehearsed(rehearse, plugin, why):
    made = rehearse(plugin)
    assert made.obstacle == why
    with pytest.raises(HostError, match=why):
        made.work()


def test_a_plugin_that_is_missing_or_was_replaced_is_not_rehearsed(rehearse, bin_dir):
    assert rehearse(BRIDGE).obstacle == ""
    assert rehearse(BRIDGE, written=1.0).obstacle.endswith("was replaced after the attachment was made")
    (bin_dir / "host-local").unlink()
    assert rehearse(BRIDGE).obstacle == f"the plugin host-local is not in {bin_dir}"


def test_the_backend_of_iptables_must_be_that_of_the_add(rehearse, tmp_path, monkeypatch):
    link = tmp_path / "iptables"
    link.symlink_to("/usr/sbin/iptables-nft")
    monkeypatch.setattr(rehearsal, "_ALTERNATIVES", (str(link),))
    assert rehearse(BRIDGE).obstacle == ""
    monkeypatch.setattr(rehearsal.os, "lstat", lambda path: type("Status", (), {"st_ctime": time.time() + 600})())
    assert rehearse(BRIDGE).obstacle == "the backend of iptables was chosen after the attachment was made"


@pytest.mark.parametrize("result", [None, {}, {"ip4": {"ip": "10.1.0.2/24"}}, {"interfaces": None}])
def test_a_result_without_interfaces_is_not_enough(rehearse, result):
    assert rehearse(BRIDGE, result=result).obstacle == "its result names no interfaces"


def test_host_local_is_asked_for_the_addresses_and_others_become_static(rehearse):
    asked = plugins_of(rehearse({**BRIDGE, "args": {"cni": {"x": 1}}}))[0]
    assert asked["args"] == {"cni": {"x": 1, "ips": ["10.1.0.2"]}}
    assert asked["ipam"] == {**HOST_LOCAL, "dataDir": "/run/podwire-rehearsal/leases0"}
    fixed = plugins_of(rehearse({"type": "bridge", "ipam": {"type": "whereabouts", "range": "10.1.0.0/24"}}))[0]
    addresses = [{"address": "10.1.0.2/24", "gateway": "10.1.0.1"}]
    assert fixed["ipam"] == {"type": "static", "addresses": addresses, "routes": [{"dst": "0.0.0.0/0"}]}


def test_tuning_keeps_what_it_saves_in_the_private_host(rehearse):
    assert "dataDir" not in plugins_of(rehearse({"type": "tuning", "dataDir": "/srv/tuning"}))[0]


@pytest.mark.parametrize(("backend", "left_out"), [(None, True), ("firewalld", True), ("iptables", False)])
def test_rules_that_firewalld_keeps_are_left_out(rehearse, monkeypatch, backend, left_out):
    monkeypatch.setattr(processes, "is_running", lambda _name: True)
    firewall = {"type": "firewall", **({"backend": backend} if backend else {})}
    made = rehearse(BRIDGE, firewall)
    assert made.obstacle == ""
    assert bool(made.partly) is left_out
    assert [plugin["type"] for plugin in plugins_of(made)] == (["bridge"] if left_out else ["bridge", "firewall"])
    alone = rehearse(firewall)
    assert alone.obstacle == (alone.partly if left_out else "")


# ---- what it means on the host


def answer(objects=None, inside=None, order=(), **result):
    other = json.loads(json.dumps(RESULT).replace("02:00:00", "0a:00:00").replace("veth1", "veth9"))
    data = {
        "owned": [[list(owner), rows_of(found)] for owner, found in (objects or {}).items()],
        "inside": rows_of(inside or {}),
        "order": [[list(place), rules] for place, rules in order],
        "result": {**other, **result},
    }
    return json.dumps(data).encode()


def link(name, mac, **more):
    value = {"kind": "veth", "mac": mac, "alias": "", "genmode": 0, "mtu": 1500, "lower": "elsewhere", **more}
    return ("link", name), KernelObject(value)


def test_names_macs_and_stores_are_those_of_the_host(rehearse):
    rule = "-i veth9 -m mac ! --mac-source 0a:00:00:00:00:03 -j DROP"
    key, end = link("veth9", "0a0000000002")
    inner_key, inner = link("eth0", "0a0000000003")
    objects = {
        key: end,
        ("lease", "/run/podwire-rehearsal/leases0", "demo", "10.1.0.2"): KernelObject("one\r\neth0"),
        (*PLACE, rule): KernelObject(1),
        ("fdb", "veth9", "0a0000000003", 0): KernelObject({}),
        ("link", "pwfake0"): KernelObject({"kind": "veth"}),
    }
    found = rehearse(BRIDGE).understand(answer({KEY: objects}, {inner_key: inner}, [(PLACE, [rule])]))
    real_rule = "-i veth1 -m mac ! --mac-source 02:00:00:00:00:03 -j DROP"
    assert set(found.owned[KEY]) == {
        ("link", "veth1"),
        ("lease", "/srv/leases", "demo", "10.1.0.2"),
        (*PLACE, real_rule),
    }
    assert found.owned[KEY]["link", "veth1"].value["mac"] == "020000000002"
    assert found.inside["link", "eth0"].value["mac"] == "020000000003"
    assert found.order == {PLACE: [real_rule]}


def test_a_bridge_gets_the_mac_that_containers_know(rehearse):
    """Its MAC follows its ports, so it is another one than the plugin has returned."""
    raw = LINK.pack(0, 0, 7, 1, 1) + pack_attribute(3, b"cni0\0") + pack_attribute(1, bytes.fromhex("0a0000000002"))
    key, bridge = link("cni0", "0a0000000002", kind="bridge")
    found = rehearse(BRIDGE).understand(answer({("demo",): {key: KernelObject(bridge.value, raw)}}))
    parts = attributes_in(found.owned["demo",][key].raw, LINK.size)
    assert parts == {1: bytes.fromhex("020000000001"), 3: b"cni0\0"}


def test_the_device_that_host_device_takes_must_stay_away(rehearse):
    made = rehearse({"type": "host-device", "device": "eth9", "ipam": HOST_LOCAL})
    gone, there = KernelObject(None), KernelObject({"kind": "veth"})
    found = made.understand(answer({KEY: {("link", "eth9"): gone, ("addr", "eth9", "10.9.0.1", 24): there}}))
    assert found.owned[KEY] == {("link", "eth9"): gone}
    assert found.device == "eth0"


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"{", "cannot be read"),
        (b"[]", "cannot be read"),
        (b'{"result": {}, "owned": [[1, 2]], "inside": [], "order": []}', "cannot be read"),
        (answer(ips=[{"address": "10.1.0.3/24"}]), "other addresses"),
        (answer(interfaces=RESULT["interfaces"][:2]), "other interfaces"),
    ],
)
def test_what_cannot_be_understood_is_refused(rehearse, raw, why):
    with pytest.raises(HostError, match=why):
        rehearse(BRIDGE).understand(raw)


def test_what_a_rehearsal_cannot_know_is_taken_from_the_host(rehearse):
    key, inner = link("eth0", "0a0000000003")
    found = rehearse(BRIDGE).understand(answer(inside={key: inner}))
    present = {**inner.value, "mac": "060606060606", "alias": "mine", "genmode": 1, "mtu": 1400}
    look = Reading({"ns": {key: KernelObject(present, b"", 7, (8, True))}})
    settled = found.settled(found.inside, look, "ns")[key]
    assert (settled.ifindex, settled.peer) == (7, (8, True))
    # The MAC and the MTU are known.
    assert settled.value == {**present, "mac": "020000000003", "mtu": 1500}
    assert found.settled(found.inside, Reading({"ns": {}}), "ns")[key].ifindex == 0
    on_host = found.settled(found.inside, Reading({HOST: look.spaces["ns"]}), HOST)[key]
    assert on_host.value["mac"] == "060606060606"


def test_a_renamed_interface_is_known_by_its_mac(rehearse):
    raw = LINK.pack(0, 0, 7, 1, 1) + pack_attribute(3, b"eth0\0") + pack_attribute(1, bytes.fromhex("0a0000000003"))
    key, inner = link("eth0", "0a0000000003")
    found = rehearse(BRIDGE).understand(answer(inside={key: KernelObject(inner.value, raw)}))
    moved = KernelObject({**inner.value, "mac": "020000000003"}, b"", 9, (8, True))
    look = Reading({"ns": {("link", "eth9"): moved}})
    assert found.settled(found.inside, look, "ns")[key].ifindex == 9
    other = KernelObject({**moved.value, "kind": "bridge"}, b"", 9)
    assert found.settled(found.inside, Reading({"ns": {("link", "eth9"): other}}), "ns")[key].ifindex == 0


def test_missing_rules_stand_between_known_ones():
    chains = FoundChains()
    chains.chains[PLACE] = Chain("ACCEPT", ["other", "b", "last"])
    forward = (*PLACE[:3], "filter", "FORWARD")
    chains.chains[forward] = Chain("ACCEPT", ["other"])
    found = order_rules(Reading({}, chains), [{PLACE: ["a", "b", "c"], forward: ["x", "y"]}, {PLACE: ["b", "d"]}])
    assert found == {PLACE: ["other", "a", "b", "d", "c", "last"], forward: ["x", "y", "other"]}
    assert order_rules(Reading({}), [{PLACE: ["a", "b"]}]) == {PLACE: ["a", "b"]}
