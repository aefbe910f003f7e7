# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Containers with port mappings, made by real plugins in the network namespace of this process."""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path

from ansible_collections.podwire.cni.plugins.module_utils._host import netns
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import owners
from ansible_collections.podwire.cni.plugins.module_utils.libcni.api import CNIConfig, RuntimeConf
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.tests.host import networks
from ansible_collections.podwire.cni.tests.host.host import sh

FIREWALL = {"type": "firewall", "backend": "iptables", "ingressPolicy": "same-bridge"}


class World:
    """The plugins of one generation, and what they use for masquerading and port mappings."""

    def __init__(self, plugins: Path, backend: str) -> None:
        self.backend = backend
        self.cni = CNIConfig([str(plugins)], "/var/lib/cni", 60)

    def network(self, name, bridge, subnets, portmap, *more, spoof=False):
        """Return a network of bridge and portmap."""
        native = {"ipMasqBackend": "nftables"} if self.backend == "nftables" else {}
        main = networks.bridge(bridge, *subnets, ipMasq=True, **native)
        if spoof:
            main["macspoofchk"] = True
        mapper = {**networks.PORTMAP, **portmap}
        if self.backend == "nftables":
            mapper["backend"] = "nftables"
        return network_conf_from_bytes(json.dumps(networks.conflist(main, mapper, *more, name=name)).encode())


class Container:
    """One container in its namespace, in which ``listener`` serves port 80."""

    def __init__(self, world: World, conf, container_id: str, host_port: int) -> None:
        self.world = world
        self.conf = conf
        self.container_id = container_id
        self.host_port = host_port
        self.path = f"/run/netns/{container_id}"
        sh(f"ip netns add {container_id}")
        mappings = [
            {"hostPort": host_port, "containerPort": 80, "protocol": "tcp"},
            {"hostPort": host_port + 1000, "containerPort": 53, "protocol": "udp", "hostIP": "127.0.0.1"},
        ]
        self.runtime = RuntimeConf(container_id, self.path, "eth0", capability_args={"portMappings": mappings})
        result = world.cni.add_network_list(conf, self.runtime).to_dict()
        self.addresses = {entry["address"].partition("/")[0] for entry in result["ips"]}
        self.listener = netns.visit([netns.Netns(self.path)], listen)[self.path]

    def delete(self) -> None:
        self.listener.close()
        self.world.cni.del_network_list(self.conf, self.runtime)
        sh(f"ip netns delete {self.container_id}")

    def sets(self):
        """Return the sets of rules that are found of this container."""
        return [
            one
            for one in read_sets()
            if one.owner.container_id == self.container_id
            or (one.plugin == "firewall" and self.addresses & set(one.addresses))
        ]

    def check_reached(self, address: str) -> None:
        """Expect that a connection to an address of the host reaches this container."""
        with connect(address, self.host_port):
            connection, _peer = self.listener.accept()
            connection.close()


def listen() -> socket.socket:
    listener = socket.create_server(("::", 80), family=socket.AF_INET6, dualstack_ipv6=True)
    listener.settimeout(20)
    return listener


def connect(address: str, port: int) -> socket.socket:
    """Return a connection to a port of the host. Raises ConnectionRefusedError."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection((address, port), 20)
        except ConnectionError:
            raise
        except OSError:
            # The neighbours do not know each other yet.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def read_sets():
    found = owners.read_rules()
    assert not found.problems
    return found.sets


def firewall() -> list[str]:
    """Return everything that is in the firewall, without counters, handles and order of chains."""
    texts = [
        sh(f"{save} 2>/dev/null")
        for save in ("iptables-nft-save", "ip6tables-nft-save", "iptables-legacy-save", "ip6tables-legacy-save")
    ]
    for table in sh("nft list tables").splitlines():
        if "cni_" in table or table == "table bridge nat":
            texts.append(sh(f"nft list {table}"))
    lines = "\n".join(texts).splitlines()
    return sorted(re.sub(r"\[\d+:\d+\]", "", line) for line in lines if line and not line.startswith("#"))
