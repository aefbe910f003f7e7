# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A secret is planted wherever a module takes one, and looked for in everything that the module lets out."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._report import bounds, folder
from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build

SECRET = "hush-4711-hush"
# Every form that a secret has, under keys that nobody has to know.
PLANTED = {
    "api_key": SECRET,
    "nested": {"Authorization": "Bearer " + SECRET},
    "env": [{"name": "DB_PASSWORD", "value": SECRET}, {"name": "MODE", "value": "fast"}],
    "command": ["serve", "--token", SECRET, "--password=" + SECRET],
    "url": "https://user:%s@etcd.example:2379/v2" % SECRET,
}
NETWORK = {
    "cniVersion": "1.1.0",
    "name": "demo",
    "plugins": [dict(PLANTED, type="bridge", ipam={"type": "host-local", "subnet": "10.1.0.0/24"})],
}
CONTENT = json.dumps(NETWORK)
ATTACHMENT = {
    "network": "demo",
    "container_id": "web",
    "netns": "secrets",
    "args": {"K8S_POD_TOKEN": SECRET, "NEUTRAL": SECRET},
    "capability_args": {"vault": PLANTED, "neutral": SECRET},
}
CALLS = {
    "cni_attach": {"attachments": [ATTACHMENT]},
    "cni_attach detached": {"attachments": [dict(ATTACHMENT, state="absent")], "force": True},
    "cni_conf": {"networks": [{"name": "new", "content": CONTENT.replace('"demo"', '"new"')}], "validate": []},
    "cni_gc": {"allow_empty": True, "keep": [{"container_id": "web"}]},
    "cni_info": {"gather": ["conf", "plugins", "attachments", "leases", "garbage"]},
    "cni_netns": {"shared": False, "names": ["--token=" + SECRET]},
    "cni_plugins": {"state": "absent", "plugins": ["bridge"], "src": "https://user:%s@mirror.example/cni.tgz" % SECRET},
    "cni_smoke": {"networks": ["demo"], "ping": False},
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("check_mode", [True, False])
def test_no_module_lets_a_planted_secret_out(run, tmp_path, call, check_mode):
    (run.conf_dir / "10-demo.conflist").write_text(CONTENT)
    (run.conf_dir / "20-broken.conflist").write_text(CONTENT[:-3])
    name = call.split()[0]
    done = run(name, check_mode, **CALLS[call])
    assert done.logged and done.logged[0].startswith("Invoked with ")
    assert done.result["invocation"]["module_args"]
    results = bounds.plain({"networks": done.result, "attachments": done.result})
    record = build("web", results, done.result, [done.result.get("msg")])
    folder.write_record(str(tmp_path / "report"), record)
    folder.write_report(str(tmp_path / "report"))
    everything = {"printed": done.printed, "log": "\n".join(done.logged)}
    for path in sorted((tmp_path / "report").rglob("*.*")):
        everything[path.name] = path.read_text()
    assert {"report.json", "report.html", "web.json"} <= set(everything)
    assert [where for where, text in everything.items() if SECRET in text] == []


def test_what_a_failing_plugin_says_is_still_told(run):
    (run.conf_dir / "10-demo.conflist").write_text(CONTENT)
    error = run("cni_attach", **CALLS["cni_attach"]).result["attachments"][0]["error"]
    assert "K8S_POD_TOKEN=********" in error["stderr"]
    assert '"MODE"' in error["message"] and '"fast"' in error["message"]


def test_short_secrets_do_not_garble_results(run):
    ports = [{"hostPort": 1, "containerPort": 1, "protocol": "tcp"}]
    entry = dict(ATTACHMENT, args={"PIN": "1", "PASSWORD": "eth"}, capability_args={"portMappings": ports})
    (run.conf_dir / "10-demo.conflist").write_text(CONTENT)
    result = run("cni_attach", check_mode=True, attachments=[entry]).result
    assert result["actions"] == [{"kind": "add", "target": "demo/web/eth0", "class": "safe", "reason": "not attached"}]
    shown = result["invocation"]["module_args"]["attachments"][0]
    assert shown["args"] == {"PIN": "********", "PASSWORD": "********"}
    assert (shown["network"], shown["ifname"]) == ("demo", "eth0")
