# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import io
import stat
import struct
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries import archive
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.archive import ArchiveSource
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError

ELF = b"\x7fELF\x02\x01\x01" + b"\0" * 11 + b"\x3e\x00"
BRIDGE = ELF + b"bridge" * 50000
SCRIPT = b"#!/usr/bin/python3 -IS\n" + b"# plugin\n" * 100
PLAIN = (("bridge", BRIDGE), ("debug", SCRIPT), ("doc/", b""), ("doc/tool", ELF), ("README.md", b"text"))


def pack(entries, method=zipfile.ZIP_DEFLATED):
    """Return a zip of (name, content) or (ZipInfo, content)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as packed:
        for name, content in entries:
            packed.writestr(name, content)
    return out.getvalue()


def special(name, kind):
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (kind | 0o777) << 16
    return info


@pytest.fixture
def write(tmp_path):
    def write_file(content):
        path = tmp_path / "a.zip"
        path.write_bytes(content)
        return str(path)

    return write_file


def refused(path):
    with ArchiveSource(path) as source, pytest.raises(HostError) as caught:
        source.members()
    return caught.value.code, caught.value.msg


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_plugins_in_the_root_are_found(write, method):
    with ArchiveSource(write(pack(PLAIN, method))) as source:
        members = source.members()
        assert sorted(members) == ["bridge", "debug"]
        assert members["bridge"] == (hashlib.sha256(BRIDGE).hexdigest(), "x86_64", len(BRIDGE))
        assert members["debug"] == (hashlib.sha256(SCRIPT).hexdigest(), "script", len(SCRIPT))
        found = {}
        for name, stream in source.contents(["bridge", "debug"]):
            found[name] = b"".join(iter(lambda stream=stream: stream.read(1000), b""))
        assert found == {"bridge": BRIDGE, "debug": SCRIPT}


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (special("ptp", stat.S_IFLNK), "is a link"),
        (special("doc/x", stat.S_IFLNK), "is a link"),
        (special("null", stat.S_IFCHR), "neither a regular file"),
        (special("pipe", stat.S_IFIFO), "neither a regular file"),
        ("/opt/cni/bin/ptp", "absolute path"),
        ("../ptp", "'..' in its path"),
        ("doc/../../ptp", "'..' in its path"),
        ("./bridge", "is in the archive twice"),
    ],
)
def test_a_hostile_archive_is_refused_whole_and_names_the_member(write, bad, why):
    code, msg = refused(write(pack([*PLAIN, (bad, ELF)])))
    name = bad if isinstance(bad, str) else bad.filename
    assert code == "bad_archive"
    assert why in msg and repr(name) in msg


@pytest.mark.parametrize(
    ("limit", "value", "why"),
    [
        ("MEMBER_LIMIT", 1000, "is larger than"),
        ("TOTAL_LIMIT", 1000, "when unpacked"),
        ("COUNT_LIMIT", 2, "the limit of"),
    ],
)
def test_sizes_and_counts_are_bounded_before_anything_is_unpacked(write, monkeypatch, limit, value, why):
    path = write(pack(PLAIN))
    monkeypatch.setattr(archive, limit, value)
    monkeypatch.setattr(archive, "ZipContent", None)
    code, msg = refused(path)
    assert code == "bad_archive" and why in msg


def test_a_member_that_unpacks_to_more_than_it_says_is_damaged(write):
    content = bytearray(pack([("bridge", BRIDGE)]))
    at = content.index(b"PK\x01\x02")
    # The size in the directory; that in the member's own header does not count.
    content[at + 24 : at + 28] = struct.pack("<L", 1000)
    code, msg = refused(write(bytes(content)))
    assert code == "bad_source" and "is damaged" in msg


def test_members_that_overlap_are_refused(write):
    """As in zip bombs that unpack one piece of data thousands of times."""
    content = bytearray(pack([("bridge", BRIDGE)]))
    at = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    entry = bytes(content[at:end])
    content[end:end] = entry
    end += len(entry)
    content[end + 8 : end + 16] = struct.pack("<2HL", 2, 2, 2 * len(entry))
    code, msg = refused(write(bytes(content)))
    assert code == "bad_source" and "overlaps another" in msg


def patch(content, signature, offset, form, value):
    at = content.index(signature) + offset
    return content[:at] + struct.pack(form, value) + content[at + struct.calcsize(form) :]


@pytest.mark.parametrize(
    ("signature", "offset", "form", "value", "why"),
    [
        (b"PK\x01\x02", 8, "<H", 1, "is encrypted"),
        (b"PK\x01\x02", 10, "<H", 14, "packed by the method 14"),
        (b"PK\x01\x02", 16, "<L", 1, "is damaged"),
        (b"PK\x01\x02", 24, "<L", 0xFFFFFFFF, "zip64"),
        (b"PK\x01\x02", 42, "<L", 5, "not where the directory says"),
        (b"PK\x05\x06", 8, "<H", 0xFFFF, "zip64"),
        (b"PK\x05\x06", 10, "<H", 9, "not where it should be"),
        (b"PK\x05\x06", 16, "<L", 1, "not where it should be"),
        (b"PK\x03\x04", 30, "<B", 0x41, "another name in its own header"),
    ],
)
def test_a_damaged_archive_is_refused(write, signature, offset, form, value, why):
    code, msg = refused(write(patch(pack([("bridge", BRIDGE)]), signature, offset, form, value)))
    assert code == "bad_source"
    assert why in msg


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_change_of_bytes_ends_in_another_error(write, data):
    content = bytearray(pack([("bridge", ELF * 20), ("debug", SCRIPT)]))
    for _change in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = write(bytes(content[: data.draw(st.integers(10, len(content)))]))
    with ArchiveSource(path) as source:
        try:
            source.members()
        except HostError as error:
            assert error.code in ("bad_source", "bad_archive")
