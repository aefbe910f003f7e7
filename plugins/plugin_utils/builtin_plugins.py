# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's own plugin as an executable, made once on the controller, for ``src: builtin`` of cni_plugins."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

from .. import module_utils
from ..module_utils._host.errors import HostError
from ..module_utils.libcni import bundle
from .archive_cache import cache_dir, locked

SOURCE = "builtin"
NAMES = ("podwire-multinet",)


def directory() -> str:
    """Return a directory with the executable. Raises HostError ``no_cache``, ``unsafe_permissions``."""
    sources = Path(next(iter(module_utils.__path__)))
    path = os.path.join(cache_dir(), f"builtin-{_digest(sources)}")
    try:
        with locked(f"{path}.lock"):
            if not os.path.isdir(path):
                _make(sources / "_plugins", path)
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}", code="no_cache") from error
    return path


def _digest(sources: Path) -> str:
    """Return a digest of all that the executable is made of: the code, and the bytecode of this Python."""
    digest = hashlib.sha256(importlib.util.MAGIC_NUMBER)
    for path in sorted(sources.rglob("*.py")):
        digest.update(f"\0{path.relative_to(sources)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _make(plugins: Path, path: str) -> None:
    temporary = tempfile.mkdtemp(dir=os.path.dirname(path))
    try:
        for name in NAMES:
            source = plugins / f"{name.partition('-')[2]}.py"
            bundle.write(bundle.bundle(str(source)), os.path.join(temporary, name))
        os.rename(temporary, path)
    except BaseException:
        shutil.rmtree(temporary)
        raise
