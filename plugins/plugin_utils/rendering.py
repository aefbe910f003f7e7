# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What action plugins have in common that render and validate networks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleError, AnsibleFileNotFound
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..module_utils._host.problems import WARNING, errors_of, place, strict, summary
from ..module_utils._host.secrets import one_line
from ._conf.networks import LEVELS, CheckedNetworks
from ._conf.schema import MISSING
from .controller import jsonschema_needed

SCHEMA = "the level 'schema' of 'validate'"
MAX_SIZE = 1 << 20


class Refused(Exception):
    """Networks that are not sent to a host: ``code``, ``message``, and the ``problems`` that were found."""

    def __init__(self, code: str, message: str, problems: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.problems = problems


class RenderingAction(ActionBase):
    """Sends a host only names and rendered texts of networks, after they were validated."""

    def render(
        self, options: Mapping[str, Any], may_be_empty: bool
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the option ``networks`` for the module, and the problems. Prints warnings; raises Refused.

        *options* are those of cni_conf as the user wrote them. *may_be_empty*: there is other work than networks.
        """
        levels = options.get("validate")
        if levels is None:
            levels = list(LEVELS)
        without_schema = isinstance(levels, list) and "schema" in levels and MISSING is not None
        usable = [level for level in levels if level != "schema"] if without_schema else levels
        checked = CheckedNetworks(options.get("networks"), usable, self._read, may_be_empty=may_be_empty)
        if without_schema and checked.present:
            needed = jsonschema_needed(SCHEMA, MISSING)
            raise Refused("missing_required_lib", f"{needed}, or leave 'schema' out of 'validate'", [])
        # The module itself refuses a value that is not a boolean.
        problems = strict(checked.problems) if boolean(options.get("strict"), strict=False) else checked.problems
        for entry in problems:
            if entry["level"] == WARNING:
                Display().warning(one_line(f"[{entry['code']}] {place(entry)}{entry['message']}"))
        errors = errors_of(problems)
        if errors:
            raise Refused(errors[0]["code"], summary(problems), problems)
        return checked.rendered, problems

    def _read(self, src: str) -> tuple[str, bytes]:
        """Return path and content of a file on the controller. Raises ValueError with the reason."""
        try:
            path = self._find_needle("files", src)
            if os.path.getsize(path) > MAX_SIZE:
                raise ValueError(f"{path} is larger than 1 MiB, so it cannot be a network configuration")
            real = self._loader.get_real_file(path)
            try:
                with open(real, "rb") as stream:
                    return path, stream.read()
            finally:
                self._loader.cleanup_tmp_file(real)
        except AnsibleFileNotFound as error:
            raise ValueError(
                f"file {str(src)!r} not found on the controller; relative names are searched in the directories "
                "'files' of the role and of the play, and next to them"
            ) from error
        except (AnsibleError, OSError) as error:
            raise ValueError(f"cannot read the file {str(src)!r} on the controller: {error}") from error
