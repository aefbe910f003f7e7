# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the demo, the tutorial or the tests in new minimal Debian systems, as on the machine of a newcomer.

fresh.py RESULTS [SUITE...] [--user] [demo] [tutorial] [test]

For each suite, it makes a system with a clone of the commit that is checked out, and with the settings that apt and pip
need on this machine. RESULTS gets the counts of checks, as JSON. The exit status is 1 if a check failed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gzip
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import machine
import tutorial

SUITES = ("bookworm", "trixie", "forky")
# A mirror's copy of such a suite may be older than its Release file allows.
IN_DEVELOPMENT = ("forky",)
COMMANDS = ("demo", "tutorial", "test")
TUTORIAL = machine.ROOT / "docs" / "tutorial.md"
# As the page has nothing but the address that everybody uses.
ADDRESS = "https://github.com/podwire/podwire.cni.git"
USER = "newcomer"
# Every run has its own directory, so that runs at the same time do not interfere.
RUNS = machine.CACHE / "fresh"
ENDS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
SCRIPT = machine.ROOT / "tests" / "fresh.sh"
# The settings of apt without which a mirror may be out of reach. A program that finds a proxy is not in the new system.
_APT = re.compile(r"Acquire::(?:https?(?!::Proxy-Auto-Detect)|Check-Date|Check-Valid-Until|ForceIPv[46]|Retries)\b")
_PIP = (
    "cert",
    "default-timeout",
    "extra-index-url",
    "find-links",
    "index-url",
    "proxy",
    "retries",
    "timeout",
    "trusted-host",
)
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    suites: tuple[str, ...]
    user: str
    commands: tuple[str, ...]


@dataclass
class Outcome:
    """The checks of one command, and what it was run with."""

    suite: str
    user: str
    command: str
    passed: int = 0
    failed: int = 0
    skipped: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0

    def row(self) -> str:
        """Return the row for the table of the documentation."""
        cases = f"{self.passed}" if not self.failed else f"{self.passed}, {self.failed} failed"
        found = [self.versions.get(name, "") for name in ("python", "ansible-core", "plugins")]
        who = "root" if self.user == "root" else "user"
        return f"| {self.suite} | `{self.command}` as {who} | {' | '.join(found)} | {cases} | {self.seconds:.0f} |"


HEADER = "| suite | run | Python | ansible-core | plugins | cases | seconds |\n|---|---|---|---|---|---|---|"


def parse(words: Sequence[str]) -> Request:
    """Return what *words* ask for: by default, the demo on all suites. Exits with a message if one is unknown."""
    parser = argparse.ArgumentParser(
        prog="./run fresh", usage="./run fresh [SUITE...] [--user] [demo] [tutorial] [test]"
    )
    parser.add_argument("--user", action="store_true", help="run as a user with sudo instead of root")
    parser.add_argument("words", nargs="*", metavar="SUITE|demo|tutorial|test", help=f"suites: {', '.join(SUITES)}")
    arguments = parser.parse_intermixed_args(words)
    wanted = dict.fromkeys(arguments.words)
    for word in wanted:
        if word not in SUITES + COMMANDS:
            parser.error(f"{word!r} is neither a suite ({', '.join(SUITES)}) nor a command ({', '.join(COMMANDS)})")
    return Request(
        tuple(word for word in SUITES if word in wanted) or SUITES,
        USER if arguments.user else "root",
        tuple(word for word in COMMANDS if word in wanted) or COMMANDS[:1],
    )


def count(outcome: Outcome, output: Sequence[str], status: int) -> None:
    """Count the checks of a command from its output: its facts, or the closing line of the tests."""
    if outcome.command != "test":
        outcome.passed = sum(line.startswith("  [ok] ") for line in output)
        outcome.failed = sum(line.startswith("  [FAILED] ") for line in output)
    elif closing := re.fullmatch(r"(\d+) passed, (\d+) failed, \d+ skipped", output[-1] if output else ""):
        outcome.passed, outcome.failed = map(int, closing.groups())
        outcome.skipped = [
            f"{outcome.suite}: {line.partition(': ')[2]}" for line in output if line.startswith("skipped: ")
        ]
    if not outcome.failed and (status or not outcome.passed):
        outcome.failed = 1


def apt_settings(dump: str, suite: str) -> str:
    """Return the settings of apt for a new system, from those of this machine, which `apt-config dump` prints."""
    lines = [line for line in dump.splitlines() if _APT.match(line)]
    if suite in IN_DEVELOPMENT:
        lines.append('Acquire::Check-Valid-Until "false";')
    return "".join(f"{line}\n" for line in lines)


def pip_settings(listing: str) -> dict[str, str]:
    """Return the settings of pip for a new system, from those of this machine, which `pip config list` prints.

    What names directories of this machine is left out.
    """
    found: dict[str, str] = {}
    for section in ("global", "install", ":env:"):
        for name, value in re.findall(rf"^{section}\.({'|'.join(_PIP)})=(.*)$", listing, re.MULTILINE):
            text = str(ast.literal_eval(value))
            if name in ("extra-index-url", "find-links", "index-url"):
                text = " ".join(word for word in text.split() if re.match(r"https?:", word))
            if text:
                found[name] = text
    return found


def entering(directory: Path, user: str, command: Sequence[str]) -> list[str]:
    """Return the command that runs *command* in the system in *directory*."""
    return as_root(SCRIPT, "enter", directory, user, *command)


def making(directory: Path, user: str, suite: str, mirror: str | None) -> list[str]:
    """Return the command that makes the system in *directory*; without *mirror*, mmdebstrap uses its default."""
    return as_root(SCRIPT, "make", directory, user, suite, *([mirror] if mirror else []))


def as_root(*words: str | Path) -> list[str]:
    """Return a command that runs *words* as root, with nothing but the proxies of this environment."""
    kept = [f"{name}={os.environ[name]}" for name in _PROXIES if name in os.environ]
    plain = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "TERM=dumb", *kept]
    return [*([] if os.geteuid() == 0 else ["sudo", "--"]), "env", "-i", *plain, *map(str, words)]


def versions(system: Path = Path("/")) -> dict[str, str]:
    """Return the versions that the project uses in this system: of Python, ansible-core and the CNI plugins."""
    cores = {
        path.name.split("-")[1].partition(".dist")[0]
        for path in machine.CACHE.glob("nox/*/lib/python*/site-packages/ansible_core-*.dist-info")
    }
    plugins = set()
    for root in (system, *machine.CACHE.glob("plugins/*")):
        path = root / "usr/share/doc" / machine.PLUGINS / "changelog.Debian.gz"
        if path.exists():
            with gzip.open(path, "rt") as stream:
                plugins.add(re.sub(r".*?\(([0-9.]+).*", r"\1", stream.readline().strip()))
    return {
        "python": platform.python_version(),
        "ansible-core": ", ".join(sorted(cores, key=_numbers)),
        "plugins": ", ".join(sorted(plugins, key=_numbers)),
    }


def _numbers(version: str) -> list[int]:
    return list(map(int, re.findall(r"\d+", version)))


def _remove(directory: Path) -> None:
    subprocess.run(as_root("rm", "-rf", "--one-file-system", directory), check=True)


def make(directory: Path, user: str, suite: str) -> None:
    """Make a minimal system, with a clone of the project. Raises Unavailable."""
    if machine.run("git", "-C", machine.ROOT, "status", "--porcelain"):
        print("git status shows changes that are not committed; they are not included")
    print(f"Making a minimal {suite}", flush=True)
    machine.run("git", "clone", "--quiet", "--bare", f"file://{machine.ROOT}", directory / "project.git")
    apt = machine.run("apt-config", "dump") if shutil.which("apt-config") else ""
    (directory / "apt.conf").write_text(apt_settings(apt, suite))
    write_settings(directory / "settings")
    mirror = None
    with contextlib.suppress(machine.Unavailable):
        mirror = machine.mirror()
    status = _follow(making(directory, user, suite, mirror), [])
    if status:
        raise machine.Unavailable(
            f"cannot make a minimal {suite}: {SCRIPT.name} ended with status {status}; its messages are above. "
            "Check the mirror: apt-get update"
        )


def write_settings(folder: Path) -> None:
    """Write the files that a new system gets from this machine: names, certificates, the settings of pip."""
    etc, local = folder / "etc", Path("usr/local/share/ca-certificates")
    etc.mkdir(parents=True)
    for name in ("resolv.conf", "hosts"):
        shutil.copy(f"/etc/{name}", etc / name)
    with open(etc / "hosts", "a") as stream:
        stream.write("\n127.0.1.1 fresh\n")
    (etc / "hostname").write_text("fresh\n")
    if Path("/", local).is_dir():
        shutil.copytree(Path("/", local), folder / local)
    pip = pip_settings(machine.run(sys.executable, "-m", "pip", "config", "list"))
    (etc / "pip.conf").write_text("".join(["[global]\n", *(f"{name} = {value}\n" for name, value in pip.items())]))
    if "cert" in pip:
        copy = folder / Path(pip["cert"]).relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(pip["cert"], copy)


def _follow(command: Sequence[str], lines: list[str]) -> int:
    """Run a command, print its output and add it to *lines*; return its exit status. It ends with this program."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        try:
            for line in process.stdout or ():
                print(line, end="", flush=True)
                lines.append(line.rstrip("\n"))
        except BaseException:
            # A user may not end a process of sudo.
            subprocess.run(as_root("kill", str(process.pid)), check=False)
            raise
    return process.returncode


def follow_tutorial(directory: Path, user: str, lines: list[str]) -> int:
    """Follow the tutorial in the system, whose git knows the clone by the address that the page has."""
    prepare = ("cd && rm -rf podwire.cni", f"git config --global url./srv/project.git.insteadOf {ADDRESS}")
    for line in tutorial.follow(TUTORIAL.read_text(encoding="utf-8"), entering(directory, user, ["bash"]), prepare):
        print(line, flush=True)
        lines.append(line)
    return 0


def try_suite(suite: str, user: str, commands: Iterable[str]) -> Iterator[Outcome]:
    """Run *commands* in one new system."""
    with machine.run_directory(RUNS, _remove) as directory:
        make(directory, user, suite)
        for command in commands:
            print(f"\n{suite}: ./run {command} as {user}", flush=True)
            outcome, lines = Outcome(suite, user, command), []
            begun = time.monotonic()
            if command == "tutorial":
                status = follow_tutorial(directory, user, lines)
            else:
                status = _follow(entering(directory, user, ["./run", command]), lines)
            outcome.seconds = time.monotonic() - begun
            count(outcome, lines, status)
            inquiry = entering(directory, user, ["python3", f"tests/tools/{Path(__file__).name}", "--versions"])
            # A command that failed early has installed none of them.
            with contextlib.suppress(machine.Unavailable):
                outcome.versions = json.loads(machine.run(*inquiry))
            yield outcome


def _end(received: int, _frame: object) -> None:
    """End with an exception, so that the system is removed, and let nothing interrupt that."""
    for number in ENDS:
        signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + received)


def main(results: Path, words: Sequence[str]) -> int:
    request = parse(words)
    for number in ENDS:
        signal.signal(number, _end)
    outcomes: list[Outcome] = []
    for suite in request.suites:
        try:
            for outcome in try_suite(suite, request.user, request.commands):
                outcomes.append(outcome)
        except machine.Unavailable as reason:
            print(reason, file=sys.stderr)
            outcomes.append(Outcome(suite, request.user, request.commands[0], failed=1))
    print("", HEADER, *(outcome.row() for outcome in outcomes), sep="\n")
    counts = {
        "passed": sum(outcome.passed for outcome in outcomes),
        "failed": sum(outcome.failed for outcome in outcomes),
        "skipped": [reason for outcome in outcomes for reason in outcome.skipped],
    }
    results.write_text(json.dumps(counts))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--versions"]:
        print(json.dumps(versions()))
    else:
        sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
