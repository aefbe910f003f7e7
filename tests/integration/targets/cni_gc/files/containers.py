# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two hundred containers on four networks, the deaths of half of them, and a look at what is left.

containers.py request|deaths          what to attach; who dies how (JSON)
containers.py forget|truncate|reboot CACHE_DIR ID...
containers.py release CACHE_DIR LEASE_DIR ID...   forget, and free the address
containers.py interrupt CACHE_DIR BIN_DIR LIBCNI_DIR ID...   DEL, killed before it reaches the first plugin of the chain
containers.py serve PIDFILE           a server in each live container's namespace
containers.py hold NETNS PIDFILE      a process elsewhere that has a socket in the namespace
containers.py alive CACHE_DIR HOST_IP every live container answers
containers.py traces CACHE_DIR LEASE_DIR   what there is of the dead (a line each)
"""

from __future__ import annotations

import glob
import json
import os
import select
import signal
import socket
import subprocess
import sys

COUNT = 200
NETWORKS = ("pwgone", "pwgtwo", "pwgthree", "pwgfour")
DEATHS = ("netns", "lease", "truncated", "veth", "chain", "interrupted", "binary", "reboot")
PORT = 20000


def name(index: int) -> str:
    return f"pwg{index:03}"


def network(index: int) -> str:
    return NETWORKS[index % 4]


def is_dead(index: int) -> bool:
    return index // 4 % 2 == 0


def death(index: int) -> str:
    return DEATHS[index // 8 % 8]


def dead() -> list[int]:
    return [index for index in range(COUNT) if is_dead(index)]


def live() -> list[int]:
    return [index for index in range(COUNT) if not is_dead(index)]


def request() -> list[dict]:
    return [
        {
            "network": network(index),
            "container_id": name(index),
            "netns": name(index),
            "capability_args": {"portMappings": [{"hostPort": PORT + index, "containerPort": 80, "protocol": "tcp"}]},
        }
        for index in range(COUNT)
    ]


def deaths() -> dict[str, list[dict]]:
    return {
        way: [{"network": network(i), "container_id": name(i), "netns": name(i)} for i in dead() if death(i) == way]
        for way in DEATHS
    }


def cache_file(cache_dir: str, container: str) -> str:
    return f"{cache_dir}/results/{network(int(container[3:]))}-{container}-eth0"


def record_file(cache_dir: str, container: str) -> str:
    return f"{cache_dir}/podwire/{network(int(container[3:]))}-{container}-eth0"


def forget(cache_dir: str, *containers: str) -> None:
    for container in containers:
        os.unlink(cache_file(cache_dir, container))
        os.unlink(record_file(cache_dir, container))


def truncate(cache_dir: str, *containers: str) -> None:
    for number, container in enumerate(containers):
        path = cache_file(cache_dir, container)
        os.truncate(path, os.path.getsize(path) // 2 if number % 2 else 0)


def reboot(cache_dir: str, *containers: str) -> None:
    """Let attachments be of another boot, long ago."""
    for container in containers:
        with open(record_file(cache_dir, container), encoding="utf-8") as stream:
            record = json.load(stream)
        record["identity"]["boot_id"] = "00000000-0000-0000-0000-000000000000"
        with open(record_file(cache_dir, container), "w", encoding="utf-8") as stream:
            json.dump(record, stream)
        for path in (record_file(cache_dir, container), cache_file(cache_dir, container)):
            os.utime(path, (1e9, 1e9))


def release(cache_dir: str, lease_dir: str, *containers: str) -> None:
    forget(cache_dir, *containers)
    for container, path in leases(lease_dir):
        if container in containers:
            os.unlink(path)


def interrupt(cache_dir: str, bin_dir: str, libcni_dir: str, *containers: str) -> None:
    sys.path.insert(0, libcni_dir)
    from libcni.api import CNIConfig, RuntimeConf
    from libcni.cache import read_entry
    from libcni.conf import network_conf_from_bytes
    from libcni.invoke import Executor

    class Dies(Executor):
        def exec_plugin(self, path: str, *arguments: object, **more: object) -> bytes:
            if os.path.basename(path) in ("bridge", "ptp"):
                os.kill(os.getpid(), signal.SIGKILL)
            return super().exec_plugin(path, *arguments, **more)

    for container in containers:
        entry = read_entry(cache_file(cache_dir, container))
        runtime = RuntimeConf(container, entry.net_ns, "eth0", entry.cni_args, entry.capability_args)
        child = os.fork()
        if child == 0:
            cni = CNIConfig([bin_dir], cache_dir=cache_dir, timeout=60, executor=Dies())
            cni.del_network_list(network_conf_from_bytes(entry.config), runtime)
            os._exit(0)
        if os.waitpid(child, 0)[1] != signal.SIGKILL:
            sys.exit(f"the DEL of {container} came to its end")


def leases(lease_dir: str) -> list[tuple[str, str]]:
    """Return (container, path) of each reservation."""
    found = []
    for path in glob.glob(f"{lease_dir}/*/*"):
        if os.path.basename(path) != "lock" and not os.path.basename(path).startswith("last_reserved_ip"):
            with open(path, encoding="utf-8") as stream:
                found.append((stream.read().partition("\r\n")[0], path))
    return sorted(found)


def serve(pidfile: str) -> None:
    """Listen in the namespace of every live container until this process is ended."""
    poller = select.poll()
    listeners = {}
    for index in live():
        with open(f"/run/netns/{name(index)}", "rb") as stream:
            enter(stream.fileno())
        listener = socket.create_server(("", 80), backlog=8)
        listeners[listener.fileno()] = (listener, name(index))
        poller.register(listener, select.POLLIN)
    with open(pidfile, "w", encoding="ascii") as stream:
        stream.write(str(os.getpid()))
    while True:
        for number, _event in poller.poll():
            listener, container = listeners[number]
            connection = listener.accept()[0]
            connection.sendall(container.encode())
            connection.close()


def hold(netns: str, pidfile: str) -> None:
    """Keep a namespace by nothing but a socket, which nothing leads to, until this process is ended."""
    with open("/proc/self/ns/net", "rb") as home, open(netns, "rb") as there:
        enter(there.fileno())
        kept = socket.socket()
        enter(home.fileno())
    with open(pidfile, "w", encoding="ascii") as stream:
        stream.write(str(os.getpid()))
    signal.pause()
    kept.close()


def enter(number: int) -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).setns(number, 0x40000000):
        raise OSError(ctypes.get_errno(), "setns")


def address(cache_dir: str, index: int) -> str:
    with open(cache_file(cache_dir, name(index)), encoding="utf-8") as stream:
        return json.load(stream)["result"]["ips"][0]["address"].partition("/")[0]


def alive(cache_dir: str, host_ip: str) -> None:
    """Every live container answers a ping, and a connection to its port of the host."""
    wrong = []
    for index in live():
        ip = address(cache_dir, index)
        command = ["ping", "-c", "1", "-W", "5", "-q", ip]
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode:
            wrong.append(f"{name(index)} ({ip}) does not answer a ping")
        try:
            with socket.create_connection((host_ip, PORT + index), timeout=10) as connection:
                answer = connection.recv(100).decode()
        except OSError as error:
            answer = str(error)
        if answer != name(index):
            wrong.append(f"port {PORT + index} of {name(index)}: {answer}")
    if wrong:
        sys.exit("\n".join(wrong))


def traces(cache_dir: str, lease_dir: str) -> None:
    """Print whatever there is that names a dead container, and interfaces that no live one has."""
    names = {name(index) for index in dead()}
    for container, path in leases(lease_dir):
        if container in names:
            print("lease", path, container)
    for path in [*glob.glob(f"{cache_dir}/*/*"), *glob.glob(f"{cache_dir}/.*")]:
        if any(container in path for container in names) or path.endswith(".tmp"):
            print("cache", path)
    saved = [
        subprocess.run([tool], stdout=subprocess.PIPE, check=True, text=True).stdout
        for tool in ("iptables-save", "ip6tables-save")
    ]
    rules = "".join(saved)
    known = {address(cache_dir, index) for index in live()}
    for line in rules.splitlines():
        own = [word for word in line.replace("/32", " ").replace("\\", "").replace('"', " ").split() if word in names]
        ips = [
            word
            for word in line.replace("/32", " ").replace(":", " ").split()
            if word.startswith("10.") and "/" not in word
        ]
        if own or (line.startswith("-A CNI-FORWARD") and any(ip not in known for ip in ips)):
            print("rule", line)
    chains = [line for line in saved[0].splitlines() if line.startswith(":CNI-DN-")]
    if len(chains) != len(live()):
        print("chains", len(chains))
    host = json.loads(subprocess.run(["ip", "-j", "link"], stdout=subprocess.PIPE, check=True).stdout)
    veths = [link["ifname"] for link in host if link["ifname"].startswith("veth")]
    if len(veths) != len(live()):
        print("links", len(veths))


def main() -> None:
    command, *arguments = sys.argv[1:]
    result = {
        "request": request,
        "deaths": deaths,
        "forget": forget,
        "truncate": truncate,
        "reboot": reboot,
        "release": release,
        "interrupt": interrupt,
        "serve": serve,
        "hold": hold,
        "alive": alive,
        "traces": traces,
    }[command](*arguments)
    if result is not None:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
