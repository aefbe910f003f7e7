# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The workflow of the repository runs what the repository has, and the comparison with Go still can fail."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[3] / "tests" / "real" / "peer"))

import mutants

ROOT = Path(__file__).parents[3]
JOBS = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text(encoding="utf-8"))["jobs"]


def matrix(job):
    return JOBS[job]["strategy"]["matrix"]


def own_sessions():
    """Return the names of the sessions that `./run test --full` runs, apart from those of antsibull-nox."""
    for name in ("noxfile.py", "tests/tools/engine_sessions.py"):
        for node in ast.parse((ROOT / name).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "HOST_PYTHONS":
                yield from (f"units_host-{python}" for python in ast.literal_eval(node.value))
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CORES":
                yield from (
                    f"{kind}-{core}" for core in ast.literal_eval(node.value) for kind in ("sanity", "units_controller")
                )
            for decorator in map(ast.unparse, getattr(node, "decorator_list", [])):
                if decorator.startswith("nox.session") and "default=False" not in decorator:
                    yield node.name


def test_a_pull_request_runs_the_gate():
    assert "if" not in JOBS["gate"]
    assert JOBS["gate"]["steps"][-1]["run"].endswith("./run test\n")


def test_every_session_is_a_job():
    listed = [*matrix("sessions")["session"], *(row["session"] for row in matrix("sessions")["include"])]
    assert len(listed) == len(set(listed))
    own = set(own_sessions())
    assert {"texts", "engines", "host_state", "units_host-3.8", "sanity-2.22"} <= own
    assert {*own, "eda"} <= set(listed)


def test_every_scenario_is_a_job():
    assert matrix("molecule")["scenario"] == sorted(path.parent.name for path in ROOT.glob("molecule/*/molecule.yml"))


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.bug)
def test_each_planted_bug_can_be_planted(mutant, tmp_path):
    """The comparison with Go is in the full run only, and what it plants changes with the code."""
    mutants.plant(mutant, str(tmp_path))
