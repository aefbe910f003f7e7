# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a runtime has loaded its networks: it is asked until its answer is right, or a deadline has passed."""

from __future__ import annotations

import json
import time
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from ...libcni import gojson
from ..errors import HostError
from .profiles import NAMED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cri import CriStatus
    from .rules import Network, Verdict
    from .runtime import Runtime

# A load takes milliseconds once the runtime has noticed the file.
_PAUSE = 0.05
# Each question may take so long, also the last one before the deadline: the host may be busy.
ANSWER = 5.0


class Mismatch(NamedTuple):
    """What is wrong with the loaded networks, "" if nothing. ``stale``: one is loaded in an older state."""

    text: str
    stale: bool = False


class Reply(NamedTuple):
    """The last ``status`` of a runtime, None if it did not answer, and ``why`` that is not right, "" if it is."""

    status: Optional[CriStatus]
    why: str


def ask_until(runtime: Runtime, networks: Sequence[str], end: float, differs: Callable[[CriStatus], str]) -> Reply:
    """Ask *runtime* for *networks* until *differs* of its answer returns "", or the time *end* has come."""
    while True:
        answer = ask_once(runtime, networks, max(ANSWER, end - time.monotonic()))
        if answer.status is not None:
            answer = answer._replace(why=differs(answer.status))
        if (answer.status is not None and not answer.why) or time.monotonic() > end:
            return answer
        time.sleep(_PAUSE)


def ask_once(runtime: Runtime, networks: Sequence[str], timeout: float = ANSWER) -> Reply:
    """Ask *runtime* for *networks*; ``why`` is the error if it does not answer."""
    try:
        return Reply(runtime.ask(networks, timeout), "")
    except HostError as error:
        return Reply(None, error.msg)


def mismatch(runtime: Runtime, verdict: Verdict, status: CriStatus) -> Mismatch:
    """Return how the loaded networks differ from the verdict; "" if they do not or cannot be compared."""
    expected = [network.name for network in verdict.networks]
    if runtime.handler:
        return Mismatch(_of_handler(runtime, expected, status))
    if runtime.rules.choice == NAMED:
        # They may have others, such as those of files that are gone.
        lost = [name for name in expected if name not in (status.networks or [])]
        why = f" ({status.message})" if status.message else ""
        return Mismatch(f"has not loaded {', '.join(lost)}{why}" if lost else "")
    if status.networks is None:
        # CRI-O does not name them.
        right, loaded = status.ready == bool(expected), "a network" if status.ready else "none"
    else:
        right, loaded = status.networks == expected, ", ".join(status.networks) or "none"
    if not right:
        why = f" ({status.message})" if status.message and not status.ready else ""
        return Mismatch(f"has loaded {loaded}{why} instead of {', '.join(expected) or 'none'}")
    for network, chain in zip(verdict.networks, status.chains or []):
        if chain and chain != _plain(network):
            return Mismatch(f"has loaded an older state of {network.file.path}", stale=True)
    return Mismatch("")


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
