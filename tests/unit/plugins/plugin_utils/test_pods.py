# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
import yaml

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.plugin_utils.definitions import Sources, networks_of_nads
from ansible_collections.podwire.cni.plugins.plugin_utils.pods import PodEntries

NETWORKS = "k8s.v1.cni.cncf.io/networks"
MACVLAN = {"type": "macvlan", "master": "eth1", "ipam": {"type": "dhcp"}}


def manifest(name, config=MACVLAN, namespace=None):  # pylint: disable=dangerous-default-value
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    spec = {} if config is None else {"config": json.dumps(config)}
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": metadata,
        "spec": spec,
    }


class World:
    """A controller with files and a cluster. ``asked`` are the namespaces that the cluster was asked for."""

    def __init__(self, files=(), cluster=()):
        self.files = dict(files)
        self.cluster = list(cluster)
        self.asked = []

    def sources(self):
        return Sources(self._file, self._api)

    def _file(self, name):
        if name not in self.files:
            raise ValueError(f"file {name!r} not found on the controller")
        return f"/play/{name}", self.files[name].encode()

    def _api(self, kubeconfig, context, namespace):
        self.asked.append((kubeconfig, context, namespace))
        found = [(one, one["metadata"].get("namespace", "default")) for one in self.cluster]
        return [one for one, place in found if namespace in ("", place)]


def resolved(annotations, options, world=None, tolerant=False, **entry):
    pod = {"name": "web", "annotations": annotations}
    entries = [{"network": "pods", "container_id": "web", "netns": "web", "pod": pod, **entry}]
    return PodEntries(options, (world or World()).sources(), tolerant).resolve(entries)[0]


def names(entry):
    return [(one["network"], one["ifname"], one["name"]) for one in entry["_networks"]]


def test_the_networks_of_an_annotation():
    text = json.dumps(
        [
            {"name": "storage", "ips": ["192.0.2.7/24"], "mac": "02:00:00:00:00:01", "default-route": ["192.0.2.1"]},
            {"name": "backup", "namespace": "other", "interface": "bak0", "cni-args": {"a": 1}},
        ]
    )
    options = {"manifests": [manifest("storage"), manifest("backup", {**MACVLAN, "name": "b"}, "other")]}
    entry = resolved({NETWORKS: text}, options)
    assert names(entry) == [
        ("pods", "eth0", "pods"),
        ("storage", "net1", "default/storage"),
        ("b", "bak0", "other/backup"),
    ]
    own, storage, backup = entry["_networks"]
    assert own["routes"] == {"families": ["4"], "gateways": []}
    assert storage["routes"] == {"families": ["4"], "gateways": ["192.0.2.1"]}
    assert storage["capability_args"] == {"ips": ["192.0.2.7/24"], "mac": "02:00:00:00:00:01"}
    assert storage["args"] == {"IP": "192.0.2.7/24", "MAC": "02:00:00:00:00:01"}
    assert json.loads(storage["config"]) == {**MACVLAN, "name": "storage"}
    assert json.loads(backup["config"])["args"] == {"cni": {"a": 1}}
    assert "config" not in own


def test_data_of_a_template_is_as_good_as_its_text():
    entry = resolved({NETWORKS: [{"name": "storage"}]}, {"manifests": [manifest("storage")]}, ifname="lan")
    assert names(entry) == [("pods", "lan", "pods"), ("storage", "net1", "default/storage")]
    assert entry["pod"]["annotations"] == {NETWORKS: '[{"name": "storage"}]'}


def test_variables_come_before_files_and_files_before_a_cluster():
    def of(master):
        return {**MACVLAN, "master": master}

    world = World(
        {"nads.yml": yaml.safe_dump_all([manifest("a", of("file")), manifest("b", of("file")), {"kind": "Pod"}])},
        [manifest("b", of("cluster")), manifest("c", of("cluster"))],
    )
    options = {"manifests": json.dumps(manifest("a", of("variable"))), "src": ["nads.yml"], "kubeconfig": "/k"}
    entry = resolved({NETWORKS: "a,b"}, options, world)
    assert [json.loads(one["config"])["master"] for one in entry["_networks"][1:]] == ["variable", "file"]
    assert world.asked == []
    entry = resolved({NETWORKS: "a,b,c"}, {**options, "context": "lab"}, world)
    assert json.loads(entry["_networks"][3]["config"])["master"] == "cluster"
    # Only the namespace that is needed, once.
    assert world.asked == [("/k", "lab", "default")]


def test_a_definition_without_a_configuration_is_in_a_file_of_the_host():
    entry = resolved({NETWORKS: "storage"}, {"manifests": [manifest("storage", None)], "conf_dir": "/etc/pods"})
    assert entry["_networks"][1] == {
        "network": "storage",
        "ifname": "net1",
        "name": "default/storage",
        "conf_dir": "/etc/pods",
        "capability_args": {},
        "args": {},
    }
    text = json.dumps([{"name": "storage", "cni-args": {"a": 1}}])
    with pytest.raises(HostError, match="in a file of the host; write spec"):
        resolved({NETWORKS: text}, {"manifests": [manifest("storage", None)]})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"manifest": []}, "did you mean|no option|manifests"),
        ("text", "a mapping"),
        ({"manifests": "{"}, "this is not YAML"),
        ({"manifests": [{"metadata": {}}]}, "is not a NetworkAttachmentDefinition"),
        ({"manifests": 5}, "write manifests, or their text"),
        ({"src": ["nads.yml"]}, "not found on the controller"),
        ({"global_namespaces": "default"}, "a list of namespaces"),
    ],
)
def test_bad_sources(options, words):
    with pytest.raises(HostError, match=words):
        resolved({NETWORKS: "storage"}, options)


def test_check_mode_sends_what_is_refused():
    """So that it shows what else would change."""
    entry = resolved({NETWORKS: "nosuch"}, None, tolerant=True)
    (told,) = entry["_networks"]
    assert told["error"]["code"] == "bad_annotation"
    assert "attachments[0].pod: default/web: annotation" in told["error"]["message"]
    with pytest.raises(HostError, match=r"attachments\[0\].pod"):
        resolved({NETWORKS: "nosuch"}, None)


def test_what_is_detached_needs_no_definitions():
    assert resolved({NETWORKS: "nosuch"}, None, state="absent")["_networks"] == []


def test_every_annotation_that_is_refused_is_told():
    entries = [
        {"network": "pods", "container_id": name, "netns": name, "pod": {"name": name, "annotations": {NETWORKS: "x"}}}
        for name in ("a", "b")
    ]
    with pytest.raises(HostError, match=r"attachments\[0\].pod: default/a.*; attachments\[1\].pod: default/b"):
        PodEntries(None, World().sources(), False).resolve(entries)


# ---- networks as files


def test_networks_of_definitions():
    """A file is found by the name of its network, which is that of the manifest."""
    manifests = [
        manifest("storage", {**MACVLAN, "cniVersion": "1.0.0", "name": "inner"}),
        manifest("backup", {"cniVersion": "0.4.0", "plugins": [MACVLAN]}, "other"),
        manifest("elsewhere", None),
    ]
    found = networks_of_nads({"manifests": manifests}, World().sources())
    assert [(entry["name"], json.loads(entry["content"])) for entry in found] == [
        ("backup", {"cniVersion": "0.4.0", "name": "backup", "plugins": [MACVLAN]}),
        ("storage", {**MACVLAN, "cniVersion": "1.0.0", "name": "storage"}),
    ]
    of_one = networks_of_nads({"manifests": manifests, "namespace": "other"}, World().sources())
    assert [entry["name"] for entry in of_one] == ["backup"]


def test_networks_of_a_cluster():
    world = World(cluster=[manifest("storage")])
    found = networks_of_nads({"kubeconfig": "/k", "namespace": "default"}, world.sources())
    assert [entry["name"] for entry in found] == ["storage"]
    assert world.asked == [("/k", "", "default")]


def test_definitions_that_are_not_valid():
    with pytest.raises(HostError, match="NetworkAttachmentDefinition bad") as caught:
        networks_of_nads({"manifests": [manifest("bad", {"type": "bridge", "mtu": "1500"})]}, World().sources())
    assert caught.value.facts["problems"]
