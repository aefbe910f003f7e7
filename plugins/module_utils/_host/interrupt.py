# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Turns signals that end the process into an exception, so that it can clean up first."""

from __future__ import annotations

import contextlib
import signal
from typing import Any, Iterator, List

_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """A signal asked the process to end; ``args[0]`` is its name. A BaseException, so no error handler catches it."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise Interrupted in the main thread for the first signal that asks to end; later ones are ignored."""
    told: List[int] = []

    def stop(number: int, _frame: Any) -> None:
        # A function ignores later signals, not SIG_IGN, which the plugins that clean up would inherit.
        if not told:
            told.append(number)
            raise Interrupted(signal.Signals(number).name)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
