# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""cni_report runs on the controller, with what hosts have returned and with what an earlier run left in its folder."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.action import cni_report
from ansible_collections.podwire.cni.tests.tools import sample
from ansible_collections.podwire.cni.tests.unit.plugins.modules.hostile import files

STEP = {"kind": "write", "target": "/etc/cni/net.d/10-apps.conflist", "class": "safe"}
RETURNED = {
    "networks": {
        "changed": True,
        "actions": [STEP],
        "left": [STEP],
        "diff": [{"step": 0, "before": {"a": 1}, "after": "x\n"}],
        "findings": [{"level": "warning", "code": "code", "message": "text", "target": ""}],
    },
    "plugins": {
        "failed": True,
        "msg": "it is not there",
        "code": "bad_source",
        "actions": [{**STEP, "state": "failed"}],
    },
    "info": {
        "conf": [{"path": STEP["target"], "network": "apps", "config": files.CONFLIST, "managed": True, "error": ""}],
        "plugins": [{"name": "bridge", "path": "/opt/cni/bin/bridge", "cni_versions": ["1.0.0"], "sha256": "0"}],
        "attachments": [{"network": "apps", "container_id": "c", "ifname": "eth0", "ips": ["10.9.0.5/24"]}],
        "leases": [{"network": "apps", "ip": "10.9.0.5", "container_id": "c", "ifname": "eth0", "data_dir": "/d"}],
        "pools": [
            {"network": "apps", "data_dir": "/d", "ranges": ["a-b"], "size": 4, "used": 1, "free": 3, "owners": []}
        ],
        "runtime": [{"runtime": "containerd", "network": "apps", "file": "f", "notes": ["n"]}],
        "problems": [{"level": "error", "code": "c", "file": "f", "pointer": "", "line": 1, "message": "m"}],
    },
}
COUNT = 40 * sample.number("HOSTILE", 4, 2)


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setattr(cni_report.ActionBase, "run", lambda self, tmp, task_vars: {})
    action = cni_report.ActionModule.__new__(cni_report.ActionModule)

    def start(results):
        arguments = {"dir": str(tmp_path), "results": results, "render": True, "compare": True}
        action._task = SimpleNamespace(args=arguments, async_val=0)
        return action.run(None, {"inventory_hostname": "web1"})

    return start


def test_hostile_results_and_files_end_in_a_report(run, tmp_path):
    path = tmp_path / "hosts" / "web1.json"
    statuses = set()
    for seed in range(COUNT):
        damaged = files.Hostile(seed)
        results, _how = damaged.exchanged(RETURNED)
        results = {name: results.get(name) for name in RETURNED if name != "plugins" or seed % 4}
        statuses.add(run(results)["status"])
        kept = json.loads(path.read_text())
        if seed % 2:
            path.write_bytes(damaged.spoilt(path.read_bytes())[1])
        else:
            path.write_text(json.dumps(damaged.exchanged(kept)[0]))
        assert "web1" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert {"drift", "error"} <= statuses <= {"clean", "drift", "error"}
