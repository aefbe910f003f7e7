# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CRI-O, Nomad and podman: each reads a drop-in, a later one over an earlier one. Apptainer: a block in its file."""

from __future__ import annotations

import os
import stat
from typing import List, Mapping, NamedTuple, Optional, Sequence

from ..errors import HostError
from ..files import Attributes, Directory, write
from ..trust import check_trusted, open_trusted
from . import found_apptainer, reading
from .found_podman import podman_release, settled
from .profiles import APPTAINER_CONFIG, Runtime
from .tomlfile import rendered

HEADER = "# Written by podwire.cni; changes are overwritten.\n"
_END = "# End of what podwire.cni wrote.\n"


class RuntimeSettings(NamedTuple):
    """The desired settings of runtimes; None keeps the current value. ``present`` False removes all managed settings.

    ``wait``: for how many seconds to ask the runtimes until they have loaded the network of ensure_effective.
    ``allow``: who may use which networks with Apptainer, see Runtime.allowed; what it lacks stays.
    """

    conf_dir: str
    bin_dirs: Sequence[str]
    max_conf_num: Optional[int] = None
    setup_serially: Optional[bool] = None
    present: bool = True
    wait: float = 0.0
    allow: Optional[Mapping[str, Sequence[str]]] = None

    def are_those_of(self, runtime: Runtime) -> bool:
        """Tell whether a runtime already has these settings."""
        return (
            bool(runtime.found)
            and runtime.reads
            and runtime.conf_dir == self.conf_dir
            and list(runtime.bin_dirs) == list(self.bin_dirs)
            and self.max_conf_num in (None, runtime.max_networks)
            and self.setup_serially in (None, runtime.setup_serially)
            and (runtime.name != "apptainer" or dict(runtime.allowed, **(self.allow or {})) == runtime.allowed)
        )


class FileChange:
    """A configuration file of a runtime: its current and its desired text; None means that there is no file.

    Changes the target of a symbolic link and keeps the link. Only files in directories that only root can change are
    written. ``undo`` writes to the directory that ``make`` opened, wherever its path leads by then.
    """

    def __init__(self, path: str, before: Optional[str], after: Optional[str]) -> None:
        self.path = path
        self.before = before
        self.after = after
        self._directory: Optional[Directory] = None
        self._name = ""

    def make(self) -> None:
        """Raises HostError ``unsafe_permissions``, ``no_directory``, ``write_failed``."""
        check_trusted(self.path)
        folder, self._name = os.path.split(os.path.realpath(self.path))
        self._directory = Directory(folder, open_trusted(folder))
        self._put(self._directory, self.after)

    def undo(self) -> None:
        if self._directory is not None:
            self._put(self._directory, self.before)

    def close(self) -> None:
        if self._directory is not None:
            os.close(self._directory.fd)
            self._directory = None

    def _put(self, directory: Directory, text: Optional[str]) -> None:
        if text is None:
            directory.remove(self._name)
            return
        try:
            status = os.stat(self._name, dir_fd=directory.fd, follow_symlinks=False)
            attributes = Attributes(stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)
        except FileNotFoundError:
            attributes = Attributes(0o644)
        write(directory, self._name, text.encode("utf-8"), attributes)


def drop_in(path: str, text: Optional[str], needed: bool) -> List[FileChange]:
    """Return the change that gives a file written only by this collection the *text*; a new file only if *needed*.

    Raises HostError ``not_ours``.
    """
    before = reading.read_text(path)
    if before is not None and not before.startswith(HEADER):
        raise HostError(f"{path} exists and was not written by podwire.cni; move it away", code="not_ours")
    after = None if text is None or not (needed or before is not None) else HEADER + text
    return [] if before == after else [FileChange(path, before, after)]


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
    # For one that is not installed yet, the task says that it has CNI.
    major = podman_release(runtime.version) if runtime.found else 4
    path, backend = settled()
    if wanted.present and major >= 5:
        text = f"podman {runtime.version} no longer supports CNI, only netavark;"
        if not runtime.version:
            text = f"{runtime.found} does not tell its version, and podman 5 supports only netavark; fix it, or"
        raise HostError(f"{text} leave podman out of 'runtime'", code="no_cni")
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


def apptainer_changes(runtime: Runtime, wanted: RuntimeSettings) -> List[FileChange]:
    """Return the change of apptainer.conf, in which the first line of a key counts.

    Raises HostError ``cannot_configure``, ``unreadable``.
    """
    path = runtime.config or APPTAINER_CONFIG
    before = reading.read_text(path)
    block, rest = "", before or ""
    if rest.startswith(HEADER) and _END in rest:
        block, _end, rest = rest.partition(_END)
    after = rest
    if wanted.present:
        if len(wanted.bin_dirs) != 1:
            raise HostError(
                f"configure: apptainer searches one directory for plugins, and bin_dirs has {len(wanted.bin_dirs)} "
                f"({', '.join(wanted.bin_dirs)}); give the one that has all plugins",
                code="cannot_configure",
            )
        if rest != before or not wanted.are_those_of(runtime):
            settings = {found_apptainer.CONF_DIR: wanted.conf_dir, found_apptainer.PLUGINS: wanted.bin_dirs[0]}
            written = found_apptainer.values_in(block)
            for what, key in found_apptainer.ALLOW.items():
                if wanted.allow and what in wanted.allow:
                    settings[key] = ",".join(wanted.allow[what])
                elif key in written:
                    settings[key] = written[key]
            lines = "".join(f"{key} = {value}".rstrip() + "\n" for key, value in settings.items())
            after = f"{HEADER}{lines}{_END}{rest}"
    return [] if after == (before or "") else [FileChange(path, before, after or None)]


def _changes(runtime: Runtime, wanted: RuntimeSettings, folder: str, name: str, text: str) -> List[FileChange]:
    path = os.path.join(runtime.config or folder, name)
    if not wanted.present:
        return drop_in(path, None, False)
    return drop_in(path, text, not wanted.are_those_of(runtime))
