# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Real containerds that run and do not serve pods say why."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import wait_until

FOLDER = Path("/run/home/refusing")
HEAD = 'version = {version}\nroot = "{folder}/root"\nstate = "{folder}/state"\n[grpc]\naddress = "{folder}/socket"\n'
TWO_KEYS = '[plugins."io.containerd.cri.v1.runtime".cni]\nbin_dir = "/opt/cni/bin"\nbin_dirs = ["/opt/cni/bin"]\n'
NO_SNAPSHOTTER = '[plugins."io.containerd.grpc.v1.cri".containerd]\nsnapshotter = "nothing"\n'


# Of inotify_init1, on x86-64 and ARM 64.
CALLS = {"x86_64": 294, "aarch64": 26}


def refuse_inotify():
    """Have no inotify instance left, in this process and its children: the limit itself is one of the whole machine."""
    load, equal, end, allow, refuse = 0x20, 0x15, 0x06, 0x7FFF0000, 0x50000 | errno.EMFILE
    steps = [(load, 0, 0, 0), (equal, 0, 1, CALLS[os.uname().machine]), (end, 0, 0, refuse), (end, 0, 0, allow)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    # PR_SET_NO_NEW_PRIVS, and PR_SET_SECCOMP with a filter.
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


INOTIFY = "failed to create cni conf monitor"


@pytest.mark.parametrize(
    ("release", "version", "settings_of_it", "prepare", "words"),
    [
        ("trixie", 2, NO_SNAPSHOTTER, None, 'failed to find snapshotter "nothing"'),
        ("forky", 3, TWO_KEYS, None, "`cni.bin_dir` and `cni.bin_dirs` cannot be set at the same time"),
        ("", 2, "", refuse_inotify, INOTIFY),
        ("", 2, NO_SNAPSHOTTER, None, 'failed to find snapshotter "nothing"'),
        ("forky", 3, "", refuse_inotify, INOTIFY),
    ],
)
def test_containerd_says_why_it_serves_no_pods(host, settings, release, version, settings_of_it, prepare, words):
    # 1.7 and 2.1; without a name 1.6.
    roots = {Path(path).name: Path(path) for path in settings["cni_test_containerds"]}
    root = roots[release] if release else Path(settings["cni_test_runtimes"])
    FOLDER.mkdir()
    config = FOLDER / "config.toml"
    config.write_text(HEAD.format(version=version, folder=FOLDER) + settings_of_it)
    # A copy that is root's, as modules look at no other.
    program = Path(shutil.copy(root / "usr/bin/containerd", FOLDER))
    nothing = subprocess.DEVNULL
    daemon = subprocess.Popen([program, "--config", config], stdout=nothing, stderr=nothing, preexec_fn=prepare)
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
