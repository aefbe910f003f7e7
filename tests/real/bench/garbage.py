# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a host with 1,000 reservations, 500 attachments and 500 chains: garbage.py CACHE_DIR CONF_DIR

Half of the attachments live: their namespaces are there, with their addresses in them. The chains are portmap's, one
for each attachment. Everything else is what died without a DEL. All of it is older than an hour.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import time

ATTACHMENTS = 500
LEASES = 1000
NETWORK = "podwire-garbage"
STORE = f"/var/lib/cni/networks/{NETWORK}"
CONFIG = {
    "cniVersion": "1.0.0",
    "name": NETWORK,
    "plugins": [
        {"type": "bridge", "bridge": "pwbench9", "ipam": {"type": "host-local", "subnet": "10.98.0.0/16"}},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}


def container(index: int) -> str:
    """Return an id as long as a runtime's."""
    return hashlib.sha256(str(index).encode()).hexdigest()


def address(index: int) -> str:
    return f"10.98.{index // 200}.{index % 200 + 2}"


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as stream:
        stream.write(text)
    moment = time.time() - 3700
    os.utime(path, (moment, moment))


def is_live(index: int) -> bool:
    return index < ATTACHMENTS and index % 2 == 0


def namespaces() -> None:
    live = [index for index in range(ATTACHMENTS) if is_live(index)]
    commands = [f"netns add pwb{index}" for index in live]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(commands), text=True, check=True)
    for index in live:
        subprocess.run(["ip", "-n", f"pwb{index}", "address", "add", f"{address(index)}/16", "dev", "lo"], check=True)


def files(cache_dir: str) -> None:
    os.makedirs(STORE)
    for index in range(LEASES):
        write(f"{STORE}/{address(index)}", f"{container(index)}\r\neth0")
    os.makedirs(f"{cache_dir}/results")
    config = base64.b64encode(json.dumps(CONFIG).encode()).decode()
    for index in range(ATTACHMENTS):
        entry = {
            "kind": "cniCacheV1",
            "containerId": container(index),
            "config": config,
            "ifName": "eth0",
            "networkName": NETWORK,
            "netns": f"/run/netns/pwb{index}",
            "capabilityArgs": {"portMappings": [{"hostPort": 20000 + index, "containerPort": 80, "protocol": "tcp"}]},
            "result": {"cniVersion": "1.0.0", "ips": [{"address": f"{address(index)}/16", "interface": 0}]},
        }
        write(f"{cache_dir}/results/{NETWORK}-{container(index)}-eth0", json.dumps(entry))


def chains() -> None:
    """Make portmap's chains as it makes them."""
    head, rules = ["*nat", ":CNI-HOSTPORT-DNAT - [0:0]"], []
    for index in range(ATTACHMENTS):
        digest = hashlib.sha512((NETWORK + container(index)).encode()).hexdigest()
        chain = f"CNI-DN-{digest}"[:28]
        comment = f'dnat name: \\"{NETWORK}\\" id: \\"{container(index)}\\"'
        head.append(f":{chain} - [0:0]")
        port = 20000 + index
        rules.append(
            f'-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "{comment}" -m multiport --dports {port} -j {chain}'
        )
        rules.append(f"-A {chain} -p tcp -m tcp --dport {port} -j DNAT --to-destination {address(index)}:80")
    script = "\n".join([*head, *rules, "COMMIT", ""])
    subprocess.run(["iptables-restore", "--noflush"], input=script, text=True, check=True)


def main() -> None:
    cache_dir, conf_dir = sys.argv[1:]
    os.makedirs(conf_dir, exist_ok=True)
    write(f"{conf_dir}/10-{NETWORK}.conflist", json.dumps(CONFIG))
    namespaces()
    files(cache_dir)
    chains()


if __name__ == "__main__":
    main()
