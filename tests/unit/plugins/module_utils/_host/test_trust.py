# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Only what nobody but root can change tells root what to run. These tests need root, as the rule does."""

from __future__ import annotations

import io
import os
import shlex
import socket
import stat
import struct
import subprocess
from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import executor, trust
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.caches import HostStores
from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import scan_conf_dir
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage.candidate import GcSettings
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage.planner import plan_gc
from ansible_collections.podwire.cni.plugins.module_utils._host.info import attachments, conf
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.planner import SmokePlanner
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.trial import SmokeSettings
from ansible_collections.podwire.cni.plugins.module_utils._host.trust import (
    check_socket,
    check_trusted,
    open_trusted,
    untrusted,
)
from ansible_collections.podwire.cni.plugins.module_utils.libcni import cache
from ansible_collections.podwire.cni.plugins.module_utils.libcni.invoke import Executor
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import web
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

SOMEBODY = 12345


@pytest.fixture
def tree(tmp_path):
    """Return a directory with a/b/file, a link to a/b, and a sticky directory."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").touch()
    (tmp_path / "link").symlink_to("a/b")
    (tmp_path / "sticky").mkdir()
    (tmp_path / "sticky").chmod(0o1777)
    return tmp_path


def refusal(path):
    with fails_with("unsafe_permissions") as caught:
        check_trusted(str(path))
    return caught.value


def test_what_only_root_can_change_is_trusted(tree):
    for path in ("a/b/file", "a/b", "link", "link/file", "sticky/../a", "not/there", "a//b/./file"):
        check_trusted(f"{tree}/{path}")
    (tree / "sticky" / "mine").mkdir()
    check_trusted(str(tree / "sticky" / "mine"))


@pytest.mark.parametrize("spoil", [lambda path: path.chmod(0o775), lambda path: path.chmod(0o757)])
@pytest.mark.parametrize("part", ["a", "a/b", "a/b/file"])
@pytest.mark.parametrize("path", ["a/b/file", "link/file"])
def test_every_part_of_a_path_counts_and_the_remedy_works(tree, path, part, spoil):
    spoil(tree / part)
    error = refusal(tree / path)
    assert error.facts["file"] == str(tree / part)
    subprocess.run(shlex.split(error.msg.rpartition("fix it with: ")[2]), check=True)
    check_trusted(str(tree / path))


@pytest.mark.parametrize("part", ["a", "a/b", "a/b/file"])
def test_what_belongs_to_another_user_is_refused(tree, part):
    os.chown(tree / part, SOMEBODY, -1)
    error = refusal(tree / "link" / "file")
    assert f"belongs to user {SOMEBODY}" in error.msg
    subprocess.run(shlex.split(error.msg.rpartition("fix it with: ")[2]), check=True)
    check_trusted(str(tree / "link" / "file"))


def test_sticky_directories_keep_what_root_has_and_not_what_others_may_make(tree):
    (tree / "sticky" / "below").mkdir()
    (tree / "sticky" / "same").symlink_to(".")
    for path in ("sticky", "sticky/not-there", "sticky/below/..", "sticky/same"):
        assert refusal(f"{tree}/{path}").facts["file"] == str(tree / "sticky")
    (tree / "sticky" / "link").symlink_to("../a")
    check_trusted(str(tree / "sticky" / "link" / "b"))
    os.lchown(tree / "sticky" / "link", SOMEBODY, -1)
    assert refusal(tree / "sticky" / "link" / "b").facts["file"] == str(tree / "sticky" / "link")


def test_a_directory_that_holds_a_link_counts_too(tree):
    (tree / "open").mkdir()
    (tree / "open" / "link").symlink_to(tree / "a")
    (tree / "open").chmod(0o777)
    assert refusal(tree / "open" / "link" / "b").facts["file"] == str(tree / "open")


def test_links_in_a_circle_end(tree):
    (tree / "one").symlink_to("two")
    (tree / "two").symlink_to("one")
    with pytest.raises(HostError, match="cannot examine"):
        check_trusted(str(tree / "one"))


def test_a_directory_is_opened_part_by_part_without_links_and_made_if_it_is_missing(tree, monkeypatch):
    before = os.umask(0o077)
    try:
        fd = open_trusted(f"{tree}/a/new/newer")
    finally:
        os.umask(before)
    assert os.path.samestat(os.fstat(fd), os.stat(f"{tree}/a/new/newer"))
    os.close(fd)
    assert [stat.S_IMODE((tree / "a" / name).stat().st_mode) for name in ("new", "new/newer")] == [0o755, 0o755]
    # Another program may make it first.
    make = os.mkdir
    monkeypatch.setattr(os, "mkdir", lambda path, dir_fd: make(path, 0o700, dir_fd=dir_fd) or make(path, dir_fd=dir_fd))
    os.close(open_trusted(f"{tree}/a/theirs"))
    assert stat.S_IMODE((tree / "a/theirs").stat().st_mode) == 0o700
    for path, code in ((tree / "link", "no_directory"), (tree / "a/b/file", "no_directory")):
        with fails_with(code):
            open_trusted(f"{path}/below")
    for path, spoiled in (("a/new/newer", "a"), ("sticky", "sticky"), ("sticky/made", "sticky")):
        (tree / "a").chmod(0o777)
        with pytest.raises(HostError) as caught:
            open_trusted(f"{tree}/{path}")
        assert (caught.value.code, caught.value.facts["file"]) == ("unsafe_permissions", str(tree / spoiled))
    assert not (tree / "sticky" / "made").exists()


def test_a_socket_is_trusted_like_a_file_and_whoever_may_connect_does_not_matter(tree):
    path = tree / "a" / "socket"
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        path.chmod(0o666)
        check_socket(str(path))
        check_socket(f"{tree}/link/../socket")
        with pytest.raises(ValueError, match="not a socket"):
            check_socket(str(tree / "a"))
        with pytest.raises(ValueError, match="not a socket"):
            check_socket(os.path.relpath(str(path)))
        with pytest.raises(FileNotFoundError):
            check_socket(str(tree / "none"))
        os.chown(str(path), SOMEBODY, 0)
        with pytest.raises(HostError, match=r"the socket .* belongs to user 12345"):
            check_socket(str(path))
        os.chown(str(path), 0, 0)
        (tree / "a").chmod(0o777)
        with pytest.raises(HostError, match="can be written by users other than root"):
            check_socket(str(path))


def test_an_entry_of_an_access_control_list_is_seen(tree):
    # user::rwx user:12345:rwx group::r-x mask::rwx other::r-x, as setfacl -m u:12345:rwx makes it.
    entries = [(1, 7, 0xFFFFFFFF), (2, 7, SOMEBODY), (4, 5, 0xFFFFFFFF), (16, 7, 0xFFFFFFFF), (32, 5, 0xFFFFFFFF)]
    value = b"\2\0\0\0" + b"".join(
        tag.to_bytes(2, "little") + bits.to_bytes(2, "little") + who.to_bytes(4, "little") for tag, bits, who in entries
    )
    os.setxattr(tree / "a", "system.posix_acl_access", value)
    refusal(tree / "a" / "b")


def test_each_reason_is_reported_once(tree):
    (tree / "a").chmod(0o777)
    found = untrusted([str(tree / "a" / "b"), str(tree / "a" / "b" / "file"), str(tree / "link")])
    (entry,) = found
    assert (entry.level, entry.code, entry.file) == ("warning", "unsafe_permissions", str(tree / "a"))


# ---- the modules that run plugins refuse, those that read report

SPOILED = {
    "conf_dir": lambda attach_host: attach_host.conf_dir,
    "conflist": lambda attach_host: os.path.join(attach_host.conf_dir, "10-demo.conflist"),
    "drop-in folder": lambda attach_host: os.path.join(attach_host.conf_dir, "demo"),
    "drop-in": lambda attach_host: os.path.join(attach_host.conf_dir, "demo", "extra.conf"),
    "cache_dir": lambda attach_host: attach_host.cache_dir,
    "results": lambda attach_host: os.path.join(attach_host.cache_dir, "results"),
    "records": lambda attach_host: os.path.join(attach_host.cache_dir, "podwire"),
    "entry": lambda attach_host: os.path.join(attach_host.cache_dir, "results", "demo-web-eth0"),
}


@pytest.fixture
def attached(attach_host):
    os.mkdir(os.path.join(attach_host.conf_dir, "demo"))
    with open(os.path.join(attach_host.conf_dir, "demo", "extra.conf"), "w") as stream:
        stream.write('{"type": "meta"}')
    attach_host.namespace("db", inode=2)
    assert attach_host.run(web()).outcomes[0].action == "added"
    return attach_host


def attach_codes(attach_host, **changed):
    """Return the codes with which cni_attach refuses."""
    try:
        return {outcome.error["code"] for outcome in attach_host.run(web(**changed)).outcomes if outcome.error}
    except HostError as error:
        return {error.code}


def smoke_codes(attach_host):
    places = attach_host.conf_dir, [attach_host.bin_dir], attach_host.cache_dir
    settings = SmokeSettings(*places, ["demo"], False, False, 5, False)
    try:
        return {trial.error["code"] for trial in SmokePlanner(settings).make().trials if trial.error}
    except HostError as error:
        return {error.code}


def gc_codes(attach_host):
    settings = GcSettings(
        attach_host.conf_dir, [attach_host.bin_dir], attach_host.cache_dir, allow_empty=True, check_mode=True
    )
    try:
        plan_gc(settings)
    except HostError as error:
        return {error.code}
    return set()


@pytest.mark.parametrize("kind", SPOILED)
@pytest.mark.parametrize("mode", ["others", "group", "owner"])
def test_modules_that_run_plugins_refuse_what_others_can_write(attached, kind, mode):
    path = SPOILED[kind](attached)
    assert attach_codes(attached) == set()
    if mode == "owner":
        os.chown(path, SOMEBODY, -1)
    else:
        os.chmod(path, os.stat(path).st_mode | (0o002 if mode == "others" else 0o020))
    assert attach_codes(attached) == {"unsafe_permissions"}
    assert gc_codes(attached) == {"unsafe_permissions"}
    if kind != "entry":
        assert smoke_codes(attached) == {"unsafe_permissions"}
    if kind in ("cache_dir", "results", "records", "entry"):
        assert attach_codes(attached, state="absent") == {"unsafe_permissions"}


@pytest.mark.parametrize("kind", ["conflist", "drop-in", "conf_dir"])
def test_in_check_mode_a_file_that_an_earlier_task_corrects_is_a_warning(attached, kind):
    path = SPOILED[kind](attached)
    os.chown(path, SOMEBODY, -1)
    plan = attached.check(web(), web(container_id="db", netns="db"))
    assert [outcome.error for outcome in plan.outcomes] == [None, None]
    assert [outcome.action for outcome in plan.outcomes] == ["none", "added"]
    assert [code for code, message in plan.warnings if path in message] == ["unsafe_permissions"]
    assert "ADD" not in {verb for verb, *_rest in attached.calls}


@pytest.mark.parametrize("kind", SPOILED)
def test_modules_that_read_report_what_others_can_write(attached, kind):
    def problems():
        found = conf.conf(scan_conf_dir(attached.conf_dir), attached.conf_dir, Manifest())[1]
        found += attachments.AttachmentsInfo(HostStores(attached.cache_dir)).problems
        return [(entry.code, entry.file) for entry in found]

    assert problems() == []
    path = SPOILED[kind](attached)
    os.chmod(path, os.stat(path).st_mode | 0o002)
    assert problems() == [("unsafe_permissions", path)]


def test_a_symlinked_cache_entry_is_not_followed(attached, tmp_path):
    path = os.path.join(attached.cache_dir, "results", "demo-web-eth0")
    os.rename(path, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", path)
    assert cache.read_entry(path) is None
    assert attach_codes(attached) == attach_codes(attached, state="absent") == {"unsafe_permissions"}
    message = attached.run(web()).outcomes[0].error["message"]
    assert "is a symbolic link, which is not followed" in message
    here = attachments.AttachmentsInfo(HostStores(attached.cache_dir))
    assert list(here.states.values()) == ["lost"]
    assert ("unsafe_permissions", path) in [(entry.code, entry.file) for entry in here.problems]


def test_a_symlinked_note_is_not_followed(attached, tmp_path):
    path = os.path.join(attached.cache_dir, "podwire", "demo-web-eth0")
    os.rename(path, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", path)
    assert attach_codes(attached) == set()
    here = attachments.AttachmentsInfo(HostStores(attached.cache_dir))
    assert [row.state for row in here.entries] == [""]
    assert [(entry.code, entry.file) for entry in here.problems] == [("record_unreadable", path)]


def elf(machine, order=1):
    return b"\x7fELF\x02" + bytes([order]) + bytes(12) + struct.pack("<H" if order == 1 else ">H", machine)


@pytest.mark.parametrize(
    ("header", "machine"),
    [
        (elf(62), "x86_64"),
        (elf(3), "i386"),
        (elf(8), "mips64le"),
        (elf(8, 2), "mips64"),
        (elf(40), "arm"),
        (elf(183), "aarch64"),
        (elf(243), "riscv64"),
        (elf(258), "loongarch64"),
        (elf(21), "ppc64le"),
        (elf(21, 2), "ppc64"),
        (elf(22, 2), "s390x"),
        (elf(22), "elf-22"),
        (elf(4711), "elf-4711"),
        (elf(62, 0), None),
        (elf(62, 3), None),
        (elf(62)[:19], None),
        (b"#!/bin/sh\nexec something", None),
        (b"", None),
    ],
)
def test_machines_of_files(header, machine):
    assert trust.elf_machine(io.BytesIO(header + b"rest" if len(header) == 20 else header)) == machine


@pytest.mark.parametrize(
    ("machine", "order", "expected"),
    [
        ("x86_64", "little", "x86_64"),
        ("armv7l", "little", "arm"),
        ("arm", "little", "arm"),
        ("aarch64", "little", "aarch64"),
        ("i686", "little", "i386"),
        ("i486", "little", "i386"),
        ("mips64", "little", "mips64le"),
        ("mips64", "big", "mips64"),
    ],
)
def test_the_machine_of_the_host(monkeypatch, machine, order, expected):
    monkeypatch.setattr(trust.os, "uname", lambda: SimpleNamespace(machine=machine))
    monkeypatch.setattr(trust.sys, "byteorder", order)
    assert trust.host_machine() == expected


def refused(path):
    with pytest.raises(HostError) as caught:
        trust.check_executable(str(path))
    return caught.value.code, caught.value.msg


def test_programs(tmp_path):
    program = tmp_path / "program"
    program.write_bytes(elf(62))
    (tmp_path / "link").symlink_to(program)
    assert trust.check_executable(str(program)) == trust.check_executable(str(tmp_path / "link")) == str(program)


def test_what_is_no_program(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert refused(script) == ("not_elf", f"{script} is not an ELF file and is not executed")
    assert refused(tmp_path) == ("not_elf", f"{tmp_path} is not a regular file and is not executed")
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path / "pipe")[0] == "not_elf"
    assert refused(tmp_path / "none") == ("unreadable", f"cannot examine {tmp_path}/none: No such file or directory")


def test_a_program_that_others_can_change(tmp_path):
    program = tmp_path / "program"
    program.write_bytes(elf(62))
    program.chmod(0o777)
    assert refused(program)[0] == "unsafe_permissions"


def test_a_plugin_is_examined_before_it_runs(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(Executor, "exec_plugin", lambda self, *arguments: ran.append(arguments) or b"it ran")
    plugin = tmp_path / "plugin"
    plugin.write_text("echo {}\n")
    with pytest.raises(HostError, match="not an ELF file"):
        executor.SafeExecutor().exec_plugin(str(plugin), b"{}", {}, 5)
    assert ran == []
    plugin.write_bytes(elf(62))
    assert executor.SafeExecutor().exec_plugin(str(plugin), b"{}", {"A": "b"}, 5) == b"it ran"
    assert ran == [(str(plugin), b"{}", {"A": "b"}, 5)]


@pytest.fixture
def interpreter(tmp_path):
    path = tmp_path / "python3"
    path.write_bytes(elf(62))
    return path


@pytest.mark.parametrize("form", ["#!{}\n", "#! {} \n", "#!{} -IS\nimport sys\n", "#!\t{}\t-I\n"])
def test_a_script_is_a_plugin(tmp_path, interpreter, form):
    script = tmp_path / "script"
    script.write_text(form.format(interpreter))
    (tmp_path / "link").symlink_to(script)
    assert trust.check_plugin(str(script)) == trust.check_plugin(str(tmp_path / "link")) == str(script)
    # As a program of the system, it is not run.
    assert refused(script)[0] == "not_elf"
    with open(script, "rb") as stream:
        assert trust.plugin_machine(stream) == trust.SCRIPT


@pytest.mark.parametrize(
    "line",
    [
        "#!python3\n",
        "#!./python3\n",
        "#!/usr/bin/env python3\n",
        "#!/bin/busybox sh\n",
        "#!\n",
        "#!   \n",
        "#!/usr/bin/python3",
        "#!/" + "x" * 300 + "\n",
        "#!/nowhere/python3\n",
        "#!/etc\n",
        "#!/etc/passwd\n",
        "#!/usr/bin/py\0thon3\n",
    ],
)
def test_a_script_without_an_interpreter_that_root_may_run(tmp_path, line):
    script = tmp_path / "script"
    script.write_text(line)
    with fails_with("bad_interpreter") as caught:
        trust.check_plugin(str(script))
    assert str(script) in caught.value.msg


def test_a_script_and_its_interpreter_belong_to_root(tmp_path, interpreter):
    script = tmp_path / "script"
    script.write_text(f"#!{interpreter}\n")
    interpreter.chmod(0o777)
    with pytest.raises(HostError) as caught:
        trust.check_plugin(str(script))
    assert (caught.value.code, caught.value.facts["file"]) == ("bad_interpreter", str(interpreter))
    interpreter.chmod(0o755)
    script.chmod(0o775)
    with fails_with("unsafe_permissions"):
        trust.check_plugin(str(script))


def test_the_interpreter_of_a_script_is_no_script(tmp_path, interpreter):
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f"#!{interpreter}\n")
    script = tmp_path / "script"
    script.write_text(f"#!{wrapper}\n")
    with fails_with("bad_interpreter"):
        trust.check_plugin(str(script))
