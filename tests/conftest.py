# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import gc
import os
import random
import subprocess
from collections import defaultdict
from itertools import groupby
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# What tests share asserts, too, and has to say which values it saw.
pytest.register_assert_rewrite(*(f"ansible_collections.podwire.cni.tests.{part}" for part in ("host", "play")))


# First, before pytest takes the directory that the user who called it has made, and that modules do not trust.
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Keep files of the tests in the private /run of tests/private.sh, where they belong to root and end with it."""
    if os.uname().nodename == "podwire-private":
        config.option.basetemp = config.option.basetemp or "/run/home/pytest"
    config.addinivalue_line("markers", "full: what the gate leaves out, and the full run has")


def pytest_collection_modifyitems(config, items):
    """Leave out what is marked ``full`` in the gate; run files in an order of chance if PODWIRE_ORDER has a seed.

    PODWIRE_CASES takes every so many of the cases of each parametrized test, and at least one.
    """
    in_gate, step = bool(os.environ.get("PODWIRE_SAMPLE")), int(os.environ.get("PODWIRE_CASES", "1"))
    of_a_test = defaultdict(list)
    for item in items:
        if not (in_gate and item.get_closest_marker("full")):
            of_a_test[item.path, item.cls, item.originalname].append(item)
    chosen = {item for cases in of_a_test.values() for item in cases[::step]}
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]
    seed = os.environ.get("PODWIRE_ORDER")
    if seed:
        files = [list(tests) for _path, tests in groupby(items, key=lambda item: item.path)]
        random.Random(seed).shuffle(files)
        items[:] = [item for tests in files for item in tests]


def pytest_collection_finish():
    """Search what was imported and collected no more for garbage, as it stays."""
    gc.freeze()


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
