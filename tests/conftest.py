# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def run_privately():
    """Return a function that runs a command in namespaces of its own, returns what it printed, or fails with that."""

    def run(environment, *command):
        variables = (f"{name}={value}" for name, value in environment.items())
        done = subprocess.run(
            [HERE / "private.sh", "env", *variables, *command],
            cwd="/",
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


# First, before pytest takes the directory that the user who called it has made, and that modules do not trust.
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Keep the temporary files of a worker in its private /run, where they belong to root."""
    if hasattr(config, "workerinput"):
        config.option.basetemp = "/run/home/pytest"


# First, so that pytest-xdist sees the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Let one worker run a whole file, because its tests share fixtures. Start with playbooks, which take longest."""
    for item in items:
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(str(item.path)))
    first = ("test_playbooks.py", "test_docs_examples.py")
    items.sort(key=lambda item: [item.path.name != name for name in first])
