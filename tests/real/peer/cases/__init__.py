# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The seeded generator: a category, a seed and a number make a case, always the same."""

from __future__ import annotations

import random
import typing as t

from model import Case

from cases import calling, loading, results

CATEGORIES: dict[str, t.Callable[[random.Random], Case]] = {
    "load": loading.load,
    "negotiate": loading.negotiate,
    "json": loading.json_rules,
    "verbs": calling.verbs,
    "names": calling.names,
    "errors": calling.errors,
    "plugins": calling.plugins,
    "results": results.results,
    "cache": results.cache,
    "gc": calling.gc,
    "status": calling.status,
    "validate": calling.validate,
    "version": calling.versions,
}


def names(cases: int, categories: t.Sequence[str]) -> list[str]:
    """Return the names of that many cases, taken from the categories in turn: `load/0`, `negotiate/0`, ..."""
    return [f"{categories[index % len(categories)]}/{index // len(categories)}" for index in range(cases)]


def make(seed: int, name: str) -> Case:
    """Return the case of that name."""
    case = CATEGORIES[name.partition("/")[0]](random.Random(f"{seed}/{name}"))
    case.name = name
    return case
