# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import socket

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.networks import Networks
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.trials import trial
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.planner import choose, load, reason_against
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
    put(tmp_path, "05-a.conf", name="a", type="ptp")
    put(tmp_path, "10-a.conflist", name="a", plugins=[{"type": "bridge"}])
    put(tmp_path, "20-a.conflist", name="a", plugins=[{"type": "macvlan"}])
    put(tmp_path, "30-b.conf", name="b", type="ptp")
    put(tmp_path, "99-loopback.conf", type="loopback")
    put(tmp_path, "calico-kubeconfig.json", name="no")
    files, missing = choose(str(tmp_path), None)
    assert [file.name for file in files] == ["10-a.conflist", "30-b.conf"]
    assert missing == []
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
        (bridge(type="dhcp", daemonSocketPath="/nowhere"), "no_dhcp_daemon"),
        ({"type": "calico"}, "third_party"),
        (bridge(type="whereabouts"), "third_party"),
        ({"type": "flannel"}, "third_party"),
    ],
)
def test_what_speaks_against_a_network(plugin, reason):
    found = reason_against(config({"type": "bridge"}, plugin))
    assert (found[0] if found else None) == reason


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
    assert trial.targets(new) == [("10.1.0.1", "10.1.0.2"), ("fd00::1", "fd00::2")]
    assert trial.targets(old) == [("10.1.0.1", "10.1.0.2")]
    assert trial.targets({"ips": "nonsense"}) == []
    # What a plugin says is never an option of ping.
    assert trial.targets({"ips": [{"address": "-f/24", "gateway": "10.1.0.1"}]}) == []
    assert trial.targets({"ips": [{"address": "10.1.0.2/24", "gateway": "-f"}]}) == []
