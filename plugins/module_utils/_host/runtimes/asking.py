# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What runtimes say about their networks, until a deadline, and what plugins say by STATUS: whether they could serve.

STATUS exists since version 1.1.0. A plugin that does not have it says nothing: that is unknown, never ready.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from ...libcni import gojson
from ...libcni.conf import NetworkConfigList, network_plugin_conf_from_bytes
from ...libcni.errors import CNIError, PluginError
from ...libcni.version import is_at_least
from ..binaries.usable import Binaries
from ..confdir import paths_of
from ..errors import HostError
from ..executor import SafeExecutor
from ..json_text import parse_json
from ..kinds import text_of
from ..problems import ERROR, WARNING, Finding
from ..secrets import mask_text
from ..trust import untrusted
from .profiles import NAMED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cri import CriStatus
    from .runtime import Runtime

# A load takes milliseconds once the runtime has noticed the file.
_PAUSE = 0.05
# Each question may take so long, also the last one before the deadline: the host may be busy.
ANSWER = 5.0


class Reply(NamedTuple):
    """The last ``status`` of a runtime, None if it did not answer, and ``why`` that is not right, "" if it is.

    ``code`` says why it did not answer: ``cri_not_loaded``, ``not_answered`` and others.
    """

    status: Optional[CriStatus]
    why: str
    code: str = ""


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
        return Reply(None, error.msg, error.code)


def mismatch(runtime: Runtime, status: CriStatus) -> Optional[Finding]:
    """Return how the loaded networks differ from the verdict, None if they do not or cannot be compared.

    A warning: a network is loaded in an older state.
    """
    level, what = ERROR, ""
    networks, error = runtime.verdict.networks, (status.loads or {}).get(runtime.handler)
    expected = [network.name for network in networks]
    if runtime.handler:
        # containerd reports for runtime handlers only whether the last load of their directories failed.
        where = f"{runtime.conf_dir} for the runtime handler {runtime.handler}"
        if error and expected:
            what = f"has not loaded {where} ({error})"
        elif error == "" and not expected:
            what = f"has loaded a network from {where} instead of none"
    elif runtime.profile.choice == NAMED:
        # They may have others, such as those of files that are gone.
        lost = [name for name in expected if name not in (status.networks or [])]
        why = f" ({status.message})" if status.message else ""
        what = f"has not loaded {', '.join(lost)}{why}" if lost else ""
    else:
        right, loaded = status.networks == expected, ", ".join(status.networks or []) or "none"
        if status.networks is None:
            # CRI-O does not name them.
            right, loaded = status.ready == bool(expected), "a network" if status.ready else "none"
        older = [
            network.file.path
            for network, chain in zip(networks, status.chains or [])
            # As Python's own JSON reads them, like the answer.
            if chain and chain != [parse_json(gojson.dumps(plugin)) for plugin in network.plugins]
        ]
        if not right:
            why = f" ({status.message})" if status.message and not status.ready else ""
            what = f"has loaded {loaded}{why} instead of {', '.join(expected) or 'none'}"
        elif older:
            level, what = WARNING, f"has loaded an older state of {older[0]}"
    file = runtime.verdict.file or runtime.conf_dir
    return Finding(level, "not_loaded", f"{runtime.name} {what}", file=file) if what else None


# ---- STATUS

READY, NOT_READY, UNKNOWN = "ready", "not_ready", "unknown"
# A plugin answers in milliseconds; CRI's own Status waits longer for one that hangs.
STATUS_TIMEOUT = 5.0
_FIRST = "1.1.0"
# Go's codes for STATUS: not available, and limited connectivity of existing containers.
_NOT_AVAILABLE = (50, 51)


class PluginsStatus(NamedTuple):
    """``state`` (ready, not_ready, unknown), the ``code`` of the plugin's error (None for none), and why (``message``).

    ``plugin`` is the type of the plugin that is not ready or cannot be asked, "" if all are ready. ``hangs``: it has
    STATUS, and does not answer it.
    """

    state: str
    code: Optional[int] = None
    message: str = ""
    plugin: str = ""
    hangs: bool = False

    def row(self) -> Dict[str, Any]:
        return {"state": self.state, "code": self.code, "plugin": self.plugin, "message": mask_text(self.message)}


def status_of(
    network: str,
    cni_version: str,
    plugins: Sequence[Dict[str, Any]],
    path: str,
    binaries: Binaries,
    timeout: float = STATUS_TIMEOUT,
) -> PluginsStatus:
    """Ask the *plugins* of a network, one after another; the first one that is not ready decides.

    *path* is the network's file, which only root may be able to change. *binaries* are those that the runtime finds.
    """
    if not is_at_least(cni_version, _FIRST):
        text = f"its cniVersion is {cni_version or '0.1.0'}, and STATUS is new in {_FIRST}"
        return PluginsStatus(UNKNOWN, None, text)
    refused = untrusted(paths_of(os.path.dirname(path), path, network))
    if refused:
        return PluginsStatus(UNKNOWN, None, refused[0].what)
    unknown: List[PluginsStatus] = []
    for plugin in plugins:
        answer = _ask_plugin(network, cni_version, plugin, binaries, timeout)
        if answer.state == NOT_READY:
            return answer
        if answer.state == UNKNOWN:
            unknown.append(answer)
    return unknown[0] if unknown else PluginsStatus(READY)


def _ask_plugin(
    network: str, cni_version: str, plugin: Dict[str, Any], binaries: Binaries, timeout: float
) -> PluginsStatus:
    # Imported late: whoever only asks runtimes needs no verbs.
    from ...libcni.api import CNIConfig

    kind = text_of(plugin, "type")
    try:
        _path, versions = binaries.ask(kind)
        if cni_version not in versions:
            text = f"the plugin {kind} supports {', '.join(versions)}, and STATUS needs {cni_version}"
            return PluginsStatus(UNKNOWN, None, text, kind)
        single = NetworkConfigList(network, cni_version, [network_plugin_conf_from_bytes(gojson.dumps(plugin))], b"")
        CNIConfig(binaries.bin_dirs, timeout=timeout, executor=SafeExecutor()).get_status_network_list(single)
    except HostError as error:
        return PluginsStatus(UNKNOWN, None, error.msg, kind)
    except PluginError as error:
        if error.code == 0:
            return PluginsStatus(UNKNOWN, None, f"the plugin {kind} does not answer STATUS: {error}", kind, True)
        what = "is not ready" if error.code in _NOT_AVAILABLE else "fails STATUS"
        return PluginsStatus(NOT_READY, error.code, f"the plugin {kind} {what} (code {error.code}): {error}", kind)
    except CNIError as error:
        return PluginsStatus(UNKNOWN, None, f"the plugin {kind} does not answer STATUS: {error}", kind, True)
    return PluginsStatus(READY)
