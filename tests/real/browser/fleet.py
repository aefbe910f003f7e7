# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Records of a fleet that does not exist, the same for the same size: for screenshots, tests and the bench."""

from __future__ import annotations

import hashlib
import random
from typing import Any

from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build

PLUGINS = ("bandwidth", "bridge", "firewall", "host-local", "loopback", "portmap", "ptp", "tuning")
SITES = ("ams", "fra", "osl", "waw")
ROLES = (("web", 5), ("edge", 2), ("batch", 3), ("db", 1))
SERVICES = ("api", "cart", "checkout", "gateway", "ledger", "mail", "metrics", "search", "session", "worker")
RUNTIMES = (("containerd-1.7", "1.7.24"), ("containerd-2.1", "2.1.9"), ("crio", "1.31.3"), ("podman", "4.9.3"))


def fleet(size: int) -> list[dict[str, Any]]:
    """Return the records of *size* hosts."""
    dice = random.Random(size)
    return [_host(dice, number) for number in range(size)]


def _host(dice: random.Random, number: int) -> dict[str, Any]:
    role = dice.choices([name for name, _weight in ROLES], [weight for _name, weight in ROLES])[0]
    site = dice.choice(SITES)
    name = "%s-%02d.%s.example.net" % (role, number + 1, site)
    groups = [role, site]
    time = "2026-11-21T06:%02d:%02dZ" % (number // 60 % 60, number % 60)
    kind = dice.choices(
        ["drift", "clean", "lost", "foreign", "unreachable", "refused"],
        [7, 82, 3, 3, 2, 1] if number else [1, 0, 0, 0, 0, 0],
    )[0]
    if kind == "unreachable":
        message = "Failed to connect to the host via ssh: ssh: connect to host %s port 22: Connection timed out" % name
        return build(name, {}, {"unreachable": True, "msg": message}, time=time, groups=groups)
    host = _Host(dice, role)
    results: dict[str, Any] = {key: {"actions": [], "diff": []} for key in ("plugins", "networks", "attachments")}
    results["networks"].update(confirmed=True if dice.random() < 0.9 else None, problems=[])
    if dice.random() < 0.06 or not number:
        results["networks"]["problems"].append(_vulnerable(dice))
    event = number % 25 if kind == "clean" and number % 5 else 0
    if event in (11, 12, 13):
        host.upgrade(results)
    elif event == 17:
        host.flush(results)
    if kind == "drift":
        host.drift(results)
    elif kind == "lost":
        host.lose(results)
    elif kind == "foreign":
        results["networks"]["confirmed"] = False
        reason = "a running program has added istio-cni"
        _step(results["networks"], "leave", "/etc/cni/net.d/10-podnet.conflist", "foreign", reason)
    elif kind == "refused":
        results["networks"] = {
            "failed": True,
            "msg": "/etc/cni/net.d/87-podman-bridge.conflist: this unmanaged file already has a network named "
            "'podnet', and runtimes load the one that sorts first; adopt it with 'file: 87-podman-bridge.conflist' "
            "(its original is kept), or choose another name",
        }
    info = host.info(results["networks"].get("confirmed"))
    if event in (6, 7):
        host.join_lan(info, number)
    elif event == 19:
        host.use_netavark(results, info)
    return build(name, results, info, time=time, groups=groups)


def _step(
    result: dict[str, Any], kind: str, target: str, step_class: str, reason: str, before: Any = None, after: Any = None
) -> None:
    result["actions"].append({"kind": kind, "target": target, "class": step_class, "reason": reason})
    if before != after:
        result["diff"].append({"step": len(result["actions"]) - 1, "before": before, "after": after})


def _digest(dice: random.Random) -> str:
    return hashlib.sha256(dice.randbytes(8)).hexdigest()


def _vulnerable(dice: random.Random) -> dict[str, Any]:
    message = (
        "/opt/cni/bin/portmap is release 1.6.2, which has CVE-2025-67499 (GHSA-jv3w-x3r3-g6rm) with the backend "
        "nftables: it also redirects traffic to mapped ports that is not for this host; install 1.9.0 or later"
    )
    return {
        "level": dice.choice(["warning", "warning", "info"]),
        "code": "known_vulnerability",
        "file": "/etc/cni/net.d/10-podnet.conflist",
        "pointer": "/plugins/1",
        "line": None,
        "column": None,
        "message": message,
        "vulnerability": "CVE-2025-67499 (GHSA-jv3w-x3r3-g6rm)",
    }


def _readiness(runtime: str, ready: bool | None) -> dict[str, Any]:
    waiting = {"state": "not_ready", "message": "istio-cni (code 50): its agent has not started"}
    obstacle = {
        "level": "error",
        "code": "plugin_not_ready",
        "message": "plugin istio-cni is not ready: its agent has not started",
        "remedy": "start the DaemonSet istio-cni-node on this host",
        "evidence": "STATUS of istio-cni: code 50",
    }
    row = {
        "runtime": runtime,
        "network": "podnet",
        "ready": ready,
        "status": [waiting] if ready is False else [],
        "unknown": "the runtime does not answer" if ready is None else "",
    }
    return {"ready": ready, "runtimes": [row], "obstacles": [obstacle] if ready is False else []}


class _Host:
    def __init__(self, dice: random.Random, role: str) -> None:
        self.dice = dice
        self.subnet = dice.randrange(16, 250)
        self.count = {"web": 9, "edge": 4, "batch": 60, "db": 2}[role] + dice.randrange(4)
        self.attachments = [self._attachment(index) for index in range(self.count)]
        self.leaks = dice.randrange(1, 6) if dice.random() < 0.05 or (role == "edge" and dice.random() < 0.3) else 0

    def _attachment(self, index: int) -> dict[str, Any]:
        name = "%s-%d" % (self.dice.choice(SERVICES), index + 1)
        ports = [{"hostPort": 8080 + index, "containerPort": self.dice.choice([80, 443, 9090]), "protocol": "tcp"}]
        ip = "10.%d.0.%d/24" % (self.subnet, index + 2)
        return {
            "network": "podnet",
            "container_id": name,
            "ifname": "eth0",
            "netns": "/run/netns/" + name,
            "netns_state": "same",
            "interface": True,
            "ips": [ip],
            "capability_args": {"portMappings": ports if self.dice.random() < 0.4 else []},
            "result": {"cniVersion": "1.0.0", "ips": [{"address": ip, "gateway": "10.%d.0.1" % self.subnet}]},
        }

    def config(self, **bridge: Any) -> dict[str, Any]:
        ranges = [[{"subnet": "10.%d.0.0/24" % self.subnet}]]
        first = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": True, "mtu": 1450, **bridge}
        first["ipam"] = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
        portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
        return {"cniVersion": "1.0.0", "name": "podnet", "plugins": [first, portmap, {"type": "firewall"}]}

    def drift(self, results: dict[str, Any]) -> None:
        """Let files differ from what they are to be."""
        path = "/etc/cni/net.d/10-podnet.conflist"
        before, after = ({"plugins": [{"type": "bridge", "mtu": mtu}, "...", "..."]} for mtu in (1500, 1450))
        _step(results["networks"], "write", path, "safe", "bridge: mtu 1500, want 1450", before, after)
        if self.dice.random() < 0.6:
            before = {"sha256": _digest(self.dice), "cni_versions": "0.4.0 1.0.0"}
            after = {"sha256": _digest(self.dice), "cni_versions": "0.4.0 1.0.0 1.1.0"}
            reason = "sha256 differs from 1.9.1"
            _step(results["plugins"], "replace", "/opt/cni/bin/bridge", "safe", reason, before, after)

    def upgrade(self, results: dict[str, Any]) -> None:
        """Let all plugins be those of another release than the inventory says."""
        for name in PLUGINS:
            path = "/opt/cni/bin/" + name
            before, after = {"release": "1.9.1"}, {"release": "1.6.2"}
            reason = "upgraded to 1.9.1 by upgrade; the inventory says 1.6.2"
            _step(results["plugins"], "replace", path, "disruptive", reason, before, after)

    def flush(self, results: dict[str, Any]) -> None:
        """Let a firewall have been flushed, and a container have lost its address."""
        reason = "the rules of its port mappings and its masquerading are gone"
        _step(
            results["attachments"],
            "repair",
            "shared firewall rules and forwarding",
            "safe",
            "the chain CNI-FORWARD is gone",
        )
        for attachment in self.attachments:
            key = "podnet/%s/eth0" % attachment["container_id"]
            _step(results["attachments"], "repair", key, "safe", reason)
        before, after = {"addresses": []}, {"addresses": attachment["ips"]}
        _step(results["attachments"], "repair", key, "safe", "eth0 has lost %s" % after["addresses"][0], before, after)

    def join_lan(self, info: dict[str, Any], number: int) -> None:
        """Add a network on a LAN that another host has, too, with the same range."""
        ipam = {"type": "host-local", "subnet": "192.0.2.0/24", "rangeStart": "192.0.2.170", "rangeEnd": "192.0.2.190"}
        lan = {"name": "lan", "plugins": [{"type": "macvlan", "master": "eth1", "ipam": ipam}]}
        path = "/etc/cni/net.d/20-lan.conflist"
        info["conf"].append({"path": path, "network": "lan", "plugins": ["macvlan"], "managed": True, "config": lan})
        info["kernel"]["links"].append({"name": "eth1", "addresses": ["192.0.2.%d/24" % (number % 150 + 10)]})
        owners = [{"container_id": "nvr-%d" % number, "ips": ["192.0.2.171"]}]
        pool = {"network": "lan", "ranges": ["192.0.2.170-192.0.2.190"], "size": 21, "used": 1, "free": 20}
        info["pools"].append({**pool, "outside": 0, "owners": owners})

    def use_netavark(self, results: dict[str, Any], info: dict[str, Any]) -> None:
        """Let the only runtime be a podman without CNI."""
        why = "it uses netavark, not CNI, as all releases since 5 do"
        results["networks"]["confirmed"] = None
        info["runtime"] = [{"runtime": "podman", "version": "5.4.2", "network": None, "file": "", "reason": why}]
        unused = {"level": "info", "code": "not_cni", "runtime": "podman", "evidence": why}
        unused.update(message="podman uses no CNI network", remedy="none, if that is intended")
        info["readiness"] = {"ready": None, "runtimes": [], "obstacles": [unused]}

    def lose(self, results: dict[str, Any]) -> None:
        """Let an interface be gone."""
        lost = self.attachments[0]
        lost["interface"] = False
        key = "podnet/%s/eth0" % lost["container_id"]
        results["attachments"]["attachments"] = [{**lost, "action": "repaired", "reason": "interface"}]
        before, after = {"is": "eth0 is gone", "ips": lost["ips"]}, {"is": "attached", "ips": "known after the ADD"}
        _step(results["attachments"], "repair", key, "disruptive", "eth0 is gone", before, after)

    def info(self, ready: bool | None) -> dict[str, Any]:
        """Return what cni_info would say of a host that is ready, is not, or does not tell."""
        runtime, version = self.dice.choice(RUNTIMES)
        file = "/etc/cni/net.d/10-podnet.conflist"
        plugins = [
            {"name": name, "path": "/opt/cni/bin/" + name, "managed": True, "sha256": _digest(self.dice)}
            for name in PLUGINS
        ]
        used = self.count + self.leaks
        size = 253 if self.count < 50 else 72
        return {
            "conf": [
                {
                    "path": file,
                    "network": "podnet",
                    "plugins": ["bridge", "host-local", "portmap", "firewall"],
                    "managed": True,
                    "edited": False,
                    "config": self.config(),
                },
                {
                    "path": "/etc/cni/net.d/87-podman-bridge.conflist",
                    "network": "podman",
                    "plugins": ["bridge", "host-local", "portmap", "firewall", "tuning"],
                    "managed": False,
                    "config": {"name": "podman", "plugins": [{"type": "bridge", "bridge": "cni-podman0"}]},
                },
            ],
            "aside": [],
            "plugins": plugins,
            "attachments": sorted(self.attachments, key=lambda row: str(row["container_id"])),
            "leases": [],
            "pools": [
                {
                    "network": "podnet",
                    "ranges": ["10.%d.0.1-10.%d.0.%d" % (self.subnet, self.subnet, size + 1)],
                    "size": size,
                    "used": used,
                    "free": size - used,
                    "outside": 0,
                    "owners": [],
                }
            ],
            "garbage": [self._garbage(index) for index in range(self.leaks)],
            "kernel": {
                "links": [{"name": "cni0", "kind": "bridge", "addresses": ["10.%d.0.1/24" % self.subnet]}],
                "routes": [],
                "attachments": [],
            },
            "runtime": [
                {
                    "runtime": runtime,
                    "version": version,
                    "found": "a running " + runtime.split("-")[0],
                    "network": "podnet",
                    "file": file,
                    "reason": "10-podnet.conflist is the first file",
                    "not_chosen": [
                        {
                            "file": "/etc/cni/net.d/87-podman-bridge.conflist",
                            "network": "podman",
                            "reason": "10-podnet.conflist sorts before it",
                        }
                    ],
                }
            ],
            "readiness": _readiness(runtime, ready),
            "problems": [],
        }

    def _garbage(self, index: int) -> dict[str, Any]:
        ip = "10.%d.0.%d" % (self.subnet, 200 + index)
        name = "old-%d" % index
        return {
            "kind": "lease",
            "network": "podnet",
            "id": ip,
            "container_id": name,
            "ifname": "eth0",
            "evidence": [
                "/var/lib/cni/networks/podnet/%s reserves it for container %s, interface eth0" % (ip, name),
                "no source names container %s; asked: cache (%d)" % (name, self.count),
            ],
            "collectable": index != 3,
            "reason": "owner_dead" if index != 3 else "address_live",
        }
