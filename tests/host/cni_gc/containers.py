# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Many containers on four networks, the deaths of half of them, and a look at what is left."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.tools import sample

NETWORKS = ("pwgone", "pwgtwo", "pwgthree", "pwgfour")
WAYS = ("netns", "lease", "truncated", "veth", "chain", "interrupted", "binary", "reboot")

NAMES = [f"pwg{index:03}" for index in range(sample.number("CONTAINERS", 200, 64))]
NETWORK = {name: NETWORKS[index % 4] for index, name in enumerate(NAMES)}
PORT = {name: 20000 + index for index, name in enumerate(NAMES)}
DEAD = [name for index, name in enumerate(NAMES) if index // 4 % 2 == 0]
LIVE = [name for name in NAMES if name not in DEAD]
# Who dies how.
DEATHS = {
    way: [name for index, name in enumerate(NAMES) if name in DEAD and WAYS[index // 8 % 8] == way] for way in WAYS
}


def attachment(name: str) -> dict:
    return {"network": NETWORK[name], "container_id": name}


def attachment_with_port(name: str) -> dict:
    ports = [{"hostPort": PORT[name], "containerPort": 80, "protocol": "tcp"}]
    return {**attachment(name), "capability_args": {"portMappings": ports}}


def cache_file(cache: Path, name: str) -> Path:
    return cache / "results" / f"{NETWORK[name]}-{name}-eth0"


def record_file(cache: Path, name: str) -> Path:
    return cache / "podwire" / f"{NETWORK[name]}-{name}-eth0"


def forget(cache: Path, names: list[str]) -> None:
    for name in names:
        cache_file(cache, name).unlink()
        record_file(cache, name).unlink()


def release(leases: Path, names: list[str]) -> None:
    """Free the addresses."""
    for name, path in reservations(leases):
        if name in names:
            path.unlink()


def truncate(cache: Path, names: list[str]) -> None:
    """Let half of the cache files be empty, and the other half end early."""
    for number, name in enumerate(names):
        path = cache_file(cache, name)
        os.truncate(path, path.stat().st_size // 2 if number % 2 else 0)


def reboot(cache: Path, names: list[str]) -> None:
    """Let attachments be of another boot, long ago."""
    for name in names:
        record = json.loads(record_file(cache, name).read_text())
        record["identity"]["boot_id"] = "00000000-0000-0000-0000-000000000000"
        record_file(cache, name).write_text(json.dumps(record))
        for path in (record_file(cache, name), cache_file(cache, name)):
            os.utime(path, (1e9, 1e9))


def reservations(leases: Path) -> list[tuple[str, Path]]:
    """Return the container and the file of each reserved address."""
    others = ("lock", "last_reserved_ip")
    files = [path for path in leases.glob("*/*") if not path.name.startswith(others)]
    return [(path.read_bytes().partition(b"\r\n")[0].decode(), path) for path in files]


def address(cache: Path, name: str) -> str:
    return json.loads(cache_file(cache, name).read_text())["result"]["ips"][0]["address"].partition("/")[0]


def traces(cache: Path, leases: Path) -> list[str]:
    """Return whatever there is that names a dead container, and interfaces and chains that no live one has."""
    dead = set(DEAD)
    found = [f"lease {path} {name}" for name, path in reservations(leases) if name in dead]
    for path in [*cache.glob("*/*"), *cache.glob(".*")]:
        if any(name in str(path) for name in dead) or path.suffix == ".tmp":
            found.append(f"cache {path}")
    saved = sh("iptables-save")
    known = {address(cache, name) for name in LIVE}
    for line in [*saved.splitlines(), *sh("ip6tables-save").splitlines()]:
        words = line.replace("/32", " ").replace("\\", "").replace('"', " ").split()
        ips = [word for word in line.replace("/32", " ").replace(":", " ").split() if is_address(word)]
        if dead & set(words) or (line.startswith("-A CNI-FORWARD") and set(ips) - known):
            found.append(f"rule {line}")
    chains = [line for line in saved.splitlines() if line.startswith(":CNI-DN-")]
    if len(chains) != len(LIVE):
        found.append(f"{len(chains)} chains")
    veths = [link for link in json.loads(sh("ip -json link")) if link["ifname"].startswith("veth")]
    if len(veths) != len(LIVE):
        found.append(f"{len(veths)} veths")
    return found


def is_address(word: str) -> bool:
    return word.startswith("10.") and "/" not in word
