# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""tests/tools/fresh.py: its arguments, commands and sums, without a new system."""

from __future__ import annotations

import gzip
import json
import os
import platform
import signal
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "tools"))

import fresh
import machine
from fresh import Outcome, Request

ALL = ("bookworm", "trixie", "forky")


@pytest.fixture(autouse=True)
def as_root(monkeypatch):
    """Whoever runs the tests, commands have no sudo, and the environment has no proxy."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in fresh._PROXIES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setattr(fresh, "RUNS", tmp_path / "fresh")
    return tmp_path / "fresh"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], Request(ALL, "root", ("demo",))),
        (["trixie", "--user", "demo"], Request(("trixie",), "newcomer", ("demo",))),
        (["--user", "test", "forky", "bookworm"], Request(("bookworm", "forky"), "newcomer", ("test",))),
        (["test", "demo", "demo", "forky"], Request(("forky",), "root", ("demo", "test"))),
    ],
)
def test_arguments(words, expected):
    assert fresh.parse(words) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sid"], "'sid' is neither a suite (bookworm, trixie, forky) nor a command (demo, tutorial, test)"),
        (["--root"], "unrecognized arguments: --root"),
    ],
)
def test_an_unknown_argument_is_refused(capsys, words, message):
    with pytest.raises(SystemExit) as caught:
        fresh.parse(words)
    assert caught.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "output", "status", "expected"),
    [
        ("test", "skipped: peer: no Go\n7 passed, 0 failed, 1 skipped", 0, (7, 0, ["trixie: peer: no Go"])),
        ("test", "7 passed, 2 failed, 0 skipped", 1, (7, 2, [])),
        # What comes before the last line is the output of a test.
        ("test", "9 passed, 0 failed, 0 skipped\nKilled", 137, (0, 1, [])),
        ("test", "7 passed, 0 failed, 0 skipped", 1, (7, 1, [])),
        ("test", "", 0, (0, 1, [])),
        ("demo", "  [ok] one\n  [ok] two\n\nAll checks passed.", 0, (2, 0, [])),
        ("demo", "  [ok] one\n  [FAILED] two", 1, (1, 1, [])),
        ("demo", "  [ok] one\nfatal", 1, (1, 1, [])),
        ("demo", "All checks passed.", 0, (0, 1, [])),
    ],
)
def test_what_a_command_printed_is_counted(command, output, status, expected):
    outcome = Outcome("trixie", "root", command)
    fresh.count(outcome, output.splitlines(), status)
    assert (outcome.passed, outcome.failed, outcome.skipped) == expected


def test_rows():
    versions = {"python": "3.14.8", "ansible-core": "2.21.2", "plugins": "1.1.1, 1.9.1"}
    good = Outcome("forky", "newcomer", "test", 150, 0, [], versions, 990.4)
    bad = Outcome("forky", "root", "demo", 7, 1)
    assert good.row() == "| forky | `test` as user | 3.14.8 | 2.21.2 | 1.1.1, 1.9.1 | 150 | 990 |"
    assert bad.row() == "| forky | `demo` as root |  |  |  | 7, 1 failed | 0 |"
    assert {text.count("|") for text in (*fresh.HEADER.splitlines(), good.row(), bad.row())} == {8}


def run_main(tmp_path, monkeypatch, capsys, words, tried):
    """Call main, which gets these outcomes instead of running commands; return its status, output and counts."""
    monkeypatch.setattr(fresh, "try_suite", tried)
    status = fresh.main(tmp_path / "results", words)
    return status, capsys.readouterr(), json.loads((tmp_path / "results").read_text())


def test_the_outcomes_of_all_systems_are_added(tmp_path, monkeypatch, capsys):
    def tried(suite, user, commands):
        return [Outcome(suite, user, command, 10, int(suite == "forky"), [f"{suite}: x"]) for command in commands]

    status, printed, counts = run_main(tmp_path, monkeypatch, capsys, ["demo", "test"], tried)
    assert (status, counts) == (
        1,
        {"passed": 60, "failed": 2, "skipped": [f"{suite}: x" for suite in ALL for dummy in range(2)]},
    )
    assert printed.out.count("| 10, 1 failed |") == 2 and printed.out.count("| 10 |") == 4


def test_a_system_that_cannot_be_made_fails_and_the_others_are_tried(tmp_path, monkeypatch, capsys):
    def tried(suite, user, commands):
        if suite == "bookworm":
            raise machine.Unavailable("no mirror")
        yield Outcome(suite, user, "demo", 3)

    status, printed, counts = run_main(tmp_path, monkeypatch, capsys, [], tried)
    assert (status, counts) == (1, {"passed": 6, "failed": 1, "skipped": []})
    assert printed.err == "no mirror\n"


def test_nothing_failed(tmp_path, monkeypatch, capsys):
    status, _printed, counts = run_main(
        tmp_path, monkeypatch, capsys, ["trixie"], lambda suite, user, _commands: [Outcome(suite, user, "demo", 3)]
    )
    assert (status, counts) == (0, {"passed": 3, "failed": 0, "skipped": []})


def test_commands(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("PODWIRE_RESULTS", "/results")
    script = str(machine.ROOT / "tests" / "fresh.sh")
    assert os.access(script, os.X_OK)
    making = fresh.making(Path("/d"), "newcomer", "forky", "http://mirror/debian")
    assert making[:2] == ["env", "-i"] and "https_proxy=http://proxy:3128" in making
    assert not [word for word in making if "PODWIRE" in word]
    assert making[making.index(script) :] == [script, "make", "/d", "newcomer", "forky", "http://mirror/debian"]
    assert fresh.making(Path("/d"), "root", "trixie", None)[-4:] == ["make", "/d", "root", "trixie"]
    entering = fresh.entering(Path("/d"), "root", ["./run", "demo"])
    assert entering[entering.index(script) :] == [script, "enter", "/d", "root", "./run", "demo"]


def test_a_user_needs_sudo(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert fresh.entering(Path("/d"), "root", ["./run", "demo"])[:4] == ["sudo", "--", "env", "-i"]


def test_settings_of_apt():
    dump = """\
APT::Architecture "amd64";
Acquire::Check-Date "false";
Acquire::http::Proxy "http://proxy:3128";
Acquire::http::Proxy::mirror "DIRECT";
Acquire::http::Proxy-Auto-Detect "/usr/bin/auto-apt-proxy";
Acquire::https::CaInfo "/etc/ssl/certs/ca-certificates.crt";
Acquire::Retries "3";
Acquire::Languages "none";
"""
    kept = dump.splitlines(keepends=True)
    expected = "".join(kept[number] for number in (1, 2, 3, 5, 6))
    assert fresh.apt_settings(dump, "trixie") == expected
    assert fresh.apt_settings(dump, "forky") == expected + 'Acquire::Check-Valid-Until "false";\n'


def test_settings_of_pip():
    listing = """\
:env:.default-timeout='180'
:env:.find-links='/wheels'
global.cert='/etc/ssl/certs/ca-certificates.crt'
global.default-timeout='60'
global.extra-index-url='file:///pypi/simple https://index/simple'
global.index-url='https://mirror/simple'
global.no-index='true'
list.format='columns'
"""
    assert fresh.pip_settings(listing) == {
        "cert": "/etc/ssl/certs/ca-certificates.crt",
        "default-timeout": "180",
        "extra-index-url": "https://index/simple",
        "index-url": "https://mirror/simple",
    }
    assert fresh.pip_settings("") == {}


def test_versions(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "CACHE", tmp_path / "cache")
    for folder, core in (("run", "2.9.27"), ("sanity", "2.21.2"), ("units", "2.21.2")):
        (tmp_path / f"cache/nox/{folder}/lib/python3.14/site-packages/ansible_core-{core}.dist-info").mkdir(
            parents=True
        )
    for place, version in (("system", "1.1.1+ds1-3+b15"), ("cache/plugins/forky", "1.9.1+ds1-1")):
        document = tmp_path / place / "usr/share/doc/containernetworking-plugins/changelog.Debian.gz"
        document.parent.mkdir(parents=True)
        document.write_bytes(
            gzip.compress(f"containernetworking-plugins ({version}) unstable; urgency=medium\n".encode())
        )
    assert fresh.versions(tmp_path / "system") == {
        "python": platform.python_version(),
        "ansible-core": "2.9.27, 2.21.2",
        "plugins": "1.1.1, 1.9.1",
    }


@pytest.mark.parametrize("end", [None, SystemExit, KeyboardInterrupt])
def test_a_system_is_removed_however_its_run_ends(runs, end):
    with pytest.raises(end or ZeroDivisionError), fresh.run_directory() as directory:
        (directory / "root" / "etc").mkdir(parents=True)
        assert list(runs.iterdir()) == [directory]
        raise end or ZeroDivisionError
    assert list(runs.iterdir()) == []


def test_systems_of_runs_that_have_died_are_removed_and_live_ones_stay(runs):
    (runs / "run.dead" / "root").mkdir(parents=True)
    with fresh.run_directory() as live, fresh.run_directory() as other:
        assert sorted(runs.iterdir()) == sorted([live, other])


@pytest.mark.parametrize("number", fresh.ENDS)
def test_a_signal_ends_the_run_and_removes_the_system(runs, monkeypatch, number):
    def tried(suite, user, commands):
        with fresh.run_directory():
            os.kill(os.getpid(), number)
            time.sleep(30)
            yield Outcome(suite, user, "demo")

    monkeypatch.setattr(fresh, "try_suite", tried)
    before = {end: signal.getsignal(end) for end in fresh.ENDS}
    try:
        with pytest.raises(SystemExit) as caught:
            fresh.main(runs / "results", [])
        assert {signal.getsignal(end) for end in fresh.ENDS} == {signal.SIG_IGN}
    finally:
        for end, handler in before.items():
            signal.signal(end, handler)
    assert caught.value.code == 128 + number and list(runs.iterdir()) == []


def test_output_is_followed(capfd):
    lines: list[str] = []
    assert fresh._follow(["sh", "-c", "echo one; echo two >&2; read line || exit 3"], lines) == 3
    assert lines == ["one", "two"] and capfd.readouterr().out == "one\ntwo\n"


def test_a_command_ends_when_it_is_no_longer_followed():
    class Interrupted(list):
        def append(self, line):
            raise SystemExit

    begun = time.monotonic()
    with pytest.raises(SystemExit):
        fresh._follow(["sh", "-c", "echo one; exec sleep 60"], Interrupted())
    assert time.monotonic() - begun < 30
