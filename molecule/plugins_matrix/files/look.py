# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Uses what the plugins have made on this machine; prints what came of it as one JSON object.

Called with the attachments (what cni_attach returned) and the limits of bandwidth, as JSON. It does not use the
collection.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
ARP = b"\x08\x06"
SECONDS = 60

libc = ctypes.CDLL(None, use_errno=True)


def run(*command: str, status: int | None = 0) -> str:
    """Run a command and return what it prints; with status None it may fail."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if status is not None and done.returncode != status:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}: {done.stdout.strip()}")
    return done.stdout


def ip(netns: str, *arguments: str) -> list[dict[str, Any]]:
    """Return what ip says about a namespace; "" is the machine's own."""
    where = ["-n", netns] if netns else []
    said: list[dict[str, Any]] = json.loads(run("ip", *where, "-details", "-json", *arguments) or "[]")
    return said


def link(netns: str, name: str) -> dict[str, Any]:
    """Return an interface of a namespace, with kind, flags and the rest at its top."""
    found = ip(netns, "-statistics", "link", "show", "dev", name)[0]
    return {**found.get("linkinfo", {}), **found}


def host_end(netns: str, name: str) -> str:
    """Return the name of a veth's end on the machine."""
    index = link(netns, name)["link_index"]
    return next(found["ifname"] for found in ip("", "link", "show") if found["ifindex"] == index)


def ping(netns: str, address: str, *options: str, seconds: int = 30) -> bool:
    """Return whether an address answers within some seconds."""
    command = ["ip", "netns", "exec", netns, "ping", "-c", "1", "-W", str(seconds), *options, address]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


@contextmanager
def inside(netns: str) -> Iterator[None]:
    """Let this thread be in a namespace; what it opens there stays there. "" is the machine's own."""
    home_path = "/proc/thread-self/ns/net"
    with open(home_path, "rb") as home, open(f"/run/netns/{netns}" if netns else home_path, "rb") as there:
        enter(there.fileno())
        try:
            yield
        finally:
            enter(home.fileno())


def enter(netns: int) -> None:
    """Move this thread to a namespace."""
    if libc.setns(netns, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def listen(netns: str, port: int) -> socket.socket:
    """Return a TCP socket that listens in a namespace."""
    with inside(netns):
        server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.settimeout(SECONDS)
    server.bind(("", port))
    server.listen()
    return server


def connect(netns: str, address: str, port: int) -> socket.socket:
    """Return a TCP connection from a namespace."""
    with inside(netns):
        client = socket.socket()
    client.settimeout(SECONDS)
    client.connect((address, port))
    return client


def reached(server: socket.socket, netns: str, address: str, port: int) -> str:
    """Connect from a namespace; return from where the server is seen to be reached, once it has answered."""
    with connect(netns, address, port) as client:
        accepted, (peer, _dummy) = server.accept()
        with accepted:
            accepted.sendall(b"here")
            if client.recv(4, socket.MSG_WAITALL) != b"here":
                raise RuntimeError(f"{address}:{port}: another answer")
    return str(peer)


def rate(sender: socket.socket, receiver: socket.socket, count: int, burst: int) -> float:
    """Send ``count`` bytes; return how many a second came after the first ``burst``."""
    thread = threading.Thread(target=sender.sendall, args=(bytes(count),))
    thread.start()
    got, begun, before = 0, 0.0, 0
    while got < count:
        got += len(receiver.recv(65536))
        if not begun and got >= burst:
            begun, before = time.monotonic(), got
    thread.join()
    return (got - before) / (time.monotonic() - begun)


def arp_request(netns: str, tap: str, wanted: str) -> bool:
    """Be the other end of a tap device; return whether the namespace asks there for an address."""
    with inside(netns):
        device = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", tap.encode(), IFF_TAP | IFF_NO_PI))
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sender, os.fdopen(device, "rb", buffering=0) as frames:
        sender.sendto(b"", (wanted, 9))
        deadline = time.monotonic() + SECONDS
        os.set_blocking(frames.fileno(), False)
        while time.monotonic() < deadline:
            frame = frames.read(2048)
            if frame and frame[12:14] == ARP and frame[38:42] == socket.inet_aton(wanted):
                return True
            time.sleep(0.1)
    return False


def read(path: str) -> str:
    """Return the words of a file."""
    with open(path, encoding="ascii") as file:
        return file.read().strip()


class Machine:
    """What there is to see; each method is one plugin's, and its name that of the plugin."""

    def __init__(self, attachments: list[dict[str, Any]], limits: dict[str, int]) -> None:
        self.addresses = {
            (entry["container_id"], entry["ifname"]): [address.split("/")[0] for address in entry["ips"]]
            for entry in attachments
        }
        self.limits = limits

    def address(self, container: str, ifname: str = "eth0") -> str:
        """Return the first address of an interface."""
        return self.addresses[container, ifname][0]

    def bridge(self) -> Any:
        """VLANs are the bridge's, both families reach the gateway, and no VLAN reaches the other."""
        vlans = {}
        for netns in ("lan-a", "lan-b"):
            said = json.loads(run("bridge", "-json", "vlan", "show", "dev", host_end(netns, "eth0")))
            vlans[netns] = [vlan["vlan"] for vlan in said[0]["vlans"] if "PVID" in vlan.get("flags", [])]
        run("ip", "-n", "lan-a", "address", "add", "10.64.0.250/24", "dev", "eth0")
        other = ping("lan-a", self.address("lan-b"), "-I", "10.64.0.250", seconds=2)
        run("ip", "-n", "lan-a", "address", "delete", "10.64.0.250/24", "dev", "eth0")
        return {
            "vlans": vlans,
            "gateways": [ping("lan-a", "10.63.0.1"), ping("lan-a", "fd63::1", "-6")],
            "other_vlan": other,
        }

    def vrf(self) -> Any:
        """The interface is in the VRF, and the network is reached by it only."""
        table = link("lan-b", "blue")["info_data"]["table"]
        return {
            "master": link("lan-b", "eth0")["master"],
            "routes": [route["dst"] for route in ip("lan-b", "route", "show", "table", str(table), "type", "unicast")],
            "in_main": [route["dst"] for route in ip("lan-b", "route", "show")],
            "reached": [ping("lan-b", "10.64.0.1", "-I", "blue"), ping("lan-b", "10.64.0.1", seconds=2)],
        }

    def ptp(self) -> Any:
        """The machine has a route of its own to the container, and masquerades it."""
        client = self.address("client")
        return {
            "route": [route["dev"] == host_end("client", "eth0") for route in ip("", "route", "show", client)],
            "masqueraded": ping("client", "10.74.0.2"),
        }

    def firewall(self) -> Any:
        """Where the machine forwards nothing, it forwards for who has the plugin."""
        server = self.address("server")
        run("iptables", "--policy", "FORWARD", "DROP")
        strict = [ping("client", server), ping("lan-a", server, seconds=2)]
        run("iptables", "--policy", "FORWARD", "ACCEPT")
        return {"drop": strict, "accept": ping("lan-a", server)}

    def portmap(self) -> Any:
        """A port of the machine leads to the container, from outside, from another container and from the machine."""
        with listen("server", 80) as server:
            return {
                "outside": reached(server, "outside", "10.74.0.1", 8080),
                "container": reached(server, "client", "10.74.0.1", 8080),
                "machine": reached(server, "", "127.0.0.1", 8080),
            }

    def bandwidth(self) -> Any:
        """Bytes a second, by what is allowed: to the container and from it."""
        rates = {}
        with listen("server", 5001) as server, connect("", self.address("server"), 5001) as client:
            inner, _dummy = server.accept()
            with inner:
                inner.settimeout(SECONDS)
                for way, sender, receiver in (("ingress", client, inner), ("egress", inner, client)):
                    burst = self.limits[f"{way}Burst"] // 8
                    allowed = self.limits[f"{way}Rate"] / 8
                    rates[way] = rate(sender, receiver, 4 * burst + int(allowed), 2 * burst) / allowed
        return rates

    def tuning(self) -> Any:
        """Settings in the container."""
        interface = link("server", "eth0")
        return {
            "mtu": interface["mtu"],
            "allmulti": "ALLMULTI" in interface["flags"],
            "somaxconn": run("ip", "netns", "exec", "server", "cat", "/proc/sys/net/core/somaxconn").strip(),
        }

    def macvlan(self) -> Any:
        """An interface of its own on the cable."""
        interface = link("macvlan", "eth0")
        return {
            "kind": [interface["info_kind"], interface["info_data"]["mode"]],
            "own_mac": interface["address"] != link("", "up0")["address"],
            "reached": ping("macvlan", "10.70.0.1"),
        }

    def dhcp(self) -> Any:
        """The address is from the server outside; the daemon is that of the plugin in use."""
        leases = read("/run/outside.leases").splitlines()
        daemon = run("systemctl", "show", "cni-dhcp.service", "--property=MainPID", "--value").strip()
        return {
            "leased": [lease.split()[2] for lease in leases] == [self.address("macvlan")],
            "daemon": os.readlink(f"/proc/{daemon}/exe"),
        }

    def ipvlan(self) -> Any:
        """An interface with the MAC of the machine's."""
        interface = link("ipvlan", "eth0")
        return {
            "kind": [interface["info_kind"], interface["info_data"]["mode"]],
            "own_mac": interface["address"] != link("", "up1")["address"],
            "reached": ping("ipvlan", "10.71.0.1"),
        }

    def vlan(self) -> Any:
        """Frames go out with the tag; the other end takes no others."""
        interface = link("vlan", "eth0")
        return {
            "kind": [interface["info_kind"], interface["info_data"]["id"]],
            "reached": ping("vlan", "10.73.0.1"),
        }

    def host_device(self) -> Any:
        """The machine's interface is the container's now."""
        return {
            "on_machine": [found["ifname"] for found in ip("", "link", "show") if found["ifname"] == "spare0"],
            "reached": ping("client", "10.72.0.1", "-I", "eth1"),
        }

    def sbr(self) -> Any:
        """What has the second interface's address goes by it, the rest by the first one."""
        return {
            "by": [
                ip("client", "route", "get", "10.99.0.1", "from", self.address("client", ifname))[0]["dev"]
                for ifname in ("eth0", "eth1")
            ],
            "reached": ping("client", "10.99.0.1", "-I", self.address("client", "eth1")),
        }

    def loopback(self) -> Any:
        """It is up."""
        return {"up": "UP" in link("client", "lo")["flags"], "reached": ping("client", "127.0.0.1")}

    def host_local(self) -> Any:
        """Each address is a file."""
        stores = {"server": "edge", "client": "point", "lan-a": "lan10", "lan-b": "lan20", "vlan": "vlan"}
        return [
            os.path.exists(f"/var/lib/cni/networks/{network}/{address}")
            for container, network in stores.items()
            for address in self.addresses[container, "eth0"]
        ]

    def static(self) -> Any:
        """The addresses are those of the configuration."""
        return [self.address("ipvlan"), self.address("client", "eth1")]


class NewerMachine(Machine):
    """What only newer plugins do."""

    def portmap_nftables(self) -> Any:
        """As with iptables, and there is no rule of iptables."""
        with listen("nft", 80) as server:
            seen = {
                "outside": reached(server, "outside", "10.74.0.1", 8081),
                "container": reached(server, "client", "10.74.0.1", 8081),
                "machine": reached(server, "", "127.0.0.1", 8081),
            }
        return {**seen, "in_iptables": "--dport 8081" in run("iptables-save")}

    def dummy(self) -> Any:
        """An interface that takes everything."""
        before = link("virtual", "dummy0")
        with inside("virtual"):
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with sender:
            sender.sendto(b"", ("10.67.0.9", 9))
        sent = link("virtual", "dummy0")["stats64"]["tx"]["packets"] - before["stats64"]["tx"]["packets"]
        return {"kind": before["info_kind"], "address": self.address("virtual", "dummy0"), "sent": sent > 0}

    def tap(self) -> Any:
        """Frames come out at its other end, which is a program's."""
        return {
            "kind": [link("virtual", "tap0")["info_kind"], link("virtual", "tap0")["info_data"]["type"]],
            "arp": arp_request("virtual", "tap0", "10.68.0.9"),
        }


def look(method: Callable[[], Any]) -> Any:
    """Return what a method sees, or why it sees nothing."""
    try:
        return method()
    except (OSError, RuntimeError, LookupError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def main() -> None:
    """Look at everything."""
    attachments, limits = (json.loads(argument) for argument in sys.argv[1:3])
    newer = any(entry["network"] == "nft" for entry in attachments)
    machine = NewerMachine(attachments, limits) if newer else Machine(attachments, limits)
    names = [name for name in dir(machine) if not name.startswith("_") and callable(getattr(machine, name))]
    print(json.dumps({name: look(getattr(machine, name)) for name in names if name != "address"}))


main()
