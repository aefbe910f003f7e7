# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Event filter cni_files: leave out changes that no runtime notices."""

from __future__ import annotations

import os
from typing import Any

DOCUMENTATION = r"""
---
short_description: Leave out changes that no runtime notices
description:
  - Takes paths out of the events of P(podwire.cni.cni_changes) that are neither networks (C(.conf), C(.conflist),
    C(.json)) nor names without an ending, as plugins and directories have them. An event about files without such a
    path says C(what=others), so that a condition does not match.
"""

EXAMPLES = r"""
- podwire.cni.cni_changes:
  filters:
    - podwire.cni.cni_files:
"""

_NETWORKS = (".conf", ".conflist", ".json")


def main(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event with the paths that matter."""
    told = event.get("cni")
    if isinstance(told, dict) and told.get("what") == "files":
        paths = [path for path in told.get("paths", []) if _matters(os.path.basename(path))]
        told = {**told, "paths": paths, "what": "files" if paths else "others"}
        event = {**event, "cni": told}
    return event


def _matters(name: str) -> bool:
    return os.path.splitext(name)[1] in ("", ".d", *_NETWORKS)
