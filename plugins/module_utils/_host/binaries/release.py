# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which release of the reference plugins a binary is of."""

from __future__ import annotations

import re

from ..trust import check_executable
from .packages import packages_of

# Without a command a plugin says what it is (pkg/utils/buildversion).
_ABOUT = re.compile(r"CNI \S+ plugin v?(\d+\.\d+\.\d+)")
_PACKAGE = re.compile(r"(?:\d+:)?v?(\d+\.\d+\.\d+)")


def release_of(path: str, timeout: float) -> str:
    """Return the release, such as ``1.9.1``, of the plugin at *path*, "" if neither it nor a package tells.

    *timeout* is in seconds. Raises HostError ``unsafe_permissions`` or ``not_elf``.
    """
    check_executable(path)
    # The manifest mostly knows the release already, so this is seldom compiled.
    from ...libcni.process import run_program

    ended = run_program(path, [path], b"", {}, timeout)
    about = _ABOUT.search((ended.stderr + ended.stdout).decode("utf-8", "replace"))
    if about:
        return about.group(1)
    package = packages_of([path]).get(path)
    version = _PACKAGE.match(package.version) if package else None
    return version.group(1) if version else ""
