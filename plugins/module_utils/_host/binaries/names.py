# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of plugins: what one looks like, and choosing from those that a source has."""

from __future__ import annotations

import re
from typing import Dict, Iterable, Mapping, Optional, TypeVar

from ..errors import HostError

PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}\Z")

T = TypeVar("T")


def plugin_name(name: str, where: str) -> str:
    """Return *name* if it can be a plugin's; raises HostError ``bad_plugin_name``."""
    if not PLAIN_NAME.match(name):
        raise HostError(
            "%s: %r is not a plugin name; it consists of letters, digits, '.', '_', '+' and '-', at most 128, and "
            "begins with a letter, a digit or '_'" % (where, name),
            code="bad_plugin_name",
        )
    return name


def select(members: Mapping[str, T], plugins: Optional[Iterable[str]], where: str) -> Dict[str, T]:
    """Return those of *members* that *plugins* names (None: all). Raises HostError ``missing_member``."""
    there = ", ".join(sorted(members)) or "none"
    if plugins is None:
        if not members:
            raise HostError(
                "there is no ELF file in the root of %s, so no plugin to install" % where, code="missing_member"
            )
        return dict(members)
    missing = [name for name in plugins if name not in members]
    if missing:
        raise HostError(
            "%s has no plugin %s; its plugins are: %s. Only regular ELF files in its root count"
            % (where, ", ".join(repr(name) for name in missing), there),
            code="missing_member",
        )
    return {name: members[name] for name in plugins}
