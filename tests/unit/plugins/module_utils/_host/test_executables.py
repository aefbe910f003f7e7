# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What root may execute: programs of an ELF machine that only root can change."""

from __future__ import annotations

import io
import os
import struct
from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import executor, trust
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.invoke import Executor


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
    with pytest.raises(HostError) as caught:
        trust.check_plugin(str(script))
    assert caught.value.code == "bad_interpreter"
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
    with pytest.raises(HostError) as caught:
        trust.check_plugin(str(script))
    assert caught.value.code == "unsafe_permissions"


def test_the_interpreter_of_a_script_is_no_script(tmp_path, interpreter):
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f"#!{interpreter}\n")
    script = tmp_path / "script"
    script.write_text(f"#!{wrapper}\n")
    with pytest.raises(HostError) as caught:
        trust.check_plugin(str(script))
    assert caught.value.code == "bad_interpreter"
