# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runtimes say beyond CRI: Nomad's agent by its API, podman by its command, CRI-O of its running configuration.

What they answer is untrusted, bounded, and awaited until a deadline only.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from .. import commands
from ..errors import HostError
from . import cri, reading
from .cri import CriStatus
from .profiles import Runtime

_MOST = 4 << 20
# More networks than any host has.
_MOST_NETWORKS = 200
_NODE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MODE = "cni/"
_LISTENS = "0A"


def can_be_asked(runtime: Runtime) -> bool:
    """Tell whether the runtime is there to say which networks it has."""
    if runtime.name == "podman":
        # Its first run would create its databases, and choose its backend.
        return runtime.reads and runtime.found.startswith("/") and os.path.isdir(runtime.databases)
    return bool(runtime.pid and (runtime.address or runtime.port))


def ask(runtime: Runtime, networks: Sequence[str], timeout: float) -> CriStatus:
    """Return what the runtime says of its networks, after at most *timeout* seconds; podman is asked for *networks*.

    Raises HostError ``not_answered``, ``unsafe_permissions`` and others.
    """
    end = time.monotonic() + timeout
    if runtime.name == "podman":
        return _podman(runtime.found, networks, timeout)
    if runtime.name == "nomad":
        return _nomad(runtime.pid, runtime.port, timeout)
    status = cri.cri_status(runtime.address, timeout)
    if runtime.name in ("crio", "openshift"):
        differs = _crio(runtime, max(0.1, end - time.monotonic()))
        return status._replace(ready=False, message=differs) if differs else status
    return status


# --- podman


def _podman(program: str, networks: Sequence[str], timeout: float) -> CriStatus:
    names = list(networks)[:_MOST_NETWORKS]
    argv = [program, "network", "inspect", *names]
    done = commands.run_command(argv, timeout)
    missing = "network not found" in done.stderr
    if done.rc != 0 and not missing:
        raise commands.failure(argv[:3], f"exit status {done.rc}", done.stderr)
    try:
        answer = json.loads(done.stdout[:_MOST].decode("utf-8", "replace") or "[]")
        found = [one["name"] for one in answer if isinstance(one["name"], str)]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise HostError(f"{program} network inspect does not print its networks", code="not_answered") from error
    if not missing and set(names) - set(found):
        raise HostError(f"{program} network inspect prints other networks than it was asked for", code="not_answered")
    return CriStatus(not missing, done.stderr.strip()[:500] if missing else "", [one for one in names if one in found])


# --- CRI-O


def _crio(runtime: Runtime, timeout: float) -> str:
    """Return how the configuration that CRI-O runs with differs from that of its files, "" if it does not.

    Since 1.28, ``crio status config`` prints it; before, a program of its own did. Without either, the files count.
    """
    old = bool(runtime.version) and tuple(map(int, runtime.version.split(".")[:2])) < (1, 28)
    program = reading.installed("crio-status" if old else "crio")
    if not program:
        return ""
    argv = [program, *([] if old else ["status"]), "--socket", runtime.address, "config"]
    done = commands.run_command(argv, timeout)
    if done.rc != 0:
        raise commands.failure(argv, f"exit status {done.rc}", done.stderr)
    try:
        tables = reading.toml(done.stdout[:_MOST].decode("utf-8", "replace"))
        network = reading.section(tables, "crio", "network")
        conf_dir = reading.directory(network, "network_dir")
        bin_dirs = reading.directories(network, "plugin_dirs")
        default = reading.text_of_key(network, "cni_default_network")
    except HostError as error:
        raise HostError(f"{' '.join(argv)} prints no configuration ({error.msg})", code="not_answered") from error
    if not conf_dir:
        raise HostError(f"{' '.join(argv)} prints no network_dir", code="not_answered")
    for what, runs, files in (
        ("network_dir", conf_dir, runtime.conf_dir),
        ("plugin_dirs", bin_dirs or runtime.bin_dirs, runtime.bin_dirs),
        ("cni_default_network", default, runtime.default_network),
    ):
        if runs != files:
            return f"it runs with {what} {_words(runs)}, but its configuration says {_words(files)}; restart it"
    return ""


def _words(value: Any) -> str:
    return (", ".join(value) if isinstance(value, list) else value) or "none"


# --- Nomad


def _nomad(pid: int, port: int, timeout: float) -> CriStatus:
    """Ask the agent for the fingerprint of its own node (client/fingerprint/cni.go)."""
    end = time.monotonic() + timeout
    what = f"the API of Nomad's agent (process {pid})"
    try:
        family, address = _listener(pid, port)
        agent = _get(family, address, port, "/v1/agent/self", end)
        node = str(agent["stats"]["client"]["node_id"])
        if not _NODE.fullmatch(node):
            raise ValueError("it names no node")
        found = _get(family, address, port, f"/v1/node/{node}", end)["NodeResources"]["Networks"] or []
        modes = [one["Mode"] for one in found if isinstance(one.get("Mode"), str)]
    except socket.timeout as error:
        raise HostError(f"{what} gives no complete answer within {timeout:g} s", code="not_answered") from error
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        why = "they are not in its answer" if isinstance(error, (LookupError, TypeError, AttributeError)) else error
        raise HostError(f"{what} does not tell its networks: {why}", code="not_answered") from error
    names = sorted({mode[len(_MODE) :] for mode in modes if mode.startswith(_MODE)})
    return CriStatus(bool(names), "" if names else "its node has no CNI network", names)


def _listener(pid: int, port: int) -> Tuple[socket.AddressFamily, str]:
    """Return where the process itself listens on *port*: nobody else's socket is asked."""
    own = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            own.add(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
    for family, path in ((socket.AF_INET, "/proc/self/net/tcp"), (socket.AF_INET6, "/proc/self/net/tcp6")):
        for address, local, inode in _listening(path):
            if local == port and f"socket:[{inode}]" in own:
                return family, _reached(family, address)
    raise ValueError(f"it does not listen on TCP port {port} here")


def _listening(path: str) -> Iterator[Tuple[bytes, int, str]]:
    try:
        with open(path, encoding="ascii") as stream:
            lines = stream.read(_MOST).splitlines()[1:]
    except FileNotFoundError:
        return
    for line in lines:
        words = line.split()
        if len(words) > 9 and words[3] == _LISTENS:
            address, local = words[1].split(":")
            # The kernel prints words of 32 bits in the order of the machine.
            packed = b"".join(bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8))
            yield packed, int(local, 16), words[9]


def _reached(family: socket.AddressFamily, address: bytes) -> str:
    if any(address):
        return socket.inet_ntop(family, address)
    return "127.0.0.1" if family == socket.AF_INET else "::1"


def _get(family: socket.AddressFamily, address: str, port: int, path: str, end: float) -> Dict[str, Any]:
    left = end - time.monotonic()
    if left <= 0:
        raise socket.timeout
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(left)
        connection.connect((address, port))
        connection.sendall(
            f"GET {path} HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\n\r\n".encode("ascii")
        )
        answer = cri.DeadlineReader(connection, end).read(_MOST)
    head, _blank, body = answer.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].decode("ascii", "replace")
    words = status.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1."):
        raise ValueError("its answer is not HTTP")
    if words[1] != "200":
        hint = " (it has ACLs, and this collection has no token)" if words[1] == "403" else ""
        raise ValueError(f"GET {path}: {' '.join(words[1:])[:100]}{hint}")
    found = json.loads(body.decode("utf-8", "replace"))
    if not isinstance(found, dict):
        raise ValueError(f"GET {path}: the answer is no object")
    return found


def networks_to_ask_for(networks: Sequence[Any], default: str) -> List[str]:
    """Return the names to ask for: those of the *networks*, or the default one that the runtime creates itself."""
    return list(dict.fromkeys(network.name for network in networks)) or ([default] if default else [])
