# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sessions of noxfile.py about the programs that run playbooks in the place of ansible-playbook."""

from __future__ import annotations

import tempfile

import machine
import nox
from sessions import pytest, requirements, snapshot


@nox.session
def engines(session: nox.Session) -> None:
    """Run the playbooks by ansible-runner and ansible-navigator, as docs/awx.md shows."""
    requirements(session, "engines")
    machine.install(machine.TO_TEST)
    machine.acquire_root()
    session.env["PODWIRE_PLUGINS"] = str(machine.plugins("bookworm"))
    with snapshot(session), tempfile.TemporaryDirectory(prefix="podwire-") as files:
        pytest(session, f"--basetemp={files}/tests", *(session.posargs or ["tests/engines"]), private=False)


@nox.session(default=False)
def eda(session: nox.Session) -> None:
    """Let ansible-rulebook repair a host with the rulebook of the collection. It needs Java."""
    requirements(session, "eda")
    machine.install((*machine.TO_TEST, "default-jre-headless"))
    machine.acquire_root()
    session.env["PODWIRE_PLUGINS"] = str(machine.plugins("bookworm"))
    with snapshot(session), tempfile.TemporaryDirectory(prefix="podwire-") as files:
        pytest(session, f"--basetemp={files}/tests", *(session.posargs or ["tests/eda"]))
