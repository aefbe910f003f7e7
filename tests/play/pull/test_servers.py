# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Servers that do not answer or ask for a password, and those that take the records."""

from __future__ import annotations

import base64
import contextlib
import os
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest


@pytest.fixture
def serving():
    """Return a function that starts a server with this handler."""
    with contextlib.ExitStack() as stack:

        def start(handler):
            server = stack.enter_context(HTTPServer(("127.0.0.1", 0), handler))
            server.got = []
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            return server

        yield start


@pytest.mark.parametrize(
    "url",
    [
        "https://me:secret@127.0.0.1:1/r",
        "http://secret@127.0.0.1:1/r",
        "HTTPS://:secret@127.0.0.1:1/r",
        "https://me%3Asecret@127.0.0.1:1/r",
        "https://127.0.0.1:1/r?private_token=secret",
        "ssh://me:secret@127.0.0.1:1/r",
    ],
)
def test_a_secret_in_the_url_is_given_to_no_program(puller, tmp_path, url):
    (tmp_path / "git").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (tmp_path / "git").chmod(0o755)
    puller.run(url=url, status=1, environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert puller.codes() == ["secret_in_url", "nothing_verified"]
    assert "cni_pull_credentials" in puller.said and not (tmp_path / "started").exists()
    assert "secret@" not in puller.said + (puller.state / "status.json").read_text()


class GitServer(BaseHTTPRequestHandler):
    """Git's own server for HTTP, for who knows the password; notes the arguments of all programs meanwhile."""

    def do_GET(self):
        arguments = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                arguments.append(path.read_bytes())
        self.server.got.append((self.headers["Authorization"], b"\n".join(arguments)))
        if self.headers["Authorization"] != self.server.answer:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.end_headers()
            return
        path, _mark, query = self.path.partition("?")
        environment = {"GIT_PROJECT_ROOT": self.server.root, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path}
        environment.update(QUERY_STRING=query, REQUEST_METHOD=self.command, REMOTE_ADDR="127.0.0.1")
        environment.update(
            CONTENT_TYPE=self.headers["Content-Type"] or "", GIT_PROTOCOL=self.headers["Git-Protocol"] or ""
        )
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        done = subprocess.run(
            ["git", "http-backend"], input=body, env={**os.environ, **environment}, capture_output=True, check=True
        )
        head, _blank, answer = done.stdout.partition(b"\r\n\r\n")
        self.wfile.write(b"HTTP/1.0 200 OK\r\n" + head + b"\r\n\r\n" + answer)

    do_POST = do_GET

    def log_message(self, *_words):
        pass


def test_the_password_of_a_server_comes_from_a_file(puller, repository, serving):
    """No program has it as an argument, and a server that refuses it once does not make it forgotten."""
    server = serving(GitServer)
    server.root, server.answer = str(repository.path.parent), "Basic " + base64.b64encode(b"me:s3cret").decode()
    path = puller.state / "keys" / "credentials"
    url = f"http://127.0.0.1:{server.server_port}/repository/.git"
    puller.run(url=url, status=1)
    assert puller.codes() == ["not_fetched", "nothing_verified"]
    lines = f"http://other:wrong@127.0.0.1:1\nhttp://me:s3cret@127.0.0.1:{server.server_port}\n"
    path.write_text(lines)
    server.answer, right = "no", server.answer
    puller.run(url=url, status=1)
    server.answer = right
    assert puller.run(url=url)["problems"] == []
    assert server.got[-1][0] == right
    assert b"git-remote-http" in server.got[-1][1] and not any(
        b"s3cret" in arguments for _sent, arguments in server.got
    )
    assert path.read_text() == lines


@pytest.mark.parametrize("scheme", ["git", "http"])
def test_a_server_that_never_answers(puller, silent, scheme):
    good = puller.run()
    assert puller.noted() == ["first"]
    status = puller.run(url=f"{scheme}://127.0.0.1:{silent}/r", timeout=2)
    assert (status["result"], puller.codes(), puller.noted()) == ("ok", ["not_fetched"], ["first"])
    assert "2 seconds" in status["problems"][0]["message"]
    assert status["last_fetch"] == good["last_fetch"] and status["last_success"] > good["last_success"]


def test_no_server(puller):
    status = puller.run(url="http://127.0.0.1:1/r", status=1)
    assert (status["commit"], puller.codes()) == ("", ["not_fetched", "nothing_verified"])


@pytest.mark.parametrize(("hours", "overdue"), [(23, False), (25, True), (-1, True), (None, True)])
def test_what_was_not_fetched_for_too_long_is_a_failure(puller, hours, overdue):
    """The commit that is in force runs nevertheless, and as often as before."""
    puller.run()
    last = None if hours is None else time.time() - hours * 3600
    puller.edit_status(last_fetch=last)
    for run in (1, 2):
        status = puller.run(url="http://127.0.0.1:1/r", status=int(overdue), trigger="podwire-cni-pull.timer")
        assert puller.codes() == ["not_fetched", "fetch_overdue"][: 1 + overdue]
        assert (status["result"], status["failures"]) == (("failed", run) if overdue else ("ok", 0))
        assert (status["last_fetch"], puller.noted()) == (last, ["first"] * (1 + (run == 1)))
        assert f"\npodwire_cni_pull_failed {int(overdue)}\n" in (puller.directory / "pull.prom").read_text()
    assert puller.run()["failures"] == 0


def test_the_age_that_is_too_much_is_a_setting(puller):
    puller.run()
    puller.edit_status(last_fetch=time.time() - 7200)
    puller.run(url="http://127.0.0.1:1/r", max_age=3600, status=1)
    assert "3600 seconds (cni_pull_max_age)" in puller.said


class Received(BaseHTTPRequestHandler):
    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, self.headers["Authorization"], body))
        self.send_response(self.server.answer)
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()

    def log_message(self, *_words):
        pass


def test_records_are_sent(puller, serving, tmp_path):
    server = serving(Received)
    server.answer = 204
    record = tmp_path / "report" / "hosts" / "node1.json"
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    (puller.state / "keys" / "push_token").write_text("secret\n")
    url = f"http://127.0.0.1:{server.server_port}/records/"
    puller.run(push=url)
    assert server.got == [("/records/node1.json", "Bearer secret", b"{}")]
    # What cannot be sent is told, and fails nothing.
    for answer in (500, 302):
        server.answer = answer
        assert puller.run(push=url)["result"] == "ok"
        assert puller.codes() == ["not_pushed"]
    there = tmp_path / "there"
    there.mkdir()
    puller.run(push=str(there))
    assert (there / "node1.json").read_text() == "{}"
    puller.run(push=str(tmp_path / "no" / "such"))
    assert puller.codes() == ["not_pushed"]
