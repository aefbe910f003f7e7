# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""podman, as far as it uses CNI: containers.conf and its drop-ins, and the backend that podman has recorded.

podman itself is not run: on its first run, it would create its databases and choose its backend.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .. import commands
from ..addresses import packed, prefix_length
from ..errors import HostError
from ..json_text import parse_json
from ..kinds import HOST_LOCAL, member_of, object_of, text_of
from ..processes import Process
from . import reading
from .cri import CriStatus
from .profiles import BuiltIn
from .runtime import Keys, Runtime
from .settings import FileChange, RuntimeSettings
from .toml import rendered

_CONFIGS = ("/usr/share/containers/containers.conf", "/etc/containers/containers.conf")
_STORAGE = "/etc/containers/storage.conf"
_GRAPH_ROOT = "/var/lib/containers/storage"
# containers/common pkg/config/config_linux.go: helper_binaries_dir
_HELPERS = ("/usr/local/libexec/podman", "/usr/local/lib/podman", "/usr/libexec/podman", "/usr/lib/podman")
# When podman makes it, it forgets the namespaces of its containers: the host has booted.
_ALIVE = "/run/libpod/alive"
# A container that is "initialized" has its network already.
_STOPPED = ("created", "configured", "exited", "stopped")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
# More networks than any host has.
_MOST_NETWORKS = 200
# What podman understands of a plugin (containers/common libnetwork/cni/cni_conversion.go).
_TEXTS = ("type", "bridge", "master", "mode")
_NUMBERS = ("mtu", "vlan")
_FLAGS = ("isGateway", "isDefaultGateway", "forceAddress", "ipMasq", "hairpinMode", "promiscMode")
_ADDRESSES = ("gateway", "rangeStart", "rangeEnd")


class Podman(Runtime):
    """podman. ``databases`` is the directory where it keeps them, ``release`` that of a recent one if not known."""

    answer = "podman network inspect"
    drop_ins = "/etc/containers/containers.conf.d"
    keys = Keys("network_config_dir", "cni_plugin_dirs", "default_network")
    databases = ""

    @classmethod
    def find(cls, running: Sequence[Process]) -> List[Runtime]:
        runtime = cls.evident("podman", running, "podman", version="--version")
        if runtime is None:
            return []
        runtime.config = cls.drop_ins
        with runtime.read_settings():
            runtime._read()
        return [runtime]

    @property
    def release(self) -> Tuple[int, int]:
        # A recent one has no CNI.
        return super().release if self.version else (5, 0)

    def _read(self) -> None:
        paths = [*_CONFIGS, *reading.listed(self.config, ".conf")]
        network = reading.merged(paths, "network")
        backend, why = self._backend(reading.text_of_key(network, "network_backend"), paths)
        self.reads = backend == "cni" and self.release < (5, 0)
        if backend != "cni":
            self.notes.append(f"it uses {backend}, not CNI, {why}")
        elif not self.reads:
            self.notes.append(f"{self._without_cni()}, and is configured to use it {why}")
            self.refuses = self.notes[-1] if self.version else ""
        elif why:
            self.notes.append(f"it uses CNI, {why}")
        if self.reads:
            self.take(network)
            self.databases = os.path.join(_root(), "libpod")
            subnet = reading.text_of_key(network, "default_subnet") or "10.88.0.0/16"
            own = f"{self.profile.own}, {subnet}"
            self.profile = self.profile._replace(own=own, built_in=network_in_memory(subnet))

    def _without_cni(self) -> str:
        unknown = f"{self.evidence} does not tell its version, and podman 5 has no CNI"
        return f"podman {self.version} has no CNI" if self.version else unknown

    def _backend(self, configured: str, paths: Sequence[str]) -> Tuple[str, str]:
        """Return cni or netavark, and why (containers/common libnetwork/network/interface.go:NetworkBackend)."""
        if self.release < (4, 0):
            return "cni", ""
        if configured:
            return configured, "because of network_backend"
        path, used = settled()
        if used:
            return used, f"according to {path}"
        if self.release >= (5, 0):
            return "netavark", "as all releases since 5 do"
        helpers = reading.directories(reading.merged(paths, "engine"), "helper_binaries_dir") or _HELPERS
        if not any(os.path.exists(os.path.join(folder, "netavark")) for folder in helpers):
            return "cni", "because netavark is not installed"
        # It also checks its storage for containers and images, which is not read here.
        return "netavark", "unless it finds containers, images or CNI networks when it first runs"

    @property
    def can_be_asked(self) -> bool:
        # Its first run would create its databases, and choose its backend.
        return self.reads and bool(self.program) and os.path.isdir(self.databases)

    def ask(self, networks: Sequence[str], timeout: float) -> CriStatus:
        program, names = self.program, list(networks)[:_MOST_NETWORKS]
        argv = [program, "network", "inspect", *names]
        done = commands.run_command(argv, timeout)
        missing = "network not found" in done.stderr
        if done.rc != 0 and not missing:
            raise commands.failure(argv[:3], f"exit status {done.rc}", done.stderr)
        try:
            answer = parse_json(done.stdout.decode("utf-8", "replace") or "[]")
            known = [entry["name"] for entry in answer if isinstance(entry["name"], str)]
        except (ValueError, LookupError, TypeError) as error:
            raise HostError(f"{program} network inspect does not print its networks", code="not_answered") from error
        if not missing and set(names) - set(known):
            text = f"{program} network inspect prints other networks than it was asked for"
            raise HostError(text, code="not_answered")
        why = done.stderr.strip()[:500] if missing else ""
        return CriStatus(not missing, why, [name for name in names if name in known])

    def stopped(self, timeout: float) -> Dict[str, str]:
        """Return the names, by ID, of containers that do not run, and that it starts again with the same ID.

        Raises HostError if it does not answer.
        """
        argv = [self.program, "--remote=false", "ps", "--all", "--no-trunc", "--format", "json"]
        printed = reading.output(*argv, timeout=timeout)
        try:
            rows = [row for row in parse_json(printed or "[]") or () if row["State"] in _STOPPED]
            names = {row["Id"]: row["Names"][0] for row in rows}
            return {key: name for key, name in names.items() if _NAME.fullmatch(key) and _NAME.fullmatch(name)}
        except (ValueError, LookupError, TypeError) as error:
            raise HostError(f"{' '.join(argv)} does not print its containers", code="not_answered") from error

    @property
    def booted(self) -> float:
        """When it noticed that the host has booted, in seconds since the epoch; 0 if it has not."""
        try:
            return os.stat(_ALIVE).st_mtime
        except OSError:
            return 0

    @property
    def how_to_load(self) -> str:
        return f"compare podman network ls with {self.conf_dir}"

    def changes(self, desired: RuntimeSettings) -> List[FileChange]:
        """Raises HostError ``not_ours``, ``no_cni``."""
        # For one that is not installed yet, the task says that it has CNI.
        release = self.release if self.evidence else (4, 0)
        path, backend = settled()
        if desired.present and release >= (5, 0):
            raise HostError(f"{self._without_cni()}; leave podman out of 'runtime'", code="no_cni")
        if desired.present and not self.reads and backend == "netavark":
            raise HostError(
                f"podman's containers use netavark, according to {path}, and would lose their networks; leave podman "
                "out of 'runtime', or remove its containers and networks first (podman system reset)",
                code="no_cni",
            )
        text = "[network]\n" + ('network_backend = "cni"\n' if release >= (4, 0) else "")
        text += f"network_config_dir = {rendered(desired.conf_dir)}\n"
        text += f"cni_plugin_dirs = {rendered(list(desired.bin_dirs))}\n"
        return self.drop_in(desired, text)


def network_in_memory(subnet: str) -> BuiltIn:
    """Return the default network if no file has it (libnetwork/cni: createDefaultNetwork)."""
    routes = [{"dst": "::/0" if ":" in subnet else "0.0.0.0/0"}]
    ipam = {"type": HOST_LOCAL, "ranges": [[{"subnet": subnet}]], "routes": routes}
    chain: Sequence[Dict[str, Any]] = (
        {"type": "bridge", "bridge": "cni-podman0", "isGateway": True, "ipMasq": True, "ipam": ipam},
        *({"type": "portmap", "capabilities": {"portMappings": True}}, {"type": "firewall"}, {"type": "tuning"}),
    )
    return BuiltIn("podman", "0.4.0", (), "", chain)


def settled() -> Tuple[str, str]:
    """Return the file where podman records the backend of its containers, and that backend ("" if not yet recorded)."""
    path = os.path.join(_root(), "defaultNetworkBackend")
    text = reading.read_text(path)
    return path, text if text in ("cni", "netavark") else ""


def _root() -> str:
    return reading.directory(reading.section(reading.parsed(_STORAGE) or {}, "storage"), "graphroot") or _GRAPH_ROOT


def unconvertible(plugin: Dict[str, Any]) -> str:
    """Return why podman cannot convert *plugin*, "" if it can."""
    if text_of(plugin, "type") not in ("bridge", "macvlan", "ipvlan"):
        return ""
    for keys, kind in ((_TEXTS, str), (_NUMBERS, int), (_FLAGS, bool)):
        for key in keys:
            value = member_of(plugin, key.lower())
            if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
                return f"{key} is not understood"
    ipam = object_of(plugin, "ipam")
    parts = _parts(member_of(ipam, "ranges"))
    routes = member_of(ipam, "routes") or []
    if parts is None or not isinstance(routes, list) or not all(isinstance(route, dict) for route in routes):
        return "the ranges or routes are not understood"
    if text_of(ipam, "type") != HOST_LOCAL:
        return ""
    for part in parts:
        if not _is_subnet(member_of(part, "subnet")):
            return "a subnet is not understood"
        for key in _ADDRESSES:
            value = member_of(part, key.lower())
            if value not in (None, "") and not _is_address(value):
                return f"{key} is not understood"
    return ""


def _parts(ranges: Any) -> Optional[List[Dict[str, Any]]]:
    """Return all ranges of a list of lists of objects, None for any other type; null counts as empty."""
    parts: List[Dict[str, Any]] = []
    for entry in [] if ranges is None else ranges if isinstance(ranges, list) else [ranges]:
        if entry is not None and not isinstance(entry, list):
            return None
        parts.extend(entry or [])
    return parts if all(isinstance(part, dict) for part in parts) else None


def _is_subnet(value: Any) -> bool:
    address, _slash, bits = value.partition("/") if isinstance(value, str) else ("", "", "")
    return _is_address(address) and prefix_length(bits, 128 if ":" in address else 32) is not None


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and bool(packed(value))
