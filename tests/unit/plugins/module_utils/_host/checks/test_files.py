# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.checks.directory import file_problems

LIST = b'{"cniVersion": "1.0.0", "name": "x", "plugins": [{"type": "loopback"}]}'
SINGLE = b'{"cniVersion": "1.0.0", "name": "x", "type": "loopback"}'


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (".ansible_tmpabc10-a.conflist", b"", [("warning", "temp_file")]),
        (".10-a.conflist", LIST, [("warning", "hidden_file")]),
        ("05-broken.conflist", b"", [("warning", "broken_file")]),
        (".05-broken.conflist", b"", [("warning", "broken_file"), ("warning", "hidden_file")]),
        ("50-x-backup.conflist", LIST, [("warning", "backup_file")]),
        ("50-x.old.conflist", LIST, [("warning", "backup_file")]),
        ("50-x_bak2.conf", SINGLE, [("warning", "backup_file")]),
        ("50-goldfish.conflist", LIST, []),
        ("50-x.conf", SINGLE, [("info", "single_plugin")]),
        ("50-x.json", SINGLE, [("info", "single_plugin")]),
        ("50-x.json", b'{"hello": "world"}', [("warning", "stray_json")]),
        ("50-x.json", b"[1]", [("warning", "stray_json")]),
        ("50-x.json", b"{", [("warning", "broken_file")]),
        ("50-x.conf", b'{"hello": "world"}', [("warning", "broken_file")]),
        ("50-x.conf", LIST, [("warning", "list_in_conf")]),
        ("50-x.json", LIST, [("warning", "list_in_conf")]),
    ],
)
def test_files_of_others_that_a_runtime_reads_by_mistake(directory, name, text, expected):
    directory.put(name, text)
    directory.add("a", {"type": "loopback"})
    found = list(file_problems(directory.view(managed=["10-a.conflist"], wanted=[])))
    assert [(entry.level, entry.code) for entry in found] == expected
    assert {entry.file for entry in found} <= {"/net.d/" + name}


def test_a_list_in_a_conf_is_to_be_renamed(directory):
    directory.put("50-x.conf", LIST)
    (problem,) = file_problems(directory.view(wanted=[]))
    assert "rename it to 50-x.conflist" in problem.message


def test_our_own_files_are_not_complained_about(directory):
    directory.put("50-x.bak.conflist", LIST)
    assert list(file_problems(directory.view(wanted=[], managed=["50-x.bak.conflist"]))) == []
    assert list(file_problems(directory.view())) == []


@pytest.mark.parametrize(("name", "fatal"), [("05-x.conflist", True), ("20-x.conflist", False)])
def test_what_a_broken_file_does_depends_on_where_it_sorts(directory, name, fatal):
    directory.put(name, b"")
    directory.add("a", {"type": "loopback"})
    (problem,) = file_problems(directory.view(wanted=["10-a.conflist"]))
    assert ("no network at all" in problem.message) == fatal
