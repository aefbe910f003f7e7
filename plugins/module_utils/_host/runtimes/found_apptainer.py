# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apptainer: apptainer.conf.

Measured with Apptainer 1.4.5: the first line of a key counts, keys are in small letters, and a value is all that
follows the equals sign, quotes and comments included. The plugin path is one directory.
"""

from __future__ import annotations

import os
import re
from typing import Dict, List

from ..errors import HostError
from . import profiles, reading
from .profiles import Runtime

CONF_DIR, PLUGINS = "cni configuration path", "cni plugin path"
ALLOW = {name: f"allow net {name}" for name in ("networks", "users", "groups")}
"""Who may use which networks without being root; each is a list with commas."""
_LINE = re.compile(r"(?m)^[ \t]*([a-z][a-z ]*[a-z])[ \t]*=[ \t]*(.*?)[ \t]*$")


def find_apptainer() -> List[Runtime]:
    """Return Apptainer if it is installed or configured."""
    program = reading.installed("apptainer")
    if not program and not os.path.exists(profiles.APPTAINER_CONFIG):
        return []
    notes: List[str] = []
    version = reading.version(program, "--version", notes) if program else ""
    runtime = Runtime("apptainer", version, program or profiles.APPTAINER_CONFIG)
    runtime.notes, runtime.config = notes, profiles.APPTAINER_CONFIG
    try:
        values = values_in(reading.read_text(profiles.APPTAINER_CONFIG) or "")
        runtime.set_conf(reading.directory(dict(values), CONF_DIR) or runtime.conf_dir)
        own = reading.directory(dict(values), PLUGINS)
        runtime.bin_dirs = [own] if own else runtime.bin_dirs
        for what, key in ALLOW.items():
            if key in values:
                names = [name.strip() for name in values[key].split(",")]
                runtime.allowed[what] = [name for name in names if name]
    except HostError as error:
        runtime.reads = False
        notes.append(f"unknown: {error.msg}")
    return [runtime]


def values_in(text: str) -> Dict[str, str]:
    """Return the values of a configuration by key."""
    found: Dict[str, str] = {}
    for key, value in _LINE.findall(text):
        found.setdefault(key, value)
    return found
