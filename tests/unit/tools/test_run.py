# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).parents[3] / "run"


@pytest.fixture(scope="module")
def printed():
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/root"}
    return subprocess.run([RUN, "help"], env=environment, capture_output=True, text=True, check=True).stdout


def test_help_fits_a_terminal(printed):
    assert [line for line in printed.splitlines() if len(line) > 80] == []


def test_help_has_every_command_in_one_of_its_two_parts(printed):
    (cases,) = re.findall(r"case \$\{1-help\} in\n(.*?)\nesac", RUN.read_text(), re.DOTALL)
    commands = {
        name.strip() for names in re.findall(r"^  ([\w| -]+)\)", cases, re.MULTILINE) for name in names.split("|")
    }
    for_users, for_developers = printed.partition("Try it")[2].split("Work on it")
    shown = [set(re.findall(r"^  (\w+)", part, re.MULTILINE)) for part in (for_users, for_developers)]
    assert shown[0] == {"demo", "playground", "explain", "docs", "clean", "help"}
    assert shown[0] | shown[1] == commands - {"-h", "--help"}
