# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a directory of network configurations, read by libcni's rules.

Opens only what a runtime would read: entries whose text from the last dot on is a CNI extension, regular files of at
most 1 MiB, and never one with the name of a kubeconfig. A broken file stays in the result, with its reason.
"""

from __future__ import annotations

import copy
import os
import stat
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from ..libcni import conf, gojson
from ..libcni.errors import ConfigError, JSONError, ValidationError
from ..libcni.validate import validate_network_name
from .errors import HostError
from .files import Directory

Folders = Mapping[Optional[str], List["ConfFile"]]
"""The drop-ins of some networks, by name."""
EXTENSIONS = (".conf", ".conflist", ".json")
MAX_SIZE = 1 << 20


def extension(name: str) -> str:
    """Return the text from the last dot on, as Go's filepath.Ext does (a file ``.conf`` has the extension .conf)."""
    dot = name.rfind(".")
    return name[dot:] if dot >= 0 else ""


class ConfFile:
    """One entry of the directory that a runtime would read.

    ``name`` file name, ``path``, ``kind`` (``conflist``, ``conf``, ``json``), ``is_link``, ``is_special`` (neither link
    nor regular file), ``mode``, ``uid``, ``gid`` (of the entry itself), ``text`` (bytes; None if it was not read),
    ``network`` (its network's name, None if it cannot be read or has none), ``cni_version`` (negotiated, "" if none),
    ``plugins`` (parsed plugin objects), ``inlined_only`` (it ignores drop-ins), ``disable_gc`` (it sets disableGC),
    ``error`` (why no runtime can load it, "" if it can be loaded), ``folder`` (the drop-ins beside it, None if they
    were not read).
    """

    is_link = is_special = inlined_only = disable_gc = False
    mode = uid = gid = 0
    text: Optional[bytes] = None
    network: Optional[str] = None
    folder: Optional[List[ConfFile]] = None
    cni_version = error = ""

    def __init__(self, name: str, path: str, text: Optional[bytes] = None) -> None:
        """With *text*, the file has that content, whatever is there."""
        self.name = name
        self.path = path
        self.kind = extension(name)[1:]
        self.plugins: List[Dict[str, Any]] = []
        if text is not None:
            self.load(text)

    def load(self, text: bytes) -> None:
        """Take *text*: as runtimes do, a conflist from ``.conflist``, a single plugin from ``.conf`` and ``.json``."""
        self.text = text
        try:
            if not text.strip():
                self.error = "is empty"
            elif self.kind == "conflist":
                network = conf.network_conf_from_bytes(text)
                self.network, self.cni_version = network.name, network.cni_version
                self.plugins = [plugin.network for plugin in network.plugins]
                self.inlined_only, self.disable_gc = network.load_only_inlined_plugins, network.disable_gc
            else:
                plugin = conf.network_plugin_conf_from_bytes(text)
                self.network, self.cni_version = plugin.name or None, plugin.cni_version
                self.plugins = [plugin.network]
        except ConfigError as error:
            self.error = str(error)

    @property
    def drop_ins(self) -> List[ConfFile]:
        """The drop-ins whose plugins libcni appends, as it does to conflists only (libcni/conf.go)."""
        if self.kind != "conflist" or self.inlined_only or not self.network:
            return []
        if self.folder is None:
            self.folder = drop_ins(os.path.dirname(self.path), self.network)
        return self.folder

    @property
    def chain(self) -> List[Dict[str, Any]]:
        """The plugins in the order in which they run, drop-ins included."""
        return [plugin for file in (self, *self.drop_ins) for plugin in file.plugins]


def sort_key(name: str) -> bytes:
    """Return the key by which runtimes order file names: their bytes."""
    return os.fsencode(name)


def scan_conf_dir(conf_dir: str) -> List[ConfFile]:
    """Return the configuration files of *conf_dir*, in the order of the runtimes; none if it does not exist.

    Raises HostError ``path_is_link`` or ``no_directory``.
    """
    if not os.path.lexists(conf_dir):
        return []
    with Directory(conf_dir) as directory:
        try:
            with os.scandir(directory.fd) as entries:
                names = [entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)]
        except OSError as error:
            raise HostError(f"cannot list the directory {conf_dir}: {error.strerror}", code="no_directory") from error
        wanted = sorted((name for name in names if extension(name) in EXTENSIONS), key=sort_key)
        files = [_read_entry(directory, name) for name in wanted]
    return [file for file in files if file is not None]


def network_files(conf_dir: str) -> List[ConfFile]:
    """Return the file of each network, in the order of the runtimes, and those that no runtime can load.

    Of several files with the name of one network, libcni takes the first conflist, else the first other one. libcni
    cannot attach to a network without a name. Kubeconfigs are never read.
    """
    files = [file for file in scan_conf_dir(conf_dir) if "kubeconfig" not in file.name.lower()]
    chosen: Dict[str, ConfFile] = {}
    for file in sorted(files, key=lambda file: file.kind != "conflist"):
        if file.network:
            chosen.setdefault(file.network, file)
    return [file for file in files if file.error or (file.network and chosen[file.network] is file)]


def read_as(conf_dir: str, name: str, future: str) -> Optional[ConfFile]:
    """Return the file *name* of *conf_dir*, read as if it had the name *future*; None if it is gone."""
    with Directory(conf_dir) as directory:
        return _read_entry(directory, name, future)


def _read_entry(directory: Directory, name: str, future: str = "") -> Optional[ConfFile]:
    file = ConfFile(future or name, os.path.join(directory.path, future or name))
    try:
        status = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    file.is_link = stat.S_ISLNK(status.st_mode)
    file.is_special = not file.is_link and not stat.S_ISREG(status.st_mode)
    file.mode, file.uid, file.gid = stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid
    try:
        file.load(_read(directory.fd, name))
    except HostError as error:
        file.error = error.msg
    return file


def _read(dir_fd: int, name: str) -> bytes:
    if "kubeconfig" in name.lower():
        raise HostError("is a kubeconfig by its name; such files are never opened")
    try:
        # Links are followed, as runtimes do. Opening a FIFO must not wait for its writer.
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=dir_fd)
    except OSError as error:
        raise HostError(f"cannot be opened: {error.strerror}") from error
    return read_regular(fd)


def read_regular(fd: int) -> bytes:
    """Return the content of a file and close it. Raises HostError if it is not a regular file, or too large."""
    try:
        status = os.fstat(fd)
        # A link may lead to a directory, which cannot be opened as a stream.
        if not stat.S_ISREG(status.st_mode):
            raise HostError("is not a regular file")
        if status.st_size > MAX_SIZE:
            raise HostError("is larger than 1 MiB and was not read")
        with os.fdopen(fd, "rb", closefd=False) as stream:
            return stream.read(MAX_SIZE + 1)
    except OSError as error:
        raise HostError(f"cannot be read: {error.strerror}") from error
    finally:
        os.close(fd)


def read_go_json(text: bytes) -> Any:
    """Return what libcni reads in a text, None if that is not JSON."""
    try:
        return gojson.loads(text)
    except JSONError:
        return None


def paths_of(conf_dir: str, path: str, network: str) -> List[str]:
    """Return all paths that configure the plugins of a network: its file *path*, its drop-in folder, and drop-ins."""
    extra = drop_ins(conf_dir, network)
    folder = os.path.join(conf_dir, network)
    return [path, *([folder] if os.path.isdir(folder) else []), *(file.path for file in extra)]


def drop_ins(conf_dir: str, network: str) -> List[ConfFile]:
    """Return the files of the folder ``<conf_dir>/<network>/``, whose plugins libcni appends to the network's chain.

    Only ``.conf`` files count there. An invalid network name has no folder.
    """
    folder = os.path.join(conf_dir, network)
    try:
        validate_network_name(network)
    except ValidationError:
        return []
    if not os.path.isdir(folder):
        return []
    return [file for file in scan_conf_dir(os.path.realpath(folder)) if file.kind == "conf"]


def with_folders(files: Iterable[ConfFile], folders: Folders) -> List[ConfFile]:
    """Return *files* with other drop-ins beside them."""
    changed = [copy.copy(file) if file.network in folders else file for file in files]
    for file in changed:
        file.folder = folders.get(file.network, file.folder)
    return changed


def plugins_in(files: Iterable[ConfFile]) -> List[Tuple[str, Dict[str, Any]]]:
    """Return a pair of network name and parsed plugin for every plugin that loads, including drop-ins."""
    return [(file.network, plugin) for file in files if file.network and not file.error for plugin in file.chain]
