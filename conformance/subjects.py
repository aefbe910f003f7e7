# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""What a plugin is given: its kind, a configuration for each attachment, and the containers to attach.

The 18 reference plugins have configurations here. Other plugins come with one, and their kind is found by trying.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import sys
import typing as t

from libcni import gojson, types
from libcni.errors import ConfigError, JSONError
from libcni.files import read_file

from . import delegate, dhcp, sandbox

Conf = t.Dict[str, t.Any]

INTERFACE, CHAINED, IPAM = "interface", "chained", "ipam"
KINDS = (INTERFACE, CHAINED, IPAM)
NETWORK = "conformance"
IPAM_TYPE = "podwire-conformance-ipam"
UPLINK = "uplink0"
_LARGEST_CONF = 1024 * 1024
_IPAM: Conf = {"type": IPAM_TYPE}


class NotRun(Exception):
    """These checks cannot run; the text says why."""


def _vlan(number: int) -> Conf:
    # Two interfaces with one VLAN ID cannot exist on one master.
    return {"master": UPLINK, "vlanId": 2 + number % 4000, "ipam": _IPAM}


def _host_device(number: int) -> Conf:
    name = f"dev{number}"
    if not os.path.exists(f"/sys/class/net/{name}"):
        sandbox.command("ip", "link", "add", name, "type", "veth", "peer", "name", f"far{number}")
    return {"device": name, "ipam": _IPAM}


def _static(number: int) -> Conf:
    address = f"10.77.{1 + number // 250}.{1 + number % 250}/16"
    return {"ipam": {"type": "static", "addresses": [{"address": address, "gateway": "10.77.0.1"}]}}


def _portmap(number: int) -> Conf:
    mapping = {"hostPort": 20000 + number, "containerPort": 80, "protocol": "tcp"}
    return {"capabilities": {"portMappings": True}, "runtimeConfig": {"portMappings": [mapping]}}


_ON_UPLINK: Conf = {"master": UPLINK, "ipam": _IPAM}
_MASQUERADE: Conf = {"ipMasq": bool(shutil.which("iptables", path=sandbox.SOFTWARE))}
_BRIDGE: Conf = {"bridge": "cnfbr0", "isGateway": True, "hairpinMode": True, "ipam": _IPAM, **_MASQUERADE}
_HOST_LOCAL: Conf = {"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}
_BANDWIDTH: Conf = dict.fromkeys(("ingressRate", "ingressBurst", "egressRate", "egressBurst"), 1_000_000)
_TUNING: Conf = {"sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"}, "mtu": 1400, "txQLen": 500}

# type -> kind, configuration (of the attachment of a number, where they differ), what the kernel must be able to make.
_REFERENCE: t.Dict[str, t.Tuple[str, t.Union[Conf, t.Callable[[int], Conf]], str]] = {
    "bridge": (INTERFACE, _BRIDGE, "bridge"),
    "ptp": (INTERFACE, {"ipam": _IPAM, **_MASQUERADE}, "veth"),
    "macvlan": (INTERFACE, _ON_UPLINK, "macvlan"),
    "ipvlan": (INTERFACE, _ON_UPLINK, "ipvlan"),
    "vlan": (INTERFACE, _vlan, "vlan"),
    "host-device": (INTERFACE, _host_device, "veth"),
    "loopback": (INTERFACE, {}, ""),
    "dummy": (INTERFACE, {"ipam": _IPAM}, "dummy"),
    "tap": (INTERFACE, {"ipam": _IPAM}, "tap"),
    "host-local": (IPAM, {"ipam": _HOST_LOCAL}, ""),
    "static": (IPAM, _static, ""),
    "dhcp": (IPAM, {"ipam": {"type": "dhcp"}}, "veth"),
    "portmap": (CHAINED, _portmap, "veth"),
    "bandwidth": (CHAINED, _BANDWIDTH, "ifb"),
    "firewall": (CHAINED, {"backend": "iptables"}, "veth"),
    "tuning": (CHAINED, _TUNING, "veth"),
    "sbr": (CHAINED, {}, "veth"),
    "vrf": (CHAINED, {"vrfname": "vrf0"}, "vrf"),
}


def read_conf(path: str, plugin: str) -> Conf:
    """Return the configuration of *plugin* in a file: that of one plugin, or a conflist that has it.

    Raises `ConfigError`.
    """
    try:
        conf = gojson.as_object(gojson.loads(read_file(path, _LARGEST_CONF)), "")
    except JSONError as error:
        raise ConfigError(f"{path}: {error}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    entries = conf["plugins"] if isinstance(conf.get("plugins"), list) else [conf]
    for entry in entries:
        ipam = entry.get("ipam") if isinstance(entry, dict) else None
        if isinstance(entry, dict) and plugin in (
            entry.get("type"),
            ipam.get("type") if isinstance(ipam, dict) else "",
        ):
            return dict(entry)
    raise ConfigError(f"{path}: no plugin of the type {plugin}; the type must be the name of the plugin's file")


class Subject:
    """The plugin under test. `kind` is "" until `recognise` of the judge finds it; `helpers` are processes it needs."""

    def __init__(self, path: str, conf: t.Optional[Conf], kind: str, cni_path: t.Sequence[str]) -> None:
        self.path = path
        self.name = os.path.basename(path)
        known = _REFERENCE.get(self.name)
        if conf is None and known is None:
            raise ConfigError(
                f"{self.name} is none of the reference plugins; give its configuration with --config FILE"
            )
        self.kind = kind or (known[0] if known else "")
        self._given = conf
        self._known = known
        self.helpers: t.Set[int] = set()
        self.cni_path = ":".join((f"{sandbox.HOME}/bin", os.path.dirname(path), *cni_path))

    @property
    def if_name(self) -> str:
        return "lo" if self.name == "loopback" else "eth0"

    @property
    def makes_interface(self) -> bool:
        """Whether ADD makes an interface: loopback is an interface plugin that finds one."""
        return self.kind == INTERFACE and self.name != "loopback"

    @property
    def asks_on_the_link(self) -> bool:
        """Whether it is an IPAM plugin that needs the interface that an earlier plugin has made."""
        return self.name == "dhcp"

    def prepare(self) -> None:
        """Start what the plugin needs. Raises `SandboxError`."""
        if self.asks_on_the_link:
            self.helpers.add(dhcp.start(self.path))

    def conf(self, number: int) -> Conf:
        """Return the keys of the plugin itself for the attachment *number*. Raises `SandboxError`."""
        if self._given is not None:
            return copy.deepcopy(self._given)
        if self._known is None:
            raise sandbox.SandboxError(f"no configuration of the plugin {self.name} is known; give one with --config")
        conf = self._known[1]
        return {"type": self.name, **copy.deepcopy(conf(number) if callable(conf) else conf)}

    def release(self, number: int) -> None:
        """Remove what `conf` made for that attachment. Raises `SandboxError`."""
        if os.path.exists(f"/sys/class/net/far{number}"):
            sandbox.command("ip", "link", "delete", f"far{number}")

    def missing(self) -> str:
        """Return what this machine lacks to run a reference plugin, "" if it lacks nothing."""
        if self._known is None:
            return ""
        link = self._known[2]
        return f"a kernel that can make interfaces of the kind {link}" if link and not _can_make(link) else ""


def _can_make(kind: str) -> bool:
    name = "cnfprobe"
    if kind == "tap":
        return os.path.exists("/dev/net/tun")
    words = {"vlan": ("link", UPLINK, "name", name), "macvlan": ("link", UPLINK, "name", name)}
    words["ipvlan"] = words["vlan"]
    extra = {"vlan": ("id", "4094"), "vrf": ("table", "99")}.get(kind, ())
    try:
        sandbox.command("ip", "link", "add", *words.get(kind, ("name", name)), "type", kind, *extra)
        sandbox.command("ip", "link", "delete", name)
    except sandbox.SandboxError:
        return False
    return True


def prepare_host() -> None:
    """Give the sandbox an uplink, and the IPAM plugin that generated configurations use."""
    sandbox.command("ip", "link", "add", UPLINK, "type", "veth", "peer", "name", "uplink1")
    for name in (UPLINK, "uplink1"):
        sandbox.command("ip", "link", "set", name, "up")
    path = f"{sandbox.HOME}/bin/{IPAM_TYPE}"
    with open(delegate.__file__, encoding="utf-8") as source, open(path, "w", encoding="utf-8") as program:
        program.write(f"#!{sys.executable} -IS\n{source.read()}")
    os.chmod(path, 0o755)


class Container:
    """A container's namespace; for chained plugins with the interface that an earlier plugin would have made."""

    def __init__(self, subject: Subject, number: int) -> None:
        self._subject = subject
        self.id = f"conformance-{number}"
        self.netns = sandbox.make_netns(self.id)
        self._number = number
        self._base = self._make_interface(subject.if_name) if subject.kind == CHAINED else None
        if subject.asks_on_the_link:
            host = self._make_pair(subject.if_name)
            sandbox.command("ip", "link", "set", host, "master", dhcp.BRIDGE)
            sandbox.inside(self.netns, lambda: sandbox.command("ip", "link", "set", subject.if_name, "up"))

    def _make_pair(self, name: str) -> str:
        """Make a veth pair with the end *name* in the namespace, and return the name of the other end."""
        host, inner = f"cnfh{self._number}", f"cnfc{self._number}"
        sandbox.command("ip", "link", "add", host, "type", "veth", "peer", "name", inner)
        sandbox.command("ip", "link", "set", inner, "netns", self.id, "name", name)
        sandbox.command("ip", "link", "set", host, "up")
        return host

    def _make_interface(self, name: str) -> Conf:
        host, address = self._make_pair(name), f"10.76.{1 + self._number // 250}.{1 + self._number % 250}"
        sandbox.command("ip", "route", "add", f"{address}/32", "dev", host)

        def inside() -> str:
            for words in (
                ("address", "add", f"{address}/16", "dev", name),
                ("link", "set", name, "up"),
                ("route", "add", "default", "via", "10.76.0.1", "dev", name),
            ):
                sandbox.command("ip", *words)
            return mac_of(name)

        mac = sandbox.inside(self.netns, inside)
        interfaces = [{"name": host, "mac": mac_of(host)}, {"name": name, "mac": mac, "sandbox": self.netns}]
        return {
            "cniVersion": "1.0.0",
            "interfaces": interfaces,
            "ips": [{"address": f"{address}/16", "gateway": "10.76.0.1", "interface": 1}],
            "routes": [{"dst": "0.0.0.0/0", "gw": "10.76.0.1"}],
        }

    def previous(self, version: str) -> t.Optional[Conf]:
        """Return the result of the plugins before a chained one in that version, None for other kinds."""
        if self._base is None:
            return None
        result = types.create("1.0.0", gojson.dumps(self._base)).as_version(version)
        return t.cast("Conf", json.loads(result.to_json()))

    def close(self) -> None:
        """Remove the namespace and the interfaces in it; it may be gone already."""
        if os.path.ismount(self.netns):
            # The kernel would remove them, and their other ends, only some time later.
            sandbox.inside(self.netns, _remove_links)
        sandbox.remove_netns(self.netns)
        self._subject.release(self._number)


def _remove_links() -> None:
    for link in json.loads(sandbox.command("ip", "-j", "link", "show") or "[]"):
        if link.get("ifname") not in (None, "lo"):
            sandbox.command("ip", "link", "delete", link["ifname"], check=False)


def mac_of(name: str) -> str:
    """Return the MAC of an interface of this thread's namespace. Raises `SandboxError`."""
    answer = json.loads(sandbox.command("ip", "-j", "link", "show", "dev", name))
    return str(answer[0].get("address", ""))
