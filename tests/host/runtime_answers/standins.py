# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Stands for the daemon of CRI-O or Nomad, which Debian does not have: it speaks the protocol, and records questions.

    crio --listen SOCKET FOLDER      CRI-O: gRPC by CRI on a socket
    nomad agent -config DIRECTORY FOLDER PORT CONF_DIR    Nomad: its HTTP API; it reads CONF_DIR now and on SIGHUP

``FOLDER/asked`` has a line for each question. A file ``FOLDER/answer`` replaces the answer: ``hang``, or JSON.
"""

from __future__ import annotations

import glob
import http.server
import json
import os
import signal
import sys
import time

from protocol_buffers import field

NODE = "f7476465-4d6e-c0de-26d0-e383c49be941"


class Standin:
    def __init__(self, folder):
        self.folder = folder

    def asked(self, what):
        with open(f"{self.folder}/asked", "a") as stream:
            stream.write(what + "\n")
        try:
            with open(f"{self.folder}/answer") as stream:
                text = stream.read()
        except FileNotFoundError:
            return None
        if text == "hang":
            time.sleep(600)
        return json.loads(text)

    def started(self):
        open(f"{self.folder}/started", "w").close()


def crio(address, folder):
    from concurrent import futures

    import grpc

    standin = Standin(folder)

    def status(request, context):
        answer = standin.asked(f"Status {request.hex()} {context.peer().split(':')[0]}") or {"ready": True}
        network = field(1, "NetworkReady") + (field(2, 1) if answer["ready"] else b"")
        network += field(3, "NetworkPluginNotReady") + field(4, answer.get("message", ""))
        runtime = field(1, "RuntimeReady") + field(2, 1)
        info = field(1, "config") + field(2, '{"sandboxImage": "pause"}')
        return field(1, field(1, runtime) + field(1, network)) + field(2, info)

    method = grpc.unary_unary_rpc_method_handler(status)
    server = grpc.server(futures.ThreadPoolExecutor(4))
    handler = grpc.method_handlers_generic_handler("runtime.v1.RuntimeService", {"Status": method})
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"unix:{address}")
    server.start()
    standin.started()
    server.wait_for_termination()


def nomad(folder, port, conf_dir):
    standin = Standin(folder)
    networks = []

    def fingerprint(*_signal):
        names = []
        for path in sorted(glob.glob(f"{conf_dir}/*.conflist")):
            with open(path) as stream:
                names.append(json.load(stream)["name"])
        networks[:] = [{"Mode": "host", "Device": "lo"}, *({"Mode": f"cni/{name}"} for name in names)]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            answers = {
                "/v1/agent/self": {"stats": {"client": {"node_id": NODE}}},
                f"/v1/node/{NODE}": {"NodeResources": {"Networks": networks}},
            }
            answer = standin.asked(f"GET {self.path}")
            status = 403 if answer == 403 else 200
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answers[self.path] if answer is None else answer).encode())

        def log_message(self, *_arguments):
            pass

    fingerprint()
    if not os.path.exists(f"{folder}/deaf"):
        signal.signal(signal.SIGHUP, fingerprint)
    else:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    standin.started()
    server.serve_forever()


if sys.argv[1] == "agent":
    nomad(sys.argv[4], int(sys.argv[5]), sys.argv[6])
else:
    crio(sys.argv[2], sys.argv[3])
