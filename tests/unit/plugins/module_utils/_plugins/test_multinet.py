# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""podwire-multinet: what its networks get, what is recorded, and what every verb makes of it."""

from __future__ import annotations

import json
import subprocess

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._plugins import multinet_delete
from ansible_collections.podwire.cni.plugins.module_utils.libcni import types
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.multi.records import open_record
from ansible_collections.podwire.cni.plugins.module_utils.libcni.skel import CmdArgs

from .conftest import CONTAINERD, NETWORKS, POD_ANNOTATIONS

# As containerd writes it.
CAPITALS = {
    "portMappings": [{"HostPort": 8080, "ContainerPort": 80, "Protocol": "tcp", "HostIP": "127.0.0.1"}],
    "bandwidth": {"IngressRate": 1, "IngressBurst": 4294967295, "EgressRate": 3, "EgressBurst": 4},
    "dns": {"Servers": ["10.0.0.10"], "Searches": [], "Options": ["ndots:5"]},
    "cgroupPath": "/kubepods/pod1",
    "mac": "02:00:00:00:00:01",
    "ips": ["10.1.0.5/24"],
    "aliases": {"cluster": ["web"]},
}
ALL = ["cluster/eth0", "storage/net1", "backup/net2"]


def test_what_a_runtime_sends_reaches_the_networks_that_it_is_for(world):
    element = {
        "name": "storage",
        "mac": "02:00:00:00:00:09",
        "ips": ["10.2.0.9/24"],
        "cni-args": {"a": 9007199254740993},
    }
    world.args += ";IP=10.1.0.5;MAC=02:00:00:00:00:01"
    world.ok("ADD", json.dumps([element, {"name": "backup"}]), CAPITALS)
    first, second, third = world.calls()
    annotations = {NETWORKS: json.dumps([element, {"name": "backup"}])}
    shared = {
        "bandwidth": {"ingressRate": 1, "ingressBurst": 4294967295, "egressRate": 3, "egressBurst": 4},
        "dns": {"servers": ["10.0.0.10"], "searches": [], "options": ["ndots:5"]},
        "cgroupPath": "/kubepods/pod1",
        "aliases": {"cluster": ["web"]},
        POD_ANNOTATIONS: annotations,
    }
    mapping = {"hostPort": 8080, "containerPort": 80, "protocol": "tcp", "hostIP": "127.0.0.1"}
    own = {"portMappings": [mapping], "mac": "02:00:00:00:00:01", "ips": ["10.1.0.5/24"]}
    assert first["stdin"]["runtimeConfig"] == {**shared, **own}
    assert second["stdin"]["runtimeConfig"] == {**shared, "mac": "02:00:00:00:00:09", "ips": ["10.2.0.9/24"]}
    assert third["stdin"]["runtimeConfig"] == shared
    assert second["stdin"]["args"] == {"cni": {"a": 9007199254740993}}
    pairs = (
        "IgnoreUnknown=true;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=c1;K8S_POD_UID=u1;"
    )
    told = [call["env"]["CNI_ARGS"] for call in (first, second, third)]
    assert told == [
        f"{pairs}{world.args}",
        f"{pairs}{CONTAINERD};MAC=02:00:00:00:00:09;IP=10.2.0.9/24",
        f"{pairs}{CONTAINERD}",
    ]
    assert first["env"]["CNI_PATH"] == f"{world.folder}/bin:/nowhere"


def test_the_default_network_may_be_asked_for_addresses(world):
    wanted = {"v1.multus-cni.io/default-network": '[{"name": "storage", "ips": ["10.2.0.9/24"]}]'}
    world.ok("ADD", runtime={POD_ANNOTATIONS: wanted}, multusNamespace="default")
    (only,) = world.calls()
    assert (only["name"], only["env"]["CNI_IFNAME"]) == ("storage", "eth0")
    assert only["stdin"]["runtimeConfig"]["ips"] == ["10.2.0.9/24"]


@pytest.mark.parametrize(
    "runtime", [None, {POD_ANNOTATIONS: None}, {POD_ANNOTATIONS: {}}, {POD_ANNOTATIONS: {"a": "b"}}]
)
def test_a_pod_without_annotations(world, runtime):
    world.ok("ADD", runtime=runtime)
    assert world.calls("ADD") == ["cluster/eth0"]


def test_annotations_come_from_the_call_or_from_files(world):
    by_id, by_name = world.folder / "pods" / "c1.json", world.folder / "pods" / "default" / "web.json"
    by_name.parent.mkdir()
    by_name.write_text(json.dumps({NETWORKS: [{"name": "backup", "interface": "b0"}]}))

    def names(**more):
        world.ok("ADD", **more)
        world.ok("DEL", **more)
        return world.calls("ADD")[1:]

    assert names() == ["backup/b0"]
    by_id.write_text(json.dumps({NETWORKS: "storage@s0"}))
    assert names() == ["storage/s0"]
    args = {"cni": {NETWORKS: "storage@a0"}}
    assert names(args=args) == ["storage/a0"]
    assert names(args=args, annotation="storage@r0") == ["storage/r0"]
    world.args = "IgnoreUnknown=1;K8S_POD_NAME=../default/web"
    by_id.unlink()
    assert names() == []


def test_networks_in_configuration_files(world):
    (world.folder / "conf" / "10-plain.conf").write_text(json.dumps(world.network("plain")))
    (world.folder / "conf" / "00-broken.conflist").write_text("{")
    world.nad("plain", "other")
    world.ok("ADD", "plain,other/plain")
    assert world.calls("ADD") == ["cluster/eth0", "plain/net1", "plain/net2"]
    assert "other/plain-x" in world.error("ADD", "other/plain-x", env={"CONTAINERID": "c2"})["msg"]
    # One that is broken is told if the network is in no other file.
    assert "00-broken.conflist" in world.error("ADD", "nope", env={"CONTAINERID": "c2"})["msg"]


def test_a_cluster_network_and_default_networks(world):
    (world.folder / "conf" / "pods.conflist").write_text(
        json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [world.network("x"), world.network("x")]})
    )
    conf = {"delegates": None, "clusterNetwork": "pods", "defaultNetworks": ["storage"], "multusNamespace": "default"}
    world.ok("ADD", "backup", **conf)
    assert world.calls("ADD") == ["pods/eth0", "pods/eth0", *ALL[1:]]
    world.ok("STATUS", **conf)
    # The version of pods is older than STATUS.
    assert world.calls("STATUS") == ["storage/"]
    world.ok("DEL", "backup", **conf)
    assert world.left() == []


# ---- ADD again


def test_an_add_after_the_namespace_was_made_again(world):
    """As after a reboot, of a container that keeps its ID: what the earlier one left is deleted first."""
    world.ok("ADD", "storage")
    world.calls()
    world.ok("ADD", "backup")
    calls = world.calls()
    assert [(one["what"], one["name"], one["env"]["CNI_NETNS"]) for one in calls] == [
        ("DEL", "storage", ""),
        ("DEL", "cluster", ""),
        ("ADD", "cluster", world.netns),
        ("ADD", "backup", world.netns),
    ]


# ---- failures


def test_a_failure_whose_roll_back_fails_is_told_and_recorded(world):
    world.mark("fail-ADD-backup")
    world.mark("fail-DEL-cluster")
    error = world.error("ADD", "storage,backup")
    assert "planned failure of ADD; DEL of what was added failed, too: network " in error["msg"]
    assert '"cluster": plugin type="rec" name="cluster" failed (delete): planned failure of DEL' in error["msg"]
    assert world.left() == ["pods/c1:eth0", "results/cluster-c1-eth0"]
    again = world.error("DEL", "storage,backup")
    assert again["code"] == 120
    assert again["msg"].startswith("network cluster (eth0): ")
    assert world.left() == ["pods/c1:eth0", "results/cluster-c1-eth0"]
    world.mark("fail-DEL-cluster", False)
    # The annotation is another one by now.
    world.ok("DEL", "nope")
    assert world.left() == []


def test_a_repaired_configuration_is_used_where_the_one_of_the_add_fails(world):
    world.ok("ADD")
    world.mark("fail-DEL-cluster")
    world.error("DEL")
    recorder = world.folder / "bin" / "rec"
    good = world.folder / "bin" / "good"
    good.write_text(recorder.read_text().replace("fail-", "never-"))
    good.chmod(0o755)
    world.calls()
    world.ok("DEL", delegates=[world.network("cluster", type="good")])
    assert world.calls("DEL") == ["cluster/eth0"] * 2
    assert world.left() == []


@pytest.mark.parametrize("text", [None, "", "{", "[]", "null", '{"version": 1}', '{"version": 2}', "\0" * 20])
def test_del_without_a_sound_record(world, text):
    world.ok("ADD", "storage,backup")
    world.calls()
    world.record.unlink() if text is None else world.record.write_text(text)
    # libcni's cache still knows them.
    world.ok("DEL", runtime={POD_ANNOTATIONS: None})
    assert sorted(world.calls("DEL")) == sorted(ALL)
    assert world.left() == []


def test_del_of_a_pod_from_before_the_plugin(world):
    """Its network was the cluster network itself: neither a record nor an entry is here."""
    world.ok("DEL")
    assert world.calls("DEL") == ["cluster/eth0"]
    world.mark("fail-DEL-cluster")
    world.ok("DEL")


def test_del_with_a_broken_configuration(world):
    world.ok("ADD", "storage")
    for more in ({"delegates": "x"}, {"clusterNetwork": 5}, {"runtimeConfig": []}, {"podDir": 5}, {"nadDir": "x"}):
        world.ok("DEL", **more)
        assert world.left() == []
        world.ok("ADD", "storage")


def test_two_interfaces_of_a_container(world):
    """containerd with max_conf_num 2: both networks may be this plugin's."""
    world.ok("ADD", "storage@s0")
    second = {"IFNAME": "eth1"}
    world.ok("ADD", "backup@b0", env=second)
    world.record.unlink()
    world.calls()
    world.ok("DEL", "storage@s0")
    assert sorted(world.calls("DEL")) == ["cluster/eth0", "storage/s0"]
    assert world.left() == ["pods/c1:eth1", "results/backup-c1-b0", "results/cluster-c1-eth1"]
    world.ok("DEL", env=second)
    assert world.left() == []


def test_del_beside_an_add_of_another_interface_that_does_not_end(world, monkeypatch):
    world.ok("ADD", env={"IFNAME": "eth1"})
    monkeypatch.setattr(multinet_delete, "PATIENCE", 0.0)
    args = CmdArgs("c1", world.netns, "eth0", world.args, stdin_data=world.stdin())
    with open_record(str(world.record.with_name("c1:eth1")), 0), pytest.raises(
        PluginError, match="still run"
    ) as caught:
        multinet_delete.delete(args)
    assert caught.value.code == 11


def test_del_waits_for_what_a_killed_add_has_started(world):
    world.mark("slow-ADD-storage")
    process = world.start("ADD", world.stdin("storage,backup"))
    world.wait_for('"storage"')
    process.kill()
    process.communicate()
    assert world.left() == ["pods/c1:eth0", "results/cluster-c1-eth0"]
    error = world.error("ADD", "storage")
    assert (error["code"], "another ADD or DEL of it runs" in error["msg"]) == (101, True)
    world.ok("DEL", env={"NETNS": ""})
    calls = [(one["what"], one["name"]) for one in world.calls()]
    assert calls == [
        ("ADD", "cluster"),
        ("ADD", "storage"),
        ("end of ADD", "storage"),
        ("DEL", "backup"),
        ("DEL", "storage"),
        ("DEL", "cluster"),
    ]
    assert world.left() == []


# ---- CHECK, STATUS, GC


def test_check_is_about_all_networks(world):
    assert world.error("CHECK")["code"] == 3
    world.ok("ADD", "storage,backup")
    for name in ("storage", "backup"):
        world.mark(f"fail-CHECK-{name}")
    error = world.error("CHECK")
    assert error["code"] == 120
    failed = ["network default/storage (net1)", "network default/backup (net2)"]
    assert error["msg"] == "; ".join(f"{network}: planned failure of CHECK" for network in failed)


def test_status_is_about_all_networks_of_the_configuration(world):
    delegates = [world.network("cluster"), world.network("second")]
    world.ok("STATUS", delegates=delegates)
    assert world.calls("STATUS") == ["cluster/", "second/"]
    world.mark("fail-STATUS-second")
    error = world.error("STATUS", delegates=delegates)
    assert (error["code"], error["msg"]) == (50, "network second: planned failure of STATUS")
    error = world.error("STATUS", delegates=[world.network("third", type="nosuch")])
    assert (error["code"], 'failed to find plugin "nosuch"' in error["msg"]) == (50, True)
    error = world.error("STATUS", readinessindicatorfile="/nowhere/ready")
    assert (error["code"], "/nowhere/ready is not there" in error["msg"]) == (50, True)
    error = world.error("STATUS", delegates=None, clusterNetwork="nope")
    assert error["code"] == 50
    # The networks of pods need no readiness: only some pods want them.
    world.nad("storage", type="nosuch")
    world.ok("STATUS")


def test_gc_deletes_what_is_not_valid(world):
    for name in ("c1", "c2", "c3"):
        world.ok("ADD", "storage", env={"CONTAINERID": name})
    world.ok("ADD", env={"CONTAINERID": "c4"}, name="another")
    world.calls()
    valid = [{"containerID": "c2", "ifname": "eth0"}]
    world.ok("GC", **{"cni.dev/valid-attachments": valid})
    calls = world.calls()
    deleted = [(one["name"], one["env"]["CNI_CONTAINERID"]) for one in calls if one["what"] == "DEL"]
    assert deleted == [("storage", "c1"), ("cluster", "c1"), ("storage", "c3"), ("cluster", "c3")]
    sent = {one["name"]: one["stdin"]["cni.dev/valid-attachments"] for one in calls if one["what"] == "GC"}
    pairs = {name: sorted((one["containerID"], one["ifname"]) for one in found) for name, found in sent.items()}
    # c4 is a container of another network of this plugin, which this call knows nothing about.
    assert pairs == {"cluster": [("c2", "eth0"), ("c4", "eth0")], "storage": [("c2", "eth0"), ("c2", "net1")]}
    assert [name for name in world.left() if name.startswith("pods/")] == ["pods/c2:eth0", "pods/c4:eth0"]


def test_gc_without_a_list_deletes_nothing(world):
    world.ok("ADD")
    before = world.left()
    assert "without it, all would be deleted" in world.error("GC")["msg"]
    for key in ("cni.dev/valid-attachments", "cni.dev/attachments"):
        for value, place in (("x", key), ([{"ifname": 7}], f"{key}/0/ifname")):
            error = world.error("GC", **{key: value})
            assert (error["code"], place in error["msg"]) == (7, True), error
    assert world.left() == before


def test_gc_beside_a_missing_definition(world):
    """The others are collected. If it is the pods' own, no list has what a pod without a record may have."""
    conf = {"delegates": None, "multusNamespace": "default"}
    for own, others, valid, collected in (
        ("storage", ["nope", "backup"], [], ["storage/", "backup/"]),
        ("nope", ["backup"], [], ["backup/"]),
        ("nope", ["backup"], [{"containerID": "c1", "ifname": "eth0"}], []),
    ):
        conf.update({"clusterNetwork": own, "defaultNetworks": others, "cni.dev/valid-attachments": valid})
        assert "there is not a NetworkAttachmentDefinition default/nope" in world.error("GC", **conf)["msg"]
        assert world.calls("GC") == collected


def test_gc_with_a_valid_container_that_is_not_known(world):
    """It may have any network, so that no list of those but the first is complete."""
    world.ok("ADD", "storage")
    world.calls()
    valid = [{"containerID": name, "ifname": "eth0"} for name in ("c1", "c8")]
    world.ok("GC", **{"cni.dev/valid-attachments": valid})
    assert world.calls("GC") == ["cluster/"]


def test_gc_beside_a_running_add(world):
    world.mark("slow-ADD-cluster")
    process = world.start("ADD", world.stdin())
    world.wait_for('"ADD"')
    world.ok("GC", **{"cni.dev/valid-attachments": []})
    process.communicate()
    assert process.returncode == 0
    assert [one["what"] for one in world.calls()] == ["ADD", "end of ADD"]


# ---- versions


@pytest.mark.parametrize("version", ["0.2.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"])
@pytest.mark.parametrize("inner", ["0.2.0", "0.4.0", "1.1.0"])
def test_the_result_has_the_version_of_the_configuration(world, version, inner):
    results = {
        "0.2.0": {"ip4": {"ip": "10.1.0.2/24"}},
        "0.4.0": {"ips": [{"version": "4", "address": "10.1.0.2/24"}]},
        "1.1.0": {"ips": [{"address": "10.1.0.2/24"}]},
    }
    cluster = world.network("cluster", cniVersion=inner, result=results[inner])
    result = world.ok("ADD", "storage", cniVersion=version, delegates=[cluster])
    parsed = types.create(version, json.dumps(result).encode())
    assert (parsed.version, parsed.addresses) == (version, ["10.1.0.2/24"])
    if version in ("0.4.0", "1.0.0", "1.1.0"):
        world.ok("CHECK", cniVersion=version, delegates=[cluster])


def test_a_result_that_cannot_be_given_is_taken_back(world):
    error = world.error("ADD", "storage", cniVersion="0.2.0")
    assert "cannot convert: no valid IP addresses" in error["msg"]
    assert (world.calls("DEL"), world.left()) == (["cluster/eth0"], [])


def test_version_and_about(world):
    assert world.ok("VERSION", raw=b"")["supportedVersions"][-1] == "1.1.0"
    done = subprocess.run([world.plugin], env={}, capture_output=True, check=True)
    assert done.stderr.startswith(b"podwire-multinet: ")
