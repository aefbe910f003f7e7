# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Runs Python programs in forks of a process that has imported what they import.

Most of a short run of a module or of ansible-playbook is the start of an interpreter and its imports.

As a program, it listens on a socket: preloaded.py SOCKET NAME..., where each NAME is a module to import, `package.*`
for all modules of a package, or `module?` for one that may be missing. It ends with its standard input. A request is a
frame of JSON, and standard input, output and error of the run as descriptors; the answer is one byte, the exit status.
A run whose requester has gone is killed.

As a module, `Server` starts it and sends requests. tests/tools/python is an interpreter for Ansible that sends
requests.
"""

from __future__ import annotations

import array
import atexit
import gc
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

# Where tests/tools/python looks for it: in the private /run of the tests.
ADDRESS = Path("/run/home/python.socket")
# Of a run that a signal ended, as a shell says it.
SIGNALLED = 128


def ask(path: str, request: dict[str, Any], files: Iterable[int]) -> int:
    """Run a program and return its exit status.

    *request* has ``code`` (None: standard input), ``argv``, ``env`` and ``cwd``.
    """
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(path)
        frame = json.dumps(request).encode("utf-8", "surrogateescape")
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
        stream.sendmsg([struct.pack("!I", len(frame))], rights)
        stream.sendall(frame)
        answer = stream.recv(1)
    return answer[0] if answer else SIGNALLED + signal.SIGKILL


class Server:
    """A process that has imported *modules*, run by *python* with *path* as PYTHONPATH and *environment* besides."""

    def __init__(self, address: Path, python: str, path: str, modules: Iterable[str], **environment: str) -> None:
        self.address = str(address)
        address.unlink(missing_ok=True)
        self._process = subprocess.Popen(
            [python, __file__, self.address, *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, **environment},
            cwd="/",
        )
        assert self._process.stdout
        assert self._process.stdout.readline(), "the process that imports for others has ended; its error is above"
        atexit.register(self.close)

    def close(self) -> None:
        self._process.communicate()

    def run(self, code: str, *argv: str, env: dict[str, str], stdin: str = "", cwd: str = "/") -> tuple[int, str, str]:
        """Return the exit status of a program, and what it printed to standard output and error."""
        files = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
        try:
            os.write(files[0], stdin.encode())
            os.lseek(files[0], 0, os.SEEK_SET)
            status = ask(self.address, {"code": code, "argv": argv, "env": env, "cwd": cwd}, files)
            return (status, *(_read(file) for file in files[1:]))
        finally:
            for file in files:
                os.close(file)


def _read(file: int) -> str:
    size = os.fstat(file).st_size
    return os.pread(file, size, 0).decode("utf-8", "backslashreplace")


# --- the process that forks


def import_all(names: list[str]) -> None:
    import importlib
    import pkgutil

    for name in names:
        try:
            package = importlib.import_module(name.rstrip(".*?"))
        except ImportError:
            if name.endswith("?"):
                continue
            raise
        if name.endswith(".*"):
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                if not module.name.endswith("__main__"):
                    importlib.import_module(module.name)


def program(request: dict[str, Any]) -> int:
    """Run a program as a process of its own would, in this fork, and return its exit status."""
    import io
    import traceback

    # What was registered is for the process that forks.
    atexit._clear()
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        raw = io.FileIO(number, "w" if number else "r", closefd=False)
        buffer = io.BufferedWriter(raw) if number else io.BufferedReader(raw)
        errors = "backslashreplace" if name == "stderr" else "surrogateescape"
        stream = io.TextIOWrapper(buffer, encoding="utf-8", errors=errors, line_buffering=name == "stderr")
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = list(request["argv"]) or [""]
    status = 0
    try:
        code = sys.stdin.read() if request["code"] is None else request["code"]
        main = sys.modules["__main__"] = type(sys)("__main__")
        exec(compile(code, "<program>", "exec"), main.__dict__)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - the one who asked shows it
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status & 255


def fork(stream: socket.socket, listener: socket.socket) -> int:
    """Start what is requested on *stream*, and return its process ID, or 0 if the requester has gone."""
    header, ancillary, _flags, _address = stream.recvmsg(4, socket.CMSG_SPACE(12))
    if len(header) < 4 or not ancillary:
        return 0
    files = array.array("i", ancillary[0][2])
    frame = b""
    (size,) = struct.unpack("!I", header)
    while len(frame) < size:
        frame += stream.recv(size - len(frame))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            stream.close()
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            status = program(json.loads(frame.decode("utf-8", "surrogateescape")))
        finally:
            os._exit(status)
    for file in files:
        os.close(file)
    return child


def serve(listener: socket.socket) -> None:
    """Answer requests until standard input ends."""
    import select

    wake, woken = socket.socketpair()
    wake.setblocking(False)
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.fileno())
    signal.signal(signal.SIGCHLD, lambda *_arguments: None)
    running: dict[int, socket.socket] = {}
    while True:
        ready, _writable, _exceptional = select.select([0, listener, wake, *running.values()], [], [])
        if wake in ready:
            wake.recv(4096)
        for child, stream in list(running.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                # The requester may have gone.
                stream.send(bytes([code if code >= 0 else SIGNALLED - code]), socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
                running.pop(child).close()
            elif stream in ready:
                os.kill(child, signal.SIGKILL)
        if listener in ready:
            stream, _address = listener.accept()
            child = fork(stream, listener)
            if child:
                running[child] = stream
        if 0 in ready:
            return


def main(address: str, names: list[str]) -> None:
    # What is imported stays, in memory that the forks share.
    gc.disable()
    import_all(names)
    gc.freeze()
    gc.enable()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    print("ready", flush=True)
    serve(listener)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
