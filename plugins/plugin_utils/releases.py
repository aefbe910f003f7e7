# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Official releases of containernetworking/plugins: file names and sha256 of the archives.

Sources of the digests, which agree wherever they overlap: the checksum files in the history of
https://github.com/kubernetes-sigs/kubespray (all architectures; not arm64 and amd64 of 1.9.0), and for amd64 and arm64
also https://github.com/containerd/nerdctl (Dockerfile.d/SHA256SUMS.d/) and https://github.com/vexxhost/ansible-collection-containers
(roles/cni_plugins/defaults/main.yml). They do not have riscv64, s390x and mips64le, which need the option checksum.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from ..module_utils._host.errors import HostError
from ..module_utils._host.json_text import parse_json

# bindir.host_machine's word -> the architecture in the archive's name.
ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "arm": "arm",
    "ppc64le": "ppc64le",
    "riscv64": "riscv64",
    "s390x": "s390x",
    "mips64le": "mips64le",
}

REFUSED = {
    "1.6.1": "its archives were replaced after publication, and some are gone; use '1.6.2', which has the same content",
    "1.7.0": "its archives were replaced after publication; use '1.7.1', which has the same content",
}


def parse_version(version: str) -> str:
    """Return the version without a leading v. Raises HostError ``bad_version``, or ``refused_version``."""
    number = version.strip().removeprefix("v")
    if not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", number):
        raise HostError(
            f"version: {version!r} is not the number of a release; write all three parts, in quotes, such as '1.9.1'",
            code="bad_version",
        )
    if number in REFUSED:
        raise HostError(f"version: {number} is refused: {REFUSED[number]}", code="refused_version")
    if tuple(int(part) for part in number.split(".")) < (0, 8, 0):
        raise HostError(
            f"version: {number} is older than 0.8.0, and its archives have other names; set 'src' and 'checksum'",
            code="refused_version",
        )
    return number


def urls(version: str) -> dict[str, str]:
    """Return machine -> URL of the release's archive."""
    base = f"https://github.com/containernetworking/plugins/releases/download/v{version}/cni-plugins-linux"
    return {machine: f"{base}-{arch}-v{version}.tgz" for machine, arch in ARCHITECTURES.items()}


def checksums(version: str) -> dict[str, str]:
    """Return machine -> ``sha256:...`` of the release's archive, for the machines where it is known."""
    known = digests().get(version, {})
    return {machine: f"sha256:{known[arch]}" for machine, arch in ARCHITECTURES.items() if arch in known}


@functools.lru_cache(maxsize=1)
def digests() -> dict[str, dict[str, str]]:
    """Return the sha256 of each architecture's archive, by release."""
    known: dict[str, dict[str, str]] = parse_json(Path(__file__).with_name("releases.json").read_bytes())
    return known


def of_checksum(checksum: str) -> str:
    """Return the release whose archive has this ``sha256:...``, "" if none is known to have it."""
    return next((release for release, known in digests().items() if checksum[7:] in known.values()), "")
