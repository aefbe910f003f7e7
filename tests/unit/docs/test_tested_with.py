# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The table "Tested with" of README names the versions that are tested, and no others."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "tools"))

import fresh

ROOT = Path(__file__).resolve().parents[3]
NOXFILE = (ROOT / "noxfile.py").read_text(encoding="utf-8")
CORES = dict(re.findall(r'^    "(2\.[0-9]+)": \((.*)\),$', NOXFILE, re.MULTILINE))
DEBIAN = {"bookworm": "12", "trixie": "13"}
README = (ROOT / "README.md").read_text(encoding="utf-8")
TESTED = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", README.partition("## Tested with")[2], re.MULTILINE))


def versions(text):
    return re.findall(r"[0-9]+(?:\.[0-9]+)+", text)


def by_number(names):
    return sorted(set(names), key=lambda name: [int(number) for number in name.split(".")])


@pytest.fixture(scope="module")
def supported():
    """The Pythons of each ansible-core but the one that is not released yet."""
    (candidate,) = re.findall(r'^CANDIDATE = "(.+)"$', NOXFILE, re.MULTILINE)
    return {core: versions(pythons) for core, pythons in CORES.items() if core != candidate}


def test_ansible_core(supported):
    assert versions(TESTED["ansible-core"]) == list(supported)


def test_pythons(supported):
    (hosts,) = re.findall(r"^HOST_PYTHONS = (.*)$", NOXFILE, re.MULTILINE)
    controllers = by_number(python for pythons in supported.values() for python in pythons)
    ends = [pythons[at] for pythons in (controllers, by_number(versions(hosts))) for at in (0, -1)]
    assert versions(TESTED["Python"]) == ends


def test_hosts():
    names = [DEBIAN.get(suite, suite) for suite in fresh.SUITES]
    assert re.findall("[0-9]+|forky", TESTED["managed hosts"].partition(", on ")[0]) == names


def test_runtimes_are_those_that_were_measured():
    measured = (ROOT / "docs" / "contributing" / "runtimes_measured.md").read_text(encoding="utf-8")
    containerds = re.search("containerd comes from (.*)", measured)[1].partition("podman")[0]
    short = [version.rpartition(".")[0] for version in versions(containerds)]
    assert versions(TESTED["runtimes"].partition("podman")[0]) == short
