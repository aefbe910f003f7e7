# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Pods, and the networks that they request, in the plan of a whole host."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.tests.host.cni_host.conftest import brief, network
from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import definition

pytestmark = pytest.mark.parametrize("generation", ["new"], indirect=True)


def manifest(name, number):
    return definition(name, json.dumps(json.loads(network(name, number)["content"])))


@pytest.fixture
def pod_host(desired):
    """The options of a host with a pod on three networks: its own, that of a definition, one in a file of the host."""
    in_file = {**manifest("pwhfile", 44), "spec": {}}
    pod = {"name": "web", "annotations": {"k8s.v1.cni.cncf.io/networks": "pwhdata,pwhfile"}}
    return {
        "plugins": desired["plugins"],
        "pod_networks": {"nads": {"manifests": [manifest("pwhfile", 44)]}},
        "networks": {"networks": [network("pwhapps", 41)]},
        "netns": {"names": ["pwh-web"]},
        "attachments": {
            "attachments": [{"network": "pwhapps", "container_id": "web", "netns": "pwh-web", "pod": pod}],
            "nads": {"manifests": [manifest("pwhdata", 42), in_file]},
        },
    }


def test_a_pod_on_an_empty_host(change, host, pod_host):
    """Check mode knows the networks that the same plan writes, and all names."""
    made = change(**pod_host)
    assert [step for step in brief(made.check) if step[0] in ("pod_networks", "attachments")] == [
        ("pod_networks", "make_directory", "net.d"),
        ("pod_networks", "create", "10-pwhfile.conflist"),
        ("attachments", "add", "pwhapps/web/eth0"),
        ("attachments", "add", "pwhdata/web/net1"),
        ("attachments", "add", "pwhfile/web/net2"),
    ]
    assert os.listdir("/etc/cni/multus/net.d") == ["10-pwhfile.conflist"]
    (row,) = made.run["attachments"]["pods"]
    assert [status["interface"] for status in row["network_status"]] == ["eth0", "net1", "net2"]
    links = [one["ifname"] for one in json.loads(sh("ip -n pwh-web -json link"))]
    assert sorted(links) == ["eth0", "lo", "net1", "net2"]
    entry = pod_host["attachments"]["attachments"][0]
    entry["state"] = "absent"
    host.run("cni_host", attachments={"attachments": [entry]})
    assert [one["ifname"] for one in json.loads(sh("ip -n pwh-web -json link"))] == ["lo"]


def test_a_pod_waits_for_all_of_its_networks(host, pod_host):
    """If the network of the pod cannot be written, none of its networks is attached."""
    pod_host["networks"]["networks"][0]["file"] = "10-other.conflist"
    sh("mkdir -p /etc/cni/net.d; echo '{}' >/etc/cni/net.d/10-other.conflist; chattr +i /etc/cni/net.d")
    result = host.fail("cni_host", **pod_host)
    assert {row["action"] for row in result["attachments"]["attachments"]} <= {"left", "none"}
    assert [one["ifname"] for one in json.loads(sh("ip -n pwh-web -json link"))] == ["lo"]
    sh("chattr -i /etc/cni/net.d")


def test_the_directory_of_the_runtimes_is_refused(host, pod_host):
    pod_host["pod_networks"]["conf_dir"] = "/etc/cni/net.d"
    assert host.fail("cni_host", **pod_host)["code"] == "contradiction"


def test_a_bad_annotation_hides_nothing_in_check_mode(host, pod_host):
    entry = pod_host["attachments"]["attachments"][0]
    entry["pod"]["annotations"] = {"k8s.v1.cni.cncf.io/networks": "nosuch"}
    refused = host.fail("cni_host", check_mode=True, **pod_host)
    assert "nosuch" in refused["msg"]
    assert ("networks", "create", "10-pwhapps.conflist") in brief(refused)
    assert host.fail("cni_host", **pod_host)["code"] == "bad_annotation"


def test_multus_in_a_layout_without_fallback(change, host, pod_host):
    """The target of clusterNetwork is written by the same plan, and lint knows it."""
    target = "/etc/cni/multus/net.d/10-pwhfile.conflist"
    multus = {"type": "multus", "kubeconfig": "/etc/cni/multus/kubeconfig", "clusterNetwork": target}
    conflist = {"cniVersion": "1.0.0", "name": "multus-cni-network", "plugins": [multus]}
    conflist["plugins"][0]["capabilities"] = {"portMappings": True}
    entry = {"name": "multus-cni-network", "file": "00-multus.conflist", "content": json.dumps(conflist, indent=2)}
    options = {
        "plugins": pod_host["plugins"],
        "pod_networks": pod_host["pod_networks"],
        "networks": {"networks": [entry], "validate": ["syntax", "schema", "directory"]},
    }
    made = change(**options)
    assert [problem["code"] for problem in made.check["problems"] if problem["level"] != "info"] == []
    assert os.listdir("/etc/cni/net.d") == ["00-multus.conflist"]
    # The way back: the network of the host is complete before that of Multus goes.
    back = {
        "pod_networks": {"networks": [{"name": "pwhfile", "state": "absent"}]},
        "networks": {"networks": [network("pwhapps", 41), {"name": "multus-cni-network", "state": "absent"}]},
    }
    # It tells that the runtimes' network becomes another one.
    gone = change(warnings=1, **back)
    assert [step[1:] for step in brief(gone.run) if step[0] == "networks"] == [
        ("create", "10-pwhapps.conflist"),
        ("remove", "00-multus.conflist"),
    ]
