# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Known vulnerabilities of the reference plugins, reported only if the release has them and the feature is in use."""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

from ..binaries.usable import Binaries
from ..commands import find_command
from ..errors import HostError
from ..kinds import text_of
from ..problems import INFO, WARNING, problem
from .view import ConfView, Placed

Plugin = Dict[str, Any]
# Tells whether the host has a command.
Has = Callable[[str], bool]
_TIMEOUT = 10.0


class Advisory(NamedTuple):
    """A vulnerability. ``used`` returns why it affects a plugin's configuration, "" if it does not.

    ``safe`` tells whether the spec versions that the binary supports prove by themselves that it is not affected.
    ``module`` and ``fixed_module``: what was repaired is in that Go module, whose version in the binary decides.
    """

    name: str
    plugins: Tuple[str, ...]
    fixed: Tuple[int, int, int]
    used: Callable[[Plugin, Has], str]
    safe: Callable[[List[str]], bool]
    effect: str
    module: str = "github.com/containernetworking/plugins"
    fixed_module: Tuple[int, ...] = ()


def _always(_plugin: Plugin, _has: Has) -> str:
    return "as configured here"


def _nftables(plugin: Plugin, has: Has) -> str:
    backend = text_of(plugin, "backend")
    if backend == "nftables":
        return "with the backend nftables"
    # Without iptables the plugin uses nft (plugins/meta/portmap/main.go:ensureBackend).
    if not backend and has("nft") and not has("iptables"):
        return "with the backend nftables, which it uses because this host has no iptables"
    return ""


def _iptables(plugin: Plugin, _has: Has) -> str:
    return "with the backend iptables" if text_of(plugin, "backend") != "nftables" else ""


def _selinux(plugin: Plugin, _has: Has) -> str:
    return "with selinuxContext" if text_of(plugin, "selinuxcontext") else ""


ADVISORIES = (
    Advisory(
        "CVE-2025-67499 (GHSA-jv3w-x3r3-g6rm)",
        ("portmap",),
        (1, 9, 0),
        _nftables,
        # Release 1.6.0 introduced both the backend and spec version 1.1.0.
        lambda versions: "1.1.0" not in versions,
        "it also redirects traffic to mapped ports that is not for this host",
    ),
    Advisory(
        "CVE-2025-52881 (GHSA-cgrx-mc8f-2prm)",
        ("tap",),
        (1, 9, 1),
        _selinux,
        lambda versions: False,
        "its library for SELinux labels can be redirected to another file",
        "github.com/opencontainers/selinux",
        (1, 13, 0),
    ),
    Advisory(
        "CVE-2020-10749 (GHSA-fx6x-h9g4-56f8)",
        ("bridge", "ptp"),
        (0, 8, 6),
        _always,
        lambda versions: "1.0.0" in versions,
        "a container can redirect the traffic of host and other containers with IPv6 router advertisements",
    ),
    Advisory(
        "CVE-2019-9946",
        ("portmap",),
        (0, 7, 5),
        _iptables,
        lambda versions: "0.4.0" in versions,
        "its rules take precedence over those of Kubernetes services (kube-proxy with IPVS)",
    ),
)


def security_problems(view: ConfView, binaries: Binaries) -> Iterator[Dict[str, Any]]:
    """Yield the known vulnerabilities in the plugins of the requested and of the other managed networks."""
    known: Dict[str, bool] = {}

    def has(command: str) -> bool:
        if command not in known:
            known[command] = _is_there(command)
        return known[command]

    for file in view.loaded():
        if file.name in view.wanted | view.managed:
            for placed in view.chain(file):
                for advisory in ADVISORIES:
                    yield from _concerning(advisory, placed, binaries, has)


def _is_there(command: str) -> bool:
    try:
        return find_command(command) is not None
    except HostError:
        return True


def _concerning(advisory: Advisory, placed: Placed, binaries: Binaries, has: Has) -> Iterator[Dict[str, Any]]:
    kind = text_of(placed.plugin, "type")
    used = advisory.used(placed.plugin, has) if kind in advisory.plugins else ""
    if not used:
        return
    try:
        path, versions = binaries.ask(kind)
        if advisory.safe(versions):
            return
        memory = binaries.memory(kind)
        if not isinstance(memory.get("modules"), dict):
            memory["modules"] = _modules(os.path.realpath(path))
        if "release" not in memory:
            # Imported late, because the answer is remembered.
            from ..binaries.packages import release_of

            memory["release"] = release_of(os.path.realpath(path), _TIMEOUT)
    except HostError:
        # The level `plugins` reports what is wrong with the binary.
        return
    release = str(memory["release"])
    built = str(memory["modules"].get(advisory.module, ""))
    # What is in the binary, else what its package says.
    if numbers(built or release or "0") >= ((advisory.fixed_module or advisory.fixed) if built else advisory.fixed):
        return
    fixed = ".".join(str(number) for number in advisory.fixed)
    if built:
        message = (
            f"{path} was built with {advisory.module} {built}, which has {advisory.name} {used}: {advisory.effect}; "
            f"install {fixed} or later"
        )
    elif release:
        message = (
            f"{path} is release {release}, which has {advisory.name} {used}: {advisory.effect}; "
            f"install {fixed} or later"
        )
    else:
        message = (
            f"the release of {path} is unknown; releases before {fixed} have {advisory.name} {used}: "
            f"{advisory.effect}; install {fixed} or later"
        )
    yield problem(WARNING if built or release else INFO, "known_vulnerability", message, placed.path, placed.pointer)


def _modules(path: str) -> Dict[str, str]:
    """Return the versions of the modules that advisories are about, as far as the binary names releases of them."""
    # Imported late, because the answer is remembered.
    from ..binaries.build_info import build_info

    try:
        with open(path, "rb") as stream:
            found = build_info(stream) or {}
    except OSError:
        # The release is asked for next.
        return {}
    about = {advisory.module for advisory in ADVISORIES}
    versions = {}
    for text in (found.get("module", ""), *found.get("modules", ())):
        # A module that replaces another one is what was built.
        name, _at, version = str(text).rpartition(" => ")[2].partition("@")
        if name in about and re.fullmatch(r"v\d{1,6}\.\d{1,6}\.\d{1,6}", version):
            versions[name] = version[1:]
    return versions


def numbers(release: str) -> Tuple[int, ...]:
    """Return ``1.9.0`` as numbers, which compare in the right order."""
    return tuple(int(part) for part in release.split("."))
