# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Apptainer: apptainer.conf.

Measured with Apptainer 1.4.5: the first line of a key counts, keys are in small letters, and a value is all that
follows the equals sign, quotes and comments included. The plugin path is one directory.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Sequence, Tuple

from ..errors import HostError
from ..processes import Process
from . import profiles, reading
from .runtime import Keys, Runtime
from .settings import HEADER, FileChange, RuntimeSettings

ALLOW = {name: f"allow net {name}" for name in ("networks", "users", "groups")}
"""Who may use which networks without being root; each is a list with commas."""
_LINE = re.compile(r"(?m)^[ \t]*([a-z][a-z ]*[a-z])[ \t]*=[ \t]*(.*?)[ \t]*$")
_END = "# End of what podwire.cni wrote.\n"


class Apptainer(Runtime):
    """Apptainer, which reads its file when it starts a container."""

    keys = Keys("cni configuration path", "cni plugin path", separator="")

    @classmethod
    def find(cls, running: Sequence[Process]) -> List[Runtime]:
        config = profiles.APPTAINER_CONFIG
        runtime = cls.evident("apptainer", running, "apptainer", version="--version") or cls("apptainer", "", config)
        runtime.config = config
        try:
            runtime._read()
        except HostError as error:
            runtime.reads = False
            runtime.notes.append(f"unknown: {error.msg}")
        return [runtime]

    def _read(self) -> None:
        values = values_in(reading.read_text(self.config) or "")
        self.take(values)
        for what, key in ALLOW.items():
            if key in values:
                names = [name.strip() for name in values[key].split(",")]
                self.allowed[what] = [name for name in names if name]

    def compared(self, desired: RuntimeSettings) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        current, wanted = super().compared(desired)
        for what, names in (desired.allow or {}).items():
            current[f"allow.{what}"] = ", ".join(self.allowed.get(what, ()))
            wanted[f"allow.{what}"] = ", ".join(names)
        return current, wanted

    def take_over(self, desired: RuntimeSettings) -> None:
        super().take_over(desired)
        self.allowed = {**self.allowed, **{what: list(names) for what, names in (desired.allow or {}).items()}}

    def changes(self, desired: RuntimeSettings) -> List[FileChange]:
        """Return the change of apptainer.conf, in which the first line of a key counts.

        Raises HostError ``cannot_configure``, ``unreadable``.
        """
        path = self.config or profiles.APPTAINER_CONFIG
        before = reading.read_text(path)
        block, rest = "", before or ""
        if rest.startswith(HEADER) and _END in rest:
            block, _end, rest = rest.partition(_END)
        after = rest
        if desired.present:
            if len(desired.bin_dirs) != 1:
                raise HostError(
                    "configure: apptainer searches one directory for plugins, and bin_dirs has "
                    f"{len(desired.bin_dirs)} ({', '.join(desired.bin_dirs)}); give the one that has all plugins",
                    code="cannot_configure",
                )
            if rest != before or not self.has(desired):
                after = HEADER + _lines(desired, values_in(block)) + _END + rest
        return [] if after == (before or "") else [FileChange(path, before, after or None)]


def _lines(desired: RuntimeSettings, written: Dict[str, str]) -> str:
    """Return the lines with the settings; *written* are those that the file has already."""
    settings = {Apptainer.keys.conf_dir: desired.conf_dir, Apptainer.keys.bin_dirs: desired.bin_dirs[0]}
    for what, key in ALLOW.items():
        if desired.allow and what in desired.allow:
            settings[key] = ",".join(desired.allow[what])
        elif key in written:
            settings[key] = written[key]
    return "".join(f"{key} = {value}".rstrip() + "\n" for key, value in settings.items())


def values_in(text: str) -> Dict[str, str]:
    """Return the values of a configuration by key."""
    values: Dict[str, str] = {}
    for key, value in _LINE.findall(text):
        values.setdefault(key, value)
    return values
