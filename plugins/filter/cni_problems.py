# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Filter cni_problems: validate a network configuration without a host."""

from __future__ import annotations

from typing import Any, Callable, Optional

from ..module_utils._host.problems import strict as with_strict
from ..plugin_utils._conf.source import DataSource, TextSource
from ..plugin_utils._conf.validate import ALONE, Checked
from ..plugin_utils.filters import flag, kind, validating


@validating
def cni_problems(
    conf: Any, name: Optional[str] = None, file: Optional[str] = None, strict: bool = False, *, validate: Any = None
) -> list[dict[str, Any]]:
    """Return the problems of *conf*, a mapping or JSON text; see the filter's documentation."""
    if not isinstance(conf, (dict, str)):
        raise ValueError(f"the input must be a mapping or JSON text, not {kind(conf)}")
    as_errors = flag("strict", strict)
    source = DataSource(conf) if isinstance(conf, dict) else TextSource(conf)
    problems = Checked(source, file, name, [*validate, ALONE] if "schema" in validate else validate).problems
    return with_strict(problems) if as_errors else problems


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cni_problems": cni_problems}
