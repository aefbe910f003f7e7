# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.lookup import cni_repair_program


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setattr(cni_repair_program.C, "DEFAULT_LOCAL_TMP", str(tmp_path))
    (path,) = cni_repair_program.LookupModule().run([])
    return Path(path)


def test_a_release_always_makes_the_same_file(program):
    first = program.read_bytes()
    assert cni_repair_program.LookupModule().run([]) == [str(program)]
    assert program.read_bytes() == first
    assert list(program.parent.iterdir()) == [program]


def test_it_runs_without_ansible_and_this_collection(program):
    names = zipfile.ZipFile(program).namelist()
    assert "podwire_cni/_host/attachments/upkeep.py" in names
    assert [name for name in names if "ansible" in name] == []
    command = [sys.executable, "-I", "-S", str(program), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=program.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert "{watch,repair}" in done.stdout


def test_what_a_repair_needs_is_in_it(program):
    code = f"import sys; sys.path.insert(0, {str(program)!r}); import podwire_cni._host.attachments.upkeep"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
