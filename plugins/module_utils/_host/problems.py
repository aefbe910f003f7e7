# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a configuration or a host: one form, on the controller and on the host."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence

from .errors import HostError, coded
from .secrets import mask_text

ERROR = "error"
"""Nothing is written."""
WARNING = "warning"
"""Works now or belongs to another owner, but will have unexpected effects."""
INFO = "info"
"""Good to know."""

_LEVELS = (ERROR, WARNING, INFO)


class Finding(NamedTuple):
    """Something that is wrong or odd: *what* it is, and the *remedy*, what to do about it ("" if *what* says it).

    ``file`` is a path on the host or controller, or the place in the task's arguments; ``pointer`` a JSON pointer in it
    ("" is the whole); ``line`` and ``column`` count from 1, None if the text is not known. ``evidence`` is what was
    seen. ``runtime`` is "" for what concerns the host, ``network`` "" for all networks; ``vulnerability`` is the name
    of a known one.

    In readiness, no container of the runtime gets a working network because of an error; because of a warning, some
    do not, or it cannot be told. ``decides`` is False if that is left open.
    """

    level: str
    code: str
    what: str
    remedy: str = ""
    file: str = ""
    pointer: str = ""
    line: Optional[int] = None
    column: Optional[int] = None
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

    @property
    def sentence(self) -> str:
        """The message after the place, as far as that is known."""
        position = f"line {self.line}, column {self.column}" if self.line else ""
        place = ", ".join(part for part in (self.file, position, self.pointer) if part)
        return f"{place}: {self.message}" if place else self.message

    def error(self, before: str) -> HostError:
        """Return it as an error, whose text begins with *before*."""
        return HostError(f"{before}: {self.what} ({self.evidence}); {self.remedy}", code=self.code)

    def problem(self) -> Dict[str, Any]:
        """Return it as a row of a validation."""
        plain = {key: getattr(self, key) for key in ("level", "code", "pointer", "line", "column", "message")}
        vulnerability = {"vulnerability": self.vulnerability} if self.vulnerability else {}
        return {**plain, "file": self.file or None, **vulnerability}

    def obstacle(self) -> Dict[str, Any]:
        """Return it as a row of readiness."""
        plain = {key: getattr(self, key) for key in ("code", "level", "runtime", "network", "file")}
        texts = {"message": self.what, "evidence": self.evidence, "remedy": self.remedy}
        return {**plain, **{key: mask_text(text) for key, text in texts.items()}}


def obstacle(code: str, what: str, evidence: str, remedy: str, level: str = ERROR, file: str = "") -> Finding:
    """Return what keeps containers from their network."""
    return Finding(level, code, what, remedy, file, evidence=evidence)


def unreadable(error: HostError, level: str = WARNING, before: str = "", file: str = "") -> Finding:
    """Return that something could not be read because of *error*."""
    return Finding(level, error.code, before + error.msg, file=file)


def rows(findings: Iterable[Finding]) -> List[Dict[str, Any]]:
    """Return *findings* as rows of a validation."""
    return [finding.problem() for finding in findings]


def errors_of(findings: Sequence[Finding]) -> List[Finding]:
    """Return the findings that prevent the run."""
    return [finding for finding in findings if finding.level == ERROR]


def strict(findings: Sequence[Finding]) -> List[Finding]:
    """Return *findings* with errors instead of warnings.

    A ``missing_`` finding stays a warning. It is one only in check mode, where an earlier task of the run may install
    what is missing; a run fails without it in any case. So check mode predicts what the run does.
    """
    note = " (a warning, which 'strict' makes an error)"
    return [
        finding._replace(level=ERROR, what=finding.message + note, remedy="")
        if finding.level == WARNING and not finding.code.startswith("missing_")
        else finding
        for finding in findings
    ]


def error_of(findings: Sequence[Finding]) -> HostError:
    """Return the error that says what is wrong, if any of *findings* is an error."""
    return HostError(summary(findings), errors_of(findings)[0].code, problems=rows(findings))


def summary(findings: Sequence[Finding]) -> str:
    """Return the errors among *findings* as one text, each with its place."""
    errors = [coded(finding.sentence, finding.code) for finding in errors_of(findings)]
    return errors[0] if len(errors) == 1 else "\n- ".join([f"{len(errors)} errors:", *errors])
