# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The structure of a problem with a configuration; the same on the controller and on the host."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence

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


def rows(findings: Iterable[Finding]) -> List[Dict[str, Any]]:
    """Return *findings* as rows of a validation."""
    return [finding.problem() for finding in findings]


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


class Finding(NamedTuple):
    """Something that is wrong or odd: *what* it is, and the *remedy*, what to do about it ("" if *what* says it).

    ``file`` and the JSON ``pointer`` in it say where, ``evidence`` what was seen. ``runtime`` is "" for what concerns
    the host, ``network`` "" for all networks; ``vulnerability`` is the name of a known one.

    In readiness, no container of the runtime gets a working network because of an error; because of a warning, some
    do not, or it cannot be told. ``decides`` is False if that is left open.
    """

    level: str
    code: str
    what: str
    remedy: str = ""
    file: str = ""
    pointer: str = ""
    evidence: str = ""
    runtime: str = ""
    network: str = ""
    decides: bool = True
    vulnerability: str = ""

    @property
    def rank(self) -> int:
        return _LEVELS.index(self.level)

    @property
    def message(self) -> str:
        return f"{self.what}; {self.remedy}" if self.remedy else self.what

    def problem(self) -> Dict[str, Any]:
        """Return it as a row of a validation, see :func:`problem`."""
        row = problem(self.level, self.code, self.message, self.file or None, self.pointer)
        return dict(row, vulnerability=self.vulnerability) if self.vulnerability else row

    def obstacle(self) -> Dict[str, Any]:
        """Return it as a row of readiness."""
        plain = {key: getattr(self, key) for key in ("code", "level", "runtime", "network", "file")}
        texts = {"message": self.what, "evidence": self.evidence, "remedy": self.remedy}
        return {**plain, **{key: mask_text(text) for key, text in texts.items()}}


def obstacle(code: str, what: str, evidence: str, remedy: str, level: str = ERROR, file: str = "") -> Finding:
    """Return what keeps containers from their network."""
    return Finding(level, code, what, remedy, file, evidence=evidence)
