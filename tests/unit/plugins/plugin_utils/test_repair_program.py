# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils import repair_program


@pytest.fixture
def make(tmp_path, monkeypatch):
    monkeypatch.setattr(repair_program.C, "DEFAULT_LOCAL_TMP", str(tmp_path))
    return lambda: Path(repair_program.make())


def run_alone(*words):
    command = [sys.executable, "-I", "-S", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_release_always_makes_the_same_file(make):
    program = make()
    first = program.read_bytes()
    assert make() == program
    assert program.read_bytes() == first
    assert list(program.parent.iterdir()) == [program]


def test_it_runs_without_ansible_and_this_collection(make):
    program = make()
    assert [file for file in zipfile.ZipFile(program).namelist() if "ansible" in file] == []
    assert "{watch,repair}" in run_alone(program, "--help")


def test_what_it_needs_later_is_in_it(make):
    run_alone("-c", f"import sys; sys.path.insert(0, {str(make())!r}); import podwire_cni._host.attachments.upkeep")
