# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook conformance: what it says of good and bad plugins, and of hosts and plugins that cannot be tested."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")


@pytest.fixture
def judge(tmp_path):
    """Return a function that runs the playbook, on the plugins in ``bin``, with variables; it says what was printed."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "inventory").write_text("node ansible_connection=local ansible_python_interpreter=/usr/bin/python3\n")
    given = {
        "cni_hosts": "node",
        "cni_conformance_parallel": 2,
        "cni_conformance_versions": "1.0.0",
        "cni_conf_dir": tmp_path,
        "cni_bin_dirs": tmp_path / "bin",
    }

    def run(*variables, status=0):
        command = [PLAYBOOK, "-i", tmp_path / "inventory", "podwire.cni.conformance"]
        for text in (*(f"{name}={value}" for name, value in given.items()), *variables):
            command += ["-e", text]
        env = {**os.environ, "TMPDIR": str(temporary), "ANSIBLE_NOCOLOR": "1"}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        assert re.search("node +: .* changed=0 ", done.stdout)
        assert list(temporary.glob("*conformance*")) == []
        return done.stdout

    return run


@pytest.fixture
def install(releases, tmp_path):
    def copy(name, target=""):
        shutil.copy(Path(releases["new"]) / name, tmp_path / "bin" / (target or name))

    return copy


def test_a_host_without_plugins(judge):
    assert "no plugin that root may run was found" in judge(status=2)
    for spared in ('{"cni_conformance_fail": false}', "cni_conformance_fail=no"):
        assert "node: not judged: 0 plugins judged" in judge(spared)
    assert "no plugin that root may run: nosuch" in judge("cni_conformance_plugins=nosuch", status=2)


def test_verdicts(judge, install):
    """A plugin that could not be tested counts if it is the only one, or was asked for by name."""
    install("loopback", "vendor")
    untested = "bin/vendor could not be tested: .*--config"
    assert re.search(untested, judge(status=2))
    install("loopback")
    assert "node: conforming: 1 plugin judged, not " in judge()
    assert "node: conforming: 1 plugin judged\n" in judge("cni_conformance_plugins=loopback").replace(")\n", "\n")
    assert re.search(untested, judge("cni_conformance_plugins=loopback,vendor", status=2))
    install("host-device")
    said = judge(status=2)
    assert "bin/host-device violates a must" in said
    assert not re.search(untested, said.partition("FAILED!")[2])
