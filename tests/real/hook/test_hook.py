# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The hook of pre-commit, as another repository uses it: pre-commit installs it from this repository and runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PRE_COMMIT = Path(sys.executable).with_name("pre-commit")
GIT = ["git", "-c", "user.name=Newcomer", "-c", "user.email=newcomer@example.com"]
NETWORK = {"cniVersion": "1.0.0", "name": "apps", "plugins": [{"type": "bridge", "mtu": 1500}]}
MANIFEST = """\
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: storage}
spec:
  config: |
    {"cniVersion": "1.0.0", "type": "macvlan", "mode": "bridge"}
"""


def git(folder: Path, *words: str) -> str:
    return subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def hooks(tmp_path_factory):
    """This repository as pre-commit clones it, and its revision."""
    folder = tmp_path_factory.mktemp("hooks")
    copy = folder / "podwire.cni"
    # ROOT is a copy of the work tree, whose index has all files.
    subprocess.run(["git", "checkout-index", "--all", f"--prefix={copy}/"], cwd=ROOT, check=True)
    git(copy, "init", "--quiet")
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "--message=All")
    return copy, git(copy, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def repository(hooks, tmp_path_factory):
    """A repository of somebody who uses the hook, with its environment installed."""
    folder = tmp_path_factory.mktemp("repository")
    address, revision = hooks
    config = {"repos": [{"repo": str(address), "rev": revision, "hooks": [{"id": "podwire-cni-lint"}]}]}
    (folder / ".pre-commit-config.yaml").write_text(json.dumps(config))
    git(folder, "init", "--quiet")
    environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path_factory.mktemp("home"))}
    # The environment of the hook has nothing of this one.
    environment.pop("PYTHONPATH", None)

    def run(files):
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
        git(folder, "add", "--all")
        done = subprocess.run(
            [PRE_COMMIT, "run", "--all-files", "--color=never"],
            cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        for name in files:
            (folder / name).unlink()
        return done.returncode, done.stdout

    return run


def test_files_of_other_kinds_are_no_concern_of_the_hook(repository):
    status, output = repository({"a.json": {"cniVersion": 1}, "README.md": "{"})
    assert status == 0, output


def test_good_files_pass(repository):
    files = {"a.conflist": NETWORK, "etc/net.d/b.conf": {"cniVersion": "1.0.0", "name": "b", "type": "loopback"}}
    status, output = repository({**files, "manifests/c.yaml": MANIFEST})
    assert status == 0, output
    assert "CNI networks and NetworkAttachmentDefinitions" in output and "Passed" in output


def test_bad_files_fail_with_place_and_code(repository):
    bad = {**NETWORK, "plugins": [{"type": "bridge", "mtu": "1500"}]}
    files = {"a.conflist": bad, "etc/net.d/b.conf": "{", "manifests/c.yaml": MANIFEST.replace('"bridge"', '"brigde"')}
    status, output = repository(files)
    assert status == 1, output
    assert 'a.conflist:7:14: error: /plugins/0/mtu: bridge: mtu is the string "1500"' in output
    assert "etc/net.d/b.conf:1:" in output and "[json_truncated]" in output
    assert "manifests/c.yaml:6:56: error: /spec/config/mode: macvlan: " in output
