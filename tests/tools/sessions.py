# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What the sessions of noxfile.py share: their environment, a copy of the collection, pytest, and counts of checks."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import machine
import nox

PRIVATE = str(machine.ROOT / "tests" / "private.sh")


def requirements(session: nox.Session, *names: str) -> None:
    """Install tests/requirements-NAME.txt, and give Ansible a home directory that is not the user's."""
    session.install(*(word for name in names for word in ("-r", f"tests/requirements-{name}.txt")))
    home = machine.CACHE / "home"
    home.mkdir(parents=True, exist_ok=True)
    session.env["HOME"] = str(home)


def provide_pip(session: nox.Session) -> None:
    """Let ansible-test install the pip that comes with Python, instead of one that it downloads from its own host."""
    text = "import ensurepip; ensurepip.bootstrap(upgrade=True, default_pip=True)\n"
    where = session.run("python", "-c", "import ansible_test; print(*ansible_test.__path__)", silent=True)
    source = Path(str(where).strip(), "_internal", "python_requirements.py").read_text()
    cache = Path(session.env["HOME"], ".ansible", "test", "cache")
    cache.mkdir(parents=True, exist_ok=True)
    for version in re.findall(r"^ *pip='([0-9.]+)',$", source, re.MULTILINE):
        (cache / f"get_pip_{version.replace('.', '_')}.py").write_text(text)


@contextlib.contextmanager
def snapshot(session: nox.Session) -> Iterator[Path]:
    """Copy the files that git tracks or would track to where Ansible looks for collections, and enter the copy.

    Files that tests write and edits in the meantime do no harm. The copy is a git work tree, as ansible-test asks git.
    """
    with tempfile.TemporaryDirectory(prefix="podwire-") as folder:
        copy = Path(folder, "ansible_collections", "podwire", "cni")
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"],
            cwd=machine.ROOT, capture_output=True, check=True, text=True,
        ).stdout.split("\0")  # fmt: skip
        for name in filter(None, listed):
            if (machine.ROOT / name).exists():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(machine.ROOT / name, copy / name, follow_symlinks=False)
        for command in (["init", "--quiet"], ["add", "--all"]):
            subprocess.run(["git", *command], cwd=copy, check=True)
        session.env["ANSIBLE_COLLECTIONS_PATH"] = session.env["PYTHONPATH"] = folder
        with session.chdir(copy):
            # Compiled once. Later programs may run as root, and the user could not remove root's files.
            session.run("python", "-m", "compileall", "-q", "plugins", silent=True)
            session.env["PYTHONDONTWRITEBYTECODE"] = "1"
            yield copy


def link(session: nox.Session) -> None:
    """Let Ansible find the collection in this very tree."""
    # Another clone has a link of its own, and another session of this one finds it as it is.
    folder = machine.CACHE / f"linked-{hashlib.sha256(str(machine.ROOT).encode()).hexdigest()[:12]}"
    collection = folder / "ansible_collections" / "podwire" / "cni"
    collection.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        collection.symlink_to(machine.ROOT)
    session.run("python", "-m", "compileall", "-q", "plugins", silent=True)
    session.env["ANSIBLE_COLLECTIONS_PATH"] = session.env["PYTHONPATH"] = str(folder)
    session.env["PYTHONDONTWRITEBYTECODE"] = "1"


def count(session: nox.Session, passed: int = 0, failed: int = 0, skipped: Sequence[str] = ()) -> None:
    """Count checks of a session for the closing line of `./run test`; a session that counts none is one check."""
    results = os.environ.get("PODWIRE_RESULTS")
    if results:
        entry = {"session": session.name, "passed": passed, "failed": failed, "skipped": skipped}
        with open(Path(results, f"{session.name}.counts"), "a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry) + "\n")


def count_junit(session: nox.Session, report: Path) -> None:
    """Count the tests of a report of pytest, and keep it beside the counts."""
    results = os.environ.get("PODWIRE_RESULTS")
    if results:
        kept = len(list(Path(results).glob(f"{session.name}.*.xml")))
        shutil.copy(report, Path(results, f"{session.name}.{kept}.xml"))
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        tests, skips = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped = [
            f"{case.get('name')}: {skip.get('message')}"
            for case in suite.iter("testcase")
            for skip in case.iter("skipped")
        ]
        count(session, tests - failed - skips, failed, skipped)


def report_coverage(session: nox.Session, what: str, data: Path) -> None:
    total = str(session.run("coverage", "report", f"--data-file={data}", "--format=total", silent=True)).split()[-1]
    add_coverage(session, total, what)


def add_coverage(session: nox.Session, total: str, what: str) -> None:
    """Add a line about covered lines to the summary of `./run test`."""
    print(f"Lines covered by tests: {total} % of {what}")
    results = os.environ.get("PODWIRE_RESULTS")
    if results:
        with open(Path(results, "coverage"), "a", encoding="utf-8") as stream:
            stream.write(f"coverage: {session.name}: {total} % of the lines of {what}\n")


def pytest(session: nox.Session, *arguments: str, private: bool = True, covered: str = "") -> None:
    """Run pytest, in private namespaces if wanted, and count its tests, also if some fail.

    *covered* is the directory whose covered lines are reported.
    """
    with tempfile.TemporaryDirectory(prefix="podwire-") as folder:
        report, data = Path(folder, "junit.xml"), Path(folder, "coverage")
        measure = ["-m", "coverage", "run", f"--data-file={data}", f"--source={covered}"] if covered else []
        # The output of tests that pass would make the reports large.
        options = ["-q", "--color=no", f"--junit-xml={report}", "-o", "junit_logging=no"]
        command = ["python", *measure, "-m", "pytest", *options, *arguments]
        try:
            session.run(*([PRIVATE] if private else []), *command, external=private)
        finally:
            if report.exists():
                count_junit(session, report)
        if covered:
            report_coverage(session, covered, data)
