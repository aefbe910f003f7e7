# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import json
import socket

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.addresses import packed
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Networks
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.trials import trial
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.packets import same_host
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.planner import (
    choose,
    load,
    reason_against,
    why_alone,
)
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes


def config(*plugins):
    data = {"cniVersion": "1.0.0", "name": "demo", "plugins": list(plugins)}
    return network_conf_from_bytes(json.dumps(data).encode())


def networks_of(folder):
    return Networks(str(folder), [], HostView())


def put(folder, file, **data):
    (folder / file).write_text(json.dumps(dict({"cniVersion": "1.0.0"}, **data)))


def bridge(**ipam):
    return {"type": "bridge", "ipam": dict({"type": "host-local"}, **ipam)}


def test_each_network_is_chosen_once_and_lists_come_first(tmp_path):
    (tmp_path / "00-broken.conflist").write_text('{"token": "hush-hush", ')
    put(tmp_path, "05-a.conf", name="a", type="ptp")
    put(tmp_path, "10-a.conflist", name="a", plugins=[{"type": "bridge"}])
    put(tmp_path, "20-a.conflist", name="a", plugins=[{"type": "macvlan"}])
    put(tmp_path, "30-b.conf", name="b", type="ptp")
    put(tmp_path, "99-loopback.conf", type="loopback")
    put(tmp_path, "calico-kubeconfig.json", name="no")
    files, missing = choose(str(tmp_path), None)
    assert [file.name for file in files] == ["00-broken.conflist", "10-a.conflist", "30-b.conf"]
    assert missing == []
    with pytest.raises(HostError, match=r"00-broken\.conflist cannot be loaded") as caught:
        load(files[0], networks_of(tmp_path))
    assert (caught.value.code, "hush" in caught.value.msg) == ("bad_config", False)
    assert load(files[1], networks_of(tmp_path)).name == "a"
    files, missing = choose(str(tmp_path), ["b", "c"])
    assert ([file.name for file in files], missing) == (["30-b.conf"], ["c"])
    assert [plugin.type for plugin in load(files[0], networks_of(tmp_path)).plugins] == ["ptp"]


@pytest.mark.parametrize(
    "plugin, reason",
    [
        (bridge(), None),
        ({"type": "loopback"}, None),
        ({"type": "macvlan", "mode": "bridge"}, None),
        ({"type": "macvlan", "mode": "passthru"}, "takes_device"),
        ({"type": "host-device"}, "takes_device"),
        ({"type": "sriov"}, "takes_device"),
        ({"type": "vlan"}, "takes_device"),
        (bridge(type="static"), "fixed_address"),
        ({"type": "tuning", "mac": "02:00:00:00:00:01"}, "fixed_address"),
        ({"type": "tuning", "sysctl": {}}, None),
        ({**bridge(), "args": {"cni": {"ips": ["10.1.0.9"]}}}, "fixed_address"),
        ({"type": "macvlan", "args": {"cni": {"mac": "02:00:00:00:00:01"}}}, "fixed_address"),
        ({**bridge(), "args": {"cni": {"sysctl": {}}}}, None),
        (bridge(type="dhcp", daemonSocketPath="/nowhere"), "no_dhcp_daemon"),
        ({"type": "calico"}, "third_party"),
        (bridge(type="whereabouts"), "third_party"),
        ({"type": "flannel"}, "third_party"),
    ],
)
def test_what_speaks_against_a_network(plugin, reason):
    found = reason_against(config({"type": "bridge"}, plugin))
    assert (found[0] if found else None) == reason


def test_which_networks_only_one_container_can_have():
    assert why_alone(config(bridge(), {"type": "portmap"})) == ""
    # What else speaks against them does not hide it.
    assert why_alone(config({"type": "vendor"}, {"type": "tuning", "mac": "02:00:00:00:00:01"})) != ""


def test_dhcp_is_tried_where_its_daemon_listens(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind("dhcp.sock")
        assert reason_against(config(bridge(type="dhcp", daemonSocketPath=str(tmp_path / "dhcp.sock")))) is None


def test_gateways_of_results_of_all_versions():
    new = {
        "ips": [
            {"address": "10.1.0.2/24", "gateway": "10.1.0.1"},
            {"address": "10.1.0.3/24", "gateway": "10.1.0.1"},
            {"address": "fd00::2/64", "gateway": "fd00::1"},
            {"address": "10.2.0.2/24"},
            "no entry",
        ]
    }
    old = {"ip4": {"ip": "10.1.0.2/24", "gateway": "10.1.0.1"}, "ip6": None}
    assert trial.targets(new) == {"10.1.0.1": "10.1.0.2", "fd00::1": "fd00::2"}
    assert trial.targets(old) == {"10.1.0.1": "10.1.0.2"}
    assert trial.targets({"ips": "nonsense"}) == {}
    # What a plugin says is never an option of ping.
    assert trial.targets({"ips": [{"address": "-f/24", "gateway": "10.1.0.1"}]}) == {}
    assert trial.targets({"ips": [{"address": "10.1.0.2/24", "gateway": "-f"}]}) == {}


@pytest.fixture
def host_addresses(monkeypatch):
    """The host has the gateways of two networks; its uplink has 192.0.2.8, and IPv6 of the link only."""
    monkeypatch.setattr(trial.netlink, "host_addresses", lambda: {packed("10.1.0.1"): (), packed("fd00::1"): ()})

    class Probe(contextlib.AbstractContextManager):
        def __init__(self, family, _kind):
            self.address = "192.0.2.8" if family == socket.AF_INET else "fe80::8%uplink"

        def connect(self, place):
            assert place[0] in trial.OUTSIDE.values()

        def getsockname(self):
            return self.address, 0

        def __exit__(self, *_exception):
            return None

    monkeypatch.setattr(trial.socket, "socket", Probe)


FOUR = {"address": "10.1.0.2/24", "gateway": "10.1.0.1"}
SIX = {"address": "fd00::2/64", "gateway": "fd00::1"}


@pytest.mark.usefixtures("host_addresses")
@pytest.mark.parametrize(
    "result, addresses",
    [
        ({"ips": [FOUR], "routes": [{"dst": "0.0.0.0/0"}]}, ["192.0.2.8"]),
        ({"ips": [FOUR, SIX], "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}, ["192.0.2.8", "fd00::1"]),
        ({"ips": [FOUR, SIX], "routes": [{"dst": "10.0.0.0/8"}]}, ["10.1.0.1", "fd00::1"]),
        ({"ips": [{**FOUR, "gateway": "10.1.0.254"}]}, []),
        ({"ip4": {"ip": "10.1.0.2/24", "gateway": "10.1.0.1", "routes": [{"dst": "0.0.0.0/0"}]}}, ["192.0.2.8"]),
        ({"ip4": {"ip": "10.1.0.2/24", "gateway": "10.1.0.1"}}, ["10.1.0.1"]),
        ({"ips": [{"address": "127.0.0.1/8"}]}, []),
        ({}, []),
    ],
)
def test_where_a_container_is_published(result, addresses):
    assert trial.published_at(result) == addresses


def test_containers_with_the_same_address_or_mac():
    def result(address, mac):
        return {"ips": [{"address": address}], "interfaces": [{"name": "br"}, {"mac": mac, "sandbox": "/x"}]}

    def same(one, other, kind="bridge"):
        return same_host([result(*one), result(*other)], [{"type": kind}])

    assert same(("10.1.0.2/24", "02:01"), ("10.1.0.2/24", "02:02"))
    assert same(("10.1.0.2/24", "02:01"), ("10.1.0.3/24", "02:01"))
    assert not same(("10.1.0.2/24", "02:01"), ("10.1.0.3/24", "02:02"))
    assert not same(("10.1.0.2/24", ""), ("10.1.0.3/24", ""))
    assert not same(("10.1.0.2/24", "02:01"), ("10.1.0.3/24", "02:01"), "ipvlan")
