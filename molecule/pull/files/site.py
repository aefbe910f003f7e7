# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A git repository with signed commits, its server, and a place for records: site.py COMMAND DIRECTORY ...

make DIRECTORY REPOSITORY ARCHIVE   with the files of REPOSITORY and the collection; prints {"git": port, "http": port}
commit DIRECTORY KEY                commits all, signed with the key team or stranger, or unsigned
hang DIRECTORY, answer DIRECTORY    the git server accepts connections and does not answer; it answers again
stop DIRECTORY                      end the servers
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def run(*words: object) -> None:
    subprocess.run([*map(str, words)], check=True, stdout=subprocess.DEVNULL)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def make(directory: Path, source: str, archive: str) -> None:
    repository = directory / "cni.git"
    for name in ("team", "stranger"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", directory / name)
    shutil.copytree(source, repository)
    shutil.copy(archive, repository / "podwire-cni.tar.gz")
    digest = hashlib.sha256(Path(archive).read_bytes()).hexdigest()
    (repository / "podwire-cni.tar.gz.sha256").write_text(f"{digest}\n")
    run("git", "init", "--quiet", "--initial-branch", "main", repository)
    for name, value in {"user.name": "a", "user.email": "team@example.org", "gpg.format": "ssh"}.items():
        run("git", "-C", repository, "config", name, value)
    commit(directory, "team")
    ports = {"git": free_port(), "http": free_port()}
    words = [
        "git",
        "daemon",
        "--export-all",
        f"--base-path={directory}",
        "--listen=127.0.0.1",
        f"--port={ports['git']}",
    ]
    commands = {"git": words, "http": [sys.executable, __file__, "serve", str(directory), str(ports["http"])]}
    for name, command in commands.items():
        with (directory / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        (directory / f"{name}.pid").write_text(str(process.pid))
        wait_for(ports[name])
    print(json.dumps(ports))


def wait_for(port: int) -> None:
    for _turn in range(100):
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"nothing listens on port {port}")


def commit(directory: Path, key: str) -> None:
    git = ["git", "-C", directory / "cni.git"]
    run(*git, "add", "--all")
    signed = ["--no-gpg-sign"] if key == "unsigned" else ["-S"]
    run(
        *git,
        "-c",
        f"user.signingkey={directory / key}",
        "commit",
        *signed,
        "--quiet",
        "--allow-empty",
        "-m",
        "a change",
    )


class Records(BaseHTTPRequestHandler):
    """Takes records as a report directory has them."""

    def do_PUT(self) -> None:
        hosts = self.server.directory / "report" / "hosts"  # type: ignore[attr-defined]
        hosts.mkdir(parents=True, exist_ok=True)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        (hosts / os.path.basename(self.path)).write_bytes(body)
        self.send_response(204)
        self.end_headers()


def serve(directory: Path, port: str) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), Records)
    server.directory = directory  # type: ignore[attr-defined]
    server.serve_forever()


def tell(directory: Path, name: str, number: signal.Signals) -> None:
    """Send a signal to a server and all that it has started."""
    path = directory / f"{name}.pid"
    if path.exists():
        try:
            os.killpg(int(path.read_text()), number)
        except ProcessLookupError:
            return


def stop(directory: Path) -> None:
    for name in ("git", "http"):
        tell(directory, name, signal.SIGKILL)


COMMANDS = {
    "make": make,
    "commit": commit,
    "hang": lambda directory: tell(directory, "git", signal.SIGSTOP),
    "answer": lambda directory: tell(directory, "git", signal.SIGCONT),
    "serve": serve,
    "stop": stop,
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
