# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""One request to the HTTP API of Nomad's agent.

Like Nomad's own command line, this uses ``NOMAD_ADDR``, ``NOMAD_TOKEN``, ``NOMAD_CACERT``, ``NOMAD_CAPATH``,
``NOMAD_CLIENT_CERT``, ``NOMAD_CLIENT_KEY`` and ``NOMAD_TLS_SERVER_NAME`` in the environment.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import socket
import threading
from typing import Tuple

ANSWER_LIMIT = 4 << 20
# A token has to fit into a header.
_TOKEN = re.compile(r"[\x21-\x7e]*")


def get(host: str, port: int, path: str, secure: bool, timeout: float) -> Tuple[int, bytes]:
    """Return the status and the body of the answer, which arrives within *timeout* seconds; *secure*: over TLS.

    Raises OSError, ValueError or http.client.HTTPException.
    """
    token = os.environ.get("NOMAD_TOKEN", "")
    if not _TOKEN.fullmatch(token):
        raise ValueError("NOMAD_TOKEN is not a valid token")
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    with contextlib.ExitStack() as ending:
        ending.callback(connection.close)
        connection.sock = plain = socket.create_connection((host, port), timeout)
        late = threading.Event()

        def end() -> None:
            late.set()
            plain.shutdown(socket.SHUT_RDWR)

        # The timeout of a socket starts again with each byte that arrives.
        timer = threading.Timer(timeout, end)
        ending.callback(timer.cancel)
        timer.start()
        try:
            if secure:
                connection.sock = _wrap(plain, host)
            connection.request("GET", path, headers={"X-Nomad-Token": token} if token else {})
            response = connection.getresponse()
            body = response.read(ANSWER_LIMIT + 1)
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, socket.timeout) or late.is_set():
                raise socket.timeout("no complete answer in time") from error
            raise
    if len(body) > ANSWER_LIMIT:
        raise ValueError(f"its answer is longer than {ANSWER_LIMIT} bytes")
    return response.status, body


def _wrap(plain: socket.socket, host: str) -> socket.socket:
    import ssl

    setting = {name: os.environ.get("NOMAD_" + name) or None for name in ("CACERT", "CAPATH", "CLIENT_KEY")}
    context = ssl.create_default_context(cafile=setting["CACERT"], capath=setting["CAPATH"])
    certificate = os.environ.get("NOMAD_CLIENT_CERT")
    if certificate:
        context.load_cert_chain(certificate, setting["CLIENT_KEY"])
    return context.wrap_socket(plain, server_hostname=os.environ.get("NOMAD_TLS_SERVER_NAME") or host)
