# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A site around containers: a peer outside, devices that plugins take, rules of others, and open TCP connections."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import AttachmentStore
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.footprint import Footprint
from ansible_collections.podwire.cni.plugins.module_utils._host.netns import Netns, visit
from ansible_collections.podwire.cni.tests.host.footprint import pictures
from ansible_collections.podwire.cni.tests.host.footprint.chains import (
    CONTAINER_PORT,
    DEVICE,
    HOST_PORT,
    IN,
    INSIDE,
    NEIGHBOUR,
    OUT,
    PARENT,
    PUBLISHED,
    VLAN_ID,
    Chain,
)
from ansible_collections.podwire.cni.tests.host.host import Host, lacks, sh, wait_until

OUTSIDE = "pwf-ext"
OUTER_PORT = 9000
_SWITCHES = ("ipv4/ip_forward", "ipv6/conf/all/forwarding")
_TIMEOUT = 20.0
# A delayed ACK that leaves while NAT is gone tells the peer a wrong address, and the peer resets the connection.
SILENCE = 0.25

# The outside is reached through a veth pair; "nodad", because a new IPv6 address is silent for a second otherwise.
_MAKE = f"""
ip netns add {OUTSIDE}
ip -n {OUTSIDE} link set lo up
ip link add pwf-ext0 type veth peer name pwf-ext1 netns {OUTSIDE}
ip address add 192.0.2.1/24 dev pwf-ext0
ip address add 2001:db8::1/64 dev pwf-ext0 nodad
ip link set pwf-ext0 up
ip -n {OUTSIDE} address add 192.0.2.2/24 dev pwf-ext1
ip -n {OUTSIDE} address add 2001:db8::2/64 dev pwf-ext1 nodad
ip -n {OUTSIDE} link set pwf-ext1 up
for name in {PARENT} {DEVICE}; do
  ip link add $name type veth peer name ${{name%0}}1 netns {OUTSIDE}
  ip -n {OUTSIDE} link set ${{name%0}}1 up
done
ip link set {PARENT} up
# A bridge with a MAC of its own, as that of others follows their ports.
ip link add pwf-other address 02:00:00:00:00:09 type bridge
mkdir -p /run/cni
"""
# Once, however often it runs.
_OTHER_RULES = """
iptables -D FORWARD -s 203.0.113.9/32 -m comment --comment pwf-other -j ACCEPT 2>/dev/null || true
iptables -t nat -D POSTROUTING -s 203.0.113.9/32 -m comment --comment pwf-other -j ACCEPT 2>/dev/null || true
nft delete table inet pwf_other 2>/dev/null || true
iptables -A FORWARD -s 203.0.113.9/32 -m comment --comment pwf-other -j ACCEPT -c 7 77
iptables -t nat -A POSTROUTING -s 203.0.113.9/32 -m comment --comment pwf-other -j ACCEPT -c 7 77
nft add table inet pwf_other
nft add chain inet pwf_other others
nft add rule inet pwf_other others ip saddr 203.0.113.9 counter packets 7 bytes 77 accept
"""


def path_of(namespace: str) -> str:
    return f"/run/netns/{namespace}"


class Echo:
    """TCP servers in namespaces, all in one thread, that send back what they receive."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._waker, waked = socket.socketpair()
        self._selector.register(waked, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def listen(self, namespace: str, port: int) -> None:
        """Serve in a namespace, given by its name or by a path."""
        path = namespace if "/" in namespace else path_of(namespace)
        family = {"family": socket.AF_INET6, "dualstack_ipv6": True}
        listener = visit([Netns(path)], lambda: socket.create_server(("::", port), **family))
        self._selector.register(listener[path], selectors.EVENT_READ, self._accept)
        self._waker.send(b"!")

    def close(self) -> None:
        self._waker.close()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            abort(key.fileobj)
        self._selector.close()

    def _serve(self) -> None:
        while True:
            for key, _events in self._selector.select():
                if key.data is None:
                    if not key.fileobj.recv(64):
                        return
                else:
                    key.data(key.fileobj)

    def _accept(self, listener: socket.socket) -> None:
        self._selector.register(listener.accept()[0], selectors.EVENT_READ, self._answer)

    def _answer(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(4096)
            if data:
                connection.sendall(data)
                return
        except OSError:
            pass
        self._selector.unregister(connection)
        connection.close()


def abort(connection: socket.socket) -> None:
    """Close a connection at once, because a namespace lives as long as a socket of it."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Container:
    """One container of the site: its namespace, and the arguments of its attachment."""

    def __init__(self, site: Site, name: str, **more: Any) -> None:
        self.site = site
        self.namespace = f"pwf-{name}"
        self.container_id = f"pwf-{name}-0001"
        self.row: dict[str, Any] = {}
        chain = site.chain
        self.wanted = {
            "network": chain.network,
            "container_id": self.container_id,
            "netns": self.namespace,
            "ifname": "lo" if chain.name == "loopback" else "eth0",
            "capability_args": dict(chain.capability_args),
            **more,
        }

    @property
    def path(self) -> str:
        return path_of(self.namespace)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.wanted["network"], self.container_id, self.wanted["ifname"]

    @property
    def absent(self) -> dict[str, Any]:
        return {
            "network": self.wanted["network"],
            "container_id": self.container_id,
            "ifname": self.wanted["ifname"],
        } | {"state": "absent"}

    @property
    def addresses(self) -> list[str]:
        return [address.split("/")[0] for address in self.row["ips"]]

    def footprint(self) -> Footprint:
        attached = self.site.store().read(Key(*self.key)).attached
        found = attached.footprint if attached is not None else None
        assert found is not None, f"no footprint of {self.key}"
        return found


class Site:
    """One network with the plugins of one chain and generation. ``others`` are the words of pictures of others."""

    def __init__(self, host: Host, work: Path, plugins: Path, chain: Chain, environment: dict[str, str] | None = None):
        self.chain = chain
        self.work = work
        self.cache = work / "cache"
        self.leases = work / "leases"
        self.host = host.with_defaults(conf_dir=str(work / "net.d"), bin_dirs=[str(plugins)], cache_dir=str(self.cache))
        self.plugins = plugins
        self.containers: list[Container] = []
        self._environment = environment
        self.connections: dict[str, socket.socket] = {}
        self._before: dict[str, Any] = {}
        self._echo: Echo | None = None
        self._processes: list[subprocess.Popen[bytes]] = []

    # ---- making and removing

    def make(self) -> None:
        self._before = {"links": links(), "switches": {name: _sysctl(name) for name in _SWITCHES}}
        for name in _SWITCHES:
            _write_sysctl(name, "0")
        sh(_MAKE)
        self.put_other_rules()
        if not self.chain.masqueraded:
            sh(f"ip -n {OUTSIDE} route add default via 192.0.2.1; ip -n {OUTSIDE} route add default via 2001:db8::1")
        self._echo = Echo()
        self._echo.listen(OUTSIDE, OUTER_PORT)
        if self.chain.name == "dhcp" and not self.lacks():
            self._start_dhcp()
        self.write_network(self.chain.conflist(self.leases))

    def _start_dhcp(self) -> None:
        """Start a server at the other end of the parent's link, and the plugin's daemon."""
        device = f"{PARENT[:-1]}1"
        sh(f"ip -n {OUTSIDE} address add 10.88.0.1/16 dev {device}")
        server = (
            f"ip netns exec {OUTSIDE} dnsmasq --keep-in-foreground --conf-file=/dev/null --pid-file= --user=root "
            f"--port=0 --interface={device} --no-ping --dhcp-range=10.88.0.100,10.88.0.150,12h "
            f"--dhcp-leasefile={self.work}/dhcp"
        )
        for command in (server.split(), [str(self.plugins / "dhcp"), "daemon"]):
            self._processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        wait_until(Path("/run/cni/dhcp.sock").exists)

    def write_network(self, conflist: dict[str, Any]) -> None:
        folder = self.work / "net.d"
        folder.mkdir(exist_ok=True)
        (folder / f"10-{conflist['name']}.conflist").write_text(json.dumps(conflist))

    def lacks(self) -> str:
        """Return the kind of interface or the program that the chain needs and that is not here."""
        if self.chain.program and not shutil.which(self.chain.program):
            return self.chain.program
        return self.chain.needs.split()[0] if self.chain.needs and lacks(self.chain.needs) else ""

    def remove(self) -> None:
        """Remove everything, in whatever state the site is."""
        for connection in self.connections.values():
            abort(connection)
        if self._echo is not None:
            self._echo.close()
        for process in self._processes:
            process.kill()
            process.wait()
        names = [OUTSIDE, *(container.namespace for container in self.containers)]
        sh("".join(f"ip netns delete {name} 2>/dev/null || true\n" for name in names))

        def removed() -> bool:
            new = [name for name in links() if name not in self._before["links"]]
            sh("".join(f"ip link delete {name} 2>/dev/null || true\n" for name in new))
            return not new

        wait_until(removed)
        sh("nft flush ruleset")
        flush_legacy()
        sh("rm -rf /run/cni")
        for name, value in self._before["switches"].items():
            _write_sysctl(name, value)

    def put_other_rules(self) -> None:
        sh(_OTHER_RULES)

    # ---- containers

    def add_container(self, name: str, **more: Any) -> Container:
        """Add a container, not attached yet. *more* are arguments of the attachment."""
        container = Container(self, name, **more)
        sh(f"ip netns add {container.namespace}")
        self.containers.append(container)
        if self.chain.name != "loopback":
            sh(f"ip -n {container.namespace} link set lo up")
        if self.chain.name == "vrf":
            # Otherwise, only a program that binds to the VRF is reached through it.
            sh(f"ip netns exec {container.namespace} sysctl -q -w net.ipv4.tcp_l3mdev_accept=1")
        assert self._echo
        self._echo.listen(container.namespace, CONTAINER_PORT)
        return container

    def call(self, **options: Any) -> dict[str, Any]:
        """Run the module for all containers, and return its result, also if it failed."""
        attachments = options.pop("attachments", None) or [container.wanted for container in self.containers]
        return self.host.attempt("cni_attach", attachments=attachments, environment=self._environment, **options)

    def run(self, **options: Any) -> dict[str, Any]:
        """Do the same as ``call``; the module must not fail."""
        result = self.call(**options)
        assert not result.get("failed"), json.dumps(result, indent=1)
        return result

    def attach(self) -> None:
        result = self.run()
        for container, row in zip(self.containers, result["attachments"]):
            assert row["action"] == "added", row
            container.row = row

    def store(self) -> AttachmentStore:
        return AttachmentStore(str(self.cache))

    def shared(self, network: str) -> list[Footprint]:
        """Return the footprints of a network and of all networks."""
        shared = self.store().read_shared()
        assert shared.damage == ""
        return [shared.footprints[owner] for owner in ((network,), ()) if owner in shared.footprints]

    # ---- connections

    def connect(self) -> None:
        """Open the connections of the chain through the first container, and wait until they can be silent."""
        container = self.containers[0]
        if NEIGHBOUR in self.chain.connections and self.chain.name != "dhcp":
            far = (DEVICE if self.chain.name == "host-device" else PARENT)[:-1] + "1"
            if self.chain.name == "vlan":
                sh(f"ip -n {OUTSIDE} link add link {far} name tagged type vlan id {VLAN_ID}")
                sh(f"ip -n {OUTSIDE} link set tagged up")
                far = "tagged"
            sh(f"ip -n {OUTSIDE} address add 10.88.0.1/16 dev {far}")
        for address in container.addresses or ["127.0.0.1"]:
            six = ":" in address
            outside, gateway = ("2001:db8::2", "2001:db8::1") if six else ("192.0.2.2", "192.0.2.1")
            ways = {
                IN: ("", (address, CONTAINER_PORT)),
                OUT: (container.path, (outside, OUTER_PORT)),
                PUBLISHED: (path_of(OUTSIDE), (gateway, HOST_PORT)),
                NEIGHBOUR: (path_of(OUTSIDE), (address, CONTAINER_PORT)),
                INSIDE: (container.path, (address, CONTAINER_PORT)),
            }
            for name in self.chain.connections:
                # With sbr, only the source address leads to a route.
                source = address if name == OUT else ""
                self.connections[f"{name}{'6' if six else ''}"] = open_connection(*ways[name], source)
        if self.chain.dual:
            wait_until(self._all_addresses_usable, 10)
        assert self.dead() == []

    def connect_peers(self, container: Container, target: Container) -> None:
        """Open connections from one container to another."""
        for address in target.addresses:
            name = f"peer{'6' if ':' in address else ''}"
            self.connections[name] = open_connection(container.path, (address, CONTAINER_PORT))

    def adapt(self) -> None:
        """Let everybody forget the neighbours and send, so that the site adapts to what is broken."""
        spaces = ["", *(f"-n {name}" for name in (OUTSIDE, *(container.namespace for container in self.containers)))]
        for space in spaces:
            sh(f"ip {space} neighbour flush all 2>&1; ip {space} -6 neighbour flush all 2>&1", check=False)
        for connection in self.connections.values():
            with contextlib.suppress(OSError):
                connection.sendall(b"adapting\n")

    def _all_addresses_usable(self) -> bool:
        spaces = ["", *(f"-n {container.namespace}" for container in self.containers)]
        return not any(sh(f"ip {space} -6 address show tentative") for space in spaces)

    def dead(self) -> list[str]:
        """Send something through each connection, and return what failed: an echo that does not come back."""
        failed = []
        for name, connection in self.connections.items():
            word = f"{name} {time.monotonic_ns()}\n".encode()
            try:
                connection.sendall(word)
                heard = b""
                # An earlier word may still be under way.
                while not heard.endswith(word):
                    more = connection.recv(4096)
                    if not more:
                        raise ConnectionError("closed")
                    heard += more
            except OSError as error:
                failed.append(f"{name}: {error}")
        return failed

    # ---- what there is

    def picture(self) -> dict[str, Any]:
        """Return what the site is set to, without the rules of others."""
        spaces = {"": "", **{container.namespace: container.path for container in self.containers}}
        found = pictures.take(spaces)
        found["leases"] = {
            str(path.relative_to(self.leases)): path.read_text()
            for path in sorted(self.leases.rglob("*"))
            if path.is_file() and path.name != "lock" and not path.name.startswith("last_reserved_ip.")
        }
        return found

    def other_rules(self) -> str:
        """Return the rules of others with their counters."""
        return sh("{ iptables-save -c; nft list table inet pwf_other; } | grep -E 'pwf-other|203.0.113' || true")


def open_connection(path: str, target: tuple[str, int], source: str = "") -> socket.socket:
    """Open a TCP connection, in the namespace at *path*."""

    def attempt() -> socket.socket | None:
        try:
            return socket.create_connection(target, _TIMEOUT, (source, 0) if source else None)
        except OSError:
            # The neighbours do not know each other yet.
            return None

    return wait_until(lambda: visit([Netns(path)], attempt)[path] if path else attempt(), 20)


def give(lease: Path, container_id: str, ifname: str = "eth0", age: float = 86400) -> None:
    """Give a lease to another owner, so long ago that its age is no sign of life."""
    lease.write_bytes("\r\n".join(name for name in (container_id, ifname) if name).encode())
    then = time.time() - age
    os.utime(lease, (then, then))


def links(namespace: str = "") -> dict[str, int]:
    """Return name -> index of the interfaces."""
    where = f"-n {namespace}" if namespace else ""
    return {link["ifname"]: link["ifindex"] for link in json.loads(sh(f"ip {where} -json link"))}


def flush_legacy() -> None:
    """Empty the tables of iptables-legacy that exist; to look at others would make them."""
    for family in ("ip", "ip6"):
        names = Path(f"/proc/net/{family}_tables_names")
        for table in names.read_text().split() if names.exists() else ():
            command = f"{family}tables-legacy -t {table}"
            sh(f"{command} -F; {command} -X")


def _sysctl(name: str) -> str:
    return Path("/proc/sys/net", name).read_text().strip()


def _write_sysctl(name: str, value: str) -> None:
    Path("/proc/sys/net", name).write_text(value)
