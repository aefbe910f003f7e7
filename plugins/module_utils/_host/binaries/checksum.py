# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Checksums of archives: parsing, computing and comparing them."""

from __future__ import annotations

import hashlib
import re
from functools import partial
from typing import BinaryIO, Dict, Iterable, Tuple

from ..errors import HostError

_LENGTHS = {"sha256": 64, "sha512": 128}
_CHUNK = 1 << 20


def parse_checksum(text: str) -> Tuple[str, str]:
    """Split ``sha256:HEX`` or ``sha512:HEX`` into the algorithm and the lowercase digits.

    Raises HostError ``bad_checksum``.
    """
    algorithm, colon, digits = text.strip().partition(":")
    algorithm = algorithm.lower()
    digits = digits.lower()
    if not colon or algorithm not in _LENGTHS:
        raise HostError(
            f"checksum: {text!r} does not begin with 'sha256:' or 'sha512:'; write the algorithm, a colon and the "
            "digits",
            code="bad_checksum",
        )
    if len(digits) != _LENGTHS[algorithm] or not re.match(r"[0-9a-f]+\Z", digits):
        raise HostError(
            f"checksum: a {algorithm} has {_LENGTHS[algorithm]} hexadecimal digits, but {digits!r} does not; copy it "
            "again from where it is published",
            code="bad_checksum",
        )
    return algorithm, digits


def digests(stream: BinaryIO, algorithms: Iterable[str] = ("sha256", "sha512")) -> Dict[str, str]:
    """Return ``{algorithm: HEX}`` of the whole *stream*, and rewind it."""
    both = {name: hashlib.new(name) for name in algorithms}
    stream.seek(0)
    for chunk in iter(partial(stream.read, _CHUNK), b""):
        for digest in both.values():
            digest.update(chunk)
    stream.seek(0)
    return {name: digest.hexdigest() for name, digest in both.items()}


def verify(computed: Dict[str, str], expected: Tuple[str, str], what: str) -> None:
    """Raise HostError ``checksum_mismatch`` unless *computed*, from :func:`digests`, has *expected*."""
    algorithm, digits = expected
    if computed[algorithm] != digits:
        raise HostError(
            f"{what} has the {algorithm} {computed[algorithm]}, but {digits} is expected; nothing was unpacked. Either "
            "the file is not the one that was published, or the checksum belongs to another file (another release or "
            "architecture)",
            code="checksum_mismatch",
        )
