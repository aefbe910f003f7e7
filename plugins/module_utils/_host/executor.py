# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Running plugins as root."""

from __future__ import annotations

from typing import Mapping, Optional

from ..libcni.invoke import Executor
from .trust import check_plugin


class SafeExecutor(Executor):
    """libcni's executor; it first checks that root may run the plugin."""

    def exec_plugin(self, path: str, stdin: bytes, env: Mapping[str, str], timeout: Optional[float] = None) -> bytes:
        check_plugin(path)
        return super().exec_plugin(path, stdin, env, timeout)
