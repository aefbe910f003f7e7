# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import ConfFile
from ansible_collections.podwire.cni.plugins.module_utils._host.confrules import directory_problems


def make(name, network="x", error=""):
    file = ConfFile(name, "/net.d/" + name)
    file.network = network
    file.error = error
    return file


def check(files, after, ours=()):
    found = directory_problems("/net.d", sorted(files, key=lambda file: file.name), after, set(ours))
    return [(entry["level"], entry["code"], entry["file"]) for entry in found]


def test_a_clean_directory_has_no_problems():
    assert check([make("10-a.conflist", "a")], {"10-a.conflist": "a", "20-b.conflist": "b"}, ["10-a.conflist"]) == []


def test_another_network_in_front_is_a_flip():
    files = [make("87-podman.conflist", "podman")]
    after = {"87-podman.conflist": "podman", "10-a.conflist": "a"}
    assert check(files, after) == [("warning", "order_flip", "/net.d/10-a.conflist")]


def test_a_flip_is_seen_as_text_and_by_network():
    files = [make("20-a.conflist", "a")]
    assert check(files, {"20-a.conflist": "a", "100-b.conflist": "b"}) == [
        ("warning", "order_flip", "/net.d/100-b.conflist")
    ]
    assert check(files, {"10-a.conflist": "a"}) == []
    assert check([], {"10-a.conflist": "a"}) == []
    assert check(files, {}) == []


def test_one_name_in_two_files_is_reported_at_the_second():
    files = [make("10-a.conflist", "a"), make("20-a.conflist", "a")]
    assert check(files, {"10-a.conflist": "a", "20-a.conflist": "a"}) == [
        ("warning", "duplicate_name", "/net.d/20-a.conflist")
    ]


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (make(".ansible_tmpabc10-a.conflist", None, "is empty"), [("warning", "temp_file")]),
        (make(".10-a.conflist"), [("warning", "hidden_file")]),
        (make("05-broken.conflist", None, "is empty"), [("warning", "broken_file")]),
        (make(".05-broken.conflist", None, "is empty"), [("warning", "broken_file"), ("warning", "hidden_file")]),
        (make("50-x-backup.conflist"), [("warning", "backup_file")]),
        (make("50-x.old.conflist"), [("warning", "backup_file")]),
        (make("50-x_bak2.conf"), [("warning", "backup_file")]),
        (make("50-goldfish.conflist"), []),
        (make("50-x.conf"), [("info", "single_plugin")]),
        (make("50-x.json"), [("info", "single_plugin")]),
        (make("50-x.json", None, "missing 'type'"), [("warning", "broken_file")]),
    ],
)
def test_files_of_others_that_a_runtime_reads_by_mistake(file, expected):
    after = {file.name: file.network, "10-a.conflist": "a"}
    found = check([file, make("10-a.conflist", "a")], after, ["10-a.conflist"])
    assert [entry[:2] for entry in found] == expected


def test_our_own_files_and_removed_ones_are_not_complained_about():
    files = [make("10-old.conflist", "a"), make("50-x.bak.conflist", "b")]
    assert check(files, {"10-old.conflist": "a"}, ["10-old.conflist"]) == []


def test_what_a_broken_file_does_depends_on_where_it_sorts():
    def message(name):
        files = [make(name, None, "is empty")]
        return directory_problems("/net.d", files, {name: None, "10-a.conflist": "a"}, set())[0]["message"]

    assert "no network at all" in message("05-x.conflist")
    assert "no network at all" not in message("20-x.conflist")
