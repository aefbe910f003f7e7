# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Real containerds that run and do not serve pods say why."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import wait_until

FOLDER = Path("/run/home/refusing")
HEAD = 'version = {version}\nroot = "{folder}/root"\nstate = "{folder}/state"\n[grpc]\naddress = "{folder}/socket"\n'
TWO_KEYS = '[plugins."io.containerd.cri.v1.runtime".cni]\nbin_dir = "/opt/cni/bin"\nbin_dirs = ["/opt/cni/bin"]\n'
NO_SNAPSHOTTER = '[plugins."io.containerd.grpc.v1.cri".containerd]\nsnapshotter = "nothing"\n'


@pytest.mark.parametrize(
    ("release", "version", "settings_of_it", "words"),
    [
        ("trixie", 2, NO_SNAPSHOTTER, 'failed to find snapshotter "nothing"'),
        ("forky", 3, TWO_KEYS, "`cni.bin_dir` and `cni.bin_dirs` cannot be set at the same time"),
    ],
)
def test_containerd_says_why_it_serves_no_pods(host, settings, release, version, settings_of_it, words):
    [root] = [Path(path) for path in settings["cni_test_containerds"] if Path(path).name == release]
    FOLDER.mkdir()
    config = FOLDER / "config.toml"
    config.write_text(HEAD.format(version=version, folder=FOLDER) + settings_of_it)
    # A copy that is root's, as modules look at no other.
    program = Path(shutil.copy(root / "usr/bin/containerd", FOLDER))
    daemon = subprocess.Popen([program, "--config", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until((FOLDER / "socket").exists, 30)

        def obstacle():
            found = host.run("cni_info", gather=["readiness"])["readiness"]["obstacles"]
            return next((one for one in found if one["code"] == "cri_not_loaded"), None)

        wait_until(obstacle, 30)
        assert (obstacle()["level"], words in obstacle()["evidence"]) == ("error", True)
    finally:
        daemon.kill()
        daemon.wait()
        shutil.rmtree(FOLDER)
