# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of podwire-multinet that died without a DEL, or whose ADD was killed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import bundle, cache
from ansible_collections.podwire.cni.tests.host.host import COLLECTION, delete_netns, sh, wait_until
from ansible_collections.podwire.cni.tests.host.networks import bridge, conflist

STATE = Path("/var/lib/cni")


@pytest.fixture
def pods(gc, work, request):
    """Return a function that calls the plugin for a container whose namespace has its name. Parameter: its options."""
    plugin = work / "fake" / "podwire-multinet"
    bundle.write(bundle.bundle(str(COLLECTION / "plugins" / "module_utils" / "_plugins" / "multinet.py")), str(plugin))
    folder = Path("/etc/cni/multinet/net.d")
    folder.mkdir(parents=True)
    (folder / "10-pwgnet.conflist").write_text(json.dumps(conflist(bridge("pwgnet", "10.87.0.0/24"), name="pwgnet")))
    stuck = work / "fake" / "stuck"
    stuck.write_text('#!/bin/bash\n[ "$CNI_COMMAND" != ADD ] || { echo $$ >"$0.group"; exec sleep 1000; }\n')
    stuck.chmod(0o755)
    (folder / "20-pwglate.conflist").write_text(json.dumps(conflist({"type": "stuck"}, name="pwglate")))
    pods = conflist(bridge("pwgpods", "10.86.0.0/24"), name="pwgpods")
    conf = {"type": "podwire-multinet", "delegates": [pods], **getattr(request, "param", {})}
    (work / "net.d" / "00-outer.conflist").write_text(json.dumps(conflist(conf, name="pwgouter")))

    def start(name, annotation):
        sh(f"ip netns add {name}")
        annotations = {"io.kubernetes.cri.pod-annotations": {"k8s.v1.cni.cncf.io/networks": annotation}}
        stdin = {**conf, "cniVersion": "1.0.0", "name": "pwgouter", "runtimeConfig": annotations}
        env = {**os.environ, "CNI_COMMAND": "ADD", "CNI_CONTAINERID": name, "CNI_NETNS": f"/run/netns/{name}"}
        env.update(CNI_IFNAME="eth0", CNI_PATH=":".join(gc.defaults["bin_dirs"]), BASH_ENV="")
        process = subprocess.Popen([plugin], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        request.addfinalizer(process.kill)
        process.stdin.write(json.dumps(stdin).encode())
        process.stdin.close()
        return process

    yield start
    sh(f"rm -rf /etc/cni; kill -KILL -- -$(cat {stuck}.group) || true")


def add(pods, name, annotation):
    process = pods(name, annotation)
    assert process.wait() == 0, process.stdout.read()


def left(name):
    """Files that are about a container, without those of others."""
    found = [path for path in STATE.rglob("*") if path.is_file()]
    return sorted(
        str(path.relative_to(STATE))
        for path in found
        if f"-{name}-" in path.name or path.name.startswith(f"{name}:") or name in path.read_text(errors="replace")
    )


def test_pods_that_died(gc, pods, collect):
    for name in ("pwg-live", "pwg-dead"):
        add(pods, name, "pwgnet")
    delete_netns("pwg-dead")
    assert len(left("pwg-dead")) == 5
    for folder in ("pods", "results"):
        # What users can write to tells nothing.
        (STATE / "multinet" / folder).chmod(0o777)
        assert gc.fail("cni_gc", min_age="0")["code"] == "unsafe_permissions"
        (STATE / "multinet" / folder).chmod(0o755)
    collected = collect()["collected"]
    (pod,) = (row for row in collected if row["kind"] == "attachment")
    assert (pod["network"], pod["id"], pod["action"]) == ("pwgouter", "pwg-dead/eth0", "deleted")
    assert any("records its networks: pwgpods (eth0), pwgnet (net1)" in line for line in pod["evidence"])
    # A cache is read once.
    assert str(pod["evidence"]).count("cache /var/lib/cni/multinet (") == 1
    assert left("pwg-dead") == []
    assert len(left("pwg-live")) == 5
    assert len(json.loads(sh("ip -n pwg-live -json link"))) == 3


def test_an_add_that_was_killed(gc, pods, collect, work):
    """The third network had begun; the runtime's DEL never came, and the namespace is gone."""
    add(pods, "pwg-live", "pwgnet")
    process = pods("pwg-dead", "pwgnet,pwglate")
    group = work / "fake" / "stuck.group"
    wait_until(lambda: group.exists() and group.read_text())
    # What runs holds the record.
    assert not [row for row in gc.run("cni_gc", min_age="0")["collected"] if row["container_id"] == "pwg-dead"]
    process.kill()
    process.wait()
    sh(f"kill -KILL -- -$(cat {group}); ip netns delete pwg-dead")
    collect()
    assert left("pwg-dead") == []
    assert len(left("pwg-live")) == 5


@pytest.mark.parametrize("pods", [{"cniDir": str(STATE / "own")}], indirect=True)
def test_what_is_damaged(pods, collect):
    for name in ("pwg-live", "pwg-dead", "pwg-lost"):
        add(pods, name, "")
    for name in ("pwg-dead", "pwg-lost"):
        delete_netns(name)
        (STATE / "own" / "pods" / f"{name}:eth0").write_text("{")
    entry = STATE / "own" / "results" / "pwgpods-pwg-lost-eth0"
    entry.write_text(json.dumps({**json.loads(entry.read_text()), "config": "e30="}))
    rows = [row for row in collect()["collected"] if row["kind"] == "attachment" or row["id"] == str(entry)]
    assert [(row["kind"], row["id"]) for row in rows] == [("attachment", "pwg-dead/eth0"), ("cache", str(entry))]
    assert left("pwg-dead") == left("pwg-lost") == []
    assert len(left("pwg-live")) == 3


def test_files_that_were_being_written(gc, pods, collect):
    """Those of living pods stay, because their DEL takes them; others go once they are old enough."""
    multinet = STATE / "multinet"
    written = {}
    for name in ("pwg-live", "pwg-dead"):
        add(pods, name, "")
        written[name] = [
            cache.unfinished_path(str(multinet / "pods" / f"{name}:eth0")),
            cache.unfinished_path(str(multinet / "results" / f"pwgpods-{name}-eth0")),
        ]
        for path in written[name]:
            Path(path).write_text("")
    delete_netns("pwg-dead")
    rows = gc.run("cni_gc", min_age="3600", scope=["cache"])["collected"]
    assert not [row for row in rows if row["action"] != "left"]
    rows = {row["id"]: row for row in collect()["collected"] if row["kind"] == "cache"}
    assert {path for path, row in rows.items() if row["action"] == "deleted"} >= set(written["pwg-dead"])
    assert [rows[path]["reason"] for path in written["pwg-dead"]] == ["leftover"] * 2
    assert not [path for path in written["pwg-dead"] if os.path.exists(path)]
    assert [path for path in written["pwg-live"] if os.path.exists(path)] == written["pwg-live"]
