# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A runtime of a host. Each runtime that is found, configured or asked in its own way has a file with its class."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type, TypeVar

from ..confdir import ConfFile
from ..errors import HostError
from ..kinds import text_of
from ..problems import Finding
from ..processes import Process
from . import reading
from .profiles import CONTAINERD, OWN, PROFILES, BuiltIn, pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cri import CriStatus
    from .settings import FileChange, RuntimeSettings

Found = TypeVar("Found", bound="Runtime")

# The releases of containerd that ignore use_internal_loopback.
_WITHOUT_INTERNAL = ("1.6", "1.7")


class Keys(NamedTuple):
    """The names of a runtime's settings in its configuration.

    ``separator``: what is between ``bin_dirs`` that are one text, None if they are a list. ``options``: for each of
    them, in order, the options of its command line that override it.
    """

    conf_dir: str = ""
    bin_dirs: str = ""
    default_network: str = ""
    separator: Optional[str] = None
    options: Sequence[Sequence[str]] = ()


class Network(NamedTuple):
    """A file as a runtime loads it: the network's ``name``, ``version`` and ``plugins`` (parsed), or the ``error``.

    ``untyped``: it is an object without a type, which is no configuration of a plugin.
    """

    file: ConfFile
    name: str = ""
    version: str = ""
    plugins: Sequence[Dict[str, Any]] = ()
    error: str = ""
    untyped: bool = False

    @property
    def types(self) -> List[str]:
        return [text_of(plugin, "type") for plugin in self.plugins]


class Verdict:
    """What a runtime does: the ``network`` and ``file`` it uses (None: none), the ``reason`` in a sentence.

    ``failed``: why it loads no network at all, "" if it loads any. ``broken``: the first file that cannot be loaded
    and prevents others from being loaded. ``networks``: all that it uses at once or that can be requested by name.
    ``not_chosen``: the other files, ``{file, network, reason}``. ``notes``: assumptions.
    ``multus``: the plugin Multus, if the network begins with it, and ``through`` what every pod gets then, see
    :func:`.through.networks_through`.
    """

    network: Optional[str] = None
    file: Optional[str] = None
    multus: Optional[Dict[str, Any]] = None
    reason = failed = broken = ""

    def __init__(self) -> None:
        self.networks: List[Network] = []
        self.not_chosen: List[Dict[str, Any]] = []
        self.notes: List[str] = []
        self.through: List[Dict[str, Any]] = []

    def choose(self, network: Network, reason: str) -> None:
        self.network, self.file, self.reason = network.name, network.file.path, reason

    def leave(self, file: ConfFile, reason: str, network: Optional[str] = None) -> None:
        self.not_chosen.append({"file": file.path, "network": network or file.network, "reason": reason})

    def fail(self, why: str) -> None:
        self.network, self.file, self.reason, self.failed = None, None, f"no network: {why}", why

    @property
    def names(self) -> List[str]:
        """The networks to ask the runtime for: its own, or the default one that it creates itself."""
        names = list(dict.fromkeys(network.name for network in self.networks))
        return names or ([self.network] if self.network else [])

    def can_use(self, name: str) -> bool:
        """Tell whether containers get the network *name*, by default or on request."""
        return self.network == name or any(network.name == name for network in self.networks)


class Runtime:
    """One reader of network configurations.

    ``name`` of its profile, ``version`` ("" if unknown), ``conf_dir`` and ``bin_dirs``. ``conf_file``: the only file
    that it reads, "" if it reads the directory. ``max_networks``: how many files it uses at once, 0 for all.
    ``default_network``: the network it uses if none is requested, "" for the rule of its profile. ``folder``: a folder
    of conf_dir that it also reads. ``evidence`` that it is on this host, "" if there is none. ``notes``: sentences
    about what could not be determined, or what is special here, ``findings`` what is wrong with its settings.
    ``reads`` is False for a runtime that is on the host but does not use CNI; the reason is in ``notes``. ``refuses``:
    why it starts no container at all, "" if it does. ``process`` is what runs and ``pid`` its number, 0 if it is not
    running; ``program`` is the file to execute, ``address`` its socket for CRI.

    For runtimes that can be configured: ``config`` is the file (containerd, Apptainer) or the directory of drop-ins
    that it reads ("" if there is none), ``setup_serially`` whether it calls its networks one after another,
    ``internal_loopback`` whether it is configured to bring up lo by itself, ``handler`` the runtime handler that has
    these settings ("" for all others), ``tables`` its whole configuration (containerd), ``allowed`` the ``networks``,
    ``users`` and ``groups`` that Apptainer's configuration allows.

    ``verdict`` is what it does with the networks of its directory, once that was judged (:mod:`effective`).

    ``keys`` are the names of its settings, ``drop_ins`` is the directory of its drop-ins by default.
    ``answer`` says what it answers when it is asked. ``settles``: for how many more seconds its answer may be old.
    """

    answer = "its answer to Status of CRI"
    settles = 0.0
    keys = Keys()
    drop_ins = ""
    conf_file = conf_dir = folder = config = program = address = handler = refuses = ""
    max_networks, pid = 1, 0
    reads, setup_serially, internal_loopback = True, False, False
    process = Process()

    def __init__(
        self, name: str, version: str = "", evidence: str = "", conf_dir: str = "", bin_dirs: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.profile = PROFILES[name]
        self.version = version
        self.evidence = evidence
        self.set_conf(conf_dir or self.profile.conf_dir)
        self.bin_dirs = list(bin_dirs or self.profile.bin_dirs)
        self.default_network = self.profile.default_network
        self.notes: List[str] = []
        self.findings: List[Finding] = []
        self.allowed: Dict[str, List[str]] = {}
        self.tables: Dict[str, Any] = {}
        self.verdict = Verdict()

    @classmethod
    def evident(
        cls: Type[Found], name: str, running: Sequence[Process], *programs: str, version: str = ""
    ) -> Optional[Found]:
        """Return the runtime if one of its *programs* is among those *running*, or is installed; None if not.

        *version* is the argument with which it prints its version.
        """
        process = next((process for process in running if process.name in programs), Process())
        program = process.program or next(filter(None, map(reading.installed, programs)), "")
        if not process.pid and not program:
            return None
        runtime = cls(name, "", f"a running {process.name}" if process.pid else program)
        runtime.process, runtime.pid, runtime.program = process, process.pid, program
        if program and version:
            runtime.version = reading.version(program, version, runtime.notes)
        return runtime

    @classmethod
    def find(cls, running: Sequence[Process]) -> List[Runtime]:
        """Return those on this host, which has a trace of one; *running* are the daemons that run."""
        return []

    @property
    def release(self) -> Tuple[int, int]:
        """The first two numbers of its version, (0, 0) if that is not known."""
        return pair(self.version) if self.version else (0, 0)

    @property
    def libcni(self) -> str:
        """The release of libcni that it contains, such as 1.1."""
        releases = self.profile.libcni
        if not self.version:
            return releases[0][1]
        return next(level for first, level in releases if pair(self.version) >= first)

    @property
    def appends_drop_ins(self) -> bool:
        """Whether it appends the plugins of a network's drop-ins to the network."""
        return self.profile.drop_ins and self.libcni == "1.3"

    def set_conf(self, path: str) -> None:
        """Set the directory that it reads; for buildkit the file."""
        if self.profile.one_file:
            self.conf_file = path
            path = os.path.dirname(path)
        self.conf_dir = path

    def take(self, table: Mapping[str, Any]) -> None:
        """Take the settings of its configuration and of its command line. Raises HostError ``not_understood``."""
        keys, settings = self.keys, dict(table)
        for key, names in zip(keys[:3], keys.options):
            values = self.process.options(*names)
            if values:
                settings[key] = values if key == keys.bin_dirs and keys.separator is None else values[-1]
        settings = self.resolved(settings)
        self.set_conf(reading.directory(settings, keys.conf_dir) or self.conf_file or self.conf_dir)
        self.bin_dirs = reading.directories(settings, keys.bin_dirs, keys.separator) or self.bin_dirs
        self.default_network = reading.text_of_key(settings, keys.default_network) or self.default_network

    def resolved(self, settings: Dict[str, Any]) -> Dict[str, Any]:
        """Return *settings* with paths that do not depend on the directory of its process."""
        return settings

    def may_read(self, conf_dir: str) -> bool:
        """Tell whether its conf_dir is *conf_dir*, or could be configured to be."""
        return self.conf_dir == conf_dir or not (self.profile.fixed or self.conf_file or self.profile.choice == OWN)

    @property
    def unit(self) -> str:
        """What its log is filed under."""
        return self.profile.unit or self.name

    @property
    def built_in(self) -> Optional[BuiltIn]:
        """The network that it builds itself, None if it builds none."""
        if not self.reads or (self.internal_loopback and not self.version.startswith(_WITHOUT_INTERNAL)):
            return None
        return self.profile.built_in

    @property
    def kind(self) -> str:
        """What a task calls it: containerd is one runtime, whatever its version."""
        return CONTAINERD if self.name.startswith(CONTAINERD + "-") else self.name

    @contextlib.contextmanager
    def read_settings(
        self, what: str = "configuration", then: str = "so its default directories are assumed"
    ) -> Iterator[None]:
        """Note an error that the body raises: its configuration is then not understood."""
        try:
            yield
        except HostError as error:
            consequence = f", {then}" if then else ""
            self.notes.append(f"its {what} is not understood ({error.msg}){consequence}")

    # ---- what a class of a runtime changes

    @property
    def can_be_asked(self) -> bool:
        """Whether it is there to say which networks it has."""
        return bool(self.pid and self.address)

    def ask(self, networks: Sequence[str], timeout: float) -> CriStatus:
        """Return what it says of its networks, after at most *timeout* seconds; podman is asked for *networks*.

        The answer is untrusted. Raises HostError ``not_answered``, ``cri_not_loaded`` (with its own words),
        ``unsafe_permissions`` and others.
        """
        from . import cri

        return cri.cri_status(self.address, timeout)

    def compared(self, desired: RuntimeSettings) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        """Return its current and the desired settings by name, without those that may be as they are."""
        rows = [
            ("conf_dir", self.conf_dir, desired.conf_dir),
            ("bin_dirs", ":".join(self.bin_dirs), ":".join(desired.bin_dirs)),
            ("max_conf_num", self.max_networks, desired.max_conf_num),
            ("setup_serially", self.setup_serially, desired.setup_serially),
        ]
        chosen = [row for row in rows if row[2] is not None]
        return {name: current for name, current, _desired in chosen}, {name: value for name, _current, value in chosen}

    def has(self, desired: RuntimeSettings) -> bool:
        current, wanted = self.compared(desired)
        return bool(self.evidence) and self.reads and not self.refuses and current == wanted

    def take_over(self, desired: RuntimeSettings) -> None:
        """Become as it will be when it has these settings."""
        self.set_conf(desired.conf_dir)
        self.bin_dirs = list(desired.bin_dirs)
        self.reads = True
        self.max_networks = self.max_networks if desired.max_conf_num is None else desired.max_conf_num

    def lost(self, now: Runtime) -> str:
        """Return the first setting of others that *now*, after a change, is not as it was; "" if there is none."""
        return ""

    def changes(self, desired: RuntimeSettings) -> List[FileChange]:
        """Return the changes of its files for the settings *desired*, none if it has no files. Raises HostError."""
        return []

    def drop_in(self, desired: RuntimeSettings, text: str, extension: str = ".conf") -> List[FileChange]:
        """Return the change after which a drop-in has *text*, or is gone. Raises HostError ``not_ours``."""
        from .settings import drop_in

        path = os.path.join(self.config or self.drop_ins, f"99-podwire-cni{extension}")
        return drop_in(path, text if desired.present else None, not self.has(desired))

    @property
    def how_to_load(self) -> str:
        """How to make it load its networks again."""
        return f"restart it (systemctl restart {self.unit}), or write the file again with cni_conf"
