# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What two sides did differently, in words."""

from __future__ import annotations

import difflib
import typing as t
from dataclasses import dataclass

from model import Call, Seen

# So much of a text is shown.
_SHOWN = 1500


@dataclass
class Disagreement:
    """One difference: in which step, in what (`status`, `stdout`, `call 1 stdin`, `file cache/...`), between what."""

    step: int
    what: str
    expected: bytes
    python: bytes

    def text(self) -> str:
        """Return it for people."""
        lines = [f"step {self.step}, {self.what} (- expected, + done):"]
        lines += difflib.ndiff(_lines(self.expected), _lines(self.python))
        return "\n    ".join(lines)


def _lines(data: bytes) -> list[str]:
    text = data.decode("utf-8", "backslashreplace")
    if len(text) > _SHOWN:
        text = f"{text[:_SHOWN]}... ({len(data)} bytes)"
    return text.split("\n")


def disagreements(step: int, expected: Seen, python: Seen) -> list[Disagreement]:
    """Return all differences between what is expected of a step and what was done."""
    return [Disagreement(step, what, one, other) for what, one, other in _parts(expected, python) if one != other]


def _parts(go: Seen, python: Seen) -> t.Iterator[tuple[str, bytes, bytes]]:
    yield "status", b"%d" % go.status, b"%d" % python.status
    yield "stdout", go.stdout, python.stdout
    yield "stderr", go.stderr, python.stderr
    yield "calls", _order(go.calls), _order(python.calls)
    for number, (left, right) in enumerate(zip(go.calls, python.calls)):
        yield f"call {number} argv", _joined(left.argv), _joined(right.argv)
        yield f"call {number} directory", left.directory.encode(), right.directory.encode()
        yield f"call {number} environment", b"\n".join(left.env), b"\n".join(right.env)
        yield f"call {number} stdin", left.stdin, right.stdin
    for name in sorted({*go.files, *python.files}):
        absent = "no such file", b""
        left_mode, left_data = go.files.get(name, absent)
        right_mode, right_data = python.files.get(name, absent)
        yield f"mode of {name}", left_mode.encode(), right_mode.encode()
        yield f"file {name}", left_data, right_data


def _order(calls: t.Sequence[Call]) -> bytes:
    return "\n".join(f"{call.plugin} {call.command}" for call in calls).encode()


def _joined(argv: t.Sequence[str]) -> bytes:
    return "\n".join(argv).encode("utf-8", "surrogateescape")
