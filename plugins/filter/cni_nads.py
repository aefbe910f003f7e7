# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter cni_nads: validate NetworkAttachmentDefinitions, and make them from networks."""

from __future__ import annotations

from typing import Any, Callable, Optional

from ansible.errors import AnsibleFilterError
from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils._host.problems import errors_of, summary
from ..module_utils._host.problems import strict as with_strict
from ..plugin_utils._conf.nads import CheckedNads
from ..plugin_utils._conf.schema import MISSING
from ..plugin_utils.controller import jsonschema_needed

LEVELS = ("syntax", "schema")


def cni_nads(
    nads: Any,
    namespace: Optional[str] = None,
    validate: Optional[list[str]] = None,
    file: Optional[str] = None,
    strict: bool = False,
    problems: bool = False,
) -> list[dict[str, Any]]:
    """Return the manifests of *nads*, or their problems; see the filter's documentation."""
    levels = list(LEVELS) if validate is None else validate
    if not isinstance(levels, list) or any(level not in LEVELS for level in levels):
        raise AnsibleFilterError("cni_nads: validate must be a list of 'syntax' and 'schema'")
    if "schema" in levels and MISSING is not None:
        raise AnsibleFilterError(
            jsonschema_needed("cni_nads: the level 'schema'", MISSING) + ", or write validate=['syntax']"
        ) from MISSING
    if not isinstance(nads, (dict, list, str)):
        kind = type(nads).__name__.lstrip("_")
        raise AnsibleFilterError(f"cni_nads: the input must be a list, a mapping or YAML text, not {kind}")
    if not isinstance(namespace or "", str):
        raise AnsibleFilterError("cni_nads: namespace must be a string")
    try:
        as_errors, as_problems = boolean(strict), boolean(problems)
    except TypeError as error:
        raise AnsibleFilterError("cni_nads: strict and problems must be true or false") from error
    checked = CheckedNads(nads, levels, namespace or "", file)
    found = with_strict(checked.problems) if as_errors else checked.problems
    if as_problems:
        return found
    if errors_of(found):
        raise AnsibleFilterError(f"cni_nads: {summary(found)}")
    return checked.manifests


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cni_nads": cni_nads}
