# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import io
import os
import sys
import tarfile

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries import source as plugin_source
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.archive import ArchiveSource
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.checksum import digests
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.source import Source
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.store import Store, plugin_names
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest, digest_of
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

ELF = b"\x7fELF\x02\x01\x01" + b"\0" * 11 + b"\x3e\x00"
SHA = digest_of(io.BytesIO(ELF))


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    monkeypatch.setattr(plugin_source, "host_machine", lambda: "x86_64")


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(str(path), "w") as tar:
        for name in ("bridge", "ptp"):
            info = tarfile.TarInfo("./" + name)
            info.size = len(ELF)
            tar.addfile(info, io.BytesIO(ELF))
    return path


def source(plugins=None, tmpdir=None, **told):
    base = {"where": "", "only_ask": False, "last": False, "urls": {}, "checksum": "", "checksums": {}}
    return Source({"_source": {**base, **told}, "plugins": plugins}, lambda: str(tmpdir))


def checksum_of(path, algorithm="sha256"):
    return "%s:%s" % (algorithm, digests(io.BytesIO(path.read_bytes()))[algorithm])


@pytest.fixture
def manifest(tmp_path):
    made = Manifest(str(tmp_path / "state"))
    made.archives["a" * 64] = {"sha512": "b" * 128, "plugins": {"bridge": "1", "ptp": "2"}}
    return made


@pytest.mark.parametrize(
    "told",
    [
        {"checksum": "sha256:" + "a" * 64},
        {"checksum": "sha512:" + "b" * 128},
        {"checksums": {"x86_64": "sha256:" + "a" * 64, "arm": "sha256:" + "c" * 64}},
    ],
)
def test_an_archive_that_was_seen_before_need_not_be_read(manifest, told):
    assert source(["ptp"], **told).at_hand(manifest).files == {"ptp": "2"}
    with pytest.raises(HostError) as caught:
        source(["tap"], where="a.tgz", **told).at_hand(manifest)
    assert caught.value.code == "missing_member" and "bridge, ptp" in caught.value.msg


def test_an_archive_that_was_not_seen_has_to_be_read(manifest):
    assert source(checksum="sha256:" + "c" * 64).at_hand(manifest) is None
    assert source(checksums={"arm": "sha256:" + "a" * 64}).at_hand(manifest) is None
    assert source().at_hand(manifest) is None


def test_an_archive_on_the_host_is_read_and_its_listing_known(archive):
    wanted = source(["ptp"], where=str(archive), checksum=checksum_of(archive, "sha512")).read_here()
    assert wanted.files == {"ptp": SHA} and set(wanted.shipped) == {"ptp"}
    assert wanted.archive["plugins"] == {"bridge": SHA, "ptp": SHA}
    assert [(name, stream.read(99)) for name, stream in wanted.contents(["ptp"])] == [("ptp", ELF)]


def test_a_wrong_checksum_is_found_before_anything_is_unpacked(archive, monkeypatch):
    monkeypatch.setattr(ArchiveSource, "_walk", lambda self: pytest.fail("unpacked"))
    with fails_with("checksum_mismatch"):
        source(where=str(archive), checksum="sha256:" + "0" * 64).read_here()


def test_a_missing_path_is_an_archive_or_a_directory(tmp_path):
    with fails_with("bad_source") as caught:
        source(where=str(tmp_path / "none")).read_here()
    assert "/none: No such file or directory; name a tar archive (" in caught.value.msg
    assert "or a directory of plugin binaries" in caught.value.msg


def test_an_archive_that_its_owner_changes_after_it_was_verified_is_not_read_again(archive, tmp_path, monkeypatch):
    os.chown(str(archive), 65534, 65534)
    checksum, verified = checksum_of(archive), ArchiveSource.digests

    def digests_of(opened):
        found = verified(opened)
        archive.write_bytes(archive.read_bytes().replace(ELF, ELF[:7] + b"\1" + ELF[8:]))
        return found

    monkeypatch.setattr(ArchiveSource, "digests", digests_of)
    wanted = source(where=str(archive), checksum=checksum, tmpdir=tmp_path).read_here()
    assert wanted.files == {"bridge": SHA, "ptp": SHA}


def test_a_url_is_fetched_only_with_a_checksum(archive, tmp_path, monkeypatch):
    fetched = []

    def fetch(url, target):
        fetched.append(url)
        target.write(archive.read_bytes())

    monkeypatch.setattr("ansible_collections.podwire.cni.plugins.module_utils._host.binaries.download.fetch", fetch)
    made = source(
        tmpdir=tmp_path,
        urls={"x86_64": "https://h/amd64", "arm": "https://h/arm"},
        checksums={"x86_64": checksum_of(archive)},
    )
    assert made.read_here().files == {"bridge": SHA, "ptp": SHA}
    assert fetched == ["https://h/amd64"]
    with fails_with("checksum_required"):
        source(tmpdir=tmp_path, where="https://h/a").read_here()
    with fails_with("no_release"):
        source(urls={"arm": "https://h/arm"}, checksums={"arm": "x"}).read_here()


def test_another_machine_is_refused_with_both_names(archive, monkeypatch):
    monkeypatch.setattr(plugin_source, "host_machine", lambda: "aarch64")
    with pytest.raises(HostError) as caught:
        source(where=str(archive)).read_here()
    assert caught.value.code == "wrong_machine" and "x86_64" in caught.value.msg and "aarch64" in caught.value.msg
    with pytest.raises(HostError):
        source(files={"bridge": SHA}, machines={"bridge": "x86_64"}).at_hand(None)


def test_what_the_controller_sent_is_read_from_the_bundle(archive):
    wanted = source(
        files={"bridge": SHA, "ptp": SHA}, machines={"ptp": "x86_64"}, bundle=str(archive), shipped=["ptp"]
    ).at_hand(None)
    assert list(wanted.shipped) == ["ptp"]
    assert [name for name, _stream in wanted.contents(["ptp"])] == ["ptp"]


def test_the_answer_to_the_controller_has_only_regular_files(tmp_path, manifest):
    (tmp_path / "bridge").write_bytes(ELF)
    (tmp_path / "link").symlink_to("bridge")
    store = Store(str(tmp_path), manifest)
    assert source().need(store) == {"machine": "x86_64", "have": {"bridge": SHA}}
    assert source(["link", "none"]).need(store)["have"] == {}


@pytest.mark.parametrize("names", [[], [""], ["a/b"], ["../x"], [".hidden"], ["-rf"], ["a\nb"], ["x" * 129]])
def test_names_that_no_plugin_has_are_refused(names):
    with fails_with("bad_plugin_name"):
        plugin_names(names)
    assert plugin_names(None) is None and plugin_names(["host-local"]) == ["host-local"]


def test_a_directory_is_read_without_what_a_download_needs(tmp_path, monkeypatch):
    """Its import takes as long as the rest of the module, on every run that finds nothing to do."""
    download = plugin_source.__name__.rpartition(".")[0] + ".download"
    monkeypatch.delitem(sys.modules, download, raising=False)
    (tmp_path / "bridge").write_bytes(ELF)
    wanted = source(where=str(tmp_path)).read_here()
    assert wanted.files == {"bridge": SHA} and wanted.archive is None
    assert download not in sys.modules
