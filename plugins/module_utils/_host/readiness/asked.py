# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a runtime itself reports, and how that differs from what it should have loaded."""

from __future__ import annotations

import json
from typing import Any, List

from ...libcni import gojson
from ..runtimes.cri import CriStatus
from ..runtimes.profiles import NAMED
from ..runtimes.rules import Network, Verdict
from ..runtimes.runtime import Runtime


def not_as_judged(runtime: Runtime, verdict: Verdict, status: CriStatus) -> str:
    """Return how the loaded networks differ from the verdict, "" if they do not or cannot be compared."""
    expected = [network.name for network in verdict.networks]
    if runtime.handler:
        return _of_handler(runtime, expected, status)
    if runtime.rules.choice == NAMED:
        # They may have others, such as those of files that are gone.
        lost = [name for name in expected if name not in (status.networks or [])]
        why = f" ({status.message})" if status.message else ""
        return f"has not loaded {', '.join(lost)}{why}" if lost else ""
    if status.networks is None:
        # CRI-O does not name them.
        right, told = status.ready == bool(expected), "a network" if status.ready else "none"
    else:
        right, told = status.networks == expected, ", ".join(status.networks) or "none"
    if right:
        return ""
    why = f" ({status.message})" if status.message and not status.ready else ""
    return f"has loaded {told}{why} instead of {', '.join(expected) or 'none'}"


def stale_file(verdict: Verdict, status: CriStatus) -> str:
    """Return the file of which the runtime has loaded an older state, "" if there is none or it does not tell."""
    if status.networks != [network.name for network in verdict.networks]:
        return ""
    pairs = zip(verdict.networks, status.chains or [])
    return next((network.file.path for network, chain in pairs if chain and chain != _plain(network)), "")


def _of_handler(runtime: Runtime, expected: List[str], status: CriStatus) -> str:
    """containerd reports for runtime handlers only whether the last load of their directories failed."""
    error = (status.loads or {}).get(runtime.handler)
    if error is None or bool(error) != bool(expected):
        return ""
    if error:
        return f"has not loaded {runtime.conf_dir} for the runtime handler {runtime.handler} ({error})"
    return f"has loaded a network from {runtime.conf_dir} for the runtime handler {runtime.handler} instead of none"


def _plain(network: Network) -> List[Any]:
    """Return the plugin objects as Python's own JSON reads them, as in the answer."""
    return [json.loads(gojson.dumps(plugin)) for plugin in network.loaded.plugins]
