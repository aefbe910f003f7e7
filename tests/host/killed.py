# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Runs modules in copies of this process, which can be killed when they are about to change a file."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys

from ansible.module_utils.testing import patch_module_args

_NAMES = ("chmod", "chown", "link", "mkdir", "remove", "rename", "rmdir", "symlink", "truncate")
CHANGES = {f"os.{name}" for name in _NAMES}


def die_at(number):
    """Kill this process when it is about to change the file system for the time of that number."""
    changes = 0

    def count(event, arguments):
        nonlocal changes
        if event in CHANGES or (event == "open" and arguments[2] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR)):
            changes += 1
            if changes == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def run_module(main, arguments, kill_at):
    if kill_at:
        die_at(kill_at)
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null), patch_module_args(arguments):
        main()


def ends(main, arguments, kill_at=0):
    """Return whether the module came to a good end, and was not killed at the change of that number."""
    process = multiprocessing.get_context("fork").Process(target=run_module, args=[main, arguments, kill_at])
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode == 0
