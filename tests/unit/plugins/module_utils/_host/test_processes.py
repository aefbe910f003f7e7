# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import processes as module
from ansible_collections.podwire.cni.plugins.module_utils._host.processes import option, options, processes


@pytest.fixture
def _sleeper(tmp_path):
    """A process of root with a runtime's name, which the kernel cuts."""
    program = tmp_path / "containerd-shim-runc-v2"
    shutil.copy(shutil.which("sleep"), program)
    process = subprocess.Popen([str(program), "600"])
    deadline = time.monotonic() + 30
    # A program that is being started has its name before it has its arguments.
    while not any(found.argv[1:] for found in processes("containerd-shim")) and time.monotonic() < deadline:
        time.sleep(0.01)
    yield process
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_processes_are_found_by_their_name(_sleeper, tmp_path):
    found = {process.pid: process.argv for process in processes("containerd-shim")}
    assert found[_sleeper.pid] == [str(tmp_path / "containerd-shim-runc-v2"), "600"]
    assert _sleeper.pid not in [process.pid for process in processes("containerd-shi")]


@pytest.mark.parametrize("different", ["mnt", "uid"])
def test_processes_of_users_and_of_other_mount_namespaces_are_not(_sleeper, monkeypatch, different):
    real = os.stat

    def stat(path, *args, **kwargs):
        status = real(path, *args, **kwargs)
        if different == "mnt" and path == f"/proc/{_sleeper.pid}/ns/mnt":
            return os.stat_result((status.st_mode, status.st_ino + 1, *tuple(status)[2:]))
        if different == "uid" and path == f"/proc/{_sleeper.pid}":
            return os.stat_result((*tuple(status)[:4], 1000, *tuple(status)[5:]))
        return status

    monkeypatch.setattr(module.os, "stat", stat)
    assert _sleeper.pid not in [process.pid for process in processes("containerd-shim")]


def test_a_process_that_ends_meanwhile_is_left_out(monkeypatch):
    monkeypatch.setattr(module.os, "listdir", lambda path: ["4194305", "version"])
    assert processes("containerd-shim") == []


def test_several_names_are_looked_for_at_once(_sleeper):
    assert [found.name for found in processes("nomad", "containerd-shim") if found.pid == _sleeper.pid] == [
        "containerd-shim"
    ]


def test_options_of_a_command_line_are_read_in_both_ways():
    argv = ["crio", "--config", "/a", "--cni-plugin-dir=/b", "-c=/c", "--cni-plugin-dir", "/d", "--config-dir"]
    assert option(argv, "--config", "-c") == "/c"
    assert options(argv, "--cni-plugin-dir") == ["/b", "/d"]
    assert option(argv, "--config-dir") == option(["--config", "/a"], "--config") == ""
