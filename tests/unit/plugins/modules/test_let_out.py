# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What modules let out: no secret, planted wherever they take one, and nothing that a terminal would obey."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.secrets import one_line, published, visible
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


# ---- control characters

# Colour, 8-bit CSI, a cursor at the line's begin, right-to-left, zero width, a line of another's, half a character.
EVIL = "\x1b[31m\x9b2J\r\b\x7f\u202e\u200b\u2028\nok: [other]\ud800"
EVIL_NAME = EVIL.replace("\ud800", "")


def texts(value):
    """Yield (key, text) for each text of a result; "" where it has no key of its own."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield "key", key
            yield from ((key, entry),) if isinstance(entry, str) else texts(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from (("", entry),) if isinstance(entry, str) else texts(entry)


@pytest.mark.parametrize("check_mode", [True, False])
@pytest.mark.parametrize("call", CALLS)
def test_no_module_returns_a_control_character(run, monkeypatch, call, check_mode):
    monkeypatch.setattr(run.plugins, "saying", EVIL)
    evil_network = dict(NETWORK, plugins=[dict(NETWORK["plugins"][0], **{EVIL: EVIL})])
    (run.conf_dir / "10-demo.conflist").write_text(json.dumps(evil_network))
    (run.conf_dir / ("20-%s.conflist" % EVIL_NAME.replace("/", ""))).write_text('{"cniVersion": "%s' % EVIL_NAME)
    result = run(call.split()[0], check_mode, **CALLS[call]).result
    found = list(texts(result))
    assert len(found) > 10
    assert [pair for pair in found if visible(pair[1]) != pair[1]] == []
    one_liners = [text for key, text in found if key in ("message", "reason", "target")] + result.get("warnings", [])
    one_liners += [result["msg"]] if "msg" in result and not result.get("problems") else []
    assert [text for text in one_liners if "\n" in text] == []


def test_a_plugin_is_quoted_with_its_escapes_spelled_out(run, monkeypatch):
    monkeypatch.setattr(run.plugins, "saying", EVIL)
    (run.conf_dir / "10-demo.conflist").write_text(json.dumps(NETWORK))
    assert r"\u001b[31m\u009b2J\r\b" in run("cni_attach", **CALLS["cni_attach"]).result["msg"]


def test_a_report_of_a_host_that_was_taken_over_prints_no_control_character(tmp_path):
    result = {"failed": True, "msg": EVIL, "warnings": [EVIL], "actions": [{"target": EVIL}]}
    record = build("web", bounds.plain({"networks": result}), None)
    assert all(visible(text) == text for _key, text in texts(record))
    folder.write_record(str(tmp_path), record)
    folder.write_report(str(tmp_path))
    for path in tmp_path.rglob("*.*"):
        text = path.read_text(encoding="utf-8")
        assert [char for char in text if not char.isprintable() and char != "\n"] == []


def test_what_can_be_read_is_left_as_it_is():
    for text in ("", "plain", "b\u00fcro \u65e5\u672c\u8a9e \U0001f600", "two\nlines\tand a tab"):
        assert visible(text) == text
        assert published({"stderr": text}) == {"stderr": text}
    assert one_line("two\nlines") == "two\\nlines"
    assert visible(visible(EVIL)) == visible(EVIL)
