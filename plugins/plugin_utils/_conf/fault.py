# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a configuration, before it is known where that is written."""

from __future__ import annotations

from typing import Any, NamedTuple, Tuple


class Fault(NamedTuple):
    """A finding before its place is known: *pointer* is a tuple of keys and indexes; *key*: its key is meant."""

    level: str
    code: str
    message: str
    pointer: Tuple[Any, ...] = ()
    key: bool = False
