# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of options: their argument specifications, and a text for each. Private to the collection.

Editors read texts only, so options that most modules have are written out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import yaml

_SHOWN = ("type", "elements", "choices", "required", "default")


def documented(specs: Mapping[str, Any], text: Callable[[str], Any], place: str = "") -> dict[str, Any]:
    """Return the documentation of options; *text* describes the one at a place, such as ``pod.ports[].host_ip``."""
    options = {}
    for name, spec in specs.items():
        # Between the action plugin and the module.
        if name.startswith("_"):
            continue
        at = place + name
        options[name] = {"description": text(at), **{key: spec[key] for key in _SHOWN if key in spec}}
        if "options" in spec:
            inner = f"{at}[]." if spec["type"] == "list" else f"{at}."
            options[name]["suboptions"] = documented(spec["options"], text, inner)
    return options


def fragment(specs: Mapping[str, Any], *texts: str) -> str:
    """Return a fragment with those of the options that *texts*, YAML, describe with all their suboptions."""
    described = {place: text for part in texts for place, text in yaml.safe_load(part).items()}
    options = documented({name: spec for name, spec in specs.items() if name in described}, described.pop)
    if described:
        raise ValueError(f"no option has the places of {', '.join(described)}")
    return json.dumps({"options": options})


def below(place: str, texts: str) -> str:
    """Return the texts of options that are suboptions of the one at a place."""
    return "".join(line if line[:1] in " " else f"{place}{line}" for line in texts.splitlines(keepends=True))
