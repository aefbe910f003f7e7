# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The request of ``cni_plugins``: its options, and what it asks the controller for."""

from __future__ import annotations

from typing import Any, Dict

PLUGINS_ARGUMENTS: Dict[str, Any] = {
    "src": {"type": "str"},
    "remote_src": {"type": "bool", "default": False},
    "version": {"type": "str"},
    "checksum": {"type": "str"},
    "plugins": {"type": "list", "elements": "str"},
    "bin_dir": {"type": "path"},
    "owner": {"type": "str", "default": "root"},
    "group": {"type": "str", "default": "root"},
    "mode": {"type": "raw", "default": "0755"},
    "state": {"type": "str", "choices": ["present", "absent", "restored"], "default": "present"},
    "force": {"type": "bool", "default": False},
    "installed_by": {"type": "str"},
}
PLUGINS_REQUIRED_IF = [("state", "present", ("src", "version"), True), ("state", "absent", ("plugins",))]


class SourceNeeded(Exception):
    """The controller must send plugins; *need* is what it has to know for that, see source.Source.need."""

    def __init__(self, need: Dict[str, Any]) -> None:
        super().__init__("the controller must send plugins")
        self.need = need
