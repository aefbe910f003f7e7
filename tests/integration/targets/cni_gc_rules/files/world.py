# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers with port mappings, made by real plugins in the network namespace of this process."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

from ansible_collections.podwire.cni.plugins.module_utils._host import netns
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import rules
from ansible_collections.podwire.cni.plugins.module_utils.libcni.api import CNIConfig, RuntimeConf
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.plugins.module_utils.libcni.gojson import dumps

PLUGINS_DIRECTORY, BACKEND = sys.argv[1:3]
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def command(*words, **keywords):
    """Run a command, which has to succeed, and return what it prints."""
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, **keywords).stdout


def prepare():
    """Hide the host's namespaces and caches, and choose what the plugins take for iptables."""
    for directory in ("/run/netns", "/var/lib/cni"):
        os.makedirs(directory, exist_ok=True)
        command("mount", "-t", "tmpfs", "tmpfs", directory)
    command("mount", "--make-shared", "/run/netns")
    command("mount", "--bind", "/run/netns", "/run/netns")
    command("ip", "link", "set", "lo", "up")
    os.environ["PATH"] = SYSTEM_PATH
    if BACKEND.startswith("iptables"):
        tools = tempfile.mkdtemp()
        multi = "/usr/sbin/xtables-%s-multi" % BACKEND.partition("-")[2]
        for name in ("iptables", "ip6tables"):
            os.symlink(multi, os.path.join(tools, name))
        os.environ["PATH"] = tools + ":" + SYSTEM_PATH


def network(name, bridge, subnets, portmap, *more, spoof=False):
    """Return a network list of bridge and portmap, masquerading by the chosen backend."""
    native = {"macspoofchk": True} if spoof else {}
    if BACKEND == "nftables":
        native["ipMasqBackend"] = "nftables"
    ipam = {"type": "host-local", "ranges": [[{"subnet": subnet}] for subnet in subnets]}
    main = dict({"type": "bridge", "bridge": bridge, "isGateway": True, "ipMasq": True, "ipam": ipam}, **native)
    backend = {"backend": "nftables"} if BACKEND == "nftables" else {}
    mapper = dict({"type": "portmap", "capabilities": {"portMappings": True}}, **portmap, **backend)
    return network_conf_from_bytes(dumps({"cniVersion": "1.0.0", "name": name, "plugins": [main, mapper, *more]}))


FIREWALL = {"type": "firewall", "backend": "iptables", "ingressPolicy": "same-bridge"}
# With nftables, portmap writes the conditions of whoever comes last over those of all others.
CONDITIONS = {} if BACKEND == "nftables" else {"conditionsV4": ["!", "-s", "10.99.0.0/16"]}


class Container:
    """One container in its namespace; its main process answers every connection to port 80 with its id."""

    def __init__(self, conf, container_id, host_port, protocol="tcp"):
        self.conf = conf
        self.container_id = container_id
        self.host_port = host_port
        command("ip", "netns", "add", container_id)
        mapping = [{"hostPort": host_port, "containerPort": 80, "protocol": protocol}]
        mapping.append({"hostPort": host_port + 1000, "containerPort": 53, "protocol": "udp", "hostIP": "127.0.0.1"})
        self.runtime = RuntimeConf(
            container_id, "/run/netns/" + container_id, "eth0", capability_args={"portMappings": mapping}
        )
        result = api().add_network_list(conf, self.runtime).to_dict()
        self.addresses = {entry["address"].partition("/")[0] for entry in result["ips"]}

    def serve(self):
        ready = threading.Event()
        threading.Thread(target=self._serve, args=(ready,), daemon=True).start()
        ready.wait()

    def _serve(self, ready):
        netns.enter("/run/netns/" + self.container_id)
        listener = socket.socket(socket.AF_INET6)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(("::", 80))
        listener.listen(8)
        ready.set()
        while True:
            connection, _peer = listener.accept()
            with connection:
                connection.sendall(self.container_id.encode())

    def delete(self):
        api().del_network_list(self.conf, self.runtime)
        command("ip", "netns", "delete", self.container_id)


def api():
    return CNIConfig([PLUGINS_DIRECTORY], "/var/lib/cni", 60)


def answer(address, port):
    """Return what is heard from a port of the host, None if it is refused."""
    deadline = time.monotonic() + 30
    while True:
        try:
            with socket.create_connection((address, port), 20) as connection:
                return connection.recv(100).decode()
        except ConnectionError:
            return None
        except OSError:
            # The neighbours do not know each other yet.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def firewall():
    """Return everything that is in the firewall, without counters, handles and order of chains."""
    text = ""
    for save in ("iptables-nft-save", "ip6tables-nft-save", "iptables-legacy-save", "ip6tables-legacy-save"):
        text += command(save, stderr=subprocess.DEVNULL)
    for line in command("nft", "list", "tables").splitlines():
        if "cni_" in line or line == "table bridge nat":
            text += command("nft", "list", *line.split())
    return sorted(re.sub(r"\[\d+:\d+\]", "", line) for line in text.splitlines() if not line.startswith("#"))


def check(condition, what):
    if not condition:
        sys.exit("%s, %s: %s" % (BACKEND, PLUGINS_DIRECTORY, what))


def same(before, after, what):
    lost = [line for line in before if line not in after]
    more = [line for line in after if line not in before]
    check(before == after, "%s\nlost: %s\nleft: %s" % (what, "\n  ".join(lost), "\n  ".join(more)))


def sets_of(container):
    """Return what is found of a container."""
    found = rules.read_rules()
    check(not found.problems, found.problems)
    return [
        one
        for one in found.sets
        if one.container_id == container.container_id
        or (one.plugin == "firewall" and container.addresses & set(one.addresses))
    ]
