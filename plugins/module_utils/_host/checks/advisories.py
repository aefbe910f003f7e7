# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Known vulnerabilities of the reference plugins, reported only if the release has them and the feature is in use."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterator, NamedTuple, Tuple

from ..binaries.usable import Binaries, release_numbers
from ..commands import find_command
from ..errors import HostError
from ..kinds import text_of
from ..model import Placed, chain_of
from ..problems import INFO, WARNING, Finding
from .view import ConfView

Plugin = Dict[str, Any]


class Advisory(NamedTuple):
    """A vulnerability of *plugins* in releases before *fixed*.

    ``used`` returns why it affects a plugin's configuration, "" if it does not. A binary with the spec version
    ``solved_with``, or without ``introduced_with``, is not affected, whatever its release.
    """

    name: str
    plugins: Tuple[str, ...]
    fixed: str
    used: Callable[[Plugin], str]
    effect: str
    solved_with: str = ""
    introduced_with: str = ""


def _nftables(plugin: Plugin) -> str:
    backend = text_of(plugin, "backend")
    if backend == "nftables":
        return "with the backend nftables"
    # Without iptables the plugin uses nft (plugins/meta/portmap/main.go:ensureBackend).
    if not backend and _is_there("nft") and not _is_there("iptables"):
        return "with the backend nftables, which it uses because this host has no iptables"
    return ""


ADVISORIES = (
    Advisory(
        "CVE-2025-67499 (GHSA-jv3w-x3r3-g6rm)",
        ("portmap",),
        "1.9.0",
        _nftables,
        "it also redirects traffic to mapped ports that is not for this host",
        # Release 1.6.0 introduced both the backend and this version.
        introduced_with="1.1.0",
    ),
    Advisory(
        "CVE-2025-52881 (GHSA-cgrx-mc8f-2prm)",
        ("tap",),
        "1.9.1",
        lambda plugin: "with selinuxContext" if text_of(plugin, "selinuxcontext") else "",
        "its library for SELinux labels can be redirected to another file",
    ),
    Advisory(
        "CVE-2020-10749 (GHSA-fx6x-h9g4-56f8)",
        ("bridge", "ptp"),
        "0.8.6",
        lambda _plugin: "as configured here",
        "a container can redirect the traffic of host and other containers with IPv6 router advertisements",
        solved_with="1.0.0",
    ),
    Advisory(
        "CVE-2019-9946",
        ("portmap",),
        "0.7.5",
        lambda plugin: "with the backend iptables" if text_of(plugin, "backend") != "nftables" else "",
        "its rules take precedence over those of Kubernetes services (kube-proxy with IPVS)",
        solved_with="0.4.0",
    ),
)


def security_problems(view: ConfView, binaries: Binaries) -> Iterator[Finding]:
    """Yield the known vulnerabilities in the plugins of the requested and of the other managed networks."""
    for file in view.loaded():
        if file.name in view.wanted | view.managed:
            for placed in chain_of(file):
                for advisory in ADVISORIES:
                    yield from _concerning(advisory, placed, binaries)


def _is_there(command: str) -> bool:
    try:
        return find_command(command) is not None
    except HostError:
        return True


def _concerning(advisory: Advisory, placed: Placed, binaries: Binaries) -> Iterator[Finding]:
    kind = text_of(placed.plugin, "type")
    used = advisory.used(placed.plugin) if kind in advisory.plugins else ""
    if not used:
        return
    try:
        path, versions = binaries.ask(kind)
        if advisory.solved_with in versions or {advisory.introduced_with} - {"", *versions}:
            return
        memory = binaries.memory(kind)
        if "release" not in memory:
            from ..binaries.packages import release_of

            memory["release"] = release_of(os.path.realpath(path))
    except HostError:
        # The level `plugins` reports what is wrong with the binary.
        return
    release = str(memory["release"])
    if release and release_numbers(release) >= release_numbers(advisory.fixed):
        return
    affected = (
        f"{path} is release {release}, which has"
        if release
        else f"the release of {path} is unknown; releases before {advisory.fixed} have"
    )
    what = f"{affected} {advisory.name} {used}: {advisory.effect}"
    level, remedy = WARNING if release else INFO, f"install {advisory.fixed} or later"
    yield Finding(level, "known_vulnerability", what, remedy, placed.path, placed.pointer, vulnerability=advisory.name)
