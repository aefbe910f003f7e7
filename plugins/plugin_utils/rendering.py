# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What action plugins have in common that render and validate networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.display import Display

from ..module_utils._host.errors import HostError
from ..module_utils._host.problems import WARNING, errors_of, place, strict, summary
from ..module_utils._host.secrets import one_line
from ._conf.networks import LEVELS, CheckedNetworks
from ._conf.schema import MISSING
from .definitions import networks_of_nads
from .reading import ReadingAction
from .remedies import jsonschema_needed

SCHEMA = "the level 'schema' of 'validate'"


class RenderingAction(ReadingAction):
    """Sends a host only names and rendered texts of networks, after they were validated."""

    def render(
        self, options: Mapping[str, Any], may_be_empty: bool
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the option ``networks`` for the module, and the problems. Prints warnings; raises HostError with them.

        *options* are those of cni_conf as the user wrote them, with ``nads``. *may_be_empty*: there is other work than
        networks.
        """
        levels = options.get("validate")
        if levels is None:
            levels = list(LEVELS)
        without_schema = isinstance(levels, list) and "schema" in levels and MISSING is not None
        usable = [level for level in levels if level != "schema"] if without_schema else levels
        networks = options.get("networks")
        if options.get("nads") is not None:
            try:
                of_nads = networks_of_nads(options["nads"], self.sources())
            except HostError as error:
                error.facts.setdefault("problems", [])
                raise
            networks = [*networks, *of_nads] if isinstance(networks, list) else networks or of_nads
            may_be_empty = True
        checked = CheckedNetworks(networks, usable, self._read, may_be_empty=may_be_empty)
        if without_schema and checked.present:
            needed = jsonschema_needed(SCHEMA, MISSING)
            raise HostError(f"{needed}, or leave 'schema' out of 'validate'", "missing_required_lib", problems=[])
        # The module itself refuses a value that is not a boolean.
        problems = strict(checked.problems) if boolean(options.get("strict"), strict=False) else checked.problems
        for entry in problems:
            if entry["level"] == WARNING:
                Display().warning(one_line(f"[{entry['code']}] {place(entry)}{entry['message']}"))
        errors = errors_of(problems)
        if errors:
            raise HostError(summary(problems), errors[0]["code"], problems=problems)
        return checked.rendered, problems
