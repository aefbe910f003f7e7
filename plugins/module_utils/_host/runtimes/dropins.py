# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CRI-O, Nomad and podman: each reads a drop-in, a later one over an earlier one."""

from __future__ import annotations

import os
from typing import List

from ..errors import HostError
from .change import FileChange, RuntimeSettings, drop_in
from .found_podman import settled
from .profiles import Runtime
from .tomlfile import rendered

# The directories that the runtimes read once they are installed.
_CRIO = "/etc/crio/crio.conf.d"
_NOMAD = "/etc/nomad.d"
_PODMAN = "/etc/containers/containers.conf.d"


def crio_changes(runtime: Runtime, wanted: RuntimeSettings) -> List[FileChange]:
    """Return the changes of CRI-O's files. Raises HostError ``not_ours``."""
    text = (
        f"[crio.network]\nnetwork_dir = {rendered(wanted.conf_dir)}\nplugin_dirs = {rendered(list(wanted.bin_dirs))}\n"
    )
    return _changes(runtime, wanted, _CRIO, "99-podwire-cni.conf", text)


def nomad_changes(runtime: Runtime, wanted: RuntimeSettings) -> List[FileChange]:
    """Return the changes of Nomad's files. Raises HostError ``not_ours``, ``no_drop_in``."""
    if runtime.found and not runtime.config:
        raise HostError(
            "Nomad reads single configuration files, not a directory; set cni_config_dir and cni_path in their client "
            "block, or pass a directory to the agent with -config",
            code="no_drop_in",
        )
    text = (
        "client {\n"
        f"  cni_config_dir = {rendered(wanted.conf_dir)}\n"
        f"  cni_path       = {rendered(':'.join(wanted.bin_dirs))}\n"
        "}\n"
    )
    return _changes(runtime, wanted, _NOMAD, "99-podwire-cni.hcl", text)


def podman_changes(runtime: Runtime, wanted: RuntimeSettings) -> List[FileChange]:
    """Return the changes of podman's files. Raises HostError ``not_ours``, ``no_cni``."""
    major = int(runtime.version.split(".")[0]) if runtime.version else 4
    path, backend = settled()
    if wanted.present and major >= 5:
        raise HostError(
            f"podman {runtime.version} no longer supports CNI, only netavark; leave podman out of 'runtime'",
            code="no_cni",
        )
    if wanted.present and not runtime.reads and backend == "netavark":
        raise HostError(
            f"podman's containers use netavark, according to {path}, and would lose their networks; leave podman out "
            "of 'runtime', or remove its containers and networks first (podman system reset)",
            code="no_cni",
        )
    text = "[network]\n" + ('network_backend = "cni"\n' if major >= 4 else "")
    text += f"network_config_dir = {rendered(wanted.conf_dir)}\n"
    text += f"cni_plugin_dirs = {rendered(list(wanted.bin_dirs))}\n"
    return _changes(runtime, wanted, _PODMAN, "99-podwire-cni.conf", text)


def _changes(runtime: Runtime, wanted: RuntimeSettings, folder: str, name: str, text: str) -> List[FileChange]:
    path = os.path.join(runtime.config or folder, name)
    if not wanted.present:
        return drop_in(path, None, False)
    return drop_in(path, text, not wanted.are_those_of(runtime))
