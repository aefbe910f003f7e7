# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serves a directory over https until it is killed, and logs each request: serve.py DIR CERT KEY PORT_FILE LOG

/redirect/http leads to a URL that is not https, /redirect/NAME to /NAME.
"""

from __future__ import annotations

import http.server
import os
import ssl
import sys


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        with open(sys.argv[5], "a") as log:
            log.write(self.path + "\n")
        if self.path.startswith("/redirect/"):
            name = self.path[len("/redirect") :]
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1/" if name == "/http" else name)
            self.end_headers()
        else:
            super().do_GET()


def main():
    folder, certificate, key, port_file = sys.argv[1:5]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    os.chdir(folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with open(port_file + ".new", "w") as stream:
        stream.write(str(server.server_address[1]))
    os.rename(port_file + ".new", port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
