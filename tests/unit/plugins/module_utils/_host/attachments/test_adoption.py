# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Attachments whose cache entry is lost, and failed ADDs over interfaces that were there before."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import adoption
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key, parse_attachments
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import AttachmentStore
from ansible_collections.podwire.cni.plugins.module_utils._host.netns import Netns
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import (
    MAIN,
    actions,
    codes,
    kinds,
    web,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import raising


def entry(attach_host):
    return json.loads(Path(attach_host.cache_dir, "results", "demo-web-eth0").read_text())


def lose(attach_host, how):
    path = os.path.join(attach_host.cache_dir, "results", "demo-web-eth0")
    if how == "folder":
        shutil.rmtree(os.path.dirname(path))
        return
    os.unlink(path)
    if how == "directory":
        os.mkdir(path)
    elif how != "gone":
        Path(path).write_text(how)


@pytest.mark.parametrize("how", ["gone", "folder", "directory", "", "{", '{"kind": "cniCacheV1"}', "\0\0"])
def test_a_lost_or_damaged_entry_is_written_again_and_no_plugin_runs(attach_host, how):
    wanted = web(args={"K": "v"}, capability_args={"portMappings": [], "x": [1, {"y": None}]})
    attach_host.run(wanted)
    before, record = entry(attach_host), attach_host.record("demo-web-eth0")
    lose(attach_host, how)
    damage = "lost" if how in ("gone", "folder", "directory") else "damaged"
    step = {"kind": "adopt", "target": "demo/web/eth0", "class": "safe", "reason": f"its cache entry is {damage}"}
    for ask in (attach_host.check, lambda *entries: attach_host.check(*entries, force=True), attach_host.run):
        plan = ask(wanted)
        assert (plan.actions(), actions(plan), plan.outcomes[0].row()["reason"]) == ([step], ["adopted"], damage)
        assert attach_host.calls == []
    assert (entry(attach_host), attach_host.record("demo-web-eth0")) == (before, record)
    assert actions(attach_host.run(wanted)) == ["none"]


def test_a_lost_entry_is_used_to_detach(attach_host):
    attach_host.run(web(args={"K": "v"}))
    lose(attach_host, "gone")
    os.unlink(os.path.join(attach_host.conf_dir, "10-demo.conflist"))
    plan = attach_host.run({"network": "demo", "container_id": "web", "state": "absent"})
    assert kinds(plan) == [("adopt", "demo/web/eth0"), ("del", "demo/web/eth0")]
    assert (actions(plan), attach_host.verbs("DEL")) == (["deleted"], ["meta", "main"])
    assert attach_host.namespaces["/run/netns/web"][1] == {"lo"}
    assert attach_host.cached() == attach_host.records() == []
    assert actions(attach_host.run(web(state="absent"))) == ["none"]


@pytest.mark.parametrize("asked", ["", "web"])
def test_an_interface_that_another_network_made_since_is_not_removed(attach_host, asked):
    """Another tool has detached the first network, and the record of it stayed."""
    attach_host.run(web())
    lose(attach_host, "gone")
    attach_host.namespaces["/run/netns/web"][1].discard("eth0")
    attach_host.network("other")
    other = web(network="other")
    assert actions(attach_host.run(other)) == ["added"]

    wanted = web(netns=asked, state="absent")
    assert kinds(attach_host.check(wanted)) == [("del", "demo/web/eth0")]
    plan = attach_host.run(wanted)
    assert (actions(plan), plan.outcomes[0].row()["reason"], attach_host.verbs("DEL")) == (
        ["deleted"],
        "lost",
        ["meta", "main"],
    )
    assert {netns for verb, *_rest, netns in attach_host.calls if verb == "DEL"} == {""}
    assert attach_host.namespaces["/run/netns/web"][1] == {"lo", "eth0"}
    assert (attach_host.cached(), attach_host.records()) == (["other-web-eth0"], ["other-web-eth0"])
    assert not attach_host.run(wanted).changed
    assert actions(attach_host.run(other)) == ["none"]


def test_a_lost_entry_is_not_adopted_from_an_interface_that_another_network_made(attach_host):
    attach_host.run(web())
    lose(attach_host, "gone")
    attach_host.namespaces["/run/netns/web"][1].discard("eth0")
    attach_host.network("other")
    attach_host.run(web(network="other"))
    # In check mode, an earlier task of the play may be about to detach the other one.
    assert (kinds(attach_host.check(web())), codes(attach_host.check(web()))) == (
        [("add", "demo/web/eth0")],
        ["ifname_in_use"],
    )
    plan = attach_host.run(web())
    assert (plan.steps, plan.outcomes[0].error["code"], attach_host.calls) == ([], "ifname_in_use", [])


@pytest.mark.parametrize("changed", ["netns", "interface", "config", "args"])
def test_what_is_lost_and_not_as_it_was_is_detached_as_it_was_made(attach_host, changed):
    attach_host.run(web())
    lose(attach_host, "gone")
    wanted = web()
    if changed == "netns":
        attach_host.namespace("web", inode=2)
    elif changed == "interface":
        attach_host.namespaces["/run/netns/web"][1].discard("eth0")
    elif changed == "config":
        attach_host.network(plugins=[MAIN])
    else:
        wanted = web(args={"K": "v"})
    plan = attach_host.run(wanted)
    assert [kind for kind, _target in kinds(plan)] == ["adopt", "repair"]
    assert (plan.outcomes[0].reason, attach_host.verbs("DEL")) == (changed, ["meta", "main"])
    # No DEL enters a namespace that is not the one of the ADD.
    entered = {netns for verb, *_rest, netns in attach_host.calls if verb == "DEL"}
    assert entered == {"" if changed == "netns" else "/run/netns/web"}
    assert actions(attach_host.run(wanted)) == ["none"]


def test_a_record_without_the_entry_is_no_reason_to_run_del(attach_host):
    """As older releases wrote it."""
    attach_host.run(web())
    lose(attach_host, "gone")
    path = os.path.join(attach_host.cache_dir, "podwire", "demo-web-eth0")
    record = json.loads(attach_host.record("demo-web-eth0"))
    for name in ("config", "args"):
        Path(path).write_text(json.dumps({key: value for key, value in record.items() if key != name}))
        plan = attach_host.run(web())
        assert plan.outcomes[0].error["code"] == "ifname_in_use"
        assert attach_host.calls == []


# ---- an interface that was there before


@pytest.mark.parametrize("ifname", ["eth0", "lo"])
@pytest.mark.parametrize("failing", ["main", "meta"])
def test_a_failed_add_over_an_existing_interface_runs_no_del(attach_host, ifname, failing):
    attach_host.namespace("web", links=("lo", "eth0"))
    attach_host.broken["ADD", failing] = "it is there"
    plan = attach_host.run(web(ifname=ifname), force=True)
    error = plan.outcomes[0].error
    assert error["code"] == "add_failed"
    assert "DEL did not run" in error["message"]
    assert attach_host.verbs("DEL") == []
    assert attach_host.namespaces["/run/netns/web"][1] == {"lo", "eth0"}
    assert attach_host.cached() == attach_host.records() == []
    if ifname == "eth0":
        plan = attach_host.run(web())
        assert plan.outcomes[0].error["code"] == "ifname_in_use"
        assert "force" not in plan.outcomes[0].error["message"]
        assert attach_host.calls == []


def test_an_interrupted_add_over_an_existing_interface_is_not_taken_back_in_the_namespace(attach_host):
    class Killed(BaseException):
        pass

    attach_host.namespace("web", links=("lo", "eth0"))
    original, attach_host.exec_plugin = attach_host.exec_plugin, raising(Killed)
    with pytest.raises(Killed):
        attach_host.run(web(), force=True)
    attach_host.exec_plugin = original
    assert attach_host.records() == ["demo-web-eth0"]
    plan = attach_host.run(web())
    assert plan.outcomes[0].error["code"] == "ifname_in_use"
    assert attach_host.calls == []
    plan = attach_host.run(web(state="absent"))
    assert actions(plan) == ["deleted"]
    assert {call[3] for call in attach_host.calls} == {""}
    assert attach_host.namespaces["/run/netns/web"][1] == {"lo", "eth0"}
    assert attach_host.records() == []


# ---- neither entry nor record: what the kernel and host-local have


@pytest.fixture
def forgotten(attach_host, monkeypatch):
    """A host that has lost entry and record of an attachment which the kernel still shows."""
    attach_host.run(web())
    attached = (
        AttachmentStore(attach_host.cache_dir)
        .read(Key("demo", "web", "eth0"))
        .attached.changed(state="", identity=None)
    )
    before = entry(attach_host)
    lose(attach_host, "gone")
    os.unlink(os.path.join(attach_host.cache_dir, "podwire", "demo-web-eth0"))
    monkeypatch.setattr(adoption, "find_adoptable", lambda wanted, config, container: attached)
    return before


def test_the_record_of_what_is_adopted_is_written_again(attach_host, forgotten):
    plan = attach_host.run(web())
    assert (actions(plan), codes(plan), attach_host.verbs("CHECK")) == (["adopted"], [], ["main", "meta"])
    assert entry(attach_host) == forgotten
    record = json.loads(attach_host.record("demo-web-eth0"))
    identity, _links = attach_host.namespaces["/run/netns/web"]
    assert (record["state"], record["identity"], record["interface"]) == ("attached", identity, True)
    assert record["check"] is None
    assert actions(attach_host.run(web())) == ["none"]


def test_a_check_that_fails_at_the_adoption_is_no_drift_later(attach_host, forgotten):
    attach_host.broken["CHECK", "meta"] = "never"
    plan = attach_host.run(web())
    assert (actions(plan), codes(plan)) == (["adopted"], ["check_unusable"])
    record = json.loads(attach_host.record("demo-web-eth0"))
    assert (record["check"]["plugin"], record["check"]["code"]) == ("meta", 999)
    plan = attach_host.run(web())
    assert (actions(plan), codes(plan)) == (["none"], ["check_unusable"])


def test_a_network_without_check_is_adopted_without_it(attach_host, request):
    attach_host.network(disableCheck=True)
    request.getfixturevalue("forgotten")
    assert actions(attach_host.run(web())) == ["adopted"]
    assert attach_host.calls == []


def test_an_entry_that_cannot_be_restored(attach_host, forgotten):
    results = os.path.join(attach_host.cache_dir, "results")
    subprocess.run(["chattr", "+i", results], check=True)
    error = attach_host.run(web()).outcomes[0].error
    subprocess.run(["chattr", "-i", results], check=True)
    assert error["code"] == "adopt_failed"
    assert error["message"].startswith("cannot restore the cache entry of demo/web/eth0: ")
    assert attach_host.records() == []


NETNS = "podwire-adopt"
SUBNET = "10.219.0"


def ip(*argv, netns=""):
    subprocess.run(["ip", *(["-n", netns] if netns else []), *argv], check=True, capture_output=True)


@pytest.fixture
def container(tmp_path):
    """A container on a bridge, as the plugin bridge makes it, with two addresses; one of them is reserved for it."""
    try:
        ip("netns", "add", NETNS)
        ip("link", "add", "pwadopt0", "type", "bridge")
        ip("link", "add", "pwadopt1", "master", "pwadopt0", "up", "type", "veth", "peer", "eth0", "netns", NETNS)
        ip("link", "set", "eth0", "up", netns=NETNS)
        for address in (f"{SUBNET}.7/24", "192.0.2.7/24"):
            ip("address", "add", address, "dev", "eth0", netns=NETNS)
        ip("route", "add", "default", "via", f"{SUBNET}.1", netns=NETNS)
        store = tmp_path / "leases" / "demo"
        store.mkdir(parents=True)
        (store / f"{SUBNET}.7").write_text("web\r\neth0")
        yield store
    finally:
        subprocess.run(["ip", "netns", "delete", NETNS], check=False)
        # The kernel removes the host end some time after the namespace; the next test makes one of the same name.
        for name in ("pwadopt1", "pwadopt0"):
            subprocess.run(["ip", "link", "delete", name], check=False)


def found(store, subnet=f"{SUBNET}.0/24", version="1.0.0", **changed):
    ipam = {"type": "host-local", "dataDir": str(store.parent), "ranges": [[{"subnet": subnet}]]}
    conf = {"name": "demo", "cniVersion": version, "plugins": [{"type": "bridge", "bridge": "pwadopt0", "ipam": ipam}]}
    (wanted,) = parse_attachments([web(**dict({"netns": NETNS, "args": {"K": "v"}}, **changed))])
    config = network_conf_from_bytes(json.dumps(conf).encode())
    return adoption.find_adoptable(wanted, config, Netns(wanted.netns))


def test_an_attachment_that_is_visibly_there_is_adopted_without_entry_and_record(container):
    attached = found(container)
    assert (attached.netns, attached.args, attached.ips) == (f"/run/netns/{NETNS}", [("K", "v")], [f"{SUBNET}.7/24"])
    assert attached.made_interface
    names = [interface["name"] for interface in attached.result["interfaces"]]
    assert names == ["pwadopt0", "pwadopt1", "eth0"]
    assert attached.result["ips"] == [{"address": f"{SUBNET}.7/24", "gateway": f"{SUBNET}.1", "interface": 2}]
    assert attached.result["routes"] == [{"dst": "0.0.0.0/0", "gw": f"{SUBNET}.1"}]
    for version in ("0.1.0", "0.2.0", "0.3.1", "0.4.0", "1.1.0"):
        attached = found(container, version=version)
        assert (attached.result["cniVersion"], attached.ips) == (version, [f"{SUBNET}.7/24"])
    # Old releases of host-local did not write the interface.
    (container / f"{SUBNET}.7").write_text("web")
    assert found(container).ips == [f"{SUBNET}.7/24"]


def test_without_evidence_nothing_is_adopted(container):
    assert found(container, container_id="db") is None
    assert found(container, ifname="eth1") is None
    assert found(container, subnet="10.218.0.0/24") is None
    assert found(container, netns="nowhere") is None
    assert found(container, version="9.9.9") is None
    lease = container / f"{SUBNET}.7"
    for text in ("web\r\neth1", "db\r\neth0", "", "eth0"):
        lease.write_text(text)
        assert found(container) is None
    # An address of another container's interface, of another family's form, of nobody.
    lease.rename(container / f"{SUBNET}.8")
    (container / f"{SUBNET}.8").write_text("web\r\neth0")
    assert found(container) is None
