# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import time

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries import usable
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.usable import Binaries, check_chain
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils.libcni import invoke
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import raising


@pytest.fixture
def plugins(monkeypatch, tmp_path):
    """Binaries of tmp_path/bin that answer with what is in them; `asked` lists who was executed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "old").write_text("0.4.0 1.0.0")
    (folder / "new").write_text("0.4.0 1.0.0 1.1.0")
    (folder / "odd").write_text("0.1.0")
    (folder / "hangs").write_text("")
    asked = []

    def answer(path, executor, timeout):
        asked.append(path.rsplit("/", 1)[1])
        with open(path) as stream:
            versions = stream.read().split()
        if not versions:
            raise PluginError(0, "signal: killed")
        return versions

    monkeypatch.setattr(usable, "check_plugin", lambda path: path)
    monkeypatch.setattr(invoke, "get_version_info", answer)
    manifest = Manifest(str(tmp_path / "state"))
    return folder, asked, lambda: Binaries([str(folder)], HostView(manifest))


def check(binaries, version, *types, tolerate=False):
    chain = [("f", "/plugins/%d" % index, {"type": name}) for index, name in enumerate(types)]
    return check_chain(binaries, "net", version, chain, tolerate)


def settle(monkeypatch):
    """Let an hour pass."""
    now = time.time_ns() + 3600 * 10**9
    monkeypatch.setattr(usable.time, "time_ns", lambda: now)


def test_a_plugin_is_asked_once_and_not_again_while_its_file_stays(plugins, monkeypatch):
    folder, asked, binaries = plugins
    settle(monkeypatch)
    assert check(binaries(), "1.0.0", "old", "old", "new") == []
    assert check(binaries(), "1.0.0", "old", "new") == []
    assert asked == ["old", "new"]
    (folder / "old").write_text("1.0.0 ")
    check(binaries(), "1.0.0", "old", "new")
    assert asked == ["old", "new", "old"]


def test_the_answer_of_a_plugin_that_has_just_changed_is_not_remembered(plugins, monkeypatch):
    folder, asked, binaries = plugins
    monkeypatch.setattr(usable.time, "time_ns", lambda: (folder / "new").stat().st_mtime_ns)
    again = binaries()
    assert check(again, "1.0.0", "new", "new") == []
    again.memory("new")["release"] = "1.9.1"
    assert again.memory("new")["release"] == "1.9.1"
    # It was replaced within one step of the file system's clock, by a file of the same size.
    check(binaries(), "1.0.0", "new")
    assert asked == ["new", "new"]
    settle(monkeypatch)
    check(binaries(), "1.0.0", "new")
    check(binaries(), "1.0.0", "new")
    assert asked == ["new"] * 3


def test_what_is_remembered_of_a_removed_plugin_is_dropped(plugins, monkeypatch):
    folder, _asked, binaries = plugins
    settle(monkeypatch)
    known = binaries()
    check(known, "1.0.0", "old", "new")
    (folder / "old").unlink()
    known.forget_missing()
    assert [path.rsplit("/", 1)[1] for path in known._remembered] == ["new"]


def test_a_version_that_a_plugin_does_not_support_names_the_highest_common_one(plugins):
    (entry,) = check(plugins[2](), "1.1.0", "old", "new")
    assert (entry.level, entry.code, entry.pointer) == ("error", "unsupported_by_plugin", "/plugins/0/type")
    assert '"cniVersion": "1.0.0"' in entry.message


def test_plugins_without_a_common_version(plugins):
    entries = check(plugins[2](), "1.0.0", "old", "odd")
    assert [entry.pointer for entry in entries] == ["/plugins/1/type"]
    assert "no version in common" in entries[0].message


def test_no_version_counts_as_the_first(plugins):
    assert [entry.code for entry in check(plugins[2](), "", "old", "odd")] == ["unsupported_by_plugin"]


def test_a_missing_plugin_is_an_error_in_a_run_and_a_warning_in_check_mode(plugins):
    (entry,) = check(plugins[2](), "1.0.0", "nowhere")
    assert (entry.level, entry.code) == ("error", "missing_plugin")
    assert str(plugins[0]) in entry.message
    (entry,) = check(plugins[2](), "1.0.0", "nowhere", tolerate=True)
    assert (entry.level, entry.code) == ("warning", "missing_plugin")


@pytest.mark.parametrize("name", ["../old", "/opt/cni/bin/old", "bin/old"])
def test_a_type_is_no_path(plugins, name):
    (entry,) = check(plugins[2](), "1.0.0", name, tolerate=True)
    assert (entry.level, entry.code) == ("error", "bad_type")
    assert 'write "old"' in entry.message


def test_a_plugin_that_does_not_answer_is_an_error_in_both_modes(plugins):
    for tolerate in (False, True):
        (entry,) = check(plugins[2](), "1.0.0", "hangs", tolerate=tolerate)
        assert (entry.level, entry.code) == ("error", "plugin_failed")


def test_what_root_may_not_execute_is_an_error(plugins, monkeypatch):
    monkeypatch.setattr(
        usable, "check_plugin", raising(HostError("can be written by others", code="unsafe_permissions"))
    )
    (entry,) = check(plugins[2](), "1.0.0", "old", tolerate=True)
    assert (entry.level, entry.code) == ("error", "unsafe_permissions")
    assert plugins[1] == []


@pytest.mark.parametrize(("mistyped", "meant"), [("odld", "'old'"), ("oddd", "'odd'"), ("brigde", None)])
def test_a_mistyped_plugin_type_is_told_with_the_one_that_is_there(plugins, mistyped, meant):
    _folder, _asked, binaries = plugins
    (entry,) = check(binaries(), "1.0.0", mistyped)
    assert entry.code == "missing_plugin"
    assert ("did you mean " in entry.message) is (meant is not None)
    assert meant is None or f"did you mean {meant}? Otherwise install it" in entry.message
