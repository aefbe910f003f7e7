# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The allocations of Nomad's client.

What CNI sees as a container ID is the allocation's ID, in mode ``bridge`` as in ``cni/NAME``. (The name
``nomad_init_<id>`` of a pause container is for Docker only.) The client makes a directory for each allocation before it
makes its network, and removes it when it forgets the allocation; the agent tells where these directories are. So the
answer is complete even if the client's servers are away or the token may not read every namespace. An allocation that
has finished counts as alive until Nomad forgets it.

Like Nomad's own command line, this uses ``NOMAD_ADDR``, ``NOMAD_TOKEN``, ``NOMAD_CACERT``, ``NOMAD_CAPATH``,
``NOMAD_CLIENT_CERT``, ``NOMAD_CLIENT_KEY`` and ``NOMAD_TLS_SERVER_NAME`` in the environment to ask the agent.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import threading
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ..errors import HostError
from ..paths import absolute
from ..processes import processes
from .client import unusable
from .live import Answer

SOURCE = "nomad"
DEFAULT_ADDRESS = "http://127.0.0.1:4646"

_TIMEOUT = 30.0
_ANSWER_LIMIT = 4 * 1024 * 1024
_ADDRESS = re.compile(r"(https?)://(?:\[([0-9A-Fa-f:.]+)\]|([^\s/:\[\]]+))(?::([0-9]{1,5}))?/?")
_ALLOCATION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# A token has to fit into a header.
_TOKEN = re.compile(r"[\x21-\x7e]*")
_REMEDY = "make sure that the agent runs and that NOMAD_ADDR in the task's environment leads to it"
_TOKEN_REMEDY = "set NOMAD_TOKEN in the task's environment to a token with the policy agent:read"


def nomad_evidence() -> Optional[str]:
    """Return the evidence that Nomad is on this host, None if there is none.

    An agent's helpers have its name, too. They keep running when it is stopped, as do the tasks that they watch.
    """
    found = processes("nomad")
    if not found:
        return None
    return f"process {found[0].pid}: {' '.join(found[0].argv[:2])}"


def ask_nomad() -> Answer:
    """Ask Nomad's agent for its allocations. Raises HostError ``source_unusable``."""
    environment = dict(os.environ)
    address = environment.get("NOMAD_ADDR") or DEFAULT_ADDRESS
    config = _config(address, environment)
    client = _object(config.get("Client"), "config.Client")
    if client.get("Enabled") is False:
        return Answer(SOURCE, {}, asked=f"the agent at {address}, which is not a client")
    directory = _directory(client.get("AllocDir"), config.get("DataDir"))
    found = _allocations(directory)
    asked = f"the agent at {address}: {len(found)} allocations in {directory}"
    return Answer(SOURCE, dict.fromkeys(found), asked=asked)


def _config(address: str, environment: Mapping[str, str]) -> Dict[str, Any]:
    """Return the agent's configuration."""
    status, body = _get(address, "/v1/agent/self", environment)
    if status in (401, 403):
        unusable(SOURCE, f"the agent at {address} answered with the status {status}", _TOKEN_REMEDY)
    if status != 200:
        said = body[:200].decode("utf-8", "replace").strip()
        unusable(SOURCE, f"the agent at {address} answered with the status {status}: {said}", _REMEDY)
    try:
        answer = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
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


def _get(address: str, path: str, environment: Mapping[str, str]) -> Tuple[int, bytes]:
    """Return the status and the beginning of the answer to a GET request."""
    import http.client

    token = environment.get("NOMAD_TOKEN", "")
    if not _TOKEN.fullmatch(token):
        unusable(SOURCE, "NOMAD_TOKEN is not a valid token", _TOKEN_REMEDY)
    host, port, secure = _place(address)
    connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT)
    ending = contextlib.ExitStack()
    ending.callback(connection.close)
    try:
        connection.sock = socket.create_connection((host, port), _TIMEOUT)
        if secure:
            connection.sock = _wrap(connection.sock, host, environment)
        # The timeout of a socket starts again with each byte that arrives.
        timer = threading.Timer(_TIMEOUT, connection.sock.shutdown, (socket.SHUT_RDWR,))
        ending.callback(timer.cancel)
        timer.start()
        connection.request("GET", path, headers={"X-Nomad-Token": token} if token else {})
        response = connection.getresponse()
        body = response.read(_ANSWER_LIMIT + 1)
    except (OSError, ValueError, http.client.HTTPException) as error:
        unusable(SOURCE, f"no answer from the agent at {address}: {error}", _REMEDY)
    finally:
        ending.close()
    if len(body) > _ANSWER_LIMIT:
        unusable(SOURCE, f"the answer of the agent at {address} is longer than {_ANSWER_LIMIT} bytes", _REMEDY)
    return response.status, body


def _place(address: str) -> Tuple[str, int, bool]:
    """Return host, port and whether TLS is spoken there."""
    match = _ADDRESS.fullmatch(address)
    port = int(match.group(4) or 4646) if match else 0
    if match is None or not 0 < port < 65536:
        unusable(SOURCE, f"NOMAD_ADDR is {address!r}", "set it to an address such as 'https://127.0.0.1:4646'")
    return match.group(2) or match.group(3), port, match.group(1) == "https"


def _wrap(plain: socket.socket, host: str, environment: Mapping[str, str]) -> socket.socket:
    import ssl

    context = ssl.create_default_context(
        cafile=environment.get("NOMAD_CACERT") or None, capath=environment.get("NOMAD_CAPATH") or None
    )
    certificate = environment.get("NOMAD_CLIENT_CERT")
    if certificate:
        context.load_cert_chain(certificate, environment.get("NOMAD_CLIENT_KEY") or None)
    return context.wrap_socket(plain, server_hostname=environment.get("NOMAD_TLS_SERVER_NAME") or host)
