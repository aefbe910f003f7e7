# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

MANAGED = ["bridge", "host-local", "loopback", "portmap", "tuning"]
UNMANAGED = ["README.md", "cut", "fine", "link", "open", "ptp", "script", "silent", "theirs"]


pytestmark = pytest.mark.parametrize("generation", ["old", "new"], scope="module")


@pytest.fixture(scope="module")
def info(foreign_plugins, gather):
    return gather()


@pytest.fixture(scope="module")
def plugins(info):
    """The rows by the names of the plugins."""
    return {row["name"]: row for row in info["plugins"]}


def test_every_file_has_a_row(info, site):
    assert [row["path"] for row in info["plugins"]] == [
        *(f"{site.bin_dir}/{name}" for name in MANAGED),
        *(f"{site.other_dir}/{name}" for name in UNMANAGED),
    ]
    assert [row["name"] for row in info["plugins"] if row["managed"]] == MANAGED
    assert [row["name"] for row in info["plugins"] if row["edited"]] == ["loopback"]
    assert [row["name"] for row in info["plugins"] if row["original"]] == ["tuning"]


def test_a_plugin_is_described(plugins, site, generation):
    bridge = plugins["bridge"]
    assert bridge["sha256"] == hashlib.sha256((site.plugins / "bridge").read_bytes()).hexdigest()
    assert bridge["machine"] == os.uname().machine
    assert bridge["mode"] == "0755"
    assert bridge["uid"] == 0
    assert bridge["link"] == ""
    assert bridge["cni_versions"][-1] == ("1.0.0" if generation == "old" else "1.1.0")


def test_unmanaged_files_are_described(plugins, site):
    assert plugins["link"]["link"] == f"{site.bin_dir}/bridge"
    assert plugins["link"]["sha256"] == plugins["bridge"]["sha256"]
    assert plugins["fine"]["cni_versions"] == ["0.4.0", "1.0.0"]
    assert plugins["cut"]["machine"] == "aarch64"
    assert plugins["theirs"]["uid"] == 1
    assert plugins["script"]["machine"] == ""


def test_what_root_may_not_execute_is_not_executed(info, site):
    # `gather` has executed it once in a run and once in check mode.
    assert site.executed.read_text() == "fine VERSION\n" * 2
    unknown = [row["name"] for row in info["plugins"] if not row["cni_versions"]]
    assert unknown == ["README.md", "cut", "open", "script", "silent", "theirs"]


def test_files_that_are_no_usable_plugins_are_reported(info, site):
    reported = [problem for problem in info["problems"] if problem["file"].startswith(str(site.other_dir))]
    reported.sort(key=lambda problem: problem["file"])
    assert [(Path(problem["file"]).name, problem["level"], problem["code"]) for problem in reported] == [
        ("broken", "warning", "unreadable"),
        ("cut", "warning", "plugin_failed"),
        ("open", "warning", "unsafe_permissions"),
        ("script", "info", "not_elf"),
        ("silent", "warning", "plugin_failed"),
        ("theirs", "warning", "unsafe_permissions"),
    ]
