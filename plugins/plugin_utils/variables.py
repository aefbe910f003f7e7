# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The names of variables, for messages. A unit test compares them with the files."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from .settings import VARIABLES

DECLARING = (
    "cni_networks",
    "cni_pod_networks",
    "cni_pod_networks_nads",
    "cni_attachments",
    "cni_attachments_watch",
    "cni_netns",
    "cni_runtime",
    "cni_plugins_version",
    "cni_plugins_src",
    "cni_plugins_builtin",
    "cni_plugins_dhcp_daemon",
)
"""The roles do not change a host for which none of these is set."""

SET = re.compile(r"cni_(\w+_result|drift|runtime_loaded|upgrade_before|upgrade_after)")
"""The names of variables that playbooks and roles set for others. Those that they set for themselves begin with __."""


def unknown_variables(names: Iterable[str]) -> dict[str, str]:
    """Return those of *names* that look like variables of this collection but are not, each with the closest one.

    The latter is empty for a name without a close one: playbooks may have variables of their own with this prefix.
    """
    settable = sorted(VARIABLES)
    unknown = sorted(
        name for name in names if name.startswith("cni_") and name not in VARIABLES and not SET.fullmatch(name)
    )
    return {name: "".join(difflib.get_close_matches(name, settable, n=1, cutoff=0.8)) for name in unknown}
