# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The predictions against what real runtimes did with the same directories (observed.json)."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.profiles import PROFILES
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.runtimes.layouts import LAYOUTS, put
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.runtimes.predicted import (
    agree,
    containerd_prediction,
    podman_prediction,
)

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "observed.json"), encoding="utf-8") as _stream:
    OBSERVED = json.load(_stream)
COLUMNS = sorted({name for rows in OBSERVED.values() for row in rows for name in row["by"]})


def test_every_directory_was_shown_to_every_runtime():
    assert set(OBSERVED) == set(LAYOUTS)
    for title, rows in OBSERVED.items():
        assert sorted(name for row in rows for name in row["by"]) == COLUMNS, title


def test_what_is_marked_as_run_was_run():
    assert {column.split()[0] for column in COLUMNS} == {
        # What Apptainer does is seen by running containers, see tests/real/runtimes/apptainer.py.
        name
        for name, profile in PROFILES.items()
        if profile.verified == "run" and name != "apptainer"
    }


@pytest.mark.parametrize("column", COLUMNS)
def test_what_runtimes_did_is_what_is_predicted(column, tmp_path):
    profile, _blank, networks = column.partition(" ")
    wrong = []
    for title, rows in OBSERVED.items():
        seen = next(row for row in rows if column in row["by"])
        put(str(tmp_path), LAYOUTS[title])
        if profile == "podman":
            predicted = podman_prediction(str(tmp_path))
        else:
            predicted = containerd_prediction(profile, str(tmp_path), int(networks or 1))
        if not agree(predicted, seen):
            wrong.append((title, predicted, seen))
    assert wrong == []


def test_a_wrong_prediction_is_noticed(tmp_path):
    rows = OBSERVED["broken before"]
    seen = next(row for row in rows if "containerd-1.6" in row["by"])
    put(str(tmp_path), LAYOUTS["two lists"])
    assert not agree(containerd_prediction("containerd-1.6", str(tmp_path), 1), seen)
    assert not agree({"networks": [], "error": "another"}, seen)
