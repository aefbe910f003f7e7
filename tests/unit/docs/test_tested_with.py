# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The table "Tested with" of README names the versions that are tested, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import fresh

ROOT = Path(__file__).resolve().parents[3]
NOXFILE = (ROOT / "noxfile.py").read_text(encoding="utf-8")
CORES = dict(re.findall(r'^    "(2\.[0-9]+)": \((.*)\),$', NOXFILE, re.MULTILINE))
# But for the one that is not released yet.
SUPPORTED = {core: pythons for core, pythons in CORES.items() if f'CANDIDATE = "{core}"' not in NOXFILE}
DEBIAN = {"bookworm": "12", "trixie": "13"}
README = (ROOT / "README.md").read_text(encoding="utf-8")
TESTED = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", README.partition("## Tested with")[2], re.MULTILINE))


def versions(text):
    return re.findall(r"[0-9]+(?:\.[0-9]+)+", text)


def test_ansible_core():
    assert versions(TESTED["ansible-core"]) == list(SUPPORTED)


def test_pythons():
    (hosts,) = re.findall(r"^HOST_PYTHONS = (.*)$", NOXFILE, re.MULTILINE)
    minors = [sorted(set(map(int, re.findall(r"\b3\.([0-9]+)", text)))) for text in (str(SUPPORTED), hosts)]
    ends = [f"3.{numbers[at]}" for numbers in minors for at in (0, -1)]
    assert versions(TESTED["Python"]) == ends


def test_hosts():
    names = [DEBIAN.get(suite, suite) for suite in fresh.SUITES]
    assert re.findall("[0-9]+|forky", TESTED["managed hosts"].partition(", on ")[0]) == names


def test_runtimes_are_those_that_were_measured():
    measured = (ROOT / "docs" / "contributing" / "runtimes_measured.md").read_text(encoding="utf-8")
    containerds = re.search("containerd comes from (.*)", measured)[1].partition("podman")[0]
    short = [version.rpartition(".")[0] for version in versions(containerds)]
    assert versions(TESTED["runtimes"].partition("podman")[0]) == short
