# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The allocations of Nomad's client.

What CNI sees as a container ID is the allocation's ID, in mode ``bridge`` as in ``cni/NAME``. (The name
``nomad_init_<id>`` of a pause container is for Docker only.) The client makes a directory for each allocation before it
makes its network, and removes it when it forgets the allocation; the agent tells where these directories are. So the
answer is complete even if the client's servers are away or the token may not read every namespace. An allocation that
has finished counts as alive until Nomad forgets it.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Optional, Tuple

from ..errors import HostError
from ..json_text import parse_json
from ..paths import absolute
from ..processes import processes
from .client import unusable
from .live import Answer, RuntimeSource

SOURCE = "nomad"
DEFAULT_ADDRESS = "http://127.0.0.1:4646"

_TIMEOUT = 30.0
_ADDRESS = re.compile(r"(https?)://(?:\[([0-9A-Fa-f:.]+)\]|([^\s/:\[\]]+))(?::([0-9]{1,5}))?/?")
_ALLOCATION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_REMEDY = "make sure that the agent runs and that NOMAD_ADDR in the task's environment leads to it"
_TOKEN_REMEDY = "set NOMAD_TOKEN in the task's environment to a token with the policy agent:read"


def find_nomad() -> Optional[RuntimeSource]:
    """Return Nomad as a source, None if it is not on this host.

    An agent's helpers have its name, too. They keep running when it is stopped, as do the tasks that they watch.
    """
    agents = processes("nomad")
    return RuntimeSource(f"process {agents[0].pid}: {' '.join(agents[0].argv[:2])}", ask_nomad) if agents else None


def ask_nomad() -> Answer:
    """Ask Nomad's agent for its allocations. Raises HostError ``source_unusable``."""
    address = os.environ.get("NOMAD_ADDR") or DEFAULT_ADDRESS
    config = _config(address)
    client = _object(config.get("Client"), "config.Client")
    if client.get("Enabled") is False:
        return Answer(SOURCE, {}, asked=f"the agent at {address}, which is not a client")
    directory = _directory(client.get("AllocDir"), config.get("DataDir"))
    allocations = _allocations(directory)
    asked = f"the agent at {address}: {len(allocations)} allocations in {directory}"
    return Answer(SOURCE, dict.fromkeys(allocations), asked=asked)


def _config(address: str) -> Dict[str, Any]:
    """Return the agent's configuration."""
    from http.client import HTTPException

    from .. import nomad_api

    host, port, secure = _place(address)
    try:
        status, body = nomad_api.get(host, port, "/v1/agent/self", secure, _TIMEOUT)
    except (OSError, ValueError, HTTPException) as error:
        unusable(SOURCE, f"no answer from the agent at {address}: {error}", _REMEDY)
    if status in (401, 403):
        unusable(SOURCE, f"the agent at {address} answered with the status {status}", _TOKEN_REMEDY)
    if status != 200:
        said = body[:200].decode("utf-8", "replace").strip()
        unusable(SOURCE, f"the agent at {address} answered with the status {status}: {said}", _REMEDY)
    try:
        answer = parse_json(body)
    except ValueError as error:
        unusable(SOURCE, f"the answer of the agent at {address} is not valid JSON ({error})", _REMEDY)
    return _object(_object(answer, "its root").get("config"), "config")


def _object(value: Any, name: str) -> Dict[str, Any]:
    if not isinstance(value, dict):
        unusable(SOURCE, f"unexpected answer of the agent: {name} is not an object", _REMEDY)
    return value


def _directory(alloc_dir: Any, data_dir: Any) -> str:
    if isinstance(alloc_dir, str) and alloc_dir:
        directory = alloc_dir
    elif isinstance(data_dir, str) and data_dir:
        directory = os.path.join(data_dir, "alloc")
    else:
        # Only in development mode, where the directory is a temporary one that the agent does not report.
        unusable(SOURCE, "the agent has no data_dir", "set data_dir in its configuration")
    try:
        return absolute(directory, "the agent's data_dir or alloc_dir")
    except HostError as error:
        unusable(SOURCE, error.msg, "fix its configuration")


def _allocations(directory: str) -> List[str]:
    try:
        names = os.listdir(directory)
    except OSError as error:
        unusable(SOURCE, f"cannot list its allocations in {directory}: {error.strerror}", "fix that")
    return sorted(name for name in names if _ALLOCATION.fullmatch(name))


def _place(address: str) -> Tuple[str, int, bool]:
    """Return host, port and whether TLS is spoken there."""
    match = _ADDRESS.fullmatch(address)
    port = int(match.group(4) or 4646) if match else 0
    if match is None or not 0 < port < 65536:
        unusable(SOURCE, f"NOMAD_ADDR is {address!r}", "set it to an address such as 'https://127.0.0.1:4646'")
    return match.group(2) or match.group(3), port, match.group(1) == "https"
