# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The rules against the recorded answers of Multus' own functions; tests/real/peer runs the same cases."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils.libcni.multi.multus_functions import (
    FUNCTIONS,
    judge,
    load_cases,
)

_CASES = load_cases()


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case['function']}-{case['id']}") for case in _CASES])
def test_the_answer_is_that_of_multus(case, tmp_path):
    judge(case, tmp_path)


def test_every_function_has_cases():
    assert {case["function"] for case in _CASES} == set(FUNCTIONS)
    assert len(_CASES) >= 205
