# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Sentences, without their full stops, about what is missing or misspelled on the controller."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from ._conf.spelling import meant


def jsonschema_needed(what: str, reason: object) -> str:
    """Return that *what* needs jsonschema, which cannot be imported because of *reason*.

    Distributions do not allow pip outside of a virtual environment.
    """
    is_virtual = sys.prefix != sys.base_prefix
    how = f"run {sys.executable} -m pip install jsonschema" if is_virtual else "install the package python3-jsonschema"
    return f"{what} needs the Python library jsonschema on the controller ({reason}); {how}"


def unsupported(names: Iterable[object], known: Iterable[str], module: str = "", section: str = "") -> list[str]:
    """Return a sentence about those of *names* that are not among the *known* options, in Ansible's words."""
    options = sorted(known)
    near = {str(name): meant(str(name), options) for name in names if name not in options}
    unknown = [f"{section}{name}" + (f" (did you mean {section}{near[name]}?)" if near[name] else "") for name in near]
    of = f" for (podwire.cni.{module}) module" if module else ""
    told = f"Unsupported parameters{of}: {', '.join(unknown)}. Supported parameters include: {', '.join(options)}"
    return [told] if unknown else []
