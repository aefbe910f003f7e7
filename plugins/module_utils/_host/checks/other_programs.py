# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What other programs of the host would do to a network that works: managers of interfaces, sysctl files, firewalls.

No experiment sees it, because it happens later: when an interface appears, or at the next boot.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Dict, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple

from ..commands import find_command, run_command
from ..errors import HostError
from ..firewall.chains import FAMILIES, LEGACY, NFT, dump_iptables
from ..firewall.tools import FIREWALLD
from ..kinds import bridge_of, delegate_of, forwards, object_of, set_or_default, text_of
from ..paths import names_in
from ..problems import WARNING, Finding, obstacle
from ..processes import is_running
from ..ranges import ranges_of

# systemd.network(5), sysctl.d(5), firewalld.zone(5): a name in an earlier folder replaces that of a later one.
_SYSTEM = ("/etc", "/run", "/usr/local/lib", "/usr/lib")
_NETWORKD = "/run/systemd/netif/state"
_SYSCTL_CONF = "/etc/sysctl.conf"
_ZONES = ("/etc/firewalld/zones", "/usr/lib/firewalld/zones")
_FORWARDING = {4: ("net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding"), 6: ("net.ipv6.conf.all.forwarding",)}
# What every interface of a container has in common, from the side of the host.
_VETH = "veth0a1b2c3d"
_VETHS = ("the host's ends of containers' interfaces (veth)", "veth*")
# Conditions of [Match] on the host, which a file of this host is meant to meet.
_ON_HOST = {"host", "virtualization", "kernelcommandline", "kernelversion", "architecture", "credential", "firmware"}
_NOT_MANAGED = ("unmanaged", "connected (externally)", "unavailable")
_TIMEOUT = 10.0

# The values of each (section, key) of a file of systemd.
Settings = Dict[Tuple[str, str], List[str]]


class HostLink(NamedTuple):
    """An interface that plugins make on the host; ``kind`` is that of the kernel."""

    name: str
    kind: str


class Assignment(NamedTuple):
    """A line of a sysctl file that sets the key *name*."""

    name: str
    file: str
    line: int
    value: str
    by_pattern: bool


class OtherPrograms:
    """The other programs of the host. What they say and what their files have is read once for all networks."""

    def obstacles_of(self, plugins: Sequence[Mapping[str, object]]) -> Iterator[Finding]:
        """Yield what would end a network of *plugins*, each with the file or program that does it."""
        plugins = [delegate_of(plugin) or plugin for plugin in plugins]
        links = list(_links(plugins))
        if links:
            yield from _networkd(links, self._networkd_files)
            yield from _network_manager(links, self._managed)
            yield from _forwarding(_families(plugins), self._assignments)
        for plugin in plugins:
            if text_of(plugin, "type") == "firewall":
                yield from _zone(plugin)

    @cached_property
    def _networkd_files(self) -> List[Tuple[str, Settings]]:
        files = _by_name([f"{root}/systemd/network" for root in _SYSTEM], ".network")
        return [(path, _settings(path)) for path in files] if os.path.exists(_NETWORKD) else []

    @cached_property
    def _managed(self) -> Dict[str, str]:
        """The interfaces that NetworkManager knows, with their states."""
        command = find_command("nmcli") if is_running("NetworkManager") else None
        if command is None:
            return {}
        try:
            answer = run_command([command, "-t", "-e", "no", "-f", "DEVICE,STATE", "device"], _TIMEOUT)
        except HostError:
            return {}
        rows = [line.rpartition(":") for line in answer.stdout.decode("utf-8", "replace").splitlines()]
        return {name: state for name, _colon, state in rows}

    @cached_property
    def _assignments(self) -> List[Assignment]:
        """The assignments of the keys of forwarding, in order; a pattern does not reach a key that is named."""
        files = _by_name([f"{root}/sysctl.d" for root in (*_SYSTEM, "/lib")], ".conf")
        # procps reads it last; systemd only by a link in /etc/sysctl.d.
        if os.path.exists(_SYSCTL_CONF) and not any(os.path.realpath(file) == _SYSCTL_CONF for file in files):
            files.append(_SYSCTL_CONF)
        names = [name for group in _FORWARDING.values() for name in group]
        assignments: List[Assignment] = []
        named: Set[str] = set()
        for path in files:
            for number, line in enumerate(_lines(path), 1):
                key, _equals, value = line.partition("=")
                key = key.strip().lstrip("-")
                # One whose first separator is a slash is written with slashes (sysctl.d(5)).
                pattern = key.replace("/", ".") if "/" in key.partition(".")[0] else key
                reached = [name for name in names if fnmatchcase(name, pattern)]
                assignments += [Assignment(name, path, number, value.strip(), "*" in pattern) for name in reached]
                named.update(() if "*" in pattern else reached)
        return [entry for entry in assignments if not (entry.by_pattern and entry.name in named)]


def _links(plugins: Sequence[Mapping[str, object]]) -> Iterator[HostLink]:
    bridges = [name for name in map(bridge_of, plugins) if name]
    yield from (HostLink(name, "bridge") for name in bridges)
    if bridges or any(text_of(plugin, "type") == "ptp" for plugin in plugins):
        yield HostLink(_VETH, "veth")


def _families(plugins: Sequence[Mapping[str, object]]) -> Set[int]:
    """Return the IP versions that the host has to forward for a network."""
    return {
        part.subnet.version for plugin in filter(forwards, plugins) for part in ranges_of(object_of(plugin, "ipam"))
    }


# ---- managers of interfaces


def _networkd(links: Sequence[HostLink], files: Sequence[Tuple[str, Settings]]) -> Iterator[Finding]:
    for link in links:
        path, values = next((row for row in files if _matches(row[1], link)), ("", {}))
        if path and values.get(("link", "unmanaged"), ["no"])[-1].lower() not in ("yes", "true", "on", "1"):
            shown, pattern = (link.name,) * 2 if link.kind == "bridge" else _VETHS
            text = f"systemd-networkd configures {shown}, and removes addresses, routes or its bridge from it"
            remedy = (
                f'write a file before it, such as /etc/systemd/network/05-cni.network, with "Name={pattern}" '
                'under [Match] and "Unmanaged=yes" under [Link], and run "networkctl reload"'
            )
            yield obstacle("taken_over", text, f"{path} is the first file whose [Match] has it", remedy, WARNING, path)


def _matches(settings: Settings, link: HostLink) -> bool:
    """Tell whether a file's [Match] has *link*, as systemd.network(5) says."""
    keys = {key: values for (section, key), values in settings.items() if section == "match" and values}
    facts = {"name": link.name, "type": "bridge" if link.kind == "bridge" else "ether"}
    facts.update(kind=link.kind, driver=link.kind)
    for key, values in keys.items():
        if key in _ON_HOST:
            continue
        words = " ".join(values).split()
        inverted = words[0].startswith("!")
        patterns = [words[0].lstrip("!"), *words[1:]]
        if key not in facts or any(fnmatchcase(facts[key], pattern) for pattern in patterns) is inverted:
            return False
    # A [Match] without a condition is ignored since systemd 243.
    return bool(keys)


def _settings(path: str) -> Settings:
    """Return the values of each (section, key), with those of its drop-ins; an empty one forgets the others."""
    settings: Settings = {}
    name = f"systemd/network/{os.path.basename(path)}.d"
    for part in [path, *_by_name([f"{root}/{name}" for root in _SYSTEM], ".conf")]:
        section = ""
        for line in _lines(part):
            if line.startswith("["):
                section = line.strip("[]").lower()
            elif "=" in line:
                key, _equals, value = line.partition("=")
                values = settings.setdefault((section, key.strip().lower()), [])
                values[:] = [*values, value.strip()] if value.strip() else []
    return settings


def _network_manager(links: Sequence[HostLink], states: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the interfaces that NetworkManager says it manages: existing ones, as its rules for new ones are many."""
    bridges = [link.name for link in links if link.kind == "bridge"]
    ports = [port for name in bridges for port in names_in(f"/sys/class/net/{name}/brif")]
    taken = sorted(name for name in [*bridges, *ports] if states.get(name, "unmanaged") not in _NOT_MANAGED)
    if taken:
        text = f"NetworkManager manages {taken[0]}, and can remove its addresses, its bridge or its routes"
        remedy = (
            'write "unmanaged-devices=" with the names to /etc/NetworkManager/conf.d/cni.conf under [keyfile], such as '
            f'"interface-name:{bridges[0]};interface-name:veth*", and run "nmcli general reload"'
        )
        shown = ", ".join(f"{name} is {states[name]}" for name in taken[:3])
        yield obstacle("taken_over", text, f"nmcli says that {shown}", remedy, WARNING)


# ---- sysctl files


def _forwarding(versions: Set[int], assigned: Sequence[Assignment]) -> Iterator[Finding]:
    for version in sorted(versions):
        names = _FORWARDING[version]
        last = next((entry for entry in reversed(assigned) if entry.name in names), None)
        if last is not None and last.value == "0":
            text = f"the host forwards no IPv{version} packets of containers after the next boot"
            evidence = f"{last.file}, line {last.line}, sets {last.name} to 0, and no later file sets it"
            remedy = f"write {last.name}=1 there, or remove the line"
            yield obstacle("forwarding_reset", text, evidence, remedy, WARNING, last.file)


# ---- firewalls


def _zone(plugin: Mapping[str, object]) -> Iterator[Finding]:
    if text_of(plugin, "backend") in ("iptables", "nftables") or not is_running(FIREWALLD):
        return
    zone = set_or_default(plugin, "firewalldZone")
    if not any(os.path.exists(f"{folder}/{zone}.xml") for folder in _ZONES):
        text = f"firewalld has no zone {zone}, to which the plugin firewall adds the addresses of containers"
        evidence = f"no file {zone}.xml in {' or '.join(_ZONES)}"
        remedy = f'run "firewall-cmd --permanent --new-zone={zone}" and "firewall-cmd --reload", or name another zone'
        yield obstacle("no_zone", text, evidence, remedy)


def two_firewalls() -> Iterator[Finding]:
    """Yield that both backends of iptables have rules, so that each tool shows only a part of what packets meet."""
    for family in FAMILIES:
        try:
            dumps = [dump_iptables(backend, family) for backend in (LEGACY, NFT)]
        except HostError:
            continue
        both = [re.findall("^-A .*", dump, re.MULTILINE) for dump in dumps]
        if all(both):
            text = f"iptables-legacy and iptables-nft have rules side by side ({family}), and packets pass both"
            evidence = f"iptables-legacy has {len(both[0])} rules, such as {both[0][0]}; iptables-nft {len(both[1])}"
            remedy = (
                "find out which program writes each, let all use one (update-alternatives --set iptables), and flush "
                "the other backend when nothing needs it"
            )
            yield obstacle("two_firewalls", text, evidence, remedy, WARNING)


# ---- files


def _by_name(folders: Sequence[str], extension: str) -> List[str]:
    """Return the files of *folders* in the order of their names; a name counts in the first folder that has it."""
    paths: Dict[str, str] = {}
    for folder in folders:
        for name in names_in(folder):
            if name.endswith(extension):
                paths.setdefault(name, f"{folder}/{name}")
    return [paths[name] for name in sorted(paths)]


def _lines(path: str) -> List[str]:
    """Return the lines of a file, stripped; "" for comments. A link to /dev/null masks a file, and has none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            lines = [line.strip() for line in stream.read(1 << 20).splitlines()]
    except OSError:
        return []
    return ["" if line.startswith(("#", ";")) else line for line in lines]
