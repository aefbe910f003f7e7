# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The sections of cni_host, made of the argument specifications of their modules. Private to the collection."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..module_utils._host.host.request import SECTIONS_ARGUMENTS
from ..plugin_utils._report.record import MODULES
from ._specs import documented

_TEXTS = {
    "plugins": "Plugin binaries. Its options are those of M(podwire.cni.cni_plugins).",
    "pod_networks": (
        "Networks that pods request or that Multus runs, in files of a directory that no runtime reads. A runtime that "
        "goes by order would use them as its own network otherwise. Its options are those of M(podwire.cni.cni_conf) "
        "that are about networks, and the directory."
    ),
    "pod_networks.conf_dir": (
        "Directory of these networks, the C(confDir) of Multus. It must not be that of O(networks)."
    ),
    "networks": "Networks. Its options are those of M(podwire.cni.cni_conf) that are about networks.",
    "runtime": (
        "Which network the runtimes of the host use. Its options are those of M(podwire.cni.cni_conf) that are about "
        "runtimes."
    ),
    "netns": "Named network namespaces. Its options are those of M(podwire.cni.cni_netns).",
    "attachments": "Attachments of containers. Its options are those of M(podwire.cni.cni_attach).",
}


def _section(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    module = f"podwire.cni.{MODULES[name]}#module:"

    def text(place: str) -> str:
        return _TEXTS.get(f"{name}.{place}") or f"See O({module}{place})."

    return {"description": _TEXTS[name], "type": spec["type"], "suboptions": documented(spec["options"], text)}


class ModuleDocFragment:
    DOCUMENTATION: str = json.dumps(
        {"options": {name: _section(name, spec) for name, spec in SECTIONS_ARGUMENTS.items()}}
    )
