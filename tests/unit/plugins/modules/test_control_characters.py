# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a plugin, a file or its name holds, nothing that a module returns is obeyed by a terminal."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.secrets import one_line, published, visible
from ansible_collections.podwire.cni.plugins.plugin_utils._report import bounds, folder
from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build
from ansible_collections.podwire.cni.tests.unit.plugins.modules.test_secrets import CALLS, NETWORK

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
