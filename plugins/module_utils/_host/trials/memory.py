# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What was shown by rehearsals and experiments, in files of root that end with the boot."""

from __future__ import annotations

import contextlib
import hashlib
import os
import zlib
from typing import Iterable, Optional

from ...libcni.files import read_file
from ..lock import LOCK_PATH
from ..paths import replace_unsynced

_FOLDER = os.path.dirname(LOCK_PATH)
_LARGEST = 4 << 20


class Memory:
    """What was shown of one thing: *kind* and *name* say of which; it counts as long as *given* is the same."""

    def __init__(self, kind: str, name: str, given: str) -> None:
        self._folder = os.path.join(_FOLDER, kind)
        self._path = os.path.join(self._folder, _file_name(name))
        self._digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).digest()

    def read(self) -> Optional[bytes]:
        try:
            raw = read_file(self._path, _LARGEST, follow=False)
            content = zlib.decompressobj().decompress(raw, _LARGEST)
        except (OSError, zlib.error):
            return None
        return content[len(self._digest) :] if content.startswith(self._digest) else None

    def write(self, answer: bytes) -> None:
        """Remember an answer. If that fails, the next run tries again."""
        with contextlib.suppress(OSError):
            for folder in (_FOLDER, self._folder):
                os.makedirs(folder, 0o700, exist_ok=True)
            replace_unsynced(self._path, zlib.compress(self._digest + answer, 1))


def forget(kind: str, kept: Iterable[str]) -> None:
    """Forget what was shown of all names that are not *kept*."""
    names = {_file_name(name) for name in kept}
    with contextlib.suppress(OSError):
        for name in set(os.listdir(os.path.join(_FOLDER, kind))) - names:
            os.unlink(os.path.join(_FOLDER, kind, name))


def _file_name(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
