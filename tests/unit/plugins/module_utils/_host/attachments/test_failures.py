# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later


from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import capability_args, verbs
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.remains import Dropped
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key, Networks
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import Attached
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.verbs import Verbs
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import (
    MAIN,
    actions,
    codes,
    kinds,
    web,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

# ---- failures


def test_when_the_del_fails_too_both_are_reported_and_the_next_run_begins_with_it(attach_host):
    attach_host.broken["ADD", "meta"] = "no such port"
    attach_host.broken["DEL", "meta"] = "cannot clean"
    plan = attach_host.run(web())
    error = plan.outcomes[0].error
    assert error["code"] == "cleanup_failed"
    assert "no such port" in error["message"]
    assert "cannot clean" in error["message"]
    attach_host.broken.clear()
    # The wish has changed meanwhile; what was left is taken away with what it was made with.
    attach_host.network(plugins=[MAIN])
    plan = attach_host.run(web())
    assert (actions(plan), plan.outcomes[0].reason) == (["added"], "interrupted")
    (step,) = plan.actions()
    assert (step["kind"], step["target"], step["reason"]) == ("repair", "demo/web/eth0", "its ADD was interrupted")
    assert attach_host.verbs("DEL") == ["meta", "main"]
    assert attach_host.verbs("ADD") == ["main"]
    assert actions(attach_host.run(web())) == ["none"]


def test_a_record_that_is_cut_short_counts_as_an_interrupted_add(attach_host):
    os.makedirs(os.path.join(attach_host.cache_dir, "podwire"))
    open(os.path.join(attach_host.cache_dir, "podwire", "demo-web-eth0"), "w").close()
    plan = attach_host.run(web())
    assert kinds(plan) == [("repair", "demo/web/eth0")]
    assert actions(attach_host.run(web())) == ["none"]


def test_what_a_plugin_says_is_freed_of_the_secrets_in_its_arguments(attach_host):
    attach_host.broken["ADD", "main"] = "login with hunter2222 failed"
    row = json.dumps(attach_host.run(web(args={"PASSWORD": "hunter2222"})).outcomes[0].row())
    assert "login with" in row and "hunter" not in row


# ---- absent


def test_force_deletes_without_an_entry(attach_host):
    plan = attach_host.run(web(state="absent"), force=True)
    assert (actions(plan), plan.outcomes[0].reason) == (["deleted"], "forced")
    assert attach_host.verbs("DEL") == ["meta", "main"]


# ---- what the cache holds is not trusted


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\x00",
        b"[]",
        b'{"kind":"cniCacheV1"}',
        b'{"kind":"cniCacheV1","config":"!!"}',
        b'{"kind":"cniCacheV1","containerId":"web","ifName":"eth0","networkName":"demo","config":"e30="}',
        b'{"cniVersion":"1.0.0","ips":[]}',
    ],
)
@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_damaged_entry_is_named_and_force_replaces_it(attach_host, content, state):
    os.makedirs(os.path.join(attach_host.cache_dir, "results"))
    path = os.path.join(attach_host.cache_dir, "results", "demo-web-eth0")
    Path(path).write_bytes(content)
    plan = attach_host.run(web(state=state))
    assert (actions(plan), plan.outcomes[0].error["code"]) == (["failed"], "cache_damaged")
    assert path in plan.outcomes[0].error["message"]
    plan = attach_host.run(web(state=state), force=True)
    assert actions(plan) == ["repaired" if state == "present" else "deleted"]
    assert actions(attach_host.run(web(state=state))) == ["none"]


def test_the_entry_of_another_attachment_is_left_alone(attach_host):
    # network a-b with container c, and network a with container b-c, have one file name.
    attach_host.network("a-b")
    attach_host.network("a")
    attach_host.run(web(network="a-b", container_id="c"))
    plan = attach_host.run(web(network="a", container_id="b-c", ifname="eth0", netns="web"))
    assert plan.outcomes[0].error["code"] == "cache_collision"
    assert actions(attach_host.run(web(network="a-b", container_id="c"))) == ["none"]


def test_hostile_results_do_not_raise(attach_host):
    attach_host.run(web())
    path = os.path.join(attach_host.cache_dir, "results", "demo-web-eth0")
    entry = json.loads(Path(path).read_text())
    for result in ({"ips": 7, "interfaces": "x"}, {"ips": [None, {"address": 7}], "interfaces": [None]}, {}):
        Path(path).write_text(json.dumps(dict(entry, result=result)))
        row = attach_host.check(web()).outcomes[0].row()
        assert row["ips"] == []
        assert row["action"] in ("none", "drifted", "failed")


# ---- order


def test_a_failed_del_ends_the_repair_of_the_same_attachment_only(attach_host):
    attach_host.namespace("db", inode=2)
    attach_host.run(web(), web(container_id="db", netns="db"))
    attach_host.network(plugins=[MAIN])
    busy = PluginError(999, "busy", plugin="main")
    attach_host.fail_if(lambda verb, _path, _conf, env: (verb, env["CNI_CONTAINERID"]) == ("DEL", "web"), busy)
    plan = attach_host.run(web(), web(container_id="db", netns="db"))
    assert actions(plan) == ["failed", "repaired"]
    assert [step.state for step in plan.steps] == ["failed", "done"]
    assert {container_id for verb, _plugin, container_id, _netns in attach_host.calls if verb == "ADD"} == {"db"}


# ---- nothing wedges

BAD_PORTS = {"portMappings": [{"hostPort": "9001", "containerPort": "80", "protocol": "tcp"}]}


def wedge(attach_host, monkeypatch, state):
    """Record capability arguments that no plugin can parse, as an older release did; the plugin refuses them."""

    def refuse():
        error = PluginError(999, "cannot unmarshal string into int", plugin="meta")
        attach_host.fail_if(lambda _verb, _path, conf, _env: conf.get("runtimeConfig") == BAD_PORTS, error)

    with monkeypatch.context() as before:
        before.setattr(capability_args, "check_capability_args", lambda arguments, where: None)
        before.setattr(capability_args, "sound", dict)
        if state == "attached":
            attach_host.run(web(capability_args=BAD_PORTS))
            refuse()
        else:
            refuse()
            assert attach_host.run(web(capability_args=BAD_PORTS)).outcomes[0].error["code"] == "cleanup_failed"


@pytest.mark.parametrize("state", ["attached", "interrupted"])
@pytest.mark.parametrize("way", ["correct", "absent", "forced"])
def test_recorded_capability_args_of_a_wrong_type_wedge_nothing(attach_host, monkeypatch, state, way):
    wedge(attach_host, monkeypatch, state)
    if way == "correct":
        ports = [{"hostPort": 9001, "containerPort": 80, "protocol": "tcp"}]
        wanted = web(capability_args={"portMappings": ports})
        assert kinds(attach_host.check(wanted)) == [("repair", "demo/web/eth0")]
        assert actions(attach_host.run(wanted)) == ["repaired" if state == "attached" else "added"]
        assert actions(attach_host.run(wanted)) == actions(attach_host.check(wanted)) == ["none"]
        return
    wanted = web(state="absent", capability_args=BAD_PORTS)
    assert actions(attach_host.check(wanted)) == ["deleted"]
    plan = attach_host.run(wanted, force=way == "forced")
    assert (actions(plan), codes(plan)) == (["deleted"], [])
    assert attach_host.cached() == attach_host.records() == []
    assert attach_host.namespaces["/run/netns/web"][1] == {"lo"}
    assert actions(attach_host.run(wanted)) == actions(attach_host.check(wanted)) == ["none"]


def test_ranges_that_overlap_those_of_the_network_are_refused_before_anything_runs(attach_host):
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.9.0.0/24"}]]}
    wanted = web(capability_args={"ipRanges": [[{"subnet": "10.9.0.128/25"}]]})
    attach_host.network(plugins=[dict(MAIN, ipam=ipam, capabilities={"ipRanges": True})])
    for run in (attach_host.check, attach_host.run):
        plan = run(wanted)
        assert plan.outcomes[0].error["code"] == "bad_capability_args"
        assert "10.9.0.129-10.9.0.254 overlaps 10.9.0.1-10.9.0.254" in plan.outcomes[0].error["message"]
        assert attach_host.calls == []
    attach_host.network(plugins=[dict(MAIN, ipam=ipam)])
    assert actions(attach_host.check(wanted)) == ["added"]
    attach_host.network(plugins=[dict(MAIN, ipam=ipam, capabilities={"ipRanges": True})])
    assert actions(attach_host.run(web(capability_args={"ipRanges": [[{"subnet": "10.10.0.0/24"}]]}))) == ["added"]


@pytest.fixture
def left(monkeypatch):
    """What is removed when DEL has failed; there is none of it on this host."""
    asked = []

    def drop(departed, _cache_dir):
        asked.extend(one.key for one in departed)
        return Dropped({}, [])

    monkeypatch.setattr(verbs, "drop_remains", drop)
    monkeypatch.setattr(verbs, "remove_inside", lambda *arguments: [])
    return asked


@pytest.mark.parametrize("state", ["attached", "interrupted", "lost", "damaged", "cut short", "unknown", "gone"])
@pytest.mark.parametrize("broken", ["main", "meta", "both", "missing"])
def test_absent_with_force_always_ends_with_the_entry_gone(attach_host, left, state, broken):
    if state == "interrupted":
        attach_host.broken = {("ADD", "meta"): "no", ("DEL", "meta"): "no"}
    attach_host.run(web())
    if state == "lost":
        os.unlink(os.path.join(attach_host.cache_dir, "results", "demo-web-eth0"))
    elif state in ("damaged", "cut short", "unknown"):
        for folder in ("results", "podwire"):
            Path(attach_host.cache_dir, folder, "demo-web-eth0").write_text('{"kind":')
        if state == "cut short":
            os.unlink(os.path.join(attach_host.cache_dir, "results", "demo-web-eth0"))
        elif state == "unknown":
            os.unlink(os.path.join(attach_host.conf_dir, "10-demo.conflist"))
    elif state == "gone":
        del attach_host.namespaces["/run/netns/web"]
    names = ["main", "meta"] if broken == "both" else [broken]
    attach_host.broken = {("DEL", name): f"{name} cannot" for name in names}
    if broken == "missing":
        os.unlink(os.path.join(attach_host.bin_dir, "meta"))
    wanted = {"network": "demo", "container_id": "web", "state": "absent"}
    assert attach_host.run(wanted).outcomes[0].error is not None
    assert attach_host.cached() + attach_host.records() != []

    assert actions(attach_host.check(wanted, force=True)) == ["deleted"]
    plan = attach_host.run(wanted, force=True)
    assert actions(plan) == ["deleted"]
    assert attach_host.cached() == attach_host.records() == []
    assert ("demo", "web", "eth0") in left
    ((code, message),) = plan.warnings
    assert code == "del_failed"
    if state == "unknown":
        assert message.endswith("without a successful DEL (its network is not known, so no DEL ran)")
    else:
        for name in names:
            assert (f"{name} cannot" if broken != "missing" else 'failed to find plugin "meta"') in message
        # What can do its part does it.
        assert set(attach_host.verbs("DEL")) == ({"main"} if broken == "missing" else {"main", "meta"})
    plan = attach_host.run(wanted)
    assert (actions(plan), plan.warnings) == (["none"], {})


def test_a_failed_del_names_the_way_out(attach_host):
    attach_host.run(web())
    attach_host.broken["DEL", "main"] = "busy"
    message = attach_host.run(web(state="absent")).outcomes[0].error["message"]
    assert "state: absent and force: true" in message


# ---- the host's own namespace


def test_host_netns_that_came_since_the_plan_is_refused_before_anything_runs(attach_host):
    path = "/proc/1/ns/net"
    attach_host.own.add(path)
    attach_host.namespaces[path] = attach_host.namespaces["/run/netns/web"]
    with fails_with("host_netns"):
        Verbs([attach_host.bin_dir], attach_host.cache_dir, 5, executor=attach_host).add(
            Attached(
                Key("demo", "web", "eth0"),
                Networks(attach_host.conf_dir, [], HostView()).load("demo"),
                path,
                [],
                {},
                None,
            ),
            True,
        )
    assert attach_host.calls == []


def test_what_was_attached_to_the_host_netns_is_detached_without_it(attach_host):
    attach_host.namespaces["/proc/1/ns/net"] = attach_host.namespaces["/run/netns/web"]
    attach_host.run(web(netns="/proc/1/ns/net"))
    attach_host.own.add("/proc/1/ns/net")
    plan = attach_host.run(web(netns="/proc/1/ns/net", state="absent"))
    assert (actions(plan), codes(plan)) == (["deleted"], ["host_netns"])
    assert {call[3] for call in attach_host.calls} == {""}
    assert attach_host.cached() == attach_host.records() == []
    plan = attach_host.run(web(netns="/proc/1/ns/net", state="absent"))
    assert (actions(plan), codes(plan)) == (["none"], [])


@pytest.mark.parametrize("state", ["present", "absent"])
@pytest.mark.parametrize("place", ["", "results", "podwire"])
def test_a_file_in_the_place_of_the_cache_is_named(attach_host, state, place):
    attach_host.run(web())
    path = os.path.join(attach_host.cache_dir, place).rstrip("/")
    os.rename(path, f"{path}.aside")
    open(path, "w").close()
    for run in (attach_host.check, attach_host.run):
        with pytest.raises(HostError, match=f"{path} is a file, and no directory; .*move it away") as caught:
            run(web(state=state))
        assert (caught.value.code, attach_host.calls) == ("cache_unreadable", [])
    os.replace(path, f"{path}.file")
    os.rename(f"{path}.aside", path)
    assert actions(attach_host.run(web(state=state))) == ["none" if state == "present" else "deleted"]
    assert actions(attach_host.run(web(state=state))) == ["none"]
