# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import tarfile

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import archive
from ansible_collections.podwire.cni.plugins.module_utils._host.archive import ArchiveSource, DirectorySource
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError

ELF = b"\x7fELF\x02\x01\x01" + b"\0" * 11 + b"\x3e\x00"
BRIDGE = ELF + b"bridge" * 1000
PTP = ELF + b"ptp"
PLAIN = (("./", None), ("./bridge", BRIDGE), ("./ptp", PTP), ("./README.md", b"text"), ("./LICENSE", b"text"))


def pack(entries):
    """Return a tar of (name, content); None makes a directory, a TarInfo goes in as it is."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                tar.addfile(entry)
                continue
            name, content = entry
            info = tarfile.TarInfo(name)
            if content is None:
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            else:
                info.size = len(content)
                info.mode, info.uid, info.uname = 0o4777, 1001, "ci"
                tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.fixture
def write(tmp_path):
    def write_file(content):
        path = tmp_path / "a.tar"
        path.write_bytes(content)
        return str(path)

    return write_file


@pytest.mark.parametrize("packer", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_elf_files_in_the_root_are_found_in_every_kind_of_archive(write, packer):
    nested = (("./doc", None), ("./doc/tool", ELF))
    with ArchiveSource(write(packer(pack(PLAIN + nested)))) as source:
        members = source.members()
        assert sorted(members) == ["bridge", "ptp"]
        assert members["bridge"] == (hashlib.sha256(BRIDGE).hexdigest(), "x86_64", len(BRIDGE))
        assert {name: stream.read(1 << 20) for name, stream in source.contents(["ptp"])} == {"ptp": PTP}
        assert [name for name, _stream in source.contents(["bridge", "ptp"])] == ["bridge", "ptp"]


def test_names_without_the_leading_dot_are_the_same(write):
    with ArchiveSource(write(pack((("bridge", BRIDGE),)))) as source:
        assert list(source.members()) == ["bridge"]


def test_the_digests_are_the_archives(write):
    content = gzip.compress(pack(PLAIN))
    with ArchiveSource(write(content)) as source:
        source.members()
        assert source.digests()["sha512"] == hashlib.sha512(content).hexdigest()


@pytest.mark.parametrize(
    "bad, why",
    [
        (special("./ptp", tarfile.SYMTYPE, "/etc/shadow"), "is a link to '/etc/shadow'"),
        (special("./doc/x", tarfile.SYMTYPE, "y"), "is a link"),
        (special("hard", tarfile.LNKTYPE, "bridge"), "is a link"),
        (special("null", tarfile.CHRTYPE), "neither a regular file"),
        (special("disk", tarfile.BLKTYPE), "neither a regular file"),
        (special("pipe", tarfile.FIFOTYPE), "neither a regular file"),
        (("/opt/cni/bin/ptp", PTP), "absolute path"),
        (("../ptp", PTP), "'..' in its path"),
        (("doc/../../ptp", PTP), "'..' in its path"),
        (("bridge", BRIDGE), "is in it twice"),
    ],
)
def test_a_hostile_archive_is_refused_whole_and_names_the_member(write, bad, why):
    name = bad.name if isinstance(bad, tarfile.TarInfo) else bad[0]
    with ArchiveSource(write(gzip.compress(pack((*PLAIN, bad))))) as source, pytest.raises(HostError) as caught:
        source.members()
    assert caught.value.code == "bad_archive"
    assert why in caught.value.msg and repr(name) in caught.value.msg


@pytest.mark.parametrize(
    "limit, value, why",
    [
        ("MEMBER_LIMIT", 100, "larger than 100 bytes"),
        ("TOTAL_LIMIT", 6020, "larger than 6020 bytes unpacked"),
        ("COUNT_LIMIT", 2, "more than the 2 members"),
    ],
)
def test_what_is_too_large_is_refused(write, monkeypatch, limit, value, why):
    monkeypatch.setattr(archive, limit, value)
    with ArchiveSource(write(pack(PLAIN))) as source, pytest.raises(HostError) as caught:
        source.members()
    assert caught.value.code == "bad_archive"
    assert why in caught.value.msg


def test_a_small_archive_cannot_ask_for_all_of_the_memory(write):
    huge = tarfile.TarInfo("pax")
    huge.type, huge.size = tarfile.XHDTYPE, 1 << 30
    with ArchiveSource(write(gzip.compress(huge.tobuf(tarfile.USTAR_FORMAT) + b"\0" * 2048))) as source, pytest.raises(
        HostError
    ) as caught:
        source.members()
    assert caught.value.code == "bad_source" and "a header of 1073741824 bytes" in caught.value.msg


@pytest.mark.parametrize("packer", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("part", [0.3, 0.5])
def test_a_truncated_archive_is_an_error_wherever_it_ends(write, packer, part):
    content = packer(pack((("bridge", ELF + os.urandom(5000)), ("ptp", ELF + os.urandom(5000)))))
    with ArchiveSource(write(content[: int(len(content) * part)])) as source, pytest.raises(HostError) as caught:
        source.members()
    assert caught.value.code == "bad_source"


def test_what_is_no_archive_is_an_error(write, tmp_path):
    with ArchiveSource(write(b"<html>not found</html>" * 100), "the page") as source, pytest.raises(
        HostError
    ) as caught:
        source.members()
    assert caught.value.code == "bad_source" and "the page" in caught.value.msg
    with pytest.raises(HostError, match="No such file"):
        ArchiveSource(str(tmp_path / "none"))


def test_of_a_directory_only_regular_elf_files_count(tmp_path):
    (tmp_path / "bridge").write_bytes(BRIDGE)
    (tmp_path / "install.sh").write_bytes(b"#!/bin/sh\n" * 10)
    (tmp_path / ".hidden").write_bytes(PTP)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("bridge")
    os.mkfifo(str(tmp_path / "pipe"))
    source = DirectorySource(str(tmp_path))
    assert source.members() == {"bridge": (hashlib.sha256(BRIDGE).hexdigest(), "x86_64", len(BRIDGE))}
    assert [(name, stream.read()) for name, stream in source.contents(["bridge"])] == [("bridge", BRIDGE)]
    with pytest.raises(HostError):
        list(source.contents(["link"]))
    with pytest.raises(HostError):
        DirectorySource(str(tmp_path / "none")).members()
