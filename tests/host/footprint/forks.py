# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose modules run in forks of one process, for tests that run them thousands of times."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from ansible_collections.podwire.cni.tests.host.host import PLUGINS, PYTHON, Host

_servers: dict[str, subprocess.Popen[str]] = {}


class ForkingHost(Host):
    """A Host that does not start a Python for each run of a module."""

    def execute(self, module: str, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
        server = _servers.get(self._path) or self._start_server()
        environment = {**os.environ, **(options["environment"] or {})}
        request = {"module": f"{PLUGINS}.modules.{module}", "arguments": arguments, "environment": environment}
        assert server.stdin and server.stdout
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        printed, errors = json.loads(server.stdout.readline())
        return self.parsed(printed, errors)

    def _start_server(self) -> subprocess.Popen[str]:
        # It ends with its input, when the tests end.
        server = subprocess.Popen(
            [PYTHON, str(Path(__file__).with_name("module_server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": self._path, "PYTHONPYCACHEPREFIX": str(self.folder / "compiled")},
            text=True,
            cwd="/",
        )
        return _servers.setdefault(self._path, server)
