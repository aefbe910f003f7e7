# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The structure of a problem with a configuration; the same on the controller and on the host."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from .errors import coded
from .secrets import mask_text

ERROR = "error"
"""Nothing is written."""
WARNING = "warning"
"""Works now or belongs to another owner, but will have unexpected effects."""
INFO = "info"
"""Good to know."""


def problem(
    level: str,
    code: str,
    message: str,
    file: Optional[str] = None,
    pointer: str = "",
    line: Optional[int] = None,
    column: Optional[int] = None,
) -> Dict[str, Any]:
    """Return ``{level, code, file, pointer, line, column, message}``.

    ``file`` is a path on the host or controller, or the place in the task's arguments; ``pointer`` a JSON pointer in it
    ("" is the whole); ``line`` and ``column`` count from 1, None if the text is not known.
    """
    return {
        "level": level,
        "code": code,
        "file": file,
        "pointer": pointer,
        "line": line,
        "column": column,
        "message": message,
    }


def errors_of(problems: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return the problems that prevent the run."""
    return [entry for entry in problems if entry["level"] == ERROR]


def strict(problems: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return *problems* with errors instead of warnings.

    A ``missing_`` problem stays a warning. It is one only in check mode, where an earlier task of the run may install
    what is missing; a run fails without it in any case. So check mode predicts what the run does.
    """
    note = " (a warning, which 'strict' makes an error)"
    return [
        dict(entry, level=ERROR, message=entry["message"] + note)
        if entry["level"] == WARNING and not entry["code"].startswith("missing_")
        else entry
        for entry in problems
    ]


def summary(problems: Sequence[Dict[str, Any]]) -> str:
    """Return the errors among *problems* as one text, each with its place."""
    errors: List[str] = [coded(place(entry) + str(entry["message"]), entry["code"]) for entry in errors_of(problems)]
    if len(errors) == 1:
        return errors[0]
    return "\n- ".join([f"{len(errors)} errors:", *errors])


def place(entry: Dict[str, Any]) -> str:
    """Return the place of a problem, followed by a colon; "" if it is not known."""
    parts = []
    if entry["file"]:
        parts.append(entry["file"])
    if entry["line"]:
        parts.append(f"line {entry['line']}, column {entry['column']}")
    if entry["pointer"]:
        parts.append(entry["pointer"])
    return ", ".join(parts) + ": " if parts else ""


_LEVELS = (ERROR, WARNING, INFO)


class Obstacle(NamedTuple):
    """``code`` and ``message`` say what is wrong, ``evidence`` what was seen, ``remedy`` what to do about it.

    An error: no container of this runtime gets a working network. A warning: some do not, or it cannot be told. An
    info: it is odd, and no obstacle. ``runtime`` is "" for what concerns the host, ``network`` "" for all networks.
    """

    code: str
    message: str
    evidence: str
    remedy: str
    level: str = ERROR
    runtime: str = ""
    network: str = ""
    file: str = ""

    @property
    def rank(self) -> int:
        return _LEVELS.index(self.level)

    def row(self) -> Dict[str, Any]:
        texts = {key: mask_text(getattr(self, key)) for key in ("message", "evidence", "remedy")}
        return dict(self._asdict(), **texts)
