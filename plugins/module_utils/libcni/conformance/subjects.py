# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""What a plugin is given: its kind, a configuration for each attachment, and the containers to attach.

The 18 reference plugins have configurations here. Other plugins come with one, and their kind is found by trying.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import shutil
import sys
import typing as t

from .. import gojson, types
from ..conf import conf_files
from ..errors import ConfigError, JSONError
from ..files import read_file
from . import delegate, dhcp, sandbox

Conf = t.Dict[str, t.Any]

INTERFACE, CHAINED, IPAM = "interface", "chained", "ipam"
KINDS = (INTERFACE, CHAINED, IPAM)
NETWORK = "conformance"
IPAM_TYPE = "podwire-conformance-ipam"
UPLINK = "uplink0"
_LARGEST_CONF = 1024 * 1024
_IPAM: Conf = {"type": IPAM_TYPE}
_KBIT = 1000


class NotRun(Exception):
    """These checks cannot run; the text says why."""


def _masquerade(conf: Conf) -> Conf:
    return {**conf, "ipMasq": True} if shutil.which("iptables") else conf


def _bridge(_number: int) -> Conf:
    return _masquerade({"bridge": "cnfbr0", "isGateway": True, "hairpinMode": True, "ipam": _IPAM})


def _ptp(_number: int) -> Conf:
    return _masquerade({"ipam": _IPAM})


def _on_uplink(_number: int) -> Conf:
    return {"master": UPLINK, "ipam": _IPAM}


def _vlan(number: int) -> Conf:
    # Two interfaces with one VLAN ID cannot exist on one master.
    return {"master": UPLINK, "vlanId": 2 + number % 4000, "ipam": _IPAM}


def _host_device(number: int) -> Conf:
    name = f"dev{number}"
    if not os.path.exists(f"/sys/class/net/{name}"):
        sandbox.command("ip", "link", "add", name, "type", "veth", "peer", "name", f"far{number}")
    return {"device": name, "ipam": _IPAM}


def _with_ipam(_number: int) -> Conf:
    return {"ipam": _IPAM}


def _plain(_number: int) -> Conf:
    return {}


def _host_local(_number: int) -> Conf:
    routes = [{"dst": "0.0.0.0/0"}]
    return {"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/16"}]], "routes": routes}}


def _static(number: int) -> Conf:
    address = f"10.77.{1 + number // 250}.{1 + number % 250}/16"
    return {"ipam": {"type": "static", "addresses": [{"address": address, "gateway": "10.77.0.1"}]}}


def _dhcp(_number: int) -> Conf:
    return {"ipam": {"type": "dhcp"}}


def _portmap(number: int) -> Conf:
    mapping = {"hostPort": 20000 + number, "containerPort": 80, "protocol": "tcp"}
    return {"capabilities": {"portMappings": True}, "runtimeConfig": {"portMappings": [mapping]}}


def _bandwidth(_number: int) -> Conf:
    rate, burst = 1000 * _KBIT, 1000 * _KBIT
    return {"ingressRate": rate, "ingressBurst": burst, "egressRate": rate, "egressBurst": burst}


def _firewall(_number: int) -> Conf:
    return {"backend": "iptables"}


def _tuning(_number: int) -> Conf:
    return {"sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"}, "mtu": 1400, "txQLen": 500}


def _vrf(_number: int) -> Conf:
    return {"vrfname": "vrf0"}


# type -> kind, configuration, what the kernel must be able to make.
_REFERENCE: t.Dict[str, t.Tuple[str, t.Callable[[int], Conf], str]] = {
    "bridge": (INTERFACE, _bridge, "bridge"),
    "ptp": (INTERFACE, _ptp, "veth"),
    "macvlan": (INTERFACE, _on_uplink, "macvlan"),
    "ipvlan": (INTERFACE, _on_uplink, "ipvlan"),
    "vlan": (INTERFACE, _vlan, "vlan"),
    "host-device": (INTERFACE, _host_device, "veth"),
    "loopback": (INTERFACE, _plain, ""),
    "dummy": (INTERFACE, _with_ipam, "dummy"),
    "tap": (INTERFACE, _with_ipam, "tap"),
    "host-local": (IPAM, _host_local, ""),
    "static": (IPAM, _static, ""),
    "dhcp": (IPAM, _dhcp, "veth"),
    "portmap": (CHAINED, _portmap, "veth"),
    "bandwidth": (CHAINED, _bandwidth, "ifb"),
    "firewall": (CHAINED, _firewall, "veth"),
    "tuning": (CHAINED, _tuning, "veth"),
    "sbr": (CHAINED, _plain, "veth"),
    "vrf": (CHAINED, _vrf, "vrf"),
}


def read_conf(path: str, plugin: str) -> Conf:
    """Return the configuration of *plugin* in a file: that of one plugin, or a conflist that has it.

    Raises `ConfigError`.
    """
    try:
        found = gojson.as_object(gojson.loads(read_file(path, _LARGEST_CONF)), "")
    except JSONError as error:
        raise ConfigError(f"{path}: {error}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    entries = found["plugins"] if isinstance(found.get("plugins"), list) else [found]
    for entry in entries:
        ipam = entry.get("ipam") if isinstance(entry, dict) else None
        if isinstance(entry, dict) and plugin in (
            entry.get("type"),
            ipam.get("type") if isinstance(ipam, dict) else "",
        ):
            return dict(entry)
    raise ConfigError(
        f"{path}: no plugin of the type {plugin}; the type must be the name of the file given by --plugin"
    )


def find_conf(folder: str, plugin: str) -> t.Optional[Conf]:
    """Return the configuration of *plugin* in the first network of a directory that has it, None for a known plugin.

    Files that cannot be read are left out. Raises `ConfigError` if the directory cannot be.
    """
    if plugin in _REFERENCE:
        return None
    for path in conf_files(folder, (".conflist", ".conf", ".json")):
        with contextlib.suppress(ConfigError):
            return read_conf(path, plugin)
    return None


class Subject:
    """The plugin under test. `kind` is "" until `recognise` of the judge finds it; `helpers` are processes it needs."""

    def __init__(self, path: str, conf: t.Optional[Conf], kind: str, cni_path: t.Sequence[str]) -> None:
        self.path = path
        self.name = os.path.basename(path)
        known = _REFERENCE.get(self.name)
        if conf is None and known is None:
            raise ConfigError(
                f"{self.name} is none of the reference plugins; give its configuration with --config FILE or with "
                "--conf-dir DIRECTORY"
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
        return {"type": self.name, **copy.deepcopy(self._known[1](number))}

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
    # Not read from the module's __file__: it may be inside of an archive.
    source = delegate.__loader__.get_source(delegate.__name__)  # type: ignore[union-attr]
    path = f"{sandbox.HOME}/bin/{IPAM_TYPE}"
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(f"#!{sys.executable} -IS\n{source}")
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
