# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""How many examples tests take that could take any number: a sample in the gate, which sets PODWIRE_SAMPLE.

A variable of the environment, which is PODWIRE_ and the name of what is counted, takes another number.
"""

from __future__ import annotations

import os

IN_GATE = bool(os.environ.get("PODWIRE_SAMPLE"))


def number(name: str, full: int, gate: int) -> int:
    """Return how many examples to take: all runs but the gate take *full*."""
    return int(os.environ.get(f"PODWIRE_{name}") or (gate if IN_GATE else full))


# Tests that end something at each of its calls take each call, or in the gate every third.
STEP = number("STEP", 1, 3)
