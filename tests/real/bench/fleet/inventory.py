#!/usr/bin/env python
# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of the benchmark: $BENCH_HOSTS hosts, each with the root that fleet.sh made for it here.

With $BENCH_FIRST it is the machine itself, whose state the others are copies of. With $BENCH_REPLAY, the hosts only
answer what a real host has answered, and there may be any number of them.
"""

from __future__ import annotations

import json
import os

DIRECTORY = os.environ["BENCH_DIR"]
FIRST = bool(os.environ.get("BENCH_FIRST"))


def network(name: str, number: int) -> dict:
    plugins = [
        {
            "type": "bridge",
            "bridge": f"pwfleet{number}",
            "isGateway": True,
            "mtu": 1400,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": f"10.{90 + number}.0.0/24"}]]},
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    return {"name": name, "conflist": {"cniVersion": "1.0.0", "plugins": plugins}}


def main() -> None:
    names = [f"host{number}" for number in range(1, int(os.environ["BENCH_HOSTS"]) + 1)]
    python = "/usr/bin/python3" if FIRST else DIRECTORY + "/hosts/{{ inventory_hostname }}/python"
    if os.environ.get("BENCH_REPLAY"):
        python = DIRECTORY + "/replay/python"
    variables = {
        "ansible_connection": "local",
        "ansible_python_interpreter": python,
        "cni_report_dir": DIRECTORY + "/report",
        "cni_plugins_src": DIRECTORY + "/cni-plugins.tgz",
        "cni_networks": [network("fleet", 0), network("other", 1)],
        "cni_attachments": [
            {"network": "fleet", "container_id": "a", "netns": "fleet-a"},
            {"network": "other", "container_id": "b", "netns": "fleet-b"},
        ],
    }
    if FIRST:
        variables["cni_netns"] = ["fleet-a", "fleet-b"]
    print(json.dumps({"all": {"hosts": names, "vars": variables}, "_meta": {"hostvars": {}}}))


if __name__ == "__main__":
    main()
