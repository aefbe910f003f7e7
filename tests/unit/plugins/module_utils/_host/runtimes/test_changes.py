# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import podman, reading, settings, toml
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.discover import class_of
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.settings import RuntimeSettings
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

WANTED = RuntimeSettings("/n", ["/b"])
CRI = "io.containerd.grpc.v1.cri"
SECTION = '[plugins."io.containerd.cri.v1.runtime".cni]\n'


@pytest.fixture
def configured(tmp_path):
    """Return a runtime by its name, with its configuration below the test's own directory."""

    def make(name, text=None, conf_dir="/etc/cni/net.d"):
        runtime = class_of(name)(name, evidence="a test", conf_dir=conf_dir, bin_dirs=["/b"])
        runtime.config = str(tmp_path / "config.toml") if name.startswith("containerd") else str(tmp_path)
        if text is not None:
            with open(runtime.config, "w", encoding="utf-8", errors="surrogateescape") as stream:
                stream.write(text)
        return runtime

    return make


def planned(changes):
    return {os.path.basename(change.path): change.after for change in changes}


def apply_and_take_back(runtime, wanted):
    """Return what changes, after a test that a second time nothing does, and that it can be undone."""
    changes = runtime.changes(wanted)
    for change in changes:
        change.make()
    assert runtime.changes(wanted) == []
    for change in runtime.changes(wanted._replace(present=False)):
        change.make()
    for change in changes:
        assert reading.read_text(change.path) == change.before
    return planned(changes)


@pytest.mark.parametrize("name", ["containerd-1.6", "containerd-1.7"])
def test_the_first_generation_is_changed_in_place(configured, name):
    text = f'version = 2\n[plugins."{CRI}"]\nsandbox_image = "x"\n[plugins."{CRI}".cni]\nbin_dir = "/usr/lib/cni"\n'
    found = apply_and_take_back(configured(name, text), WANTED)
    assert list(found) == ["config.toml"]
    cri = toml.load_toml(found["config.toml"])["plugins"][CRI]
    assert cri == {"sandbox_image": "x", "cni": {"conf_dir": "/n", "bin_dir": "/b"}}


def test_the_file_whose_settings_count_is_changed(configured, tmp_path):
    settings = f'version = 2\nimports = ["*.imp"]\n[plugins."{CRI}".cni]\nconf_dir = "/x"\n'
    runtime = configured("containerd-1.7", settings)
    (tmp_path / "a.imp").write_text(f'imports = ["c"]\n[plugins."{CRI}"]\nsandbox_image = "x"\n')
    (tmp_path / "b.imp").write_text("[plugins.other]\nx = 1\n")
    assert list(apply_and_take_back(runtime, WANTED)) == ["a.imp"]
    (tmp_path / "c").write_text(f'imports = ["config.toml"]\n[plugins."{CRI}"]\n')
    assert list(apply_and_take_back(runtime, WANTED)) == ["c"]


def test_an_old_configuration_has_the_old_name(configured):
    found = apply_and_take_back(configured("containerd-1.6", "oom_score = 1\n"), WANTED)
    assert toml.load_toml(found["config.toml"])["plugins"] == {"cri": {"cni": {"conf_dir": "/n", "bin_dir": "/b"}}}


@pytest.mark.parametrize(("name", "version"), [("containerd-1.6", 2), ("containerd-2.1", 3)])
def test_a_configuration_is_made_where_there_is_none(configured, name, version):
    found = apply_and_take_back(configured(name), WANTED)
    assert toml.load_toml(found["config.toml"])["version"] == version


def test_a_file_that_we_made_stays_with_what_others_have_put_in(configured):
    runtime = configured("containerd-1.7")
    for change in runtime.changes(WANTED):
        change.make()
    with open(runtime.config, "a", encoding="utf-8") as stream:
        stream.write("[grpc]\nuid = 1\n")
    [change] = runtime.changes(WANTED._replace(present=False))
    assert toml.load_toml(change.after) == {"version": 2, "grpc": {"uid": 1}}


@pytest.mark.parametrize(
    ("name", "main", "section", "setting"),
    [
        # A drop-in of another version would make it forget the main file's plugins.
        ("containerd-2.1", "version = 2\n", CRI, {"bin_dir": "/b"}),
        ("containerd-2.1", "version = 3\n", "io.containerd.cri.v1.runtime", {"bin_dirs": ["/b"]}),
        ("containerd-2.1", "version = 4\n", "io.containerd.cri.v1.runtime", {"bin_dirs": ["/b"]}),
        ("containerd-2.1", "oom_score = 1\n", "io.containerd.cri.v1.runtime", {"bin_dirs": ["/b"]}),
        ("containerd-2.0", "version = 3\n", "io.containerd.cri.v1.runtime", {"bin_dir": "/b"}),
        # Both together are an error.
        (
            "containerd-2.1",
            'version = 3\n[plugins."io.containerd.cri.v1.runtime".cni]\nbin_dir = "/x"\n',
            "io.containerd.cri.v1.runtime",
            {"bin_dirs": ["/b"], "bin_dir": ""},
        ),
    ],
)
def test_a_drop_in_has_the_version_of_the_main_file(configured, name, main, section, setting):
    runtime = configured(name, main)
    found = apply_and_take_back(runtime, WANTED._replace(max_conf_num=0, setup_serially=False))
    settings = dict(setting, conf_dir="/n", max_conf_num=0, setup_serially=False)
    drop_in = toml.load_toml(found["99-podwire-cni.toml"])
    assert drop_in["plugins"] == {section: {"cni": settings}}
    path = os.path.join(os.path.dirname(runtime.config), "conf.d", "99-podwire-cni.toml")
    assert toml.load_toml(found["config.toml"]) == dict(toml.load_toml(main), imports=[path])


def test_a_pattern_that_finds_the_drop_in_is_enough(configured, tmp_path):
    runtime = configured("containerd-2.1", 'version = 3\nimports = ["conf.d/*.toml"]\n')
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "10-theirs.toml").write_text(f'version = 3\n{SECTION}bin_dir = "/x"\n')
    found = apply_and_take_back(runtime, WANTED)
    assert list(found) == ["99-podwire-cni.toml"]
    # Both together are an error, whichever files have them.
    assert 'bin_dirs = ["/b"]\n  bin_dir = ""\n' in found["99-podwire-cni.toml"]


@pytest.mark.parametrize(
    ("files", "line", "words"),
    [
        # Observed with 2.1.9: a file that sorts after the drop-in is read after it.
        (
            {"99-z.toml": f"version = 3\n{SECTION}bin_dir = '/x'\n"},
            "99-z.toml, line 3, sets bin_dir",
            "CRI does not start",
        ),
        (
            {"99-z.toml": f"{SECTION}\nconf_dir = '/x'\n"},
            "99-z.toml, line 3, sets conf_dir",
            "config.toml imports it, and",
        ),
        # It is migrated to version 3, and its directory takes the place of bin_dirs.
        ({"99-z.toml": f'version = 2\n[plugins."{CRI}".cni]\nbin_dir="/x"\n'}, "line 3, sets bin_dir", "overrides"),
        # The imports of an import are read after all others, whatever their names.
        (
            {"10-a.toml": "imports = ['../*.imp']\n", "../0.imp": f"{SECTION}bin_dir = '/x'\n"},
            "0.imp, line 2, sets bin_dir",
            "10-a.toml imports it and imports of imports are read last",
        ),
    ],
)
def test_a_later_file_that_is_in_the_way_is_named(configured, tmp_path, files, line, words):
    runtime = configured("containerd-2.1", 'version = 3\nimports = ["conf.d/*.toml"]\n')
    (tmp_path / "conf.d").mkdir()
    for name, text in files.items():
        (tmp_path / "conf.d" / name).write_text(text)
    with pytest.raises(HostError, match=line) as caught:
        runtime.changes(WANTED)
    assert caught.value.code == "overridden" and words in caught.value.msg
    assert runtime.changes(WANTED._replace(present=False)) == []


def test_an_upgrade_of_containerd_changes_the_way(configured):
    text = f'version = 2\n[plugins."{CRI}".cni]\nbin_dir = "/usr/lib/cni"\n'
    for change in configured("containerd-1.7", text).changes(WANTED):
        change.make()
    runtime = configured("containerd-2.1", conf_dir="/n")
    found = planned(runtime.changes(WANTED))
    assert toml.load_toml(found["config.toml"])["plugins"][CRI]["cni"] == {"bin_dir": "/usr/lib/cni"}
    assert "99-podwire-cni.toml" in found


def test_what_is_right_already_is_left_alone(configured):
    runtime = configured("containerd-1.7", "version = 2\n", conf_dir="/n")
    assert runtime.changes(WANTED) == []
    assert runtime.changes(WANTED._replace(max_conf_num=2)) != []
    assert configured("crio", conf_dir="/n").changes(WANTED) == []


@pytest.mark.parametrize(
    ("name", "wanted", "code"),
    [
        ("containerd-1.7", WANTED._replace(bin_dirs=["/a", "/b"]), "one_bin_dir"),
        ("containerd-1.6", WANTED._replace(setup_serially=True), "unsupported_setting"),
    ],
)
def test_what_containerd_cannot_do_is_said(configured, name, wanted, code):
    with fails_with(code):
        configured(name, "version = 2\n").changes(wanted)


@pytest.mark.parametrize(("text", "words"), [("version == 2\n", "line 1"), ("# \udcf6\n", "is not UTF-8")])
def test_a_configuration_that_is_not_understood_is_fine_without_ours(configured, text, words):
    runtime = configured("containerd-1.7", text)
    with pytest.raises(HostError, match=words):
        runtime.changes(WANTED)
    assert runtime.changes(WANTED._replace(present=False)) == []


# --- the others


def test_the_drop_ins_say_what_is_wanted(configured):
    wanted = WANTED._replace(bin_dirs=["/a", "/b"])
    [crio] = configured("crio").changes(wanted)
    assert toml.load_toml(crio.after) == {"crio": {"network": {"network_dir": "/n", "plugin_dirs": ["/a", "/b"]}}}
    [nomad] = configured("nomad").changes(wanted)
    assert '\n  cni_config_dir = "/n"\n  cni_path       = "/a:/b"\n' in nomad.after
    runtime = configured("podman")
    for version, more in [("4.3.1", {"network_backend": "cni"}), ("3.4.4", {})]:
        runtime.version = version
        [change] = runtime.changes(wanted)
        network = {"network_config_dir": "/n", "cni_plugin_dirs": ["/a", "/b"], **more}
        assert toml.load_toml(change.after) == {"network": network}


def test_a_file_of_others_in_our_place_is_left_alone(configured, tmp_path):
    (tmp_path / "99-podwire-cni.conf").write_text("[crio]\n")
    with fails_with("not_ours"):
        configured("crio").changes(WANTED)


def test_podman_that_has_settled_for_netavark_is_refused(configured, tmp_path, monkeypatch):
    runtime = configured("podman")
    runtime.version = "5.2.0"
    assert runtime.changes(WANTED._replace(present=False)) == []
    # It is not there yet.
    runtime.version, runtime.evidence = "", ""
    assert 'network_backend = "cni"' in runtime.changes(WANTED)[0].after
    runtime.evidence = "a test"
    runtime.version, runtime.reads = "4.3.1", False
    monkeypatch.setattr(podman, "settled", lambda: ("/graph/defaultNetworkBackend", "netavark"))
    with pytest.raises(HostError, match="podman system reset"):
        runtime.changes(WANTED)


def test_nomad_without_a_directory_is_refused(configured):
    runtime = configured("nomad")
    runtime.config = ""
    with fails_with("no_drop_in"):
        runtime.changes(WANTED)


# --- where it is written


def spoil_owner(path):
    os.chown(str(path), 12345, -1)


@pytest.mark.parametrize("before", [None, "text of before\n"])
def test_an_undo_writes_where_the_change_was_made_wherever_the_path_leads_by_then(tmp_path, before):
    place, aside, other = tmp_path / "etc" / "conf.d", tmp_path / "aside", tmp_path / "other"
    place.mkdir(parents=True)
    other.mkdir()
    (other / "a.conf").write_text("of another")
    if before:
        (place / "a.conf").write_text(before)
    change = settings.FileChange(str(place / "a.conf"), before, "new\n")
    change.undo()
    change.make()
    place.rename(aside)
    place.symlink_to(other)
    assert (aside / "a.conf").read_text() == "new\n"
    change.undo()
    change.close()
    change.close()
    assert [path.read_text() for path in aside.iterdir()] == ([before] if before else [])
    assert (other / "a.conf").read_text() == "of another"


@pytest.mark.parametrize("part", ["", "conf.d", "conf.d/a.conf"])
@pytest.mark.parametrize("by_link", [False, True])
def test_nothing_is_written_where_a_user_can_lead_it_elsewhere(tmp_path, part, by_link):
    place = tmp_path / "etc"
    (place / "conf.d").mkdir(parents=True)
    (place / "conf.d" / "a.conf").write_text("old")
    (tmp_path / "link").symlink_to(place)
    change = settings.FileChange(str((tmp_path / "link" if by_link else place) / "conf.d" / "a.conf"), "old", "new")
    spoil_owner(place / part)
    with fails_with("unsafe_permissions") as caught:
        change.make()
    assert caught.value.facts["file"] == str(place / part).rstrip("/")
    change.undo()
    assert (place / "conf.d" / "a.conf").read_text() == "old"


def test_a_link_of_root_keeps_leading_to_the_file_that_is_changed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.conf").write_text("old")
    (tmp_path / "real" / "a.conf").chmod(0o600)
    (tmp_path / "a.conf").symlink_to("real/a.conf")
    change = settings.FileChange(str(tmp_path / "a.conf"), "old", "new")
    change.make()
    change.close()
    assert (tmp_path / "a.conf").is_symlink()
    assert ((tmp_path / "real" / "a.conf").read_text(), (tmp_path / "real" / "a.conf").stat().st_mode & 0o777) == (
        "new",
        0o600,
    )


@pytest.mark.parametrize("name", ["crio", "nomad", "podman", "containerd-1.7", "containerd-2.1"])
def test_the_configuration_in_a_directory_of_a_user_is_neither_read_nor_changed(configured, tmp_path, name):
    runtime = configured(name, "version = 2\n" if name.startswith("containerd") else None)
    spoil_owner(tmp_path)
    runtime.version = "4.3.1"
    for wanted in (WANTED, WANTED._replace(present=False)):
        with fails_with("unsafe_permissions"):
            runtime.changes(wanted)
