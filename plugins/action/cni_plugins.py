# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller half of cni_plugins: validates options, fetches the archive if a host needs it, sends changed files."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any

from ansible import constants as C
from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ..module_utils._host.errors import HostError
from ..module_utils._host.secrets import one_line, published
from ..modules.cni_plugins import ARGUMENTS, PLUGINS_REQUIRED_IF
from ..plugin_utils.options import no_options
from ..plugin_utils.plugin_source import Need, PluginSource

MODULE = "podwire.cni.cni_plugins"
# _source is internal to the action plugin and the module.
OPTIONS = {name: spec for name, spec in ARGUMENTS.items() if name != "_source"}


class ActionModule(ActionBase):
    _supports_check_mode = True
    _supports_async = True
    # Only files that differ are sent, usually none. Their directory is created on demand.
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the module's result, or a failure before any host was touched."""
        super().run(tmp, task_vars)
        try:
            result = self._run(task_vars or {})
        except HostError as error:
            # The message may quote names from an archive.
            failure = {"failed": True, "changed": False, "msg": one_line(error.msg), "code": error.code, **error.facts}
            result = published(failure)
        if result.get("code") in ("checksum_mismatch", "bad_checksum"):
            result["msg"] = f"{result.get('msg')}{self._why_not_that_release()}"
        return result

    def _why_not_that_release(self) -> str:
        """Return what to do if another option, such as one in group_vars, overrides the requested release."""
        version = self._task.args.get("version")
        if not version:
            return ""
        if self._task.args.get("checksum"):
            other, means = "checksum", "'checksum' overrides the checksum of the release"
        elif self._task.args.get("src"):
            other, means = "src", "'src' is installed, and 'version' only provides its checksum"
        else:
            return ""
        return f". {means}: to install the release {version}, set '{other}' (for the roles: cni_plugins_{other}) to ''"

    def _run(self, task_vars: dict[str, Any]) -> dict[str, Any]:
        self._check_types()
        _result, options = self.validate_argument_spec(OPTIONS, required_if=PLUGINS_REQUIRED_IF)
        if options["state"] != "present":
            return self._call(None, task_vars)
        if options["remote_src"]:
            return self._call(PluginSource(options, None).question(only_ask=False), task_vars)
        source = PluginSource(options, self._find)
        # An asynchronous task cannot ask for more files, so the host is asked first.
        only_ask = bool(self._task.async_val)
        result = self._call(source.question_for_archive_here(only_ask), task_vars, in_background=False)
        answer = result.pop("plugins_needed", None)
        if answer is None or result.get("failed"):
            return result
        need = Need(answer)
        with source.opened(need.machine) as shipment:
            bundle = None
            lacking = shipment.lacking(need)
            if lacking and not self._task.check_mode:
                bundle = self._send(shipment, lacking)
            return self._call(shipment.told(bundle, lacking if bundle else []), task_vars)

    def _check_types(self) -> None:
        version = self._task.args.get("version")
        if isinstance(version, int | float):
            raise HostError(
                f"version: YAML read {version} as a number, which drops trailing zeros; write it in quotes, "
                "such as version: '1.9.1'",
                code="bad_version",
            )
        unknown = no_options(self._task.args, OPTIONS)
        if unknown:
            raise HostError("; ".join(unknown), code="bad_option")

    def _find(self, path: str) -> str:
        try:
            return str(self._find_needle("files", path))
        except AnsibleError as error:
            raise HostError(f"src: {error}", code="bad_source") from error

    def _send(self, shipment: Any, names: list[str]) -> str:
        """Send *names* in one transfer and return the path on the host."""
        if self._connection._shell.tmpdir is None:
            self._make_tmp_path()
        remote: str = self._connection._shell.join_path(self._connection._shell.tmpdir, "plugins.tar")
        with tempfile.TemporaryDirectory(dir=C.DEFAULT_LOCAL_TMP) as folder:  # type: ignore[attr-defined]
            self._transfer_file(shipment.bundle(names, os.path.join(folder, "plugins.tar")), remote)
        self._fixup_perms2((self._connection._shell.tmpdir, remote), execute=False)
        return remote

    def _call(
        self, told: dict[str, Any] | None, task_vars: dict[str, Any], in_background: bool = True
    ) -> dict[str, Any]:
        arguments = dict(self._task.args)
        if told is not None:
            arguments["_source"] = told
        result: dict[str, Any] = self._execute_module(
            module_name=MODULE,
            module_args=arguments,
            task_vars=task_vars,
            wrap_async=in_background and bool(self._task.async_val),
        )
        with contextlib.suppress(KeyError, TypeError, AttributeError):
            result["invocation"]["module_args"].pop("_source", None)
        return result
