# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import ConfFile
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import ConfigError
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with


@pytest.fixture
def view(tmp_path):
    return HostView(Manifest(str(tmp_path / "state")))


def test_a_damaged_manifest_is_an_error_for_whoever_needs_it(tmp_path):
    (tmp_path / "manifest.json").write_text("{")
    view = HostView(Manifest(str(tmp_path)))
    assert view.manifest.networks == {}
    with fails_with("manifest_damaged"):
        view.sound_manifest()


# ---- plugins


def test_where_a_plugin_will_be_found(view, tmp_path):
    dirs = [str(tmp_path / name) for name in "ab"]
    first, second = (f"{path}/bridge" for path in dirs)
    for path in dirs:
        (tmp_path / path).mkdir()
    assert view.plugin_path("bridge", dirs) == ""
    (tmp_path / "b" / "bridge").write_text("")
    assert view.plugin_path("bridge", dirs) == second
    view.expect_binaries({first: [], f"{dirs[0]}/ptp": ["1.0.0"]})
    assert (view.plugin_path("bridge", dirs), view.plugin_path("ptp", dirs)) == (first, f"{dirs[0]}/ptp")
    assert view.changing_binaries(["tuning", "ptp", "bridge"], dirs) == ["bridge", "ptp"]
    assert view.changing_binaries(["ptp"], dirs[1:]) == []
    view.expect_binaries({first: None, second: None})
    assert view.plugin_path("bridge", dirs) == ""
    for name in ("", "..", "a/b", "a\0b"):
        assert view.plugin_path(name, dirs) == ""


def test_a_link_to_a_directory_of_plugins_is_the_directory(view, tmp_path):
    (tmp_path / "usr").mkdir()
    (tmp_path / "opt").symlink_to("usr")
    real, link = f"{tmp_path}/usr/bridge", f"{tmp_path}/opt/bridge"
    view.expect_binaries({link: ["1.0.0"]})
    for path in (real, link):
        assert view.changes_binary(path) and view.versions_after(path) == ["1.0.0"]
    assert view.plugin_path("bridge", [f"{tmp_path}/usr"]) == real
    assert view.changing_binaries(["bridge"], [f"{tmp_path}/usr"]) == ["bridge"]
    # A plugin may be a link, which the new file replaces.
    (tmp_path / "usr" / "ptp").symlink_to("bridge")
    assert not view.changes_binary(f"{tmp_path}/usr/ptp")


def test_a_directory_that_the_first_file_makes(view, tmp_path):
    new = str(tmp_path / "bin")
    assert view.has_directory(str(tmp_path)) and not view.has_directory(new)
    view.expect_binaries({f"{new}/bridge": None})
    assert not view.has_directory(new)
    view.expect_binaries({f"{new}/ptp": []})
    assert view.has_directory(new)


# ---- networks


def conflist(name):
    return json.dumps({"cniVersion": "1.0.0", "name": name, "plugins": [{"type": "bridge"}]})


def planned(conf_dir, name, network):
    return ConfFile(name, f"{conf_dir}/{name}", conflist(network).encode())


def test_files_of_the_directory_are_read_once(view, tmp_path):
    (tmp_path / "10-a.conflist").write_text(conflist("a"))
    assert [file.network for file in view.conf_files(str(tmp_path))] == ["a"]
    (tmp_path / "20-b.conflist").write_text(conflist("b"))
    assert [file.network for file in view.conf_files(str(tmp_path))] == ["a"]
    assert [file.network for file in HostView(view.manifest).conf_files(str(tmp_path))] == ["a", "b"]


def test_files_that_a_plan_will_leave_take_the_place_of_those_on_the_disk(view, tmp_path):
    here, other = str(tmp_path / "net.d"), str(tmp_path / "other")
    for folder in (here, other):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "10-old.conflist").write_text(conflist("old"))
    new, kept = planned(here, "20-new.conflist", "new"), planned(here, "30-kept.conflist", "kept")
    view.expect_files(here, [new, kept], {"20-new.conflist"})
    assert [file.network for file in view.conf_files(here)] == ["new", "kept"]
    assert view.conf_paths(here, (".conflist",)) == [f"{here}/20-new.conflist", f"{here}/30-kept.conflist"]
    assert view.conf_paths(here, (".conf", ".json")) == []
    assert view.written == {f"{here}/20-new.conflist": conflist("new").encode()}
    assert view.conf_paths(other, (".conflist",)) == [f"{other}/10-old.conflist"]


def test_what_a_later_plan_writes_is_added(view, tmp_path):
    one, two = planned(str(tmp_path), "10-a.conflist", "a"), planned(str(tmp_path), "20-b.conflist", "b")
    view.expect_files(str(tmp_path), [one], {"10-a.conflist"})
    view.expect_files(str(tmp_path), [one, two], {"20-b.conflist"})
    assert sorted(view.written) == [one.path, two.path]


def test_a_directory_that_cannot_be_read_is_told(view, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises((ConfigError, HostError)):
        view.conf_paths(str(tmp_path / "file"), (".conflist",))


# ---- attachments


@pytest.mark.parametrize(
    ("wanted", "released", "renewed"), [(None, False, False), (True, False, True), (False, True, True)]
)
def test_which_attachments_keep_nothing_in_use(view, wanted, released, renewed):
    key = ("a", "web", "eth0")
    if wanted is not None:
        view.requested[key] = wanted
    assert view.releases(key) is released
    assert view.releases(key, renewed=True) is renewed
    assert not view.releases(("a", "web", "eth1"), renewed=True)
