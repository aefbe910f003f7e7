# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether Nomad's servers would place jobs in bridge mode here: they want a release of each plugin that it needs.

Sources: hashicorp/nomad client/fingerprint/plugins_cni.go:Fingerprint, nomad/job_endpoint_hooks.go (since 1.5).
"""

from __future__ import annotations

import os
import re
from typing import Iterator, Sequence

from ..binaries.packages import about_plugin
from ..errors import HostError
from ..paths import names_in
from ..problems import Finding, obstacle
from .plugins import found_plugin

FIRST_RELEASE = (1, 5)
# hashicorp/go-version, SemverRegexpRaw
_SEMVER = re.compile(r"v?(\d+(?:\.\d+)*)(?:-[0-9A-Za-z.~-]+)?(?:\+[0-9A-Za-z.~-]+)?")
_OLDEST = (0, 4, 0)
_TIMEOUT = 3.0


def not_fingerprinted(plugins: Sequence[str], bin_dirs: Sequence[str]) -> Iterator[Finding]:
    """Yield why an agent that searches *bin_dirs* does not tell its servers of one of *plugins* that is there."""
    for name in plugins:
        path = found_plugin(name, bin_dirs)
        why = _why_not(path, bin_dirs) if path else ""
        if why:
            text = f"Nomad does not know the release of the plugin {name}, so that no job in bridge mode is placed here"
            remedy = (
                "install plugins of the project's own releases, and keep missing and empty directories out of cni_path"
            )
            yield obstacle("not_fingerprinted", text, why, remedy)


def _why_not(path: str, bin_dirs: Sequence[str]) -> str:
    for directory in bin_dirs:
        if directory == os.path.dirname(path):
            break
        if not names_in(directory):
            return f"its search ends at {directory}, which is missing or empty"
    try:
        words = about_plugin(path, _TIMEOUT).split()
    except HostError:
        # What keeps root from running it is told elsewhere.
        return ""
    known = next(filter(None, map(_SEMVER.fullmatch, words)), None)
    if known is None:
        return f"{path} prints no version, but {' '.join(words[:8])!r}"
    numbers = tuple(int(number) for number in known.group(1).split("."))
    return f"{path} says that it is {known.group()}, and 0.4.0 is needed" if numbers < _OLDEST else ""
