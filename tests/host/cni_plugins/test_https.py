# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import http.server
import shutil
import ssl
import threading

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh

NAMES = ["bridge", "host-local", "ptp"]


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder and notes the paths of all requests.

    /redirect/http leads to a URL that is not https, /redirect/NAME to /NAME.
    """

    def __init__(self, folder, context):
        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments):
                super().__init__(*arguments, directory=folder)

            def do_GET(self):
                self.server.requests.append(self.path)
                if self.path.startswith("/redirect/"):
                    name = self.path[len("/redirect") :]
                    self.send_response(302)
                    self.send_header("Location", "http://127.0.0.1/" if name == "/http" else name)
                    self.end_headers()
                else:
                    super().do_GET()

        super().__init__(("127.0.0.1", 0), Handler)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server_address[1]}"
        self.requests = []


@pytest.fixture(scope="module")
def folder(tmp_path_factory, pack, new):
    """Return a folder with an archive, and a certificate authority for 127.0.0.1 beside it."""
    path = tmp_path_factory.mktemp("https")
    (path / "plugins").mkdir()
    (path / "served").mkdir()
    for name in NAMES:
        shutil.copy(f"{new}/{name}", path / "plugins")
    pack(path / "plugins", path / "served" / "plugins.tgz", "gzip -1")
    sh(
        f"""
        openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=test -addext subjectAltName=IP:127.0.0.1 \
          -keyout {path}/key.pem -out {path}/ca.pem
        """
    )
    return path


@pytest.fixture
def server(folder, work, monkeypatch):
    """Return a server that the host and the controller trust. The controller's cache of archives is empty."""
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(work / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    with Server(folder / "served", context) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def checksum(folder):
    return f"sha256:{hashlib.sha256((folder / 'served' / 'plugins.tgz').read_bytes()).hexdigest()}"


pytestmark = pytest.mark.parametrize("remote_src", [True, False], ids=["on_the_host", "on_the_controller"])


def test_an_archive_is_downloaded_once_and_only_if_it_is_needed(host, bin_dir, server, checksum, remote_src):
    path = "/redirect/plugins.tgz"
    options = {
        "src": f"{server.url}{path}",
        "remote_src": remote_src,
        "checksum": checksum,
        "plugins": ["bridge", "ptp"],
    }
    predicted = host.run("cni_plugins", check_mode=True, **options)
    made = host.run("cni_plugins", **options)
    assert predicted["actions"] == made["actions"]
    assert [plugin["action"] for plugin in made["plugins"]] == ["installed", "installed"]
    # A host may fetch once in the check and once in the run; it keeps no archives.
    assert server.requests.count(path) in ([1, 2] if remote_src else [1])
    fetched = list(server.requests)
    assert not host.run("cni_plugins", **options)["changed"]
    assert server.requests == fetched

    host.run("cni_plugins", state="restored")
    assert list(bin_dir.rglob("*")) == []
