# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Records that tell only what libcni's entry does not."""

from __future__ import annotations

import json
import os

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import ATTACHED


def write_record(cache_dir, key, identity, **members):
    """Write the record of an attachment that is in the cache, and return its path."""
    names = dict(zip(("network", "container_id", "ifname"), key))
    record = {"state": ATTACHED, "interface": True, "check": None, "identity": identity, **names, **members}
    folder = os.path.join(str(cache_dir), "podwire")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, "-".join(key))
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(record, stream)
    return path
