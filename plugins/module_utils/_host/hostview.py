# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The host as planners see it: as it is, with what the steps planned so far will change."""

from __future__ import annotations

import os
from typing import Any, Callable, Container, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .confdir import ConfFile
    from .errors import HostError
    from .manifest import Manifest


Users = Iterable[Tuple[str, str, List[Dict[str, Any]]]]
"""(description, cniVersion, plugin objects) of what executes plugins."""


class HostView:
    """What the planners of one plan read. They share it, so that a section is planned on what earlier ones will leave.

    A plan of one section has a view of its own, which shows the host as it is.

    - ``manifest``: the collection's records, read once. If that fails, they are empty, and its ``error`` says why.
    - ``binaries``: path of each binary that a step changes, without links in its directory -> the spec versions that
      the new one supports (empty: only a run can tell), None if it is removed.
    - ``written``: path of each conflist that a step writes, moves or restores, or whose mode or owner it changes -> its
      text then.
    - ``namespaces``: path of each network namespace that a step creates (True) or removes (False).
    - ``requested``: network, container ID and interface of each attachment of the request -> whether it shall exist.
    - ``built_in``: returns the networks that runtimes build themselves from plugins of a directory. Callers that may
      import the room runtimes set it.
    - ``answers``: path of each plugin that was asked -> its record (Manifest.versions), or why it cannot be executed.
    - ``runtimes``: the runtimes of this host, None until they were searched for (runtimes.discover).
    """

    def __init__(self, manifest: Optional[Manifest] = None) -> None:
        self._manifest = manifest
        self.binaries: Dict[str, Optional[List[str]]] = {}
        self.written: Dict[str, bytes] = {}
        self.namespaces: Dict[str, bool] = {}
        self.requested: Dict[Tuple[str, str, str], bool] = {}
        self.built_in: Callable[[HostView, str], Users] = lambda _view, _bin_dir: ()
        self.answers: Dict[str, Union[Dict[str, Any], HostError]] = {}
        self.runtimes: Optional[List[Any]] = None
        self._files: Dict[str, List[ConfFile]] = {}

    @property
    def manifest(self) -> Manifest:
        if self._manifest is None:
            # Imported late, as below: not every plan reads everything.
            from .manifest import Manifest

            self._manifest = Manifest()
        return self._manifest

    def sound_manifest(self) -> Manifest:
        """Return the manifest. Raises HostError if it cannot be read."""
        if self.manifest.error is not None:
            raise self.manifest.error
        return self.manifest

    # ---- plugins

    def expect_binaries(self, versions: Mapping[str, Optional[List[str]]]) -> None:
        """Note the binaries that steps change, as :attr:`binaries` has them."""
        self.binaries.update({_resolved(path): of_path for path, of_path in versions.items()})

    def changes_binary(self, path: str) -> bool:
        """Tell whether a step installs, changes or removes the binary at *path*."""
        return bool(self.binaries) and _resolved(path) in self.binaries

    def versions_after(self, path: str) -> Optional[List[str]]:
        """Return what :attr:`binaries` has about a binary that a step changes."""
        return self.binaries[_resolved(path)]

    def plugin_path(self, name: str, bin_dirs: Iterable[str]) -> str:
        """Return the first path in *bin_dirs* at which the plugin *name* will be, "" if it will be in none of them."""
        if not name or "/" in name or "\0" in name:
            # Not the name of a file.
            return ""
        for directory in bin_dirs:
            path = os.path.normpath(os.path.join(directory, name))
            if self.versions_after(path) is not None if self.changes_binary(path) else os.path.isfile(path):
                return path
        return ""

    def changing_binaries(self, names: Iterable[str], bin_dirs: Sequence[str]) -> List[str]:
        """Return those of the plugins whose binary a step installs, changes or removes."""
        places = {name: [os.path.join(directory, name) for directory in bin_dirs] for name in names}
        return sorted(name for name, paths in places.items() if any(map(self.changes_binary, paths)))

    def has_directory(self, path: str) -> bool:
        """Tell whether the directory exists, or a step creates it for the first file in it."""
        made = (os.path.dirname(file) for file, versions in self.binaries.items() if versions is not None)
        return os.path.isdir(path) or os.path.realpath(path) in made

    # ---- networks

    def conf_files(self, conf_dir: str) -> List[ConfFile]:
        """Return the configuration files of a directory, in the order of the runtimes. Each is read once."""
        if conf_dir not in self._files:
            from .confdir import scan_conf_dir

            self._files[conf_dir] = scan_conf_dir(conf_dir)
        return self._files[conf_dir]

    def expect_files(self, conf_dir: str, files: Iterable[ConfFile], written: Container[str]) -> None:
        """Note the *files* that a directory will have; *written* are the names of those that a step writes."""
        self._files[conf_dir] = list(files)
        self.written.update({file.path: file.text or b"" for file in self._files[conf_dir] if file.name in written})

    def folder_of(self, conf_dir: str, network: str) -> Optional[List[ConfFile]]:
        """Return the drop-ins that a network will have, None if no step changes them and they were not read."""
        files = (file for file in self._files.get(conf_dir, ()) if file.network == network and file.kind == "conflist")
        return next((file.folder for file in files), None)

    def conf_paths(self, conf_dir: str, extensions: Sequence[str]) -> List[str]:
        """Return the paths of the configuration files with one of *extensions*, as libcni finds them.

        Raises libcni's ConfigError if the directory cannot be read.
        """
        from ..libcni.conf import conf_files
        from .confdir import extension

        if conf_dir not in self._files:
            return conf_files(conf_dir, extensions)
        return [file.path for file in self.conf_files(conf_dir) if extension(file.name) in extensions]

    # ---- attachments and namespaces

    def releases(self, attachment: Tuple[str, str, str], renewed: bool = False) -> bool:
        """Tell whether the attachment keeps nothing in use, because a later section detaches it.

        *renewed*: or attaches it again, which it does when the network has changed.
        """
        wanted = self.requested.get(attachment)
        return wanted is False or (renewed and wanted is True)


def _resolved(path: str) -> str:
    """Return the path of a file without links in its directory. The file itself may be one, and may be replaced."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
