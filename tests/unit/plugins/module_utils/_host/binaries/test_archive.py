# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import stat
import tarfile

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries import archive
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.archive import ArchiveSource, DirectorySource
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.tests.tools import sample
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

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
        (("bridge", BRIDGE), "is in the archive twice"),
    ],
)
def test_a_hostile_archive_is_refused_whole_and_names_the_member(write, bad, why):
    name = bad.name if isinstance(bad, tarfile.TarInfo) else bad[0]
    with ArchiveSource(write(gzip.compress(pack((*PLAIN, bad))))) as source, fails_with("bad_archive") as caught:
        source.members()
    assert why in caught.value.msg and repr(name) in caught.value.msg


@pytest.mark.parametrize(
    "limit, value, why",
    [
        ("MEMBER_LIMIT", 100, "larger than 100 bytes"),
        ("TOTAL_LIMIT", 6020, "larger than 6020 bytes when unpacked"),
        ("COUNT_LIMIT", 2, "the limit of 2 members"),
    ],
)
def test_what_is_too_large_is_refused(write, monkeypatch, limit, value, why):
    monkeypatch.setattr(archive, limit, value)
    with ArchiveSource(write(pack(PLAIN))) as source, fails_with("bad_archive") as caught:
        source.members()
    assert why in caught.value.msg


def test_a_small_archive_cannot_ask_for_all_of_the_memory(write):
    huge = tarfile.TarInfo("pax")
    huge.type, huge.size = tarfile.XHDTYPE, 1 << 30
    with ArchiveSource(write(gzip.compress(huge.tobuf(tarfile.USTAR_FORMAT) + b"\0" * 2048))) as source, pytest.raises(
        HostError
    ) as caught:
        source.members()
    assert caught.value.code == "bad_archive" and "a header extension of 1073741824 bytes" in caught.value.msg


def extension(kind, data, name="././@LongLink"):
    """Return an extension header with its data."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(data)
    return info.tobuf(tarfile.GNU_FORMAT) + data + b"\0" * (-len(data) % 512)


def record(key, value):
    """Return a record of a pax header, with its own length in front."""
    rest = b" %s=%s\n" % (key, value)
    length = len(rest)
    while length != len(rest) + len(str(length)):
        length = len(rest) + len(str(length))
    return b"%d" % length + rest


def sparse_map(extended):
    """Return a member in GNU's old sparse format, whose map goes on in *extended* more blocks."""
    info = tarfile.TarInfo("bridge")
    info.type = tarfile.GNUTYPE_SPARSE
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    block[482] = 1
    block[148:156] = b"        "
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + (b"0" * 11 + b"\0") * 42 + b"\1" + b"\0" * 7 + b"\0" * 512 * extended


@pytest.mark.parametrize(
    "header, code, why",
    [
        (extension(tarfile.XHDTYPE, b"9" * 65000), "bad_source", "cannot read"),
        (extension(tarfile.XHDTYPE, b"9" * (4 << 20)), "bad_archive", "extension of 4194304 bytes"),
        (extension(tarfile.XHDTYPE, b"5 a=\n" * 20000), "bad_archive", "extension of 100000 bytes"),
        (extension(tarfile.XHDTYPE, b"0 a=b\n"), "bad_source", "cannot read"),
        (extension(tarfile.XHDTYPE, b"-7 a=b\n"), "bad_source", "cannot read"),
        (extension(tarfile.XHDTYPE, record(b"size", b"9" * 3000)), "bad_archive", "sets size"),
        (extension(tarfile.XHDTYPE, record(b"GNU.sparse.map", b"0,1," * 99)), "bad_archive", "sets GNU.sparse.map"),
        (extension(tarfile.XHDTYPE, record(b"GNU.sparse.major", b"1")), "bad_archive", "sets GNU.sparse.major"),
        (extension(tarfile.XGLTYPE, record(b"path", b"bridge")), "bad_archive", "sets path"),
        (extension(tarfile.XHDTYPE, record(b"path", b"../bridge")), "bad_archive", "'..' in its path"),
        (extension(tarfile.GNUTYPE_LONGNAME, b"a/" * 100) * 400, "bad_archive", "more than 2 header extensions"),
        (extension(tarfile.XHDTYPE, record(b"a", b"b")) * 400, "bad_archive", "more than 2 header extensions"),
        (sparse_map(400), "bad_archive", "neither a regular file"),
    ],
)
def test_raw_headers_are_read_first_so_that_extensions_chains_and_sparse_maps_are_refused(write, header, code, why):
    with ArchiveSource(write(gzip.compress(header + pack(PLAIN)))) as source, pytest.raises(HostError) as caught:
        source.members()
    assert (caught.value.code, why in caught.value.msg) == (code, True), caught.value.msg


@pytest.mark.parametrize("style", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_what_tar_itself_writes_is_read_in_every_format(write, style):
    out = io.BytesIO()
    headers = {"comment": "0123abcd"} if style == tarfile.PAX_FORMAT else None
    with tarfile.open(fileobj=out, mode="w", format=style, pax_headers=headers) as tar:
        for name, content in (("d" * 90 + "/" + "n" * 95, b"text"), ("./bridge", BRIDGE), ("\xe9" * 40, b"text")):
            info = tarfile.TarInfo(name)
            # More than a header's own field holds, so pax writes it beside.
            info.size, info.mtime = len(content), 1.5 if style == tarfile.PAX_FORMAT else 1
            tar.addfile(info, io.BytesIO(content))
    assert read_all(write(out.getvalue())) == {"bridge": BRIDGE}


@pytest.mark.parametrize("style", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_a_long_name_counts_as_the_members(write, style):
    link = special("n" * 150, tarfile.SYMTYPE, "l" * 150)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=style) as tar:
        tar.addfile(link)
    with ArchiveSource(write(out.getvalue())) as source, pytest.raises(HostError) as caught:
        source.members()
    assert "the member '%s' is a link" % ("n" * 150) in caught.value.msg


def read_all(path):
    with ArchiveSource(path) as source:
        return {name: stream.read(1 << 20) for name, stream in source.contents(source.members())}


@settings(
    max_examples=sample.number("EXAMPLES", 40, 8),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
@given(data=st.data())
def test_any_damage_to_an_archive_ends_in_its_plugins_or_in_one_sentence(write, data):
    """Bytes of the headers, or whole blocks, are replaced, and headers are put in front."""
    content = bytearray(pack((("bridge", ELF + b"b" * 600), ("l" * 150, b"text"), ("ptp", PTP))))
    changes = st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255))
    for place, byte in data.draw(st.lists(changes, max_size=9)):
        content[place] = byte
    for start in range(0, len(content), 512):
        # A sum that is right lets what was changed be read.
        if data.draw(st.booleans()) and content[start + 257 : start + 262] == b"ustar":
            content[start + 148 : start + 156] = b"        "
            content[start + 148 : start + 156] = b"%06o\0 " % sum(content[start : start + 512])
    kind = data.draw(st.sampled_from([b"", b"x", b"g", b"L", b"K", b"X", b"S", b"1", b"5", b"\0"]))
    front = extension(kind, data.draw(st.binary(max_size=700))) if kind else b""
    path = write(front + bytes(content[: data.draw(st.integers(0, len(content)))]))
    try:
        assert all(content.startswith(b"\x7fELF") for content in read_all(path).values())
    except HostError as error:
        assert error.code in ("bad_source", "bad_archive") and "\n" not in error.msg


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))])
def test_a_fifo_or_device_as_src_is_refused_before_it_is_opened(tmp_path, make):
    path = str(tmp_path / "src")
    make(path)
    with pytest.raises(HostError) as caught:
        ArchiveSource(path)
    assert caught.value.code == "bad_source" and path + ": Not a regular file" in caught.value.msg


@pytest.mark.parametrize("packer", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("part", [0.3, 0.5])
def test_a_truncated_archive_is_an_error_wherever_it_ends(write, packer, part):
    content = packer(pack((("bridge", ELF + os.urandom(5000)), ("ptp", ELF + os.urandom(5000)))))
    with ArchiveSource(write(content[: int(len(content) * part)])) as source, fails_with("bad_source"):
        source.members()


def test_what_is_no_archive_is_an_error(write, tmp_path):
    with ArchiveSource(write(b"<html>" * 400), "the page") as source, pytest.raises(HostError) as caught:
        source.members()
    assert caught.value.code == "bad_source" and "the page" in caught.value.msg
    with pytest.raises(HostError, match="No such file"):
        ArchiveSource(str(tmp_path / "none"))


@pytest.mark.parametrize("magic", [b"PK\3\4", b"\x28\xb5\x2f\xfd"])
def test_a_zip_archive_and_zstd_are_refused_with_advice(write, magic):
    with ArchiveSource(write(magic + bytes(1000))) as source, pytest.raises(HostError) as caught:
        source.members()
    assert caught.value.code == "bad_source" and "ansible.builtin.unarchive" in caught.value.msg
    assert "complete" not in caught.value.msg


def test_of_a_directory_only_regular_files_count(tmp_path):
    (tmp_path / "bridge").write_bytes(BRIDGE)
    script = b"#!/bin/sh\n" * 10
    (tmp_path / "install.sh").write_bytes(script)
    (tmp_path / "README").write_bytes(b"text")
    (tmp_path / ".hidden").write_bytes(PTP)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("bridge")
    os.mkfifo(str(tmp_path / "pipe"))
    source = DirectorySource(str(tmp_path))
    assert source.members() == {
        "bridge": (hashlib.sha256(BRIDGE).hexdigest(), "x86_64", len(BRIDGE)),
        "install.sh": (hashlib.sha256(script).hexdigest(), "script", len(script)),
    }
    assert DirectorySource(str(tmp_path), ["bridge"]).members()["install.sh"] == ("", "script", len(script))
    assert [(name, stream.read()) for name, stream in source.contents(["bridge"])] == [("bridge", BRIDGE)]
    with pytest.raises(HostError):
        list(source.contents(["link"]))
    with pytest.raises(HostError):
        DirectorySource(str(tmp_path / "none")).members()
