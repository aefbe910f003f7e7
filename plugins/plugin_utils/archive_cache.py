# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Archives on the controller, stored by their checksum, so that each is fetched once for all hosts."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from typing import BinaryIO

from ..module_utils._host.binaries.checksum import digests, parse_checksum, verify
from ..module_utils._host.binaries.download import fetch, shown_url
from ..module_utils._host.errors import HostError

# A download without any sign of life looks like one that hangs.
_PAUSE = 5.0


def cache_dir() -> str:
    """Return the directory, created with mode 0700: ``podwire.cni`` below ``XDG_CACHE_HOME`` or ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    path = os.path.join(base, "podwire.cni")
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.lstat(path)
    except OSError as error:
        raise HostError(f"cannot create the cache directory {path}: {error.strerror}", code="no_cache") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise HostError(
            f"{path} on the controller must be a directory of your own with mode 0700; fix its owner and mode, or "
            "remove it",
            code="unsafe_permissions",
        )
    return path


def obtain(url: str, checksum: str) -> str:
    """Return the path of the archive at *url*, fetched unless an intact copy with this *checksum* is there.

    If several processes need the same archive, one fetches it and the others wait. Raises HostError
    ``download_failed``, ``not_https`` or ``checksum_mismatch``.
    """
    algorithm, digits = wanted = parse_checksum(checksum)
    folder = cache_dir()
    path = os.path.join(folder, f"{algorithm}-{digits}")
    with locked(f"{path}.lock"):
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as stream:
            if digests(stream, (algorithm,))[algorithm] == digits:
                return path
        fd, temp = tempfile.mkstemp(dir=folder)
        try:
            with os.fdopen(fd, "w+b") as stream:
                _fetch_visibly(url, stream)
                verify(digests(stream, (algorithm,)), wanted, shown_url(url))
            os.replace(temp, path)
        except BaseException:
            os.unlink(temp)
            raise
    return path


def _fetch_visibly(url: str, stream: BinaryIO) -> None:
    """Download *url*, and say so: all hosts wait for it."""
    # Imported late: `ansible-test units` has none for the tests of modules, which write reports under the same lock.
    from ansible.utils.display import Display

    display, write = Display().display, stream.write
    display(f"podwire.cni: downloading {shown_url(url)}")
    begun = told = time.monotonic()

    class Told(io.RawIOBase):
        """A target that says from time to time how much it has received."""

        def write(self, chunk: bytes) -> int:  # type: ignore[override]
            nonlocal told
            if time.monotonic() - told >= _PAUSE:
                told = time.monotonic()
                display(f"podwire.cni: received {stream.tell() / 1e6:.1f} MB")
            return write(chunk)

    fetch(url, Told())  # type: ignore[arg-type]
    display(f"podwire.cni: received {stream.tell() / 1e6:.1f} MB in {time.monotonic() - begun:.0f} s")


@contextlib.contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold the lock of a file, which is made for its owner only if it does not exist."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
