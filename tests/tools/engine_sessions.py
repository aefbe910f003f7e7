# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The sessions of noxfile.py about the programs that run playbooks in the place of ansible-playbook."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import fresh
import machine
import nox
from sessions import count, pytest, requirements, snapshot

DEFINITIONS = ("execution-environment.yml", "execution-environment-redhat.yml")
ARCHIVE = "podwire-cni.tar.gz"
FULL = bool(os.environ.get("PODWIRE_FULL"))


@nox.session(default=FULL)
def engines(session: nox.Session) -> None:
    """Run the playbooks by ansible-runner and ansible-navigator, as docs/awx.md shows."""
    requirements(session, "engines")
    machine.install(machine.TO_TEST)
    machine.acquire_root()
    session.env["PODWIRE_PLUGINS"] = str(machine.plugins("bookworm"))
    with snapshot(session), tempfile.TemporaryDirectory(prefix="podwire-") as files:
        pytest(session, f"--basetemp={files}/tests", *(session.posargs or ["tests/real/engines"]), private=False)


@nox.session(default=False)
def eda(session: nox.Session) -> None:
    """Let ansible-rulebook repair a host with the rulebook of the collection. It needs Java."""
    requirements(session, "eda")
    machine.install((*machine.TO_TEST, "default-jre-headless"))
    machine.acquire_root()
    session.env["PODWIRE_PLUGINS"] = str(machine.plugins("bookworm"))
    with snapshot(session), tempfile.TemporaryDirectory(prefix="podwire-") as files:
        pytest(session, f"--basetemp={files}/tests", *(session.posargs or ["tests/real/rulebook"]))


@nox.session(default=FULL)
def ee(session: nox.Session) -> None:
    """Build the execution environment of awx/ without a registry, and run playbooks in it on three hosts."""
    requirements(session, "ee", "cri")
    machine.install([*machine.TO_TEST, "buildah"])
    machine.acquire_root()
    base = machine.ee_base()
    with snapshot(session) as copy, tempfile.TemporaryDirectory(prefix="podwire-") as work:
        session.run("ansible-galaxy", "collection", "build", "--output-path", work, ".", silent=True)
        (archive,) = Path(work).glob("podwire-cni-*.tar.gz")
        archive.rename(copy / "awx" / ARCHIVE)
        for name in DEFINITIONS:
            # Only Debian's base can be made here, and Red Hat's definition is only checked.
            context = "context" if name == DEFINITIONS[0] else name
            options = ["--context", f"{work}/{context}", "--output-filename", "Containerfile"]
            session.run("ansible-builder", "create", "--file", f"awx/{name}", *options, silent=True)
        fresh.write_settings(Path(work, "settings"))
        plugins = str(machine.plugins("bookworm"))
        owner = ("--owner=root", "--group=root")
        subprocess.run(["tar", "-czf", f"{work}/cni-plugins.tgz", *owner, "-C", plugins, "."], check=True)
        programs = (machine.runtimes(), Path(session.bin, "ansible-navigator"))
        command = fresh.as_root(copy / "tests" / "real" / "engines" / "ee.sh", work, base, *programs)
        lines = str(session.run(*command, external=True, silent=True)).splitlines()
    print(*lines, sep="\n")
    count(session, passed=len(DEFINITIONS) + sum(line.startswith("  [ok] ") for line in lines))
