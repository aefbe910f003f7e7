# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Where footprints are: in the records of a cache directory, and in one file that its attachments share."""

from __future__ import annotations

import json
from pathlib import Path

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import AttachmentStore


def records(cache: Path) -> list[Path]:
    return sorted(path for path in (cache / "podwire").glob("*") if path.is_file())


def shared_file(cache: Path) -> Path:
    return Path(AttachmentStore(str(cache)).shared_path)


def lose_footprints(cache: Path) -> None:
    """Make it as if no footprint had been recorded."""
    for path in records(cache):
        record = json.loads(path.read_text(encoding="utf-8"))
        record.pop("footprint", None)
        path.write_text(json.dumps(record), encoding="utf-8")
    shared_file(cache).unlink(missing_ok=True)
