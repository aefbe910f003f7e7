# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The containers of containerd, and of what is built on it: CRI's pods, nerdctl, ``ctr run --cni`` and buildkit.

What CNI sees as a container ID: CRI passes the pod sandbox's ID; nerdctl and ctr pass ``<namespace>-<container>``;
buildkit passes the name of the namespace that it keeps in its directory. Every container that containerd knows counts
as alive, whether its task runs or not: its runtime has not removed it yet.

Instances of containerd are found by facts of the kernel, not by a list of paths: a listening socket named
``containerd.sock``, and the address with which the shim of a running container was started. So those of k3s, rke2, k0s
and MicroK8s are found, too, and so is an instance that was stopped while its containers keep running.
"""

from __future__ import annotations

import os
import stat
from functools import partial
from typing import Dict, FrozenSet, List, Optional, Set, Tuple

from .. import commands
from ..errors import HostError
from ..processes import processes
from ..trust import check_socket
from .client import TIMEOUT, find_client, ids, is_source_id, run_client, unusable
from .live import Answer, RuntimeSource

SOURCE = "containerd"
BUILDKIT = "/var/lib/buildkit/net/cni"

_SOCKETS = "/proc/net/unix"
_SOCKET_NAME = "containerd.sock"
# The instance of a shim whose command line does not tell it.
_DEFAULT_SOCKET = "/run/containerd/containerd.sock"
# The beginning of all shims' names.
_SHIM = "containerd-shim"
# In /proc/net/unix: a listening stream socket.
_LISTENING = ("00010000", "0001", "01")


def find_containerd() -> Optional[RuntimeSource]:
    """Return every containerd of this host as one source, None if there is none."""
    addresses, namespaces = _addresses(), _buildkit()
    evidence = [_evidence(address) for address in addresses]
    if namespaces:
        evidence.append(f"network namespaces of buildkit in {BUILDKIT}")
    return RuntimeSource("; ".join(evidence), partial(_ask, addresses, namespaces)) if evidence else None


def _evidence(address: str) -> str:
    return f"the socket {address} of containerd"


def _ask(addresses: List[str], namespaces: List[str]) -> Answer:
    containers: Dict[str, Optional[FrozenSet[str]]] = {os.path.basename(path): None for path in namespaces}
    count = len(namespaces)
    asked = []
    ctr = find_client(SOURCE, "ctr", _evidence(addresses[0])) if addresses else ""
    for address in addresses:
        names, text = _ask_daemon(ctr, address)
        for namespace, name in names:
            containers[name] = None
            containers[f"{namespace}-{name}"] = None
        count += len(names)
        asked.append(text)
    if namespaces:
        asked.append(f"{BUILDKIT} holds {len(namespaces)} network namespaces")
    return Answer(SOURCE, containers, namespaces, count, "; ".join(asked))


def _addresses() -> List[str]:
    """Return the sockets of all instances, including those that were stopped while their containers run."""
    addresses = set()
    with open(_SOCKETS, encoding="utf-8", errors="surrogateescape") as stream:
        next(stream, None)
        for line in stream:
            # Number, reference count, protocol, flags, type, state, inode, path.
            fields = line.rstrip("\n").split(None, 7)
            if len(fields) == 8 and tuple(fields[3:6]) == _LISTENING:
                # A link that its user has put there since may lead to another socket of root.
                path = os.path.realpath(fields[7])
                if _is_daemons(fields[7]) and _is_daemons(path):
                    addresses.add(path)
    for shim in processes(_SHIM + "*"):
        address = shim.option("-address")
        addresses.add(os.path.realpath(address) if address.startswith("/") else _DEFAULT_SOCKET)
    return sorted(addresses)


def _is_daemons(path: str) -> bool:
    """Tell whether a listening socket belongs to a containerd of root; a rootless one does not serve this host."""
    if not path.startswith("/") or os.path.basename(path) != _SOCKET_NAME:
        return False
    try:
        status = os.stat(path)
    except OSError:
        # It listens in another mount namespace, see processes.
        return False
    return stat.S_ISSOCK(status.st_mode) and status.st_uid == 0


def _buildkit() -> List[str]:
    """Return the namespaces that buildkit keeps; a plain file is what a reboot left of one."""
    device = os.stat("/proc/self/ns/net").st_dev
    paths = []
    try:
        names = sorted(os.listdir(BUILDKIT))
    except FileNotFoundError:
        return []
    except OSError as error:
        unusable(SOURCE, f"cannot list {BUILDKIT}: {error.strerror}", "fix that")
    for name in names:
        path = os.path.join(BUILDKIT, name)
        try:
            if is_source_id(name) and os.stat(path).st_dev == device:
                paths.append(path)
        except OSError:
            # It was removed meanwhile.
            continue
    return paths


def _ask_daemon(ctr: str, address: str) -> Tuple[List[Tuple[str, str]], str]:
    """Return the containers and sandboxes of one instance, each with its namespace, and what was asked."""
    base = [ctr, "--address", address, "--connect-timeout", "10s"]
    remedy = f"start the containerd of {address}"
    if not os.path.exists(address):
        # ctr would wait for it.
        unusable(SOURCE, f"containers run, but the socket {address} of their containerd does not exist", remedy)
    try:
        check_socket(address)
    except (HostError, OSError, ValueError) as error:
        unusable(SOURCE, f"its socket {address} is not used: {error}", remedy)
    argv = [*base, "namespaces", "list", "--quiet"]
    namespaces = ids(SOURCE, run_client(SOURCE, argv, remedy), argv, remedy)
    containers: Set[Tuple[str, str]] = set()
    for namespace in namespaces:
        argv = [*base, "--namespace", namespace, "containers", "list", "--quiet"]
        for name in ids(SOURCE, run_client(SOURCE, argv, remedy), argv, remedy):
            containers.add((namespace, name))
        for name in _sandboxes([*base, "--namespace", namespace, "sandboxes", "list"], remedy):
            containers.add((namespace, name))
    text = f"ctr at {address}: {len(containers)} containers in the namespaces {', '.join(sorted(namespaces)) or 'none'}"
    return sorted(containers), text


def _sandboxes(argv: List[str], remedy: str) -> List[str]:
    """Return the IDs of the sandboxes in a namespace. A runtime may keep them only there and not as containers.

    containerd and ctr have sandboxes since 1.7.
    """
    try:
        done = commands.run_command(argv, TIMEOUT)
    except HostError as error:
        unusable(SOURCE, error.msg, remedy)
    if "No help topic for 'sandboxes'" in done.stderr + done.stdout.decode("utf-8", "replace"):
        return []
    if "unknown service containerd.services.sandbox" in done.stderr:
        return []
    if done.rc != 0:
        unusable(SOURCE, commands.failure(argv, f"exit status {done.rc}", done.stderr).msg, remedy)
    # A table: a line of titles, then a line for each sandbox that starts with its ID.
    rows = done.stdout.split(b"\n")
    first = b"\n".join(row.split(b" ", 1)[0] for row in rows[1:])
    if not rows[0].startswith(b"ID"):
        first = done.stdout
    return ids(SOURCE, first, argv, remedy)
