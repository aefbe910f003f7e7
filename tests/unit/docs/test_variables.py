# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of variables in the READMEs of roles say what the argument specifications say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROLES = Path(__file__).parents[3] / "roles"
TABLE = re.compile(r"\| variable \| default \| .*\n\|[-|]+\n((?:\|.*\n)+)")


def options(role):
    text = (ROLES / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)["argument_specs"]["main"]["options"]


def rows(role):
    """Yield the names and the texts of the defaults in each row; a name that begins with _ ends like the one before."""
    for table in TABLE.findall((ROLES / role / "README.md").read_text(encoding="utf-8")):
        for line in table.splitlines():
            variables, default = line.split(" | ")[:2]
            names, defaults = re.findall("`([^`]*)`", variables), re.findall("`([^`]*)`", default)
            first = names[0].rpartition("_")[0]
            # Others are in words.
            is_data = default == ", ".join(f"`{text}`" for text in defaults)
            yield [first + name if name.startswith("_") else name for name in names], defaults if is_data else []


@pytest.mark.parametrize("role", sorted(path.name for path in ROLES.iterdir()))
def test_a_table_has_the_variables_of_the_role_and_their_defaults(role):
    specs, named = options(role), [name for names, _defaults in rows(role) for name in names]
    assert len(named) == len(set(named))
    assert set(named) - set(specs) == set()
    # That of host leads to the other roles.
    if role != "host":
        assert set(specs) - set(named) == set()
    for names, defaults in rows(role):
        told = dict(zip(names, map(yaml.safe_load, defaults))) if len(defaults) == len(names) else {}
        assert {name: specs[name].get("default") for name in told} == told
