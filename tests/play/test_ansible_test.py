# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A user can run `ansible-test integration` in a clone of the collection."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from ansible_collections.podwire.cni.tests.host.host import COLLECTION

PARTS = ("galaxy.yml", "meta", "plugins", "tests/integration")


def test_the_target_passes(tmp_path):
    # ansible-test writes to the tree.
    copy = tmp_path / "ansible_collections" / "podwire" / "cni"
    for part in PARTS:
        make = shutil.copytree if (COLLECTION / part).is_dir() else shutil.copy
        (copy / part).parent.mkdir(parents=True, exist_ok=True)
        make(COLLECTION / part, copy / part)
    command = [str(Path(sys.executable).with_name("ansible-test")), "integration", "--local", "--color", "no"]
    done = subprocess.run(
        command, cwd=copy, env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(tmp_path)}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "TASK [cni_conf : It is there, and nothing was left to do]" in done.stdout
