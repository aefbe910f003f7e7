# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Controller half of cni_conf: rejects bad input, and sends only names and rendered texts to the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.display import Display

from ..module_utils._host.errors import HostError
from ..module_utils._host.problems import WARNING, error_of, errors_of, rows, strict
from ..module_utils._host.secrets import one_line
from ..modules.cni_conf import ARGUMENTS
from ..plugin_utils._conf.networks import LEVELS, CheckedNetworks
from ..plugin_utils._conf.schema import MISSING, jsonschema_needed
from ..plugin_utils._conf.spelling import unsupported
from ..plugin_utils.definitions import networks_of_nads
from ..plugin_utils.neighbours import Neighbours, shared_ranges
from ..plugin_utils.reading import ReadingAction


class ActionModule(ReadingAction):
    MODULE = "cni_conf"

    def prepare(self, task_vars: dict[str, Any]) -> dict[str, Any]:
        arguments = dict(self._task.args)
        unknown = unsupported(arguments, ARGUMENTS, self.MODULE)
        if unknown:
            raise HostError("; ".join(unknown), "bad_argument", problems=[])
        other_work = any(arguments.get(option) is not None for option in ("configure", "ensure_effective"))
        arguments["networks"], problems = self.render(arguments, other_work, task_vars)
        arguments.pop("nads", None)
        result = self.call(arguments, task_vars)
        if isinstance(result.get("problems", []), list) and "ansible_job_id" not in result:
            result["problems"] = problems + result.get("problems", [])
        return result

    def render(
        self, options: Mapping[str, Any], may_be_empty: bool, variables: Mapping[str, Any]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the option ``networks`` for the module, and the problems. Prints warnings; raises HostError with them.

        *options* are those of cni_conf as the user wrote them, with ``nads``. *may_be_empty*: there is other work than
        networks. *variables* are those of the task.
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
            needed = jsonschema_needed("the level 'schema' of 'validate'", MISSING)
            raise HostError(f"{needed}, or leave 'schema' out of 'validate'", "missing_required_lib", problems=[])
        problems = list(checked.problems)
        if not errors_of(problems):
            problems += shared_ranges(networks or [], checked.rendered, Neighbours(variables, self._task.get_ds()))
        # The module itself refuses a value that is not a boolean.
        problems = strict(problems) if boolean(options.get("strict"), strict=False) else problems
        for finding in problems:
            if finding.level == WARNING:
                Display().warning(one_line(f"[{finding.code}] {finding.sentence}"))
        if errors_of(problems):
            raise error_of(problems)
        return checked.rendered, rows(problems)
