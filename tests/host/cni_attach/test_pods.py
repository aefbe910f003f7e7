# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Pods: several networks in one entry, attached and detached as one."""

from __future__ import annotations

import json
import os
import signal

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils.definitions import Sources
from ansible_collections.podwire.cni.plugins.plugin_utils.pods import PodEntries
from ansible_collections.podwire.cni.tests.host.host import sh, wait_until
from ansible_collections.podwire.cni.tests.host.networks import conflist, definition

NETWORKS = "k8s.v1.cni.cncf.io/networks"


@pytest.fixture
def definitions(bridge):
    """NetworkAttachmentDefinitions in the namespace default."""
    networks = {
        "storage": bridge("pwast0", "10.70.0.0/24", isGateway=True, capabilities={"ips": True}),
        "mgmt": bridge("pwamg0", "10.71.0.0/24"),
        "broken": {"type": "nosuch"},
    }
    return [definition(name, json.dumps(conflist(plugin, name=f"pwa{name}"))) for name, plugin in networks.items()]


@pytest.fixture
def web(definitions):
    """Return a function that returns the options for the pod web with networks of an annotation."""

    def make(networks=None, network="pwademo", **more):
        annotations = {} if networks is None else {NETWORKS: networks}
        pod = {"name": "web", "annotations": annotations}
        entry = {"network": network, "container_id": "web", "netns": "pwa-web", "pod": pod, **more}
        return {"attachments": [entry], "nads": {"manifests": definitions}}

    return make


def links():
    return [row["ifname"] for row in json.loads(sh("ip -n pwa-web -json link")) if row["ifname"] != "lo"]


@pytest.fixture
def pod(host, state):
    """Return a function that makes one change of state with the actions of the networks, and returns the results."""

    def make(options, actions):
        results = host.change("cni_attach", state, **options)
        rows = results.run["attachments"]
        assert {row["ifname"] + " " + row["network"]: row["action"] for row in rows} == actions
        predicted = results.check["attachments"]
        assert [(row["ifname"], row["network"], row["action"]) for row in predicted] == [
            (row["ifname"], row["network"], row["action"]) for row in rows
        ]
        again = results.again["attachments"]
        assert {row["action"] for row in again} <= {"none"}, json.dumps(again, indent=1)
        return results

    return make


def test_networks_of_a_pod(pod, web, files):
    added = {"eth0 pwademo": "added", "net1 pwastorage": "added", "mg0 pwamgmt": "added"}
    results = pod(web("storage, mgmt@mg0"), added)
    assert links() == ["eth0", "net1", "mg0"]
    (row,) = results.run["pods"]
    assert [one["ifname"] for one in results.check["pods"][0]["networks"]] == ["eth0", "net1", "mg0"]
    assert results.check["pods"][0]["network_status"] is None
    assert json.loads(row["annotations"]["k8s.v1.cni.cncf.io/network-status"]) == row["network_status"]
    # As Multus tells it. Plugins before 1.5 do not tell the MTU.
    told = [{name: one[name] for name in one.keys() - {"mac", "mtu"}} for one in row["network_status"]]
    storage = {"name": "default/storage", "interface": "net1", "ips": ["10.70.0.2"], "dns": {}}
    assert told[0]["interface"] == "eth0"
    assert told[1:] == [storage, {"name": "default/mgmt", "interface": "mg0", "ips": ["10.71.0.2"], "dns": {}}]
    assert results.again["pods"] == [row]
    # Only what changes is touched.
    before = sh("ip -n pwa-web -oneline link show eth0; ip -n pwa-web -oneline link show net1")
    pod(web("storage"), {"eth0 pwademo": "none", "net1 pwastorage": "none", "mg0 pwamgmt": "deleted"})
    assert links() == ["eth0", "net1"]
    assert sh("ip -n pwa-web -oneline link show eth0; ip -n pwa-web -oneline link show net1") == before
    pod(
        web("mgmt,storage"),
        {"eth0 pwademo": "none", "net1 pwamgmt": "added", "net2 pwastorage": "added", "net1 pwastorage": "deleted"},
    )
    assert links() == ["eth0", "net1", "net2"]
    deleted = {"eth0 pwademo": "deleted", "net1 pwamgmt": "deleted", "net2 pwastorage": "deleted"}
    pod(web(state="absent"), deleted)
    assert links() == []
    assert [path for path in files() if path.name not in ("lock", "last_reserved_ip.0", "last_reserved_ip.1")] == []


def routes(family="-4"):
    found = json.loads(sh(f"ip -n pwa-web -json {family} route show default"))
    return {(route["dev"], route.get("gateway")) for route in found}


def test_the_default_route_moves(host, pod, web, networks, write_network, cache):
    """The family that is asked for moves, in the kernel, in the cache and in the answer; the other one stays."""
    chain = json.loads(json.dumps(networks["pwademo"]))
    chain[0]["ipam"]["routes"] = [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]
    write_network("pwademo", chain)
    moved = json.dumps([{"name": "storage", "default-route": ["10.70.0.1"]}])
    results = pod(web(moved), {"eth0 pwademo": "added", "net1 pwastorage": "added"})
    six = routes("-6")
    assert routes() == {("net1", "10.70.0.1")}
    assert [dev for dev, _gateway in six] == ["eth0"]

    def told(name):
        found = json.loads((cache / "results" / name).read_text())["result"].get("routes", [])
        return [(route["dst"], route.get("gw")) for route in found]

    assert told("pwastorage-web-net1") == [("0.0.0.0/0", "10.70.0.1")]
    assert [dst for dst, _gateway in told("pwademo-web-eth0")] == ["::/0"]
    statuses = results.run["pods"][0]["network_status"]
    assert [status.get("gateway") for status in statuses] == [["<nil>"], ["10.70.0.1"]]
    # Without the request, the routes are as the plugins made them, and nothing else has changed.
    before = sh("ip -n pwa-web -oneline link")
    results = pod(web("storage"), {"eth0 pwademo": "rerouted", "net1 pwastorage": "rerouted"})
    assert [(part["before"], part["after"]) for part in results.run["diff"]] == [
        ({"default_route": ["10.70.0.1"]}, {"default_route": []}),
        ({"default_routes_of_another_network": ["IPv4"]}, {"default_routes_of_another_network": []}),
    ]
    assert (routes(), routes("-6")) == ({("eth0", "10.66.0.1")}, six)
    assert sorted(dst for dst, _gateway in told("pwademo-web-eth0")) == ["0.0.0.0/0", "::/0"]
    assert told("pwastorage-web-net1") == []
    # A run that ends when the kernel has changed, and this is not recorded, loses nothing.
    with pytest.raises(AssertionError, match="not callable"):
        host.attempt("cni_attach", patched={"_host.attachments.verbs:Verbs.check_new": None}, **web(moved))
    host.run("cni_attach", **web("storage"))
    assert (routes(), routes("-6")) == ({("eth0", "10.66.0.1")}, six)
    pod(web(moved), {"eth0 pwademo": "rerouted", "net1 pwastorage": "rerouted"})
    assert routes() == {("net1", "10.70.0.1")}
    assert sh("ip -n pwa-web -oneline link") == before
    pod(web(None), {"eth0 pwademo": "rerouted", "net1 pwastorage": "deleted"})
    assert routes() == {("eth0", "10.66.0.1")}


@pytest.mark.parametrize("generation", ["new"], indirect=True)
def test_a_gateway_that_no_network_reaches(host, web, state):
    """Nothing of the pod stays, and what existed stays as it was."""
    before = state()
    annotation = json.dumps([{"name": "storage", "default-route": ["192.0.2.1"]}])
    refused = host.fail("cni_attach", **web(annotation))
    assert "192.0.2.1" in refused["msg"] and "DEL of pwademo/web/eth0" in refused["msg"]
    assert links() == [] and leased(state) == leased(lambda: before)
    host.run("cni_attach", **web("storage"))
    there = state()
    refused = host.fail("cni_attach", **web(annotation))
    assert (refused["code"], refused["changed"]) == ("default_route_failed", False)
    assert state()[0] == there[0]
    assert not host.run("cni_attach", **web("storage"))["changed"]


def leased(look):
    """Return the files of the cache and of the leases, without host-local's own."""
    return [(path, data) for path, data in look()[1] if path.rsplit("/", 1)[1][:4] not in ("lock", "last")]


@pytest.mark.parametrize("generation", ["new"], indirect=True)
def test_a_network_that_fails_takes_back_what_was_attached_before_it(host, web, fakes, state, definitions):
    before = state()
    network = {"cniVersion": "1.0.0", "name": "pwabroken", "plugins": [{"type": "garbage"}]}
    definitions[2]["spec"]["config"] = json.dumps(network)
    refused = host.fail("cni_attach", **web("storage,broken,mgmt"))
    actions = {row["ifname"]: row["action"] for row in refused["attachments"]}
    assert actions == {"eth0": "rolled_back", "net1": "rolled_back", "net2": "failed", "net3": "left"}
    states = {step["target"]: step["state"] for step in refused["actions"]}
    assert states == {
        "pwademo/web/eth0": "rolled_back",
        "pwastorage/web/net1": "rolled_back",
        "pwabroken/web/net2": "failed",
        "pwamgmt/web/net3": "left_out",
    }
    assert not refused["changed"] and links() == []
    assert refused["pods"][0]["network_status"] is None
    assert "pwabroken/web/net2" in refused["msg"]
    assert "DEL of pwastorage/web/net1, DEL of pwademo/web/eth0" in refused["msg"]
    assert leased(state) == leased(lambda: before)
    # A pod that runs keeps what it has: only what is new is taken back, and what had gone is attached again.
    host.run("cni_attach", **web("storage"))
    index = sh("ip -n pwa-web -oneline link show eth0")
    refused = host.fail("cni_attach", **web("mgmt,broken"))
    assert {(row["ifname"], row["network"]): row["action"] for row in refused["attachments"]} == {
        ("eth0", "pwademo"): "none",
        ("net1", "pwamgmt"): "rolled_back",
        ("net2", "pwabroken"): "failed",
        ("net1", "pwastorage"): "rolled_back",
    }
    assert "ADD of pwastorage/web/net1" in refused["msg"]
    assert links() == ["eth0", "net1"] and sh("ip -n pwa-web -oneline link show eth0") == index
    assert not host.run("cni_attach", **web("storage"))["changed"]
    host.run("cni_attach", **web(state="absent"))
    assert links() == [] and leased(state) == leased(lambda: before)


@pytest.mark.parametrize("generation", ["new"], indirect=True)
def test_both_errors_of_a_failed_rollback_are_told(host, web, fakes, definitions, bridge):
    (fakes / "be-stubborn").touch()
    chains = {1: [bridge("pwamg0", "10.71.0.0/24"), {"type": "stubborn"}], 2: [{"type": "garbage"}]}
    for place, chain in chains.items():
        network = {"cniVersion": "1.0.0", "name": f"pwax{place}", "plugins": chain}
        definitions[place]["spec"]["config"] = json.dumps(network)
    refused = host.fail("cni_attach", **web("mgmt,broken"))
    assert refused["code"] == "cleanup_failed"
    assert "cannot attach pwax2/web/net2" in refused["msg"] and "DEL of pwax1/web/net1: " in refused["msg"]
    # The next run has a record of what is left.
    (fakes / "be-stubborn").unlink()
    host.run("cni_attach", **web(state="absent"))
    assert links() == []


BAD = [
    ("nosuch", "bad_annotation", [f"annotation {NETWORKS}, /0: there is not a NetworkAttachmentDefinition"]),
    ("bad", "json_truncated", ["NetworkAttachmentDefinition bad, spec.config, line 1"]),
]


@pytest.mark.parametrize("generation", ["new"], indirect=True)
@pytest.mark.parametrize(("annotation", "code", "words"), BAD)
def test_refused_before_the_first_add(host, web, state, definitions, annotation, code, words):
    definitions.append({**definitions[0], "metadata": {"name": "bad"}, "spec": {"config": '{"plugins": ['}})
    host.refuse("cni_attach", state, code, ["attachments[0].pod", *words], **web(annotation))


@pytest.mark.parametrize("generation", ["new"], indirect=True)
def test_a_namespace_that_isolation_forbids(host, web, state, definitions):
    definitions[1]["metadata"]["namespace"] = "other"
    options = web("other/mgmt")
    options["nads"]["namespace_isolation"] = True
    host.refuse("cni_attach", state, "bad_annotation", ["namespaceIsolation", "/0/namespace"], **options)
    options["nads"]["global_namespaces"] = ["other"]
    host.run("cni_attach", **options)
    assert links() == ["eth0", "net1"]


@pytest.mark.parametrize("generation", ["new"], indirect=True)
def test_a_pod_whose_namespace_was_recreated(host, web, namespaces, pod):
    host.run("cni_attach", **web("storage"))
    namespaces("pwa-web")
    pod(web("storage"), {"eth0 pwademo": "repaired", "net1 pwastorage": "repaired"})
    assert links() == ["eth0", "net1"]


@pytest.mark.parametrize("generation", ["new"], indirect=True)
def test_definitions_in_files_and_networks_in_files_of_the_host(host, web, work, definitions, pod):
    (work / "nads.json").write_text(json.dumps({"kind": "List", "items": definitions}))
    (work / "multus").mkdir()
    (work / "multus" / "10-mgmt.conflist").write_text(definitions[1]["spec"]["config"].replace("pwamgmt", "mgmt"))
    definitions[1]["spec"] = {}
    options = web("storage,mgmt")
    options["nads"] = {
        "src": [str(work / "nads.json")],
        "manifests": [definitions[1]],
        "conf_dir": str(work / "multus"),
    }
    pod(options, {"eth0 pwademo": "added", "net1 pwastorage": "added", "net2 mgmt": "added"})
    assert links() == ["eth0", "net1", "net2"]


@pytest.fixture
def killed(host, web, fakes, bridge, definitions):
    """The module and the plugin were killed in the ADD of the third network of a pod."""
    chain = [bridge("pwabr0", "10.73.0.0/24"), {"type": "slow"}]
    definitions[2]["spec"]["config"] = json.dumps({"cniVersion": "1.0.0", "name": "pwabroken", "plugins": chain})
    (fakes / "be-slow").touch()
    options = web("storage,broken")
    entries = PodEntries(options.pop("nads"), Sources(None, None), False).resolve(options["attachments"])
    module = host.start("cni_attach", {**host.defaults, "attachments": entries})
    try:
        wait_until((fakes / "slow.pid").exists)
    finally:
        module.kill()
        module.communicate()
        os.kill(int((fakes / "slow.pid").read_text()), signal.SIGKILL)
    (fakes / "be-slow").unlink()
    assert links() == ["eth0", "net1", "net2"]


@pytest.mark.parametrize("generation", ["new"], indirect=True)
def test_a_pod_whose_attaching_was_killed_is_finished(killed, pod, web):
    pod(web("storage,broken"), {"eth0 pwademo": "none", "net1 pwastorage": "none", "net2 pwabroken": "added"})
    assert links() == ["eth0", "net1", "net2"]


@pytest.mark.parametrize("generation", ["new"], indirect=True)
def test_a_pod_whose_attaching_was_killed_is_detached(killed, host, web, state):
    host.run("cni_attach", **web(state="absent"))
    assert links() == [] and leased(state) == []


@pytest.mark.parametrize("generation", ["new"], indirect=True)
def test_a_pod_whose_attaching_was_killed_is_collected_when_it_is_dead(killed, host, state):
    """Its leases are those of definitions, which no file of the host configures."""
    sh("ip netns delete pwa-web")
    host.run("cni_gc", min_age="0", allow_empty=True)
    assert leased(state) == []
