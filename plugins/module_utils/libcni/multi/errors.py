# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The error of this package."""

from __future__ import annotations

from ..errors import ConfigError


class NetworksError(ConfigError):
    """Networks of a pod that cannot be used: `msg` says what is required.

    `pointer`: place in the annotation or configuration, as a JSON pointer; for the comma-delimited form the index of
    the item. `annotation`: its name, "" if the fault is elsewhere. `line`, `column`: where the JSON is broken.
    """

    def __init__(
        self,
        msg: str,
        pointer: str = "",
        annotation: str = "",
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(msg, line=line, column=column)
        self.pointer = pointer
        self.annotation = annotation

    def explain(self) -> str:
        """Return the place and the message in one sentence."""
        where = [f"annotation {self.annotation}"] if self.annotation else []
        if self.line is not None:
            where.append(f"line {self.line}:{self.column}")
        if self.pointer:
            where.append(self.pointer)
        return ": ".join(filter(None, (", ".join(where), self.msg)))
