# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""STATUS: what the plugins of a network say about whether they could serve an ADD now.

The verb exists since version 1.1.0. A plugin that does not have it says nothing: that is unknown, never ready.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ...libcni import gojson
from ...libcni.api import CNIConfig
from ...libcni.conf import NetworkConfigList, network_conf_from_bytes
from ...libcni.errors import CNIError, PluginError
from ...libcni.version import greater_than_or_equal_to
from ..binaries.usable import Binaries
from ..confdir import paths_of
from ..errors import HostError
from ..executor import SafeExecutor
from ..kinds import text_of
from ..secrets import mask_text
from ..trust import check_trusted

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
    if not _is_at_least(cni_version):
        return PluginsStatus(
            UNKNOWN, None, f"its cniVersion is {cni_version or '0.1.0'}, and STATUS is new in {_FIRST}"
        )
    try:
        for part in paths_of(os.path.dirname(path), path, network):
            check_trusted(part)
    except HostError as error:
        return PluginsStatus(UNKNOWN, None, error.msg)
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
    kind = text_of(plugin, "type")
    try:
        _path, versions = binaries.ask(kind)
        if cni_version not in versions:
            text = f"the plugin {kind} supports {', '.join(versions)}, and STATUS needs {cni_version}"
            return PluginsStatus(UNKNOWN, None, text, kind)
        if "/" in kind:
            return PluginsStatus(UNKNOWN, None, f"{kind!r} is not the name of a plugin", kind)
        CNIConfig(binaries.bin_dirs, executor=SafeExecutor(), timeout=timeout).get_status_network_list(
            _single(network, cni_version, plugin)
        )
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


def _single(network: str, cni_version: str, plugin: Dict[str, Any]) -> NetworkConfigList:
    return network_conf_from_bytes(gojson.dumps({"cniVersion": cni_version, "name": network, "plugins": [plugin]}))


def _is_at_least(cni_version: str) -> bool:
    try:
        return greater_than_or_equal_to(cni_version, _FIRST)
    except CNIError:
        return False
