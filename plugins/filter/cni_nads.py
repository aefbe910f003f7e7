# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Filter cni_nads: validate NetworkAttachmentDefinitions, and make them from networks."""

from __future__ import annotations

from typing import Any, Callable, Optional

from ..module_utils._host.problems import errors_of, summary
from ..module_utils._host.problems import strict as with_strict
from ..plugin_utils._conf.nads import CheckedNads
from ..plugin_utils.filters import flag, kind, validating


@validating
def cni_nads(
    nads: Any,
    namespace: Optional[str] = None,
    file: Optional[str] = None,
    strict: bool = False,
    problems: bool = False,
    *,
    validate: Any = None,
) -> list[dict[str, Any]]:
    """Return the manifests of *nads*, or their problems; see the filter's documentation."""
    if not isinstance(nads, (dict, list, str)):
        raise ValueError(f"the input must be a list, a mapping or YAML text, not {kind(nads)}")
    if not isinstance(namespace or "", str):
        raise ValueError("namespace must be a string")
    as_errors, as_problems = flag("strict", strict), flag("problems", problems)
    checked = CheckedNads(nads, validate, namespace or "", file)
    found = with_strict(checked.problems) if as_errors else checked.problems
    if as_problems:
        return found
    if errors_of(found):
        raise ValueError(summary(found))
    return checked.manifests


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cni_nads": cni_nads}
