# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import threading
import time

SELF = "/v1/agent/self"


class Agent:
    """An HTTP server that stands in for Nomad's agent.

    ``answers`` by path are objects, or (status, bytes); ``requests`` has the paths and tokens.
    """

    def __init__(self, context=None, family=socket.AF_INET, host="127.0.0.1"):
        agent = self
        self.answers, self.requests, self.delay, self.drips = {}, [], 0, False

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                agent.requests.append((self.path, self.headers.get("X-Nomad-Token")))
                time.sleep(agent.delay)
                answer = agent.answers.get(self.path, (404, b"404"))
                status, body = answer if isinstance(answer, tuple) else (200, json.dumps(answer).encode())
                self.send_response(status)
                self.end_headers()
                if not agent.drips:
                    self.wfile.write(body)
                    return
                with contextlib.suppress(OSError):
                    for byte in body.ljust(500):
                        self.wfile.write(bytes([byte]))
                        time.sleep(0.01)

            def log_message(self, *_arguments):
                pass

        class Server(http.server.ThreadingHTTPServer):
            address_family = family

        self.server = Server((host, 0), Handler)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, **config):
        self.answers[SELF] = {"config": config, "member": {"Name": "web"}, "stats": {}}

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.server.shutdown()
        self.server.server_close()
