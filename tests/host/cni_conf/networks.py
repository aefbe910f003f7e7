# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

LOOPBACK = {"type": "loopback"}


def conflist(*plugins: dict[str, Any], version: str = "1.0.0") -> dict[str, Any]:
    return {"cniVersion": version, "plugins": list(plugins)}


def network(name: str, *plugins: dict[str, Any], version: str = "1.0.0", **options: Any) -> dict[str, Any]:
    """Return an entry of the option ``networks``; without *plugins*, its plugin is loopback."""
    return {"name": name, "conflist": conflist(*(plugins or (LOOPBACK,)), version=version), **options}
