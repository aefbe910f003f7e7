# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import io
import os
import tarfile

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.archive import ArchiveSource
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.checksum import digests
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.plugin_utils import builtin_plugins, plugin_source
from ansible_collections.podwire.cni.plugins.plugin_utils.plugin_source import PluginSource, read_answer

ELF = b"\x7fELF\x02\x01\x01" + b"\0" * 11 + b"\x3e\x00"
ZEROS = "sha256:" + "0" * 64


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for name in ("bridge", "ptp", "README.md"):
            content = b"text" if name.endswith("md") else ELF + name.encode()
            info = tarfile.TarInfo("./" + name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return str(path)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bin").mkdir()
    for name in ("bridge", "ptp"):
        (tmp_path / "bin" / name).write_bytes(ELF + name.encode())
    return str(tmp_path / "bin")


def request(find=lambda path: path, **options):
    return PluginSource({"src": None, "version": None, "checksum": None, "plugins": None, **options}, find)


def checksum_of(path, algorithm="sha256"):
    with open(path, "rb") as stream:
        return f"{algorithm}:{digests(stream)[algorithm]}"


def test_the_plugin_of_the_collection_is_made_once(monkeypatch):
    first = request(src="builtin")
    told = first.question(only_ask=False)
    assert list(told["files"]) == ["podwire-multinet"]
    assert set(told["machines"].values()) == {"script"}
    monkeypatch.setattr(builtin_plugins, "_make", None)
    assert request(src="builtin").question(only_ask=False) == told
    for options in ({"version": "1.9.1"}, {"checksum": ZEROS}):
        with pytest.raises(HostError) as caught:
            request(src="builtin", **options)
        assert caught.value.code == "bad_checksum"


@pytest.mark.parametrize(
    "options, code",
    [
        ({"version": "1.0"}, "bad_version"),
        ({"version": "9.9.9"}, "checksum_required"),
        ({"src": "https://h/a.tgz"}, "checksum_required"),
        ({"src": "http://h/a.tgz", "checksum": ZEROS}, "not_https"),
        ({"src": "a.tgz", "checksum": "sha256:12"}, "bad_checksum"),
        ({"src": "a.tgz", "plugins": ["../x"]}, "bad_plugin_name"),
        ({"src": "/", "checksum": ZEROS}, "bad_checksum"),
        ({"src": "/", "version": "1.9.1"}, "bad_checksum"),
        ({"src": "a.tgz", "find": None}, "path_not_absolute"),
        ({"src": ""}, "no_source"),
    ],
)
def test_wrong_options_end_before_any_host_is_asked(options, code):
    with pytest.raises(HostError) as caught:
        request(**options)
    assert caught.value.code == code


def test_a_mirror_takes_only_the_checksum_of_the_release():
    asked = request(src="https://mirror/a.tgz", version="1.9.1").question(False)
    assert asked["where"] == "https://mirror/a.tgz" and asked["urls"] == {} and "x86_64" in asked["checksums"]
    assert request(version="9.9.9", checksum=ZEROS).question(False)["checksum"] == ZEROS


def test_empty_texts_are_not_set():
    asked = request(src="", version="1.9.1", checksum="").question(False)
    assert asked["urls"] and asked["checksums"] and asked["checksum"] == ""
    asked = request(src="https://mirror/a.tgz", version="", checksum=ZEROS).question(False)
    assert (asked["where"], asked["checksum"]) == ("https://mirror/a.tgz", ZEROS)


def test_a_fifo_as_src_on_the_controller_is_an_error(tmp_path):
    os.mkfifo(tmp_path / "a.tar")
    source = request(src=str(tmp_path / "a.tar"))
    for ask in (lambda: source.question(False), source.opened("x86_64").__enter__):
        with pytest.raises(HostError) as caught:
            ask()
        assert caught.value.code == "bad_source" and "Not a regular file" in caught.value.msg


def test_an_archive_with_a_checksum_is_not_even_opened_for_the_question(tmp_path):
    asked = request(src=str(tmp_path / "none.tgz"), checksum=ZEROS).question(False)
    assert asked["checksum"] == ZEROS


def test_an_archive_without_a_checksum_is_hashed_but_not_unpacked(archive, monkeypatch):
    monkeypatch.setattr(ArchiveSource, "_walk", lambda self: pytest.fail("unpacked"))
    assert request(src=archive).question(False)["checksum"] == checksum_of(archive)


def test_of_a_directory_the_digests_are_sent_at_once(folder):
    asked = request(src=folder, plugins=["ptp"]).question(False)
    assert list(asked["files"]) == ["ptp"] and asked["machines"] == {"ptp": "x86_64"}
    with pytest.raises(HostError) as caught:
        request(src=folder, plugins=["tap"]).question(False)
    assert caught.value.code == "missing_member" and "bridge, ptp" in caught.value.msg


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
def test_only_what_differs_is_sent_and_only_names_of_our_own(archive, tmp_path, algorithm):
    source = request(src=archive, checksum=checksum_of(archive, algorithm))
    with source.opened("x86_64") as shipment:
        bridge = shipment.told(None, [])["files"]["bridge"]
        _machine, need = read_answer(
            {"machine": "x86_64", "have": {"bridge": bridge, "../../etc/passwd": "0", "ptp": {"a": 1}}}
        )
        assert shipment.lacking(need) == ["ptp"]
        path = shipment.bundle(["ptp"], str(tmp_path / "b.tar"))
        told = shipment.told("/tmp/b.tar", ["ptp"])
    with tarfile.open(path) as tar:
        assert [(entry.name, tar.extractfile(entry).read()) for entry in tar] == [("ptp", ELF + b"ptp")]
    assert told["bundle"] == "/tmp/b.tar" and told["shipped"] == ["ptp"] and told["last"]
    assert sorted(told["archive"]) == ["plugins", "scripts", "sha256", "sha512"]


def test_the_archive_itself_is_sent_when_all_is_needed(archive, folder, tmp_path):
    with request(src=archive).opened("x86_64") as shipment:
        assert shipment.bundle(["bridge", "ptp"], str(tmp_path / "b.tar")) == archive
    with request(src=folder).opened("x86_64") as shipment:
        path = shipment.bundle(["bridge", "ptp"], str(tmp_path / "b.tar"))
        assert "archive" not in shipment.told(None, [])
    with tarfile.open(path) as tar:
        assert tar.getnames() == ["bridge", "ptp"]


def test_a_wrong_checksum_is_found_before_unpacking(archive, monkeypatch):
    monkeypatch.setattr(ArchiveSource, "_walk", lambda self: pytest.fail("unpacked"))
    with pytest.raises(HostError) as caught, request(src=archive, checksum=ZEROS).opened("x86_64"):
        pass
    assert caught.value.code == "checksum_mismatch"


def test_a_release_is_obtained_for_the_hosts_machine(archive, monkeypatch):
    wanted = []
    monkeypatch.setattr(plugin_source.archive_cache, "obtain", lambda *of: wanted.append(of) or archive)
    source = request(version="1.9.1", checksum=checksum_of(archive))
    with source.opened("aarch64"):
        pass
    assert wanted == [(source.urls["aarch64"], checksum_of(archive))]
    for machine, code in (("s390x", "checksum_required"), ("loongarch64", "checksum_required")):
        with pytest.raises(HostError) as caught, request(version="1.9.1").opened(machine):
            pass
        assert caught.value.code == code and machine in caught.value.msg
    with pytest.raises(HostError) as caught, source.opened("loongarch64"):
        pass
    assert caught.value.code == "no_release"


@pytest.mark.parametrize(
    "answer",
    [None, [], {}, {"machine": "x86_64"}, {"machine": "../x", "have": {}}, {"machine": ["x86_64"], "have": {}}],
)
def test_an_answer_that_the_module_does_not_give_is_refused(answer):
    with pytest.raises(HostError) as caught:
        read_answer(answer)
    assert caught.value.code == "bad_answer"
