# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What action plugins have in common that send plugin binaries to a host."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from ansible import constants as C
from ansible.errors import AnsibleError

from ..module_utils._host.errors import HostError
from .module_action import ModuleAction, Result
from .plugin_source import PluginSource, read_answer

_OVERRIDING = {
    "checksum": "'checksum' overrides the checksum of the release",
    "src": "'src' is installed, and 'version' only provides its checksum",
}
"""What each option does to the release that 'version' asks for."""


class ShippingAction(ModuleAction):
    """Sends a host the plugins that it lacks, in one transfer.

    Only files that differ are sent, usually none. Their directory is created on demand.
    """

    def with_source(self, options: Mapping[str, Any], arguments: Result, task_vars: Result) -> Result:
        """Return the result of the module, which is called with what it has to know about the source of the plugins.

        *options* are those of cni_plugins, *arguments* the module's. Raises HostError for options that are wrong,
        before the host is asked.
        """

        def call(told: Result | None, in_background: bool) -> Result:
            source = {} if told is None else {"_source": told}
            return self.call({**arguments, **source}, task_vars, in_background)

        if options["state"] != "present":
            return call(None, True)
        if options["remote_src"]:
            return call(PluginSource(options, None).question(only_ask=False), True)
        source = PluginSource(options, self._find)
        # An asynchronous task cannot ask for more files, so the host is asked first.
        only_ask = bool(self._task.async_val)
        result = call(source.question(only_ask), False)
        answer = result.pop("plugins_needed", None)
        if answer is None or result.get("failed"):
            return result
        machine, have = read_answer(answer)
        try:
            with source.opened(machine) as shipment:
                lacking = shipment.lacking(have)
                bundle = self._send(shipment, lacking) if lacking and not self._task.check_mode else None
                return call(shipment.told(bundle, lacking if bundle else []), True)
        except HostError as error:
            return self.without_source(error, call)

    def without_source(self, error: HostError, call: Callable[..., Result]) -> Result:
        """Return the result if the plugins cannot be read or fetched because of *error*; by default, raise it."""
        raise error

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


def explain_release(result: Result, error: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Add to the message what to do if another option, such as one in group_vars, overrides the requested release."""
    version, other = options.get("version"), next((name for name in _OVERRIDING if options.get(name)), "")
    if version and other and error.get("code") in ("checksum_mismatch", "bad_checksum"):
        how = f"to install the release {version}, set '{other}' (for the roles: cni_plugins_{other}) to ''"
        result["msg"] = f"{result.get('msg')}. {_OVERRIDING[other]}: {how}"


def check_version(version: object) -> None:
    """Raise HostError ``bad_version`` if YAML has read a version as a number."""
    if isinstance(version, int | float):
        raise HostError(
            f"version: YAML read {version} as a number, which drops trailing zeros; write it in quotes, such as "
            "version: '1.9.1'",
            code="bad_version",
        )
