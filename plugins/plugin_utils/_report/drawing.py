# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The drawing of a host: its networks as bars, their containers beside them, port mappings on the host's side.

This computes the positions; ``drawing.svg.j2`` draws them. Sizes are in the coordinates of the drawing.
"""

from __future__ import annotations

from typing import AbstractSet, Any, Iterator, Mapping, Optional, Tuple

from .values import number, rows, table, text, texts

MOST_NETWORKS = 6
MOST_CONTAINERS = 6
"""The most containers of one network. The number of the others is shown below them."""
_ROW, _HEAD, _GAP = 34, 40, 14
_MOST_PORTS = 3
_ORDER = ("gone", "drift", "dead", "good")

ContainerIds = AbstractSet[Tuple[str, str]]
"""Containers by their network and ID."""


class Container:
    """The object at the end of one line. ``state`` is good, drift, gone or dead; ``note`` says what is wrong."""

    def __init__(self, row: Mapping[str, Any], drifted: Mapping[str, str], dead: ContainerIds) -> None:
        network, self.name, self.ifname = (text(row.get(key)) for key in ("network", "container_id", "ifname"))
        self.ips = texts(row.get("ips"))
        self.ports = _ports(row)
        key = "/".join((network, self.name, self.ifname))
        lost = row.get("netns_state") in ("gone", "other") or row.get("interface") is False
        self.note = drifted.get(key, "")
        self.state = "gone" if lost else "drift" if key in drifted else "good"
        if (network, self.name) in dead:
            self.state, self.note = "dead", "dead, not cleaned up"
        elif lost:
            self.note = "gone"
        self.y = 0


class Network:
    """A bar with its containers; ``device`` is the bridge, or the interface above which the plugin puts its own.

    ``via`` is the network of Multus that gives it to pods. ``note`` says what is wrong with what its containers share.
    """

    def __init__(self, name: str, kind: str, device: str, addresses: list[str]) -> None:
        self.name = name
        self.kind = kind
        self.device = device
        self.addresses = addresses[:2]
        self.via = ""
        self.note = ""
        self.containers: list[Container] = []
        self.more = 0
        self.y = 0
        self.height = 0


class Drawing:
    """``note`` says what is wrong with what all networks share."""

    def __init__(self, networks: list[Network], more: int, note: str) -> None:
        self.networks = networks
        self.more = more
        self.note = note
        y = _GAP
        for network in networks:
            network.y = y
            for index, container in enumerate(network.containers):
                container.y = y + _HEAD + index * _ROW + _ROW // 2
            lines = len(network.containers) + (1 if network.more or not network.containers else 0)
            network.height = _HEAD + lines * _ROW
            y += network.height + _GAP
        self.height = y + (20 if more or note else 0)


def draw(info: Mapping[str, Any], drifted: Mapping[str, str]) -> Optional[Drawing]:
    """Return the drawing of the result of cni_info; None if there is nothing to draw.

    *drifted* are the targets of the plan's steps, with their reasons. Containers are the attachments in the cache, and
    those that only host-local knows, which a runtime has attached. What a dead container left is no live container.
    """
    networks = {network.name: network for network in _networks(info)}
    found: dict[str, list[Container]] = {name: [] for name in networks}
    leaks = [row for row in rows(info.get("garbage")) if row.get("collectable") is True]
    dead = {(text(row.get("network")), text(row.get("container_id"))) for row in leaks}
    known = set()
    for row in rows(info.get("attachments")):
        known.add((text(row.get("network")), text(row.get("container_id"))))
        found.setdefault(text(row.get("network")), []).append(Container(row, drifted, dead))
    held: dict[tuple[str, str], list[str]] = {}
    for pool in rows(info.get("pools")):
        for owner in rows(pool.get("owners")):
            # A network has a pool for each address family.
            key = (text(pool.get("network")), text(owner.get("container_id")))
            held.setdefault(key, []).extend(texts(owner.get("ips")))
    # A lease of a runtime's container does not tell the interface, but a step about it does.
    interfaces = {tuple(target.split("/")[:2]): target.split("/")[2] for target in drifted if target.count("/") == 2}
    for (name, container), ips in held.items():
        if container and (name, container) not in known:
            row = {"network": name, "container_id": container, "ips": ips}
            row["ifname"] = interfaces.get((name, container), "")
            found.setdefault(name, []).append(Container(row, drifted, dead))
    for name, containers in found.items():
        network = networks.setdefault(name, Network(name, "", "", []))
        # Containers with errors must be drawn, and those with published ports should be.
        containers.sort(key=lambda one: (_ORDER.index(one.state), not one.ports, one.name, one.ifname))
        network.containers = containers[:MOST_CONTAINERS]
        network.more = len(containers) - len(network.containers)
        network.note = drifted.get(name, "")
    for name, via in _through_multus(info):
        if name in networks and not networks[name].via:
            networks[name].via = via
    # The sort is stable: networks with containers first, each in the order of their files.
    every = sorted(networks.values(), key=lambda network: not network.containers)
    if not every:
        return None
    return Drawing(every[:MOST_NETWORKS], max(0, len(every) - MOST_NETWORKS), drifted.get("host", ""))


def _through_multus(info: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the networks that pods get through Multus, each with the network of Multus and the interface."""
    for runtime in rows(info.get("runtime")):
        for row in rows(runtime.get("through")):
            interface = text(row.get("interface"))
            yield text(row.get("network")), " as ".join(filter(None, (text(runtime.get("network")), interface)))


def _networks(info: Mapping[str, Any]) -> Iterator[Network]:
    addresses = {
        text(link.get("name")): texts(link.get("addresses")) for link in rows(table(info.get("kernel")).get("links"))
    }
    for file in rows(info.get("conf")):
        plugin = _interface_plugin(table(file.get("config")))
        kind = text(plugin.get("type"))
        if text(file.get("network")) and kind != "loopback":
            device = text(plugin.get("bridge")) or ("cni0" if kind == "bridge" else text(plugin.get("master")))
            yield Network(text(file.get("network")), kind, device, addresses.get(device, []))


def _interface_plugin(config: Mapping[str, Any]) -> Mapping[str, Any]:
    plugins = rows(config.get("plugins"))
    return plugins[0] if plugins else config


def _ports(row: Mapping[str, Any]) -> list[str]:
    found = []
    for mapping in rows(table(row.get("capability_args")).get("portMappings")):
        host = f"{number(mapping.get('hostPort'))}"
        if text(mapping.get("hostIP")):
            host = f"{text(mapping.get('hostIP'))}:{host}"
        protocol = text(mapping.get("protocol")).lower() or "tcp"
        found.append(f"{host} → {number(mapping.get('containerPort'))}/{protocol}")
    if len(found) > _MOST_PORTS:
        found[_MOST_PORTS - 1 :] = [f"and {len(found) - _MOST_PORTS + 1} more"]
    return found
