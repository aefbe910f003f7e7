# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which programs root runs, and who only looks like it. These tests need root, as the rule does."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import processes as module
from ansible_collections.podwire.cni.plugins.module_utils._host.processes import (
    Mount,
    Process,
    mounts,
    processes,
    started,
)

SOMEBODY = 12345
NAME = "containerd-test"
# A program whose comm, and that of its thread, is another one's name.
RENAMED = f"""\
import threading, time
def rename():
    open("/proc/thread-self/comm", "w").write("{NAME}")
    started.set(); time.sleep(600)
started = threading.Event(); threading.Thread(target=rename, daemon=True).start(); started.wait()
open("/proc/self/comm", "w").write("{NAME}"); print(flush=True); time.sleep(600)
"""


def arguments(pid, exe):
    """Return the arguments of a process once it executes *exe*."""
    if os.readlink(f"/proc/{pid}/exe") != exe:
        return b""
    with open(f"/proc/{pid}/cmdline", "rb") as stream:
        return stream.read()


@pytest.fixture
def run(tmp_path):
    """Return a function that starts a command and waits until it executes *exe*; it returns the process ID."""
    running = []

    def start(*argv, exe=None, **options):
        process = subprocess.Popen([str(word) for word in argv], **options)
        running.append(process)
        deadline = time.monotonic() + 30
        # A program that is being started has its name before it has its arguments.
        while not arguments(process.pid, os.path.realpath(str(exe or argv[0]))):
            assert time.monotonic() < deadline, "it did not start"
            time.sleep(0.01)
        return process.pid

    start.processes = running
    yield start
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def program(tmp_path):
    path = tmp_path / NAME
    shutil.copy(shutil.which("sleep"), str(path))
    return path


def test_a_process_is_known_by_its_executable(run, program, tmp_path):
    pid = run(program, "600", cwd=str(tmp_path))
    assert processes(NAME) == [Process(pid, [str(program), "600"], NAME, str(program), str(tmp_path))]
    assert processes("nomad", "containerd*") == processes(NAME)
    assert processes(NAME[:-1], NAME + "x") == []


def test_neither_its_first_argument_nor_a_link_nor_a_thread_makes_a_program_another_one(run, program, tmp_path):
    sleep = shutil.copy(str(program), str(tmp_path / "sleep"))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / NAME).symlink_to(sleep)
    run(tmp_path / "in" / NAME, "600")
    run(program, "600", executable=sleep, exe=sleep)
    with subprocess.Popen([sys.executable, "-c", RENAMED], stdout=subprocess.PIPE) as renamed:
        renamed.stdout.readline()
        assert processes(NAME) == []
        renamed.kill()


def open_to_users(path):
    for folder in (path, *list(path.parents)[:-1]):
        if not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(0o755)


def as_user(uid, gid=None):
    """Return a function that makes a process a user's, for preexec_fn; Popen has `user` since Python 3.9."""
    return lambda: (os.setgid(uid if gid is None else gid), os.setuid(uid))


# A program that its setuid parent has started with a user's real ID is not setuid itself.
@pytest.mark.parametrize(
    ("mode", "become", "others"),
    [
        (0o755, as_user(SOMEBODY), SOMEBODY),
        (0o4755, as_user(SOMEBODY), 0),
        (0o755, lambda: os.setresuid(SOMEBODY, 0, 0), 0),
    ],
)
def test_a_process_that_a_user_has_started_is_not_roots(run, program, tmp_path, mode, become, others):
    program.chmod(mode)
    open_to_users(tmp_path)
    pid = run(program, "600", preexec_fn=become)
    with open(f"/proc/{pid}/status") as stream:
        line = next(line for line in stream if line.startswith("Uid:")).split()[1:]
    assert line == [str(SOMEBODY), *[str(others)] * 3]
    assert processes(NAME) == []


@pytest.mark.parametrize("uid", [0, SOMEBODY])
def test_root_of_another_user_namespace_is_not_root(run, program, tmp_path, uid):
    open_to_users(tmp_path)
    run("unshare", "--user", "--map-root-user", program, "600", exe=program, preexec_fn=as_user(uid))
    assert processes(NAME) == []
    assert processes(NAME, seeing="/") == []


def with_mount(folder):
    """Return the words that run a command in a mount namespace with an empty *folder*."""
    return ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {folder} && exec "$@"', "sh")


@pytest.mark.parametrize("folder", ["/mnt", "/home"])
def test_a_service_with_mounts_of_its_own_is_of_this_host(run, program, folder):
    # As systemd starts it with ProtectHome= or PrivateTmp=.
    pid = run(*with_mount(folder), program, "600", exe=program)
    assert [(process.pid, process.program) for process in processes(NAME)] == [(pid, str(program))]


@pytest.mark.parametrize("folder", ["/etc", "/var/lib", "/opt"])
def test_a_program_that_sees_other_files_is_not_of_this_host(run, program, folder):
    run(*with_mount(folder), program, "600", exe=program)
    assert processes(NAME) == []


def test_a_container_without_a_directory_of_the_host_counts_if_it_sees_the_one_that_is_asked_for(
    run, program, tmp_path, monkeypatch
):
    (tmp_path / "opt" / "deeper").mkdir(parents=True)
    run(*with_mount(tmp_path / "opt"), program, "600", exe=program)
    monkeypatch.setattr(module, "_STATE", (str(tmp_path / "opt" / "deeper"),))
    assert processes(NAME) == []
    assert [process.name for process in processes(NAME, seeing=str(program.parent))] == [NAME]


HOST_MOUNTS = [Mount("8:1", "/", "/"), Mount("0:5", "/", "/dev"), Mount("8:2", "/vol", "/etc/cni")]


@pytest.mark.parametrize(
    ("conf_dir", "mounted", "sees"),
    [
        ("/etc/net.d", Mount("8:1", "/etc/net.d", "/host/net.d"), True),
        ("/etc/net.d", Mount("8:1", "/etc", "/host/etc"), True),
        ("/etc/net.d", Mount("8:1", "/", "/host"), True),
        ("/etc/net.d", Mount("8:1", "/etc/net.d/deeper", "/deeper"), False),
        ("/etc/net.d", Mount("8:1", "/etc/net", "/etc/net.d"), False),
        ("/etc/net.d", Mount("0:77", "/", "/"), False),
        ("/etc/cni/net.d", Mount("8:2", "/vol/net.d", "/host/net.d"), True),
        ("/etc/cni/net.d", Mount("8:2", "/vol", "/host"), True),
        ("/etc/cni/net.d", Mount("8:1", "/etc/cni/net.d", "/host/net.d"), False),
    ],
)
def test_a_program_in_a_container_counts_only_if_it_has_the_directory(
    run, program, monkeypatch, conf_dir, mounted, sees
):
    pid = run(*with_mount("/opt"), program, "600", exe=program)
    assert processes(NAME) == []
    monkeypatch.setattr(module, "mounts", lambda process: HOST_MOUNTS if process == "self" else [mounted])
    found = [(one.pid, one.name, one.program) for one in processes(NAME, seeing=conf_dir)]
    assert found == ([(pid, NAME, "")] if sees else [])


def test_mounts_are_read_as_the_kernel_writes_them(run, program):
    pid = run(*with_mount("/opt"), program, "600", exe=program)
    roots = [[mount for mount in mounts(process) if mount.point == "/"] for process in (pid, "self")]
    assert roots[0] == roots[1]
    [found] = processes(NAME, seeing=str(program.parent))
    assert found.pid == pid
    with pytest.raises(OSError):
        mounts(2**22 + 1)


@pytest.mark.parametrize("spoil", ["owner of the file", "file", "owner of the folder", "folder", "setuid"])
def test_a_program_that_others_than_root_can_change_does_not_count(run, program, tmp_path, spoil):
    run(program, "600")
    path = tmp_path if "folder" in spoil else program
    if "owner" in spoil:
        os.chown(str(path), SOMEBODY, 0)
    else:
        path.chmod(0o4755 if spoil == "setuid" else 0o775)
    assert processes(NAME) == []


def test_a_program_that_was_upgraded_still_runs_and_its_successor_is_asked(run, program):
    pid = run(program, "600")
    program.unlink()
    assert [(found.pid, found.program) for found in processes(NAME)] == [(pid, "")]
    shutil.copy(shutil.which("sleep"), str(program))
    assert [(found.pid, found.program) for found in processes(NAME)] == [(pid, str(program))]


def test_a_script_is_known_by_its_trusted_path(run, tmp_path):
    bash, script = os.path.realpath(shutil.which("bash")), tmp_path / "firewalld"
    script.write_text(f"#!{bash} -p\nread -r line\n")
    script.chmod(0o755)
    pid = run(script, "--nofork", exe=bash, stdin=subprocess.PIPE)
    [found] = processes("firewalld")
    assert (found.pid, found.argv, found.program) == (pid, [str(script), "--nofork"], "")
    os.chown(str(script), SOMEBODY, 0)
    assert processes("firewalld") == []


@pytest.fixture
def script(tmp_path):
    path = tmp_path / NAME
    path.write_text("")
    return path


BASH, PYTHON = os.path.realpath(shutil.which("bash")), os.path.realpath(sys.executable)
WAIT, READ = "import sys; sys.stdin.read()", "read -r line"


@pytest.mark.parametrize(
    "argv",
    [
        [BASH, "-c", READ],
        [BASH, "-ec", READ],
        [BASH, "-o", "pipefail", "-c", READ],
        [BASH, "-s"],
        [BASH, "--rcfile"],
        [PYTHON, "-c", WAIT],
        [PYTHON, "-Isc", WAIT],
        [PYTHON, "-m", "asyncio"],
        [PYTHON, "-Im", "asyncio"],
        [PYTHON, "-"],
    ],
    ids=lambda argv: " ".join(argv[1:]),
)
def test_an_argument_of_an_interpreter_that_executes_something_else_is_no_script(run, script, argv):
    run(*argv, script, stdin=subprocess.PIPE)
    assert processes("containerd*", "firewalld") == []


@pytest.mark.parametrize("command", ["/bin/true /srv/{}; {}", "true {}; {}"])
def test_a_text_that_looks_like_a_path_is_no_script(run, command):
    run(BASH, "-c", command.format(NAME, READ), f"/srv/{NAME}", stdin=subprocess.PIPE)
    assert processes("containerd*") == []


@pytest.mark.parametrize("spoil", ["missing", "directory", "fifo"])
def test_a_script_is_a_regular_file(run, script, spoil):
    script.write_text(READ)
    run(BASH, "-e", script, stdin=subprocess.PIPE)
    assert [found.argv for found in processes(NAME)] == [[str(script)]]
    script.unlink()
    if spoil == "directory":
        script.mkdir()
    elif spoil == "fifo":
        os.mkfifo(str(script))
    assert processes(NAME) == []


def test_an_applet_is_an_interpreter_only_if_it_was_called_as_one(run, script, tmp_path):
    """busybox is many programs, and most take files as arguments."""
    busybox = shutil.copy(BASH, str(tmp_path / "busybox"))
    script.write_text(READ)
    run("/bin/cat", script, executable=busybox, exe=busybox, stdin=subprocess.PIPE)
    assert processes(NAME) == []
    pid = run("/bin/ash", script, executable=busybox, exe=busybox, stdin=subprocess.PIPE)
    assert [(found.pid, found.argv) for found in processes(NAME)] == [(pid, [str(script)])]


@pytest.mark.parametrize("namespaces", [(), ("--user", "--map-root-user")])
def test_only_arguments_of_roots_processes_are_read(run, program, tmp_path, monkeypatch, namespaces):
    """A user can make a read of his arguments block, where his file system serves their pages."""
    open_to_users(tmp_path)
    enter = ["unshare", *namespaces] if namespaces else []
    pid = run(*enter, program, "600", exe=program, preexec_fn=as_user(SOMEBODY))
    run(program, "600")
    read, real = [], module._read

    def noted(directory, name):
        read.extend([os.readlink(f"/proc/self/fd/{directory}")] if name == "cmdline" else [])
        return real(directory, name)

    monkeypatch.setattr(module, "_read", noted)
    assert [found.pid for found in processes(NAME)] == [run.processes[1].pid]
    assert f"/proc/{pid}" not in read
    assert read


def test_a_program_that_is_several_is_known_by_the_name_that_it_was_called_by(run, tmp_path):
    shutil.copy(shutil.which("sleep"), str(tmp_path / "k3s"))
    (tmp_path / NAME).symlink_to("k3s")
    pid = run(tmp_path / NAME, "600")
    server = run("/usr/local/bin/k3s server", "600", executable=str(tmp_path / "k3s"), exe=tmp_path / "k3s")
    assert [(found.pid, found.program) for found in processes(NAME)] == [(pid, str(tmp_path / NAME))]
    assert [found.pid for found in processes("k3s")] == [server]


def test_a_process_that_ends_while_it_is_inspected_is_left_out(run, program, monkeypatch):
    pid = run(program, "600")
    real = os.readlink

    def readlink(path, **options):
        link = real(path, **options)
        if link == str(program):
            run.processes[0].kill()
            run.processes[0].wait()
        return link

    monkeypatch.setattr(module.os, "readlink", readlink)
    assert processes(NAME) == []
    assert started(pid) is None


def test_a_process_that_becomes_another_program_while_it_is_inspected_is_left_out(run, program, monkeypatch):
    run(program, "600")
    links = iter([str(program), "/usr/bin/other"])
    real = os.readlink
    monkeypatch.setattr(
        module.os,
        "readlink",
        lambda path, **options: next(links) if real(path, **options) == str(program) else real(path, **options),
    )
    assert processes(NAME) == []


def test_without_privileges_nothing_is_known(monkeypatch):
    def refuse(path):
        raise PermissionError(path)

    monkeypatch.setattr(module.os, "stat", refuse)
    assert processes(NAME) == []


def test_options_of_a_command_line_are_read_in_both_ways():
    words = ["crio", "--config", "/a", "--cni-plugin-dir=/b", "-c=c", "--cni-plugin-dir", "/d", "--config-dir"]
    process = Process(7, words, "crio", cwd="/srv")
    assert process.option("--config", "-c") == "c"
    assert process.options("--cni-plugin-dir") == ["/b", "/d"]
    assert process.paths("--config", "-c") == ["/a", "/srv/c"]
    assert process.option("--config-dir") == Process(7, ["--config", "/a"]).option("--config") == ""
    assert (Process().argv, Process().options("x")) == ((), [])
