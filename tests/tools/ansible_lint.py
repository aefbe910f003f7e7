# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Runs ansible-lint, with its arguments. Its syntax checks run in forks of one process.

It starts ansible-playbook for each playbook, and most of that is the start of an interpreter and its imports.
"""

from __future__ import annotations

import contextlib
import runpy
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import preloaded
from ansiblelint import runner

PARTS = ("ansible.cli.playbook", "ansible.plugins.filter.core", "controller_half", "yaml")
CODE = "from ansible.cli.playbook import main; main()"


class Forks:
    """Takes the place of subprocess for ansible-lint's runner, whose programs are all ansible-playbook."""

    PIPE = subprocess.PIPE

    def __init__(self, folder: str) -> None:
        self._address = Path(folder, "socket")
        self._starting = threading.Lock()
        self._server: preloaded.Server | None = None

    def run(self, command: list[str], env: dict[str, str], **_options: Any) -> subprocess.CompletedProcess[str]:
        with self._starting:
            if self._server is None:
                # With the settings that ansible-lint has made for all.
                self._server = preloaded.Server(self._address, sys.executable, "", PARTS, **env)
        return subprocess.CompletedProcess(command, *self._server.run(CODE, *command, env=env, cwd=str(Path.cwd())))

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="podwire-") as folder, contextlib.closing(Forks(folder)) as forks:
        # Only what it calls itself: no other module of it, nor of Ansible, gets this.
        runner.subprocess = forks
        runpy.run_module("ansiblelint", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
