# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What really happens: two containers on the host itself, and packets of theirs. Shares no code with the experiment."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import uuid

from ansible_collections.podwire.cni.plugins.module_utils.libcni.api import CNIConfig, RuntimeConf
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import CNIError
from ansible_collections.podwire.cni.tests.host.experiments.breaks import BIN_DIR, HOST, INTERNET, NETWORK, WORLD
from ansible_collections.podwire.cni.tests.host.host import sh, wait_until

_PORT, _PUBLISHED, _WEB = 8080, 61998, 443
_SERVER = """
import socket, sys
server = socket.socket(socket.AF_INET6)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("::", int(sys.argv[1])))
server.listen(8)
print("listens", flush=True)
while True:
    connection, _peer = server.accept()
    connection.settimeout(3)
    try:
        connection.sendall(connection.recv(1))
    except OSError:
        pass
    connection.close()
"""
_CLIENT = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 2.5) as client:
        client.sendall(b"?")
        sys.exit(client.recv(1) != b"?")
except OSError:
    sys.exit(1)
"""


def _in(netns, *argv):
    return ["ip", "netns", "exec", netns, *argv]


def _serve(netns, port):
    server = subprocess.Popen(_in(netns, sys.executable, "-S", "-c", _SERVER, str(port)), stdout=subprocess.PIPE)
    assert server.stdout.readline() == b"listens\n"
    return server


def _connects(netns, address, port):
    argv = _in(netns, sys.executable, "-S", "-c", _CLIENT, address, str(port))
    return subprocess.run(argv, check=False).returncode == 0


def what_happens(plugins):
    """Return None if an ADD fails, else the ways of packets that fail, as ``outside IPv4``."""
    mapped = any(plugin.get("capabilities") for plugin in plugins)
    apart = any(plugin.get("ingressPolicy") == "isolated" for plugin in plugins)
    text = {"cniVersion": "1.0.0", "name": NETWORK, "plugins": plugins}
    config = network_conf_from_bytes(json.dumps(text).encode())
    cni = CNIConfig([str(BIN_DIR)], cache_dir="/run/home/pwx-cache", timeout=30)
    mapping = [{"hostPort": _PUBLISHED, "containerPort": _PORT, "protocol": "tcp"}]
    runtimes, addresses, servers, macs = [], [], [], []
    try:
        for number in range(2):
            name = f"pwx{uuid.uuid4().hex[:8]}"
            sh(f"ip netns add {name}")
            capability_args = {"portMappings": mapping} if mapped and not number else {}
            runtimes.append(RuntimeConf(name, f"/run/netns/{name}", "eth0", [("IgnoreUnknown", "1")], capability_args))
            try:
                result = cni.add_network_list(config, runtimes[-1]).to_dict()
            except CNIError:
                if number:
                    # A network that only one container can have.
                    break
                return None
            addresses.append(_families(result))
            macs.append({entry.get("mac") for entry in result.get("interfaces", []) if entry.get("sandbox")})
            routed = {"IPv6" if ":" in route["dst"] else "IPv4" for route in result.get("routes", [])}
        for name in dict.fromkeys(runtime.container_id for runtime in runtimes):
            wait_until(lambda name=name: not sh(f"ip -n {name} -6 address show tentative"))
        wait_until(lambda: not sh("ip -6 address show tentative"))
        first, second = runtimes[0].container_id, runtimes[-1].container_id
        servers = [_serve(first, _PORT), _serve(second, _PORT), _serve(WORLD, _WEB)]
        if len(macs) > 1 and macs[0] & macs[1]:
            # A MAC that only one container can have.
            addresses.pop()
        # A network that keeps its containers apart promises no packets between them.
        return set(_failing(first, addresses[:1] if apart else addresses, mapped, routed))
    finally:
        for server in servers:
            server.kill()
            server.wait()
        for runtime in runtimes:
            with contextlib.suppress(CNIError):
                cni.del_network_list(config, runtime)
            sh(f"ip netns delete {runtime.container_id}")


def _failing(first, addresses, mapped, routed):
    ours, theirs = addresses[0], addresses[1] if len(addresses) > 1 else {}
    for family in ours:
        if family in theirs and not _connects(first, theirs[family], _PORT):
            yield f"container {family}"
        if family in routed and not _connects(first, INTERNET[family], _WEB):
            yield f"outside {family}"
        if mapped and HOST[family] in sh("ip address") and not _connects(WORLD, HOST[family], _PUBLISHED):
            yield f"published {family}"


def _families(result):
    found = {}
    for entry in result.get("ips", []):
        address = entry["address"].partition("/")[0]
        found["IPv6" if ":" in address else "IPv4"] = address
    return found
