# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""podwire-hooks: runs root-owned executables when a container is attached or detached, and hands the result on.

Configuration: `add` and `delete`, lists of hooks: `command` (a list; the first is an absolute path), `timeout` in
seconds (10), `required` (true in `add`, false in `delete`): whether the call fails with the hook. A hook gets the
environment of the plugin, and the result on stdin; at a DEL without prevResult an empty object. What it prints is
quoted in errors only.
"""

from __future__ import annotations

import os
import sys

from ..libcni import gojson
from ..libcni.errors import ERR_PLUGIN_NOT_AVAILABLE, CNIError, PluginError
from ..libcni.skel import plugin_main
from .chained import bad_config, hand_on, previous, setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from ..libcni.skel import CmdArgs

ABOUT = "podwire-hooks: runs executables when a container is attached or detached"
ERR_HOOK = 100
_TIMEOUT, _LONGEST_TIMEOUT, _SHOWN = 10, 300, 1000


class _Hook:
    def __init__(self, entry: t.Any, where: str, required: bool) -> None:
        self.where = where
        if not isinstance(entry, dict):
            raise bad_config(f"{where}: expected an object with command, found {entry!r}")
        self.command: list[str] = setting(entry, "command", [])
        self.timeout = setting(entry, "timeout", _TIMEOUT)
        self.required = setting(entry, "required", required)
        if not self.command or not all(isinstance(word, str) for word in self.command):
            raise bad_config(f"{where}/command: expected a list of texts, found {self.command!r}")
        if not os.path.isabs(self.command[0]):
            raise bad_config(f"{where}/command: expected an absolute path, found {self.command[0]!r}")
        if not 1 <= self.timeout <= _LONGEST_TIMEOUT:
            raise bad_config(f"{where}/timeout: expected seconds from 1 to {_LONGEST_TIMEOUT}, found {self.timeout}")

    def check(self) -> None:
        """Raise `PluginError` unless root may run it."""
        from .._host.errors import HostError
        from .._host.trust import check_trusted

        path = self.command[0]
        try:
            check_trusted(path)
        except HostError as exc:
            raise PluginError(ERR_HOOK, f"{self.where}: {path} is not run", exc.msg) from exc
        if not (os.path.isfile(path) and os.access(path, os.X_OK)):
            raise PluginError(ERR_HOOK, f"{self.where}: {path} is not an executable file")

    def run(self, stdin: bytes) -> None:
        """Run it. Raises `PluginError`."""
        from ..libcni.process import run_program

        self.check()
        ended = run_program(self.command[0], self.command, stdin, dict(os.environ), float(self.timeout))
        if ended.failure:
            output = (ended.stderr or ended.stdout).decode("utf-8", "replace").strip()[-_SHOWN:]
            reason = f"did not end within {self.timeout} s" if ended.killed else ended.failure
            raise PluginError(ERR_HOOK, f"{self.where}: {self.command[0]}: {reason}", output)


def _hooks(config: t.Mapping[str, t.Any], key: str) -> list[_Hook]:
    entries = setting(config, key, [])
    return [_Hook(entry, f"{key}/{at}", key == "add") for at, entry in enumerate(entries)]


def _run_all(hooks: list[_Hook], stdin: bytes) -> None:
    """Run every hook, and raise the first error of a required one at the end, or at once in an ADD."""
    failed: PluginError | None = None
    for hook in hooks:
        try:
            hook.run(stdin)
        except PluginError as exc:
            if not hook.required:
                sys.stderr.write(f"podwire-hooks: {exc}\n")
            elif hook.where.startswith("add"):
                raise
            else:
                failed = failed or exc
    if failed:
        raise failed


def _add(args: CmdArgs) -> None:
    result = previous(args)
    hooks = _hooks(args.config, "add")
    _hooks(args.config, "delete")
    _run_all(hooks, gojson.dumps(result))
    hand_on(result)


def _delete(args: CmdArgs) -> None:
    try:
        hooks = _hooks(args.config, "delete")
    except PluginError as exc:
        # A container must be able to go.
        sys.stderr.write(f"podwire-hooks: {exc}\n")
        return
    try:
        result = previous(args)
    except CNIError:
        result = {}
    _run_all(hooks, gojson.dumps(result))


def _check(args: CmdArgs) -> None:
    previous(args)
    for key in ("add", "delete"):
        for hook in _hooks(args.config, key):
            hook.check()


def _status(args: CmdArgs) -> None:
    for hook in _hooks(args.config, "add"):
        try:
            hook.check()
        except PluginError as exc:
            if hook.required:
                raise PluginError(ERR_PLUGIN_NOT_AVAILABLE, exc.msg, exc.details) from None


def main() -> None:
    """Be the plugin."""
    plugin_main(add=_add, check=_check, delete=_delete, status=_status, about=ABOUT, error_version=True)


if __name__ == "__main__":
    main()
