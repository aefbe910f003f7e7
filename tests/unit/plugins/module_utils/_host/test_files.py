# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import io
import os
import signal
import stat
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import files
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.files import Attributes, Directory
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with, raising

CNI_EXTENSIONS = (".conf", ".conflist", ".json")
MINE = Attributes(0o640, os.getuid(), os.getgid())


@pytest.fixture
def directory(tmp_path):
    folder = tmp_path / "net.d"
    folder.mkdir()
    with Directory(str(folder)) as opened:
        yield opened


def refuse_nameless(monkeypatch, error):
    """Make O_TMPFILE fail as it does on file systems that lack it."""
    real_open = os.open

    def fake(path, flags, mode=0o777, *, dir_fd=None):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(error, os.strerror(error))
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", fake)


@pytest.mark.parametrize("nameless", [True, False])
def test_a_written_file_has_content_mode_and_no_company(directory, monkeypatch, nameless):
    if not nameless:
        refuse_nameless(monkeypatch, errno.EOPNOTSUPP)
    files.write(directory, "10-a.conflist", b"one", MINE)
    files.write(directory, "10-a.conflist", b"two", MINE)
    path = os.path.join(directory.path, "10-a.conflist")
    assert Path(path).read_bytes() == b"two"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640
    assert os.listdir(directory.path) == ["10-a.conflist"]


@pytest.mark.parametrize("nameless", [True, False])
def test_the_name_before_the_rename_is_one_that_no_runtime_reads(directory, monkeypatch, nameless):
    if not nameless:
        refuse_nameless(monkeypatch, errno.EXDEV)
    seen = []
    real_rename = os.rename

    def watch(src, dst, *, src_dir_fd=None, dst_dir_fd=None):
        seen.extend(os.listdir(directory.path))
        assert src_dir_fd == dst_dir_fd == directory.fd
        real_rename(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "rename", watch)
    files.write(directory, "10-a.conflist", b"{}", MINE)
    assert len(seen) == 1
    assert not seen[0].endswith(CNI_EXTENSIONS)


def test_the_nameless_file_is_complete_when_it_gets_its_first_name(directory, monkeypatch):
    real_link = os.link
    seen = []

    def watch(src, dst, **keywords):
        seen.append(os.stat(src).st_size)
        real_link(src, dst, **keywords)

    monkeypatch.setattr(os, "link", watch)
    files.write(directory, "x.conflist", b"x" * 100000, MINE)
    assert seen == [100000]


def test_other_errors_than_missing_support_are_reported(directory, monkeypatch):
    refuse_nameless(monkeypatch, errno.ENOSPC)
    with pytest.raises(HostError, match=r"cannot write .*10-a\.conflist: No space left"):
        files.write(directory, "10-a.conflist", b"x", MINE)


def test_a_failed_rename_leaves_the_old_file_and_no_temporary_one(directory, monkeypatch):
    files.write(directory, "a.conflist", b"old", MINE)

    monkeypatch.setattr(os, "rename", raising(OSError(errno.EIO, "Input/output error")))
    with pytest.raises(HostError, match="Input/output error"):
        files.write(directory, "a.conflist", b"new", MINE)
    assert os.listdir(directory.path) == ["a.conflist"]
    assert Path(directory.path, "a.conflist").read_bytes() == b"old"


def test_a_link_is_replaced_and_its_target_left_alone(directory, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.symlink(str(victim), os.path.join(directory.path, "a.conflist"))
    files.write(directory, "a.conflist", b"{}", MINE)
    assert victim.read_text() == "precious"
    assert not os.path.islink(os.path.join(directory.path, "a.conflist"))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "a\0b", "x" * 201])
def test_names_that_leave_the_directory_are_refused(directory, name):
    with fails_with("bad_file_name"):
        files.write(directory, name, b"", MINE)
    assert os.listdir(directory.path) == []


def test_a_directory_that_is_a_link_is_refused_with_its_target(tmp_path):
    (tmp_path / "real").mkdir()
    os.symlink("real", str(tmp_path / "link"))
    with fails_with("path_is_link") as caught:
        Directory(str(tmp_path / "link"))
    assert str(tmp_path / "real") in caught.value.msg


def test_a_write_follows_the_descriptor_and_not_the_path(directory, tmp_path):
    os.rename(directory.path, str(tmp_path / "moved"))
    os.mkdir(directory.path)
    files.write(directory, "a.conflist", b"{}", MINE)
    assert os.listdir(str(tmp_path / "moved")) == ["a.conflist"]
    assert os.listdir(directory.path) == []


def test_staged_is_complete_but_not_live_until_published(directory):
    staged = files.stage(directory, "bridge", io.BytesIO(b"b" * (3 << 20)), Attributes(0o755, os.getuid(), os.getgid()))
    assert os.path.getsize(staged.path) == 3 << 20
    assert not os.path.exists(os.path.join(directory.path, "bridge"))
    staged.publish()
    assert os.listdir(directory.path) == ["bridge"]


def test_only_our_temporary_names_are_swept(directory):
    for name in (".a.conflist.0123.podwire-tmp", "10-a.conflist", ".b.tmp"):
        files.write(directory, name, b"", MINE)
    directory.remove_stale_temps()
    assert sorted(os.listdir(directory.path)) == [".b.tmp", "10-a.conflist"]


def test_an_existing_directory_keeps_its_mode_and_a_new_one_is_made_with_its_parents(tmp_path):
    (tmp_path / "net.d").mkdir(mode=0o700)
    files.make_directory(str(tmp_path / "net.d"), 0o755)
    assert stat.S_IMODE(os.stat(str(tmp_path / "net.d")).st_mode) == 0o700
    old = os.umask(0o077)
    try:
        files.make_directory(str(tmp_path / "new" / "deeper"), 0o751)
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(str(tmp_path / "new" / "deeper")).st_mode) == 0o751


def test_killed_anywhere_a_reader_sees_the_old_or_the_new_file(directory):
    bodies = [bytes([65 + n]) * 50000 for n in range(2)]
    files.write(directory, "a.conflist", bodies[0], MINE)
    path = os.path.join(directory.path, "a.conflist")
    for attempt in range(60):
        child = os.fork()
        if child == 0:
            try:
                while True:
                    for body in bodies:
                        files.write(directory, "a.conflist", body, MINE)
            finally:
                os._exit(1)
        threading.Event().wait(0.002 + attempt * 0.0003)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert Path(path).read_bytes() in bodies
        assert not [
            name for name in os.listdir(directory.path) if name != "a.conflist" and name.endswith(CNI_EXTENSIONS)
        ]
    directory.remove_stale_temps()
    assert os.listdir(directory.path) == ["a.conflist"]


# ---- mode and owner


@pytest.mark.parametrize(
    ("mode", "expected"), [("0644", 0o644), ("644", 0o644), (0o644, 0o644), ("0400", 0o400), ("755", 0o755)]
)
def test_modes(mode, expected):
    attributes = files.read_attributes(mode, "0", "0")
    assert (attributes.mode, attributes.uid, attributes.gid) == (expected, 0, 0)


@pytest.mark.parametrize(
    "mode", [644, "0o644", "u=rw", "4755", "0377", "0888", 0o377, 0o1000, -1, True, None, "", "0644\n"]
)
def test_modes_that_are_refused(mode):
    with fails_with("bad_mode", "is refused; write three octal digits"):
        files.read_attributes(mode, "0", "0")


@pytest.mark.parametrize(("mode", "instead"), [("0664", "0644"), ("0722", "0700"), (0o777, "0755")])
def test_modes_that_let_others_than_root_decide_what_root_runs_are_refused(mode, instead):
    with fails_with("unsafe_permissions", f"use '{instead}'"):
        files.read_attributes(mode, "0", "0")


def test_owners(monkeypatch):
    users, groups = {"alice": 1001, "root": 0, "toor": 0}, {"alice": 2002}
    monkeypatch.setattr(files.pwd, "getpwnam", lambda name: SimpleNamespace(pw_uid=users[name]))
    monkeypatch.setattr(files.grp, "getgrnam", lambda name: SimpleNamespace(gr_gid=groups[name]))
    for owner, group, gid in (("root", "alice", 2002), ("toor", "8", 8), ("00", "0", 0)):
        attributes = files.read_attributes("0600", owner, group)
        assert (attributes.uid, attributes.gid) == (0, gid)
    # A digit of another script is part of a name.
    for group in ("bob", "\u0663"):
        attributes = files.read_attributes("0600", "root", group)
        with pytest.raises(HostError, match=f"^group: there is no group '{group}' on this host") as caught:
            files.check_group(attributes)
        assert (caught.value.code, caught.value.may_pass) == ("bad_group", True)
    for owner in ("alice", "7", "bob", "\u0660"):
        with fails_with("unsafe_permissions", f"^owner: '{owner}' is refused.*'group' and 'mode'"):
            files.read_attributes("0600", owner, "0")


class Selinux(ModuleType):
    """The Python module of SELinux, on a host that uses it or not."""

    def __init__(self, enabled, found=0):
        super().__init__("selinux")
        self.is_selinux_enabled = lambda: enabled
        self.matchpathcon = lambda path, mode: (found, f"label of {os.path.basename(path)} {mode:o}")


@pytest.mark.parametrize(
    ("selinux", "label"),
    [
        (Selinux(1), b"label of 10-a.conflist 100000\0"),
        (Selinux(0), None),
        (Selinux(-1), None),
        (Selinux(1, found=-1), None),
    ],
)
def test_the_label_of_the_final_path(directory, monkeypatch, selinux, label):
    labels = []
    monkeypatch.setitem(sys.modules, "selinux", selinux)
    monkeypatch.setattr(os, "setxattr", lambda fd, name, value: labels.append((name, value)))
    files.write(directory, "10-a.conflist", b"{}", MINE)
    assert labels == ([("security.selinux", label)] if label else [])


# ---- failures


def test_a_file_system_without_nameless_files_may_say_so_late(directory, monkeypatch):
    monkeypatch.setattr(os, "link", raising(OSError(errno.EXDEV, "Invalid cross-device link")))
    files.write(directory, "10-a.conflist", b"one", MINE)
    assert Path(directory.path, "10-a.conflist").read_bytes() == b"one"
    assert os.listdir(directory.path) == ["10-a.conflist"]


@pytest.mark.parametrize("nameless", [True, False])
def test_a_full_disk_leaves_nothing(directory, monkeypatch, nameless):
    if not nameless:
        refuse_nameless(monkeypatch, errno.EOPNOTSUPP)
    monkeypatch.setattr(os, "fsync", raising(OSError(errno.ENOSPC, "No space left on device")))
    with fails_with("write_failed", r"cannot write .*/10-a.conflist: No space left on device"):
        files.write(directory, "10-a.conflist", b"one", MINE)
    assert os.listdir(directory.path) == []


def test_a_write_in_parts(directory, monkeypatch):
    real_write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real_write(fd, bytes(data[:2])))
    files.write(directory, "10-a.conflist", b"12345", MINE)
    assert Path(directory.path, "10-a.conflist").read_bytes() == b"12345"


def test_a_staged_file_that_cannot_be_published(directory):
    staged = files.stage(directory, "plugin", io.BytesIO(b"x"), MINE)
    os.unlink(staged.path)
    with fails_with("write_failed", r"cannot rename .* to plugin: No such file"):
        staged.publish()
    staged.discard()


def test_a_staged_file_is_discarded(directory):
    staged = files.stage(directory, "plugin", io.BytesIO(b"x"), MINE)
    staged.discard()
    assert os.listdir(directory.path) == []


def test_a_source_that_cannot_be_read(directory):
    class Broken(io.BytesIO):
        def read(self, size=-1):
            raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(HostError, match=r"cannot write .*/plugin: Input/output error"):
        files.stage(directory, "plugin", Broken(), MINE)
    assert os.listdir(directory.path) == []


def test_a_directory_that_cannot_be_opened_or_made(tmp_path):
    with fails_with("no_directory", r"cannot open the directory .*: No such file"):
        Directory(str(tmp_path / "none"))
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "net.d", tmp_path / "file" / "a" / "b"):
        with fails_with("no_directory", "cannot create the directory"):
            files.make_directory(str(path), 0o755)


def test_removing_twice_is_fine(directory):
    files.write(directory, "10-a.conflist", b"{}", MINE)
    directory.remove("10-a.conflist")
    directory.remove("10-a.conflist")
    assert os.listdir(directory.path) == []
