# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.podwire.cni.plugins.action import cni_report
from ansible_collections.podwire.cni.tests.tools import sample
from ansible_collections.podwire.cni.tests.unit.plugins.modules.hostile import files

HOST = {
    "inventory_hostname": "web1",
    "group_names": ["web"],
    "groups": {"all": ["web1"]},
    "ansible_inventory_sources": ["/etc/fleet"],
}


@pytest.fixture
def action(monkeypatch):
    plugin = cni_report.ActionModule.__new__(cni_report.ActionModule)
    plugin._task = SimpleNamespace(args={}, async_val=0)
    monkeypatch.setattr(cni_report.ActionBase, "run", lambda self, tmp, task_vars: {})
    return plugin


def run(action, **arguments):
    action._task.args = arguments
    return action.run(None, HOST)


def test_a_host_is_kept_and_the_report_made(action, tmp_path):
    networks = {"actions": [{"kind": "write", "target": "/x", "class": "safe"}], "changed": True}
    result = run(action, dir=str(tmp_path), results={"networks": networks, "info": {"conf": []}}, render=True)
    assert (result["changed"], result["status"], result["error"]) == (False, "drift", None)
    assert result["path"] == str(tmp_path / "hosts" / "web1.json")
    assert result["report"]["counts"] == {"hosts": 1, "clean": 0, "drift": 1, "error": 0, "attention": 1}
    assert result["summary"] == "drift: write x"
    assert result["report"]["summary"] == "The host needs attention: 1 with drift (web1)"
    assert result["report"]["artifact"]["hosts"]["drift"] == ["web1"]
    assert json.loads((tmp_path / "report.json").read_text())["inventory"] == ["/etc/fleet"]
    record = json.loads((tmp_path / "hosts" / "web1.json").read_text())
    assert (
        record["host"] == "web1"
        and record["groups"] == ["web"]
        and record["time"].endswith("Z")
        and record["info"]["conf"] == []
    )


def test_a_relative_folder_begins_where_ansible_was_called(action, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(action, dir="deep/er", results={"error": "no"})["path"] == str(tmp_path / "deep/er/hosts/web1.json")


def test_an_inventory_without_hosts_is_none(action, tmp_path, monkeypatch):
    monkeypatch.setitem(HOST, "groups", {"all": []})
    run(action, dir=str(tmp_path), results={"error": "no"}, render=True)
    assert json.loads((tmp_path / "report.json").read_text())["inventory"] == []


def test_the_age_of_a_record_counts(action, tmp_path):
    run(action, dir=str(tmp_path), results={"info": {}})
    path = tmp_path / "hosts" / "web1.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "time": "2020-01-01T00:00:00Z"}))
    assert run(action, dir=str(tmp_path), render=True)["report"]["counts"]["attention"] == 1
    assert run(action, dir=str(tmp_path), render=True, max_age=0)["report"]["counts"]["attention"] == 0


def test_an_error_of_the_play_is_the_host_s(action, tmp_path):
    result = run(action, dir=str(tmp_path), results={"error": "undefined"})
    assert (result["status"], result["error"]) == ("error", "undefined")


def test_what_is_nested_too_deeply_is_cut(action, tmp_path):
    deep = {}
    for _level in range(5000):
        deep = {"a": deep}
    # What checks the arguments of the task must not stumble over it first.
    given = {"dir": str(tmp_path), "results": {"info": deep}, "max_age": 7.0, "known": []}
    given.update(dict.fromkeys(("inspect", "render", "compare"), False))
    action.validate_argument_spec = lambda _spec: (None, given)
    assert action.run(None, HOST)["status"] == "clean"
    assert json.loads((tmp_path / "hosts" / "web1.json").read_text())["cut"] == {"info": 1}


def test_nothing_to_do_is_an_error(action, tmp_path):
    with pytest.raises(AnsibleActionFail, match="nothing to do"):
        run(action, dir=str(tmp_path))


def test_a_folder_that_is_none_is_named(action, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AnsibleActionFail, match=r"cannot write to .*file.* on the controller"):
        run(action, dir=str(tmp_path / "file"), results={})


def test_a_result_has_what_was_found(action, tmp_path):
    info = {"problems": [{"code": "known_vulnerability", "level": "warning", "message": "m"}]}
    networks = {"actions": [], "problems": [{"code": "x", "level": "error", "message": "n"}], "confirmed": False}
    result = run(action, dir=str(tmp_path), results={"networks": networks, "info": info})
    assert [problem["message"] for problem in result["problems"]] == ["n", "m"]
    assert result["confirmed"] is False and result["time"].endswith("Z")


def test_a_report_that_goes_with_its_container_says_so(action, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(cni_report, "goes_with_the_container", lambda path: asked.append(path) or True)
    assert run(action, dir=str(tmp_path), results={"error": "no"}, render=True)["report"]["lost_with_container"] is True
    assert asked == [str(tmp_path)]


# ---- what hosts have returned, and what an earlier run left in the folder, may be anything

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


def test_hostile_results_and_files_end_in_a_report(action, tmp_path):
    path = tmp_path / "hosts" / "web1.json"
    statuses = set()
    for seed in range(COUNT):
        damaged = files.Hostile(seed)
        results, _how = damaged.exchanged(RETURNED)
        results = {name: results.get(name) for name in RETURNED if name != "plugins" or seed % 4}
        statuses.add(run(action, dir=str(tmp_path), results=results, render=True, compare=True)["status"])
        kept = json.loads(path.read_text())
        if seed % 2:
            path.write_bytes(damaged.spoilt(path.read_bytes())[1])
        else:
            path.write_text(json.dumps(damaged.exchanged(kept)[0]))
        assert "web1" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert {"drift", "error"} <= statuses <= {"clean", "drift", "error"}
