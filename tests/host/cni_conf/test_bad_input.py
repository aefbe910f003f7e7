# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Input that the controller refuses, with place, rule and remedy, before the host is touched."""

from __future__ import annotations

import re

import pytest
from ansible.parsing.dataloader import DataLoader

from ansible_collections.podwire.cni.tests.host.networks import network

# A module on the host would fail otherwise, since its interpreter is not there.
NOWHERE = "/nonexistent/python"
CONTENT, CONFLIST, ENTRY = "networks[0].content", "networks[0].conflist", "networks[0]"
TRAILING_COMMA = """\
{
  "cniVersion": "1.0.0",
  "name": "bad",
  "plugins": [
    {"type": "bridge", "mtu": 1500},
  ]
}
"""
# As a play has them; the first line is empty.
ENTRIES = [
    (
        "version_not_string",
        "\n{name: bad, conflist: {cniVersion: 1.0, plugins: [{type: loopback}]}}",
        CONFLIST,
        ["/cniVersion", "the number 1.0", 'in quotes; write "1.0.0"'],
    ),
    (
        "src_unreadable",
        "\n{name: bad, src: no-such-file.conflist}",
        "networks[0].src",
        ["no-such-file.conflist", "on the controller"],
    ),
]


@pytest.fixture
def refuse_here(host, files):
    """Return a function that expects the refusal of one network by the controller."""

    def ask(entry, code, file, line, words):
        before = files()
        refused = host.fail("cni_conf", networks=[entry], python=NOWHERE)
        assert files() == before
        assert refused["code"] == code
        (found,) = refused["problems"]
        assert (found["code"], found["file"], found["line"]) == (code, file, line)
        assert [word for word in words if word not in refused["msg"]] == []

    return ask


def test_bad_text_is_refused_with_its_place_and_a_remedy(refuse_here):
    words = ["line 1", "column 37", "cut off", "is missing"]
    refuse_here({"name": "bad", "content": '{"cniVersion": "1.0.0", "plugins": ['}, "json_truncated", CONTENT, 1, words)


def test_a_bad_file_of_the_controller_is_refused(refuse_here, work, monkeypatch):
    path = work / "files" / "trailing_comma.conflist"
    path.parent.mkdir()
    path.write_text(TRAILING_COMMA)
    monkeypatch.chdir(work)
    words = ["line 5", "column 36", "comma", "remove it"]
    refuse_here({"name": "bad", "src": path.name}, "json_trailing_comma", str(path), 5, words)


@pytest.mark.parametrize(("code", "entry", "file", "words"), ENTRIES)
def test_a_bad_entry_is_refused_with_its_line_in_the_play(refuse_here, code, entry, file, words):
    refuse_here(DataLoader().load(entry, file_name="/play.yml"), code, file, 2, words)


def test_several_bad_networks_are_in_one_message(host):
    networks = [
        {"name": "a", "content": "{"},
        network("b"),
        network("c", {"type": "bridge", "mtu": "big"}, {"type": "x/y"}),
    ]
    refused = host.fail("cni_conf", networks=networks, python=NOWHERE)
    assert [entry["file"] for entry in refused["problems"]] == [CONTENT, "networks[2].conflist"]
    assert re.search(r"networks\[0\]\.content, line 1", refused["msg"])
    assert re.search(r"networks\[2\]\.conflist.*/plugins/1/type", refused["msg"])


@pytest.mark.parametrize(
    ("code", "plugin"),
    [
        # Found by the controller, and by the host.
        ("no_effect", {"type": "bridge", "isGateway": True}),
        ("master_missing", {"type": "macvlan", "master": "nowhere0"}),
    ],
)
def test_a_warning_is_an_error_with_strict(host, refuse, conf_dir, code, plugin):
    networks = [network("warned", plugin, priority=99)]
    planned = host.run("cni_conf", check_mode=True, networks=networks)
    assert [entry["level"] for entry in planned["problems"] if entry["code"] == code] == ["warning"]
    refuse(code, ["'strict'"], networks, strict=True)
