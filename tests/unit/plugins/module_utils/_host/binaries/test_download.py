# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import http.server
import io
import shutil
import ssl
import subprocess
import threading
import time

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries import download
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.download import check_url, fetch, shown_url
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.paths import is_url

BODY = b"archive" * 1000


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/a.tgz":
            self.answer(200, BODY, {"Content-Length": str(len(BODY))})
        elif self.path == "/unannounced":
            self.answer(200, BODY, {})
        elif self.path == "/short":
            self.answer(200, BODY, {"Content-Length": str(2 * len(BODY))})
        elif self.path == "/moved":
            self.answer(302, b"", {"Location": "/a.tgz"})
        elif self.path == "/downgraded":
            self.answer(302, b"", {"Location": "http://127.0.0.1:1/a.tgz?token=secret"})
        elif self.path == "/dripping-body":
            self.drip(b"HTTP/1.0 200 OK\r\n\r\n", BODY)
        elif self.path == "/dripping-head":
            self.drip(b"HTTP/1.0 200 OK\r\n", b"X-Long: " + b"x" * 1000)
        else:
            self.answer(404, b"", {})

    def drip(self, at_once, slowly):
        """Send a byte now and then, until all is sent or the other side has gone."""
        self.wfile.write(at_once)
        with contextlib.suppress(OSError):
            for byte in slowly[:500]:
                self.wfile.write(bytes([byte]))
                time.sleep(0.01)

    def answer(self, code, body, headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A certificate for 127.0.0.1 that is its own authority."""
    openssl = shutil.which("openssl")
    assert openssl, "these tests need openssl"
    folder = tmp_path_factory.mktemp("ca")
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=test"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "ca.pem")),
        ],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    return folder


@pytest.fixture(scope="module")
def server(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(str(authority / "ca.pem"), str(authority / "key.pem"))
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # A client that goes away is no error here.
    served.handle_error = lambda request, address: None
    served.socket = context.wrap_socket(served.socket, server_side=True)
    thread = threading.Thread(target=served.serve_forever, args=(0.01,))
    thread.start()
    yield "https://127.0.0.1:%d" % served.server_address[1]
    served.shutdown()
    thread.join()
    served.server_close()


@pytest.fixture
def trusted(monkeypatch, authority):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def error_of(url, **keywords):
    target = io.BytesIO()
    with pytest.raises(HostError) as caught:
        fetch(url, target, **keywords)
    return caught.value


@pytest.mark.parametrize("path", ["/a.tgz", "/moved", "/unannounced"])
def test_a_file_is_fetched_also_over_a_redirect(server, trusted, path):
    target = io.BytesIO()
    fetch(server + path, target)
    assert target.getvalue() == BODY


def test_a_redirect_away_from_https_is_refused_without_showing_its_query(server, trusted):
    error = error_of(server + "/downgraded")
    assert error.code == "not_https"
    assert "http://127.0.0.1:1/a.tgz" in error.msg and "secret" not in error.msg


def test_an_unknown_authority_is_refused_and_the_remedy_named(server, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    error = error_of(server + "/a.tgz")
    assert error.code == "download_failed" and "SSL_CERT_FILE" in error.msg


@pytest.mark.parametrize("path", ["/a.tgz", "/unannounced"])
def test_what_is_too_large_is_not_fetched(server, trusted, path):
    error = error_of(server + path, limit=len(BODY) - 1)
    assert error.code == "download_failed" and "larger than" in error.msg


@pytest.mark.parametrize("path, why", [("/none", "404"), ("/short", "7000")])
def test_a_failed_download_says_why(server, trusted, path, why):
    error = error_of(server + path)
    assert error.code == "download_failed" and why in error.msg and server + path in error.msg


def test_a_server_that_is_not_there(trusted):
    assert "refused" in error_of("https://127.0.0.1:1/a.tgz").msg


# At -1, it is over before the first byte.
@pytest.mark.parametrize(("part", "seconds"), [("head", 0.5), ("body", 0.5), ("body", -1)])
def test_the_total_time_of_a_download_holds_while_bytes_drip(server, trusted, monkeypatch, part, seconds):
    monkeypatch.setattr(download, "_TOTAL_TIMEOUT", seconds)
    error = error_of(server + "/dripping-" + part)
    assert error.code == "download_failed" and "took longer than" in error.msg


@pytest.mark.parametrize(
    "url", ["http://h/a", "ftp://h/a", "file:///etc/shadow", "https:///a", "https://user:secret@h/a?token=secret"]
)
def test_only_https_urls_are_accepted(url):
    with pytest.raises(HostError) as caught:
        check_url(url)
    assert caught.value.code == "not_https" and "secret" not in caught.value.msg


def test_a_path_is_no_url():
    assert is_url("HTTPS://h/a") and not is_url("/a:b//c") and not is_url("a.tgz")
    assert shown_url("https://u:p@h:8/a?b#c") == "https://h:8/a"
