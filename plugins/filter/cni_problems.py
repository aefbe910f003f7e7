# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter cni_problems: validate a network configuration without a host."""

from __future__ import annotations

from typing import Any, Callable, Optional

from ansible.errors import AnsibleFilterError
from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils._host.problems import strict as with_strict
from ..plugin_utils._conf.schema import MISSING
from ..plugin_utils._conf.source import DataSource, TextSource
from ..plugin_utils._conf.validate import ALONE, Checked
from ..plugin_utils.controller import jsonschema_needed

LEVELS = ("syntax", "schema")


def cni_problems(
    conf: Any,
    name: Optional[str] = None,
    validate: Optional[list[str]] = None,
    file: Optional[str] = None,
    strict: bool = False,
) -> list[dict[str, Any]]:
    """Return the problems of *conf*, a mapping or JSON text; see the filter's documentation."""
    levels = list(LEVELS) if validate is None else validate
    if not isinstance(levels, list) or any(level not in LEVELS for level in levels):
        raise AnsibleFilterError("cni_problems: validate must be a list of 'syntax' and 'schema'")
    if "schema" in levels and MISSING is not None:
        raise AnsibleFilterError(
            jsonschema_needed("cni_problems: the level 'schema'", MISSING) + ", or write validate=['syntax']"
        ) from MISSING
    if not isinstance(conf, (dict, str)):
        kind = type(conf).__name__.lstrip("_")
        raise AnsibleFilterError(f"cni_problems: the input must be a mapping or JSON text, not {kind}")
    try:
        as_errors = boolean(strict)
    except TypeError as error:
        raise AnsibleFilterError("cni_problems: strict must be true or false") from error
    source = DataSource(conf) if isinstance(conf, dict) else TextSource(conf)
    problems = Checked(source, file, name, [*levels, ALONE] if "schema" in levels else levels).problems
    return with_strict(problems) if as_errors else problems


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cni_problems": cni_problems}
