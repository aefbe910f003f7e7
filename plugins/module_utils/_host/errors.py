# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The one error that leaves this package."""

from __future__ import annotations

from typing import Any, Dict


def coded(msg: str, code: str) -> str:
    """Return *msg* with its code at the end, unless it has the code already; ``./run explain CODE`` explains it."""
    return msg if not code or f"[{code}]" in msg else f"{msg} [{code}]"


class HostError(Exception):
    """A problem on the host or with the request.

    ``msg`` is a human-readable text: what failed, where, why, and what to do. ``code`` is a stable word to test for.
    ``facts`` are JSON-ready details that a module returns beside the message. ``may_pass``: an earlier task of the play
    may make or correct what is wrong. Check mode has not run that task, and only warns.
    """

    def __init__(self, msg: str, code: str = "", may_pass: bool = False, **facts: Any) -> None:
        super().__init__(msg)
        self.msg = msg
        self.code = code
        self.may_pass = may_pass
        self.facts: Dict[str, Any] = facts
