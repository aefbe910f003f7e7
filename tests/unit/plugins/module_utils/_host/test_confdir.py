# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import confdir
from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import drop_ins, plugins_in, scan_conf_dir
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with, raising

LIST = '{"cniVersion": "1.0.0", "name": "%s", "plugins": [{"type": "bridge"}]}'


@pytest.fixture
def conf_dir(tmp_path):
    path = tmp_path / "net.d"
    path.mkdir()
    return path


def test_a_directory_that_is_not_there_has_no_files(tmp_path):
    assert scan_conf_dir(str(tmp_path / "no")) == []


def test_only_what_a_runtime_reads_is_listed_and_in_its_order(conf_dir):
    for name in ("100-a.conflist", "20-b.conflist", ".c.conflist", "Z.conf", "a.json", ".conf"):
        (conf_dir / name).write_text(LIST % "x")
    for name in ("calico-kubeconfig", "10-x.conflist.bak", "README", "a.CONFLIST", ".a.conflist.podwire-tmp"):
        (conf_dir / name).write_text("x")
    (conf_dir / "30-folder.conflist").mkdir()
    names = [file.name for file in scan_conf_dir(str(conf_dir))]
    assert names == [".c.conflist", ".conf", "100-a.conflist", "20-b.conflist", "Z.conf", "a.json"]


def test_lists_and_single_plugins_are_understood(conf_dir):
    (conf_dir / "10-a.conflist").write_text(LIST % "a")
    (conf_dir / "20-b.conf").write_text('{"cniVersion": "0.4.0", "name": "b", "type": "ptp"}')
    first, second = scan_conf_dir(str(conf_dir))
    assert (first.kind, first.network, first.cni_version, first.error) == ("conflist", "a", "1.0.0", "")
    assert first.plugins == [{"type": "bridge"}]
    assert (second.kind, second.network, second.cni_version, second.plugins[0]["type"]) == ("conf", "b", "0.4.0", "ptp")
    assert (first.mode, first.uid) == (os.stat(first.path).st_mode & 0o7777, os.getuid())


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.conflist", "", "is empty"),
        ("a.conflist", "{", "unexpected end"),
        ("a.conflist", '{"type": "bridge"}', "no name"),
        ("a.conf", LIST % "x", "missing 'type'"),
    ],
)
def test_what_cannot_be_loaded_stays_in_the_list_with_its_reason(conf_dir, name, text, words):
    (conf_dir / name).write_text(text)
    (file,) = scan_conf_dir(str(conf_dir))
    assert words in file.error
    assert file.network is None


def test_files_that_are_never_opened(conf_dir):
    (conf_dir / "my-kubeconfig.conf").write_text("token: secret")
    (conf_dir / "x.json").mkdir()
    os.mkfifo(str(conf_dir / "fifo.conf"))
    (conf_dir / "folder").mkdir()
    (conf_dir / "folder.conf").symlink_to("folder")
    (conf_dir / "gone.conf").symlink_to("nowhere")
    found = {file.name: (file.text, file.error) for file in scan_conf_dir(str(conf_dir))}
    assert set(found) == {"my-kubeconfig.conf", "fifo.conf", "folder.conf", "gone.conf"}
    assert all(text is None and error for text, error in found.values())
    assert "kubeconfig" in found["my-kubeconfig.conf"][1]
    assert "regular" in found["fifo.conf"][1] and "regular" in found["folder.conf"][1]


def test_a_link_is_followed_and_marked(conf_dir, tmp_path):
    (tmp_path / "real").write_text(LIST % "a")
    (conf_dir / "a.conflist").symlink_to(tmp_path / "real")
    (file,) = scan_conf_dir(str(conf_dir))
    assert (file.is_link, file.network) == (True, "a")


def test_drop_ins_are_the_conf_files_of_the_networks_folder(conf_dir):
    folder = conf_dir / "a"
    folder.mkdir()
    (folder / "20.conf").write_text('{"type": "tuning"}')
    (folder / "10.conf").write_text('{"type": "portmap"}')
    (folder / "30.conflist").write_text(LIST % "x")
    assert [file.plugins[0]["type"] for file in drop_ins(str(conf_dir), "a")] == ["portmap", "tuning"]
    assert drop_ins(str(conf_dir), "b") == []
    assert drop_ins(str(folder), "../a") == []


def test_drop_ins_follow_the_plugins_of_a_list_that_takes_them(conf_dir):
    inlined = LIST.replace("{", '{"loadOnlyInlinedPlugins": true, ', 1)
    # A single plugin has no folder (libcni/conf.go: ConfListFromConf).
    for name, text in {"a.conflist": LIST, "b.conflist": inlined, "c.conf": '{"name": "%s", "type": "ptp"}'}.items():
        (conf_dir / name).write_text(text % name[0])
        (conf_dir / name[0]).mkdir()
        (conf_dir / name[0] / "20.conf").write_text('{"type": "tuning"}')
    (conf_dir / "d.conflist").write_text("{")
    (conf_dir / "e.conf").write_text('{"cniVersion": "0.4.0", "type": "ptp"}')
    found = [(network, plugin["type"]) for network, plugin in plugins_in(scan_conf_dir(str(conf_dir)))]
    assert found == [("a", "bridge"), ("a", "tuning"), ("b", "bridge"), ("c", "ptp")]


def test_a_directory_that_cannot_be_listed(conf_dir, monkeypatch):
    monkeypatch.setattr(os, "scandir", raising(OSError(5, "Input/output error")))
    with fails_with("no_directory", f"cannot list the directory {conf_dir}: Input/output error"):
        scan_conf_dir(str(conf_dir))


def test_a_file_is_read_under_its_future_name(conf_dir):
    (conf_dir / "10-a.conflist.aside").write_text(LIST % "a")
    file = confdir.read_as(str(conf_dir), "10-a.conflist.aside", "10-a.conflist")
    assert (file.name, file.path) == ("10-a.conflist", str(conf_dir / "10-a.conflist"))
    assert (file.network, file.error) == ("a", "")
    assert confdir.read_as(str(conf_dir), "none", "10-a.conflist") is None


def test_a_file_that_is_gone_meanwhile_is_left_out(conf_dir, monkeypatch):
    for name in ("10-a", "20-b"):
        (conf_dir / f"{name}.conflist").write_text(LIST % name)
    real_stat = os.stat

    def gone(path, **keywords):
        if path == "10-a.conflist":
            raise FileNotFoundError
        return real_stat(path, **keywords)

    monkeypatch.setattr(os, "stat", gone)
    assert [file.name for file in scan_conf_dir(str(conf_dir))] == ["20-b.conflist"]


def test_a_file_that_cannot_be_read(conf_dir, monkeypatch):
    (conf_dir / "10-a.conflist").write_text(LIST % "a")

    monkeypatch.setattr(os, "fdopen", raising(OSError(5, "Input/output error")))
    (file,) = scan_conf_dir(str(conf_dir))
    assert (file.error, file.text, file.network) == ("cannot be read: Input/output error", None, None)


def test_the_largest_file(conf_dir):
    text = (LIST % "a").encode()
    (conf_dir / "10-a.conflist").write_bytes(text + b" " * (confdir.MAX_SIZE - len(text)))
    (conf_dir / "20-b.conflist").write_bytes(text + b" " * (confdir.MAX_SIZE - len(text) + 1))
    first, second = scan_conf_dir(str(conf_dir))
    assert (first.network, first.error) == ("a", "")
    assert second.error == "is larger than 1 MiB and was not read"


def test_all_paths_that_configure_a_network(conf_dir):
    path = str(conf_dir / "10-a.conflist")
    assert confdir.paths_of(str(conf_dir), path, "a") == [path]
    (conf_dir / "a").mkdir()
    for name in ("20-y.conf", "10-x.conf", "30-z.conflist"):
        (conf_dir / "a" / name).write_text('{"type": "tuning"}')
    folder = str(conf_dir / "a")
    assert confdir.paths_of(str(conf_dir), path, "a") == [path, folder, f"{folder}/10-x.conf", f"{folder}/20-y.conf"]


def test_no_file_stays_open(conf_dir):
    for name in ("10-a", "20-b"):
        (conf_dir / f"{name}.conflist").write_text(LIST % name)
    os.mkfifo(conf_dir / "30-c.conflist")
    before = os.listdir("/proc/self/fd")
    assert len(scan_conf_dir(str(conf_dir))) == 3
    assert len(os.listdir("/proc/self/fd")) <= len(before), "a file descriptor leaked"
