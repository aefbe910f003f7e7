# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller half of cni_conf: rejects bad input, and sends only names and rendered texts to the host."""

from __future__ import annotations

import os
from typing import Any, Optional

from ansible.errors import AnsibleError, AnsibleFileNotFound
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..module_utils._host.problems import WARNING, errors_of, place, strict, summary
from ..module_utils._host.secrets import one_line, published
from ..plugin_utils._conf.networks import LEVELS, CheckedNetworks
from ..plugin_utils._conf.schema import MISSING
from ..plugin_utils.controller import jsonschema_needed
from ..plugin_utils.options import no_options

SCHEMA = "the level 'schema' of 'validate'"
OPTIONS = (
    "bin_dirs",
    "cache_dir",
    "classes",
    "conf_dir",
    "configure",
    "ensure_effective",
    "exclusive",
    "force",
    "group",
    "lock_timeout",
    "mode",
    "networks",
    "owner",
    "runtime",
    "strict",
    "validate",
)
MAX_SIZE = 1 << 20


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        unknown = no_options(arguments, OPTIONS)
        if unknown:
            return self._failure(result, "bad_argument", "; ".join(unknown), [])
        levels = arguments.get("validate")
        if levels is None:
            levels = list(LEVELS)
        without_schema = isinstance(levels, list) and "schema" in levels and MISSING is not None
        usable = [level for level in levels if level != "schema"] if without_schema else levels
        other_work = any(arguments.get(option) is not None for option in ("configure", "ensure_effective"))
        checked = CheckedNetworks(arguments.get("networks"), usable, self._read, may_be_empty=other_work)
        if without_schema and checked.present:
            return self._failure(
                result,
                "missing_required_lib",
                f"{jsonschema_needed(SCHEMA, MISSING)}, or leave 'schema' out of 'validate'",
                [],
            )
        # The module itself refuses a value that is not a boolean.
        problems = strict(checked.problems) if boolean(arguments.get("strict"), strict=False) else checked.problems
        for entry in problems:
            if entry["level"] == WARNING:
                Display().warning(one_line(f"[{entry['code']}] {place(entry)}{entry['message']}"))
        errors = errors_of(problems)
        if errors:
            return self._failure(result, errors[0]["code"], summary(problems), problems)
        arguments["networks"] = checked.rendered
        result.update(
            self._execute_module(
                module_name="podwire.cni.cni_conf",
                module_args=arguments,
                task_vars=task_vars,
                wrap_async=self._task.async_val,
            )
        )
        if isinstance(result.get("problems", []), list) and "ansible_job_id" not in result:
            result["problems"] = problems + result.get("problems", [])
        return result

    @staticmethod
    def _failure(result: dict[str, Any], code: str, message: str, problems: list[dict[str, Any]]) -> dict[str, Any]:
        # Generated or downloaded configurations may contain anything.
        result.update(published({"failed": True, "changed": False, "code": code, "msg": message, "problems": problems}))
        return result

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
