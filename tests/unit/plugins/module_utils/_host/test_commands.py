# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import commands
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

SHELL = "/bin/sh"


def code_of(call):
    with pytest.raises(HostError) as caught:
        call()
    return caught.value.code


def refuse(monkeypatch, *paths):
    """Let root's rule refuse these paths; it needs root to be tested as it is."""

    def check(path):
        if path in paths:
            raise HostError(f"{path} is not safe", code="unsafe_permissions")
        return path

    monkeypatch.setattr(commands, "check_executable", check)


@pytest.fixture
def tools(tmp_path, monkeypatch):
    for directory in ("local", "system"):
        (tmp_path / directory).mkdir()
        tool = tmp_path / directory / "tool"
        tool.write_text("")
        tool.chmod(0o755)
    directories = [str(tmp_path / "local"), str(tmp_path / "system")]
    monkeypatch.setattr(commands, "DIRECTORIES", directories)
    return directories


def test_the_first_command_that_root_may_run_is_found(tools, monkeypatch):
    refuse(monkeypatch)
    assert commands.find_command("tool") == tools[0] + "/tool"
    assert commands.find_command("other") is None
    refuse(monkeypatch, tools[0] + "/tool")
    assert commands.find_command("tool") == tools[1] + "/tool"
    refuse(monkeypatch, tools[0] + "/tool", tools[1] + "/tool")
    assert code_of(lambda: commands.find_command("tool")) == "unsafe_permissions"


def test_what_cannot_be_executed_is_not_found(tools, monkeypatch):
    refuse(monkeypatch)
    os.chmod(tools[0] + "/tool", 0o644)
    assert commands.find_command("tool") == tools[1] + "/tool"


def test_a_command_gets_its_input_and_a_fixed_environment(monkeypatch):
    refuse(monkeypatch)
    monkeypatch.setenv("LD_PRELOAD", "/nowhere.so")
    monkeypatch.setenv("HOME", "/home/of/root")
    done = commands.run_command([SHELL, "-c", "cat; env; echo no >&2; exit 3"], 20, b"input\n")
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "input"
    assert {"LC_ALL=C", "HOME=/home/of/root", "PATH=" + ":".join(commands.DIRECTORIES)} <= set(lines)
    assert not [line for line in lines if line.startswith("LD_PRELOAD")]
    assert (done.rc, done.stderr) == (3, "no\n")


def test_a_command_is_ended_at_its_deadline(monkeypatch):
    refuse(monkeypatch)
    with fails_with("command_failed", r"/bin/sh -c .* did not end within 0.2 s\): why"):
        commands.run_command([SHELL, "-c", "echo why >&2; exec sleep 600"], 0.2)


def test_a_command_cannot_fill_the_memory(monkeypatch):
    refuse(monkeypatch)
    monkeypatch.setattr(commands, "OUTPUT_LIMIT", 100000)
    assert code_of(lambda: commands.run_command([SHELL, "-c", "exec cat /dev/zero"], 60)) == "command_failed"


def test_a_command_that_a_signal_ends_or_that_is_not_there_failed(monkeypatch):
    refuse(monkeypatch)
    assert code_of(lambda: commands.run_command([SHELL, "-c", "kill -TERM $$"], 60)) == "command_failed"
    assert code_of(lambda: commands.run_command(["/no/such/command"], 60)) == "command_failed"


def test_what_root_must_not_run_is_not_run(monkeypatch):
    refuse(monkeypatch, SHELL)
    assert code_of(lambda: commands.run_command([SHELL, "-c", "exit 0"], 60)) == "unsafe_permissions"
