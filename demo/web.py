# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A web server for the demo. Unlike `python3 -m http.server`, it does not query DNS for its own name."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer


class Handler(BaseHTTPRequestHandler):
    """Says hello."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"Hello from the container web.\n")


TCPServer(("", 80), Handler).serve_forever()
