# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.host.host import PYTHON, sh

SUBSETS = ["conf", "plugins", "attachments", "leases", "kernel", "garbage", "runtime", "readiness"]
RESULTS = ["conf", "aside", "plugins", "attachments", "leases", "pools", "kernel", "garbage", "runtime", "readiness"]
RESULTS += ["problems"]


@pytest.fixture(scope="module")
def info(foreign_conf, foreign_plugins, spoiled_cache, odd_leases, gather):
    """All of a host with everything odd at once."""
    return gather()


@pytest.mark.parametrize("name", SUBSETS)
def test_a_subset_is_the_same_as_in_the_whole_and_alone(info, site, name):
    subset = site.run("cni_info", gather=[name])
    expected = info[name]
    if name == "conf":
        # Only who gathers the runtimes knows who takes a file.
        assert all(row["used_by"] is not None for row in expected)
        expected = [{**row, "used_by": None} for row in expected]
    assert subset[name] == expected
    assert [other for other in SUBSETS if other != name and subset[other] is not None] == []
    assert [problem for problem in subset["problems"] if problem not in info["problems"]] == []
    assert (subset["pools"] is not None) == (name == "leases")


def test_nothing_is_gathered_if_nothing_is_asked_for(info, site):
    nothing = site.run("cni_info", gather=[])
    assert [name for name in SUBSETS if nothing[name] is not None] == []
    assert nothing["problems"] == []


def test_pyroute2_is_not_needed(info, site, work):
    sh(f"{PYTHON} -m venv --without-pip {work}/bare")
    without = site.run("cni_info", python=f"{work}/bare/bin/python")
    assert len(without["kernel"]["attachments"]) > 0
    assert {name: without[name] for name in RESULTS} == {name: info[name] for name in RESULTS}
