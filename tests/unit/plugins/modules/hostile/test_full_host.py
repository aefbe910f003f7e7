# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""File systems that are full or read-only: the first error is told, and the result of finished work is not lost."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.modules.hostile import files

CONF = {"networks": [{"name": "apps", "content": json.dumps(files.CONFLIST)}], "validate": ["syntax"]}
PATH = "/etc/cni/net.d/10-apps.conflist"
FILES = files.sound()


@pytest.fixture
def mounted():
    """Mount a small file system at a path, until the test ends; called with options it is mounted again with them."""
    with contextlib.ExitStack() as stack:

        def mount(path, options, again=False):
            os.makedirs(path, exist_ok=True)
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", options + (",remount" if again else ""), "none", path], check=True
            )
            if not again:
                stack.callback(subprocess.run, ["umount", "-l", path], check=True)

        yield mount


def fill(folder):
    """Leave no room for a single byte."""
    with open(os.path.join(folder, "filler"), "wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(b"x" * 4096)


def test_a_full_run_is_said_before_anything_is_done(mounted, run_module):
    mounted("/run/podwire-cni", "size=16k,mode=0700")
    fill("/run/podwire-cni")
    result = run_module("cni_conf", CONF)
    assert result["failed"] and result["code"] == "lock_unusable" and "No space left" in result["msg"]
    assert not os.path.exists(PATH)
    assert run_module("cni_conf", CONF, check_mode=True)["changed"]


def test_a_run_that_fills_up_meanwhile_does_not_lose_the_result_of_finished_work(mounted, run_module, monkeypatch):
    from ansible_collections.podwire.cni.plugins.module_utils._host.lock import Lock

    def note(self, holder, real=Lock._note):
        if not holder:
            raise OSError(28, "No space left on device")
        real(self, holder)

    monkeypatch.setattr(Lock, "_note", note)
    result = run_module("cni_conf", CONF)
    assert result["changed"] and not result.get("failed") and os.path.exists(PATH)
    # The note of a holder stays, and says that others have to plan again.
    monkeypatch.undo()
    assert not run_module("cni_conf", CONF)["changed"]


def test_the_cause_is_told_and_not_that_of_the_clean_up_where_opt_is_read_only(mounted, run_module, plugin):
    mounted("/opt/cni/bin", "mode=0755")
    arguments = plugin("/opt/cni/bin")
    mounted("/opt/cni/bin", "ro", again=True)
    for check_mode in (True, False, False, True):
        result = run_module("cni_plugins", arguments, check_mode=check_mode)
        if check_mode:
            assert result["changed"], result
        else:
            assert (result["failed"], result["code"]) == (True, "write_failed"), result
            assert "/opt/cni/bin/bridge: Read-only file system" in result["msg"]
    assert os.listdir("/opt/cni/bin") == []


@pytest.mark.parametrize("folder", ["/etc/cni/net.d", "/var/lib/podwire/state"])
@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_a_directory_that_cannot_be_written_is_named(mounted, run_module, folder, kind):
    for parent in ("/var/lib/podwire", "/var/lib/podwire/state"):
        os.makedirs(parent, mode=0o700, exist_ok=True)
    mounted(folder, "size=16k,mode=0700")
    if kind == "full":
        fill(folder)
    else:
        mounted(folder, "ro", again=True)
    result = run_module("cni_conf", CONF)
    assert (result["failed"], result["code"]) == (True, "write_failed"), result
    assert folder in result["msg"] and ("No space left" if kind == "full" else "Read-only file system") in result["msg"]
    assert not os.path.exists(PATH)
