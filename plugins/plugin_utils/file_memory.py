# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A memory of files on the controller, so that each is read once, and not once for each host and run."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from ..module_utils._host.binaries.archive import Member, inspect
from ..module_utils._host.errors import HostError
from ..module_utils._host.manifest import digest_of, identity, is_settled
from .archive_cache import cache_dir

_FILE = "files-2.json"
_LIMIT = 1000


class FileMemory:
    """Digests by path, valid as long as inode, size and times are the same (see manifest.is_settled).

    Losing it costs only time, so errors of its file are ignored.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}
        self._changed = False
        with contextlib.suppress(OSError, ValueError, HostError):
            with open(os.path.join(cache_dir(), _FILE), encoding="utf-8") as stream:
                known = json.load(stream)
            if isinstance(known, dict):
                self._known = {path: entry for path, entry in known.items() if isinstance(entry, dict)}

    def __enter__(self) -> FileMemory:
        return self

    def __exit__(self, *exception: object) -> None:
        if not self._changed:
            return
        # If two processes write at the same time, one wins; the entries of the other are computed again.
        with contextlib.suppress(OSError, HostError):
            fd, temp = tempfile.mkstemp(dir=cache_dir())
            with os.fdopen(fd, "w", encoding="utf-8") as stream:
                json.dump(self._known, stream)
            os.replace(temp, os.path.join(cache_dir(), _FILE))

    def member(self, stream: BinaryIO) -> Member | None:
        """Return the result of archive.inspect for the open file."""
        known = self._value(stream, "member", lambda: inspect(stream))
        return None if known is None else Member(*known)

    def sha256(self, stream: BinaryIO) -> str:
        """Return the digest of the open file."""
        return str(self._value(stream, "sha256", lambda: digest_of(stream)))

    def _value(self, stream: BinaryIO, kind: str, compute: Callable[[], object]) -> Any:
        path = os.path.abspath(stream.name)
        status = os.fstat(stream.fileno())
        entry = self._known.get(path, {})
        if entry.get("identity") != identity(status):
            entry = {"identity": identity(status)}
        if kind not in entry:
            settled = is_settled(status, time.time_ns())
            entry[kind] = compute()
            # Kept only if a later change of the file could be detected.
            if settled:
                if len(self._known) >= _LIMIT:
                    self._known.clear()
                self._known[path] = entry
                self._changed = True
        return entry[kind]
