# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""One QEMU process: its command line, its monitor, and how it is found and ended."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .common import Deadline, VmError, need_program

QEMU = "qemu-system-x86_64"
MEMORY = 1024  # MiB; part of a saved state, which resumes only with the same size
ACCELERATORS = {
    # x86-64-v2 is what today's distributions ask for; the newest CPU that TCG knows is no faster.
    "tcg": ["-accel", "tcg,thread=multi,tb-size=1024", "-cpu", "Nehalem"],
    "kvm": ["-accel", "kvm", "-cpu", "host"],
}


@dataclass
class Hardware:
    """The machine that QEMU emulates. A saved state resumes only on an equal machine, except for disk and forwards."""

    accelerator: str
    disk: Path
    memory: Path
    boot: list[str]  # options for what to boot
    share_memory: bool = False  # whether what the machine writes to its memory goes to the file
    wait_for_state: bool = False
    restrict: bool = True
    forward: dict[int, int] = field(default_factory=dict)  # port of the machine -> port of 127.0.0.1, 0 for a free one

    def options(self) -> list[str]:
        """Return QEMU's options."""
        forwards = "".join(f",hostfwd=tcp:127.0.0.1:{outside}-:{inside}" for inside, outside in self.forward.items())
        share = "on" if self.share_memory else "off"
        return [
            *ACCELERATORS[self.accelerator],
            *("-machine", "q35,memory-backend=memory", "-smp", "1", "-m", str(MEMORY)),
            *("-object", f"memory-backend-file,id=memory,size={MEMORY}M,mem-path={escaped(self.memory)},share={share}"),
            *("-nodefaults", "-no-user-config", "-display", "none"),
            *self.boot,
            *("-drive", f"if=none,id=disk,file={escaped(self.disk)},format=qcow2,cache=unsafe,discard=unmap"),
            *("-device", "virtio-blk-pci,drive=disk"),
            *("-netdev", f"user,id=net,restrict={'on' if self.restrict else 'off'}{forwards}"),
            *("-device", "virtio-net-pci,netdev=net,romfile="),
            *("-device", "virtio-rng-pci"),
            *(("-incoming", "defer") if self.wait_for_state else ()),
        ]


def escaped(path: Path) -> str:
    """Return a path for QEMU's comma-separated options."""
    return str(path).replace(",", ",,")


def start(directory: Path, hardware: Hardware, keep: Sequence[int] = ()) -> None:
    """Start QEMU as a daemon that keeps its files in ``directory`` and the descriptors ``keep`` open.

    The directory is also the process's mark: `processes_in` finds it by the pid file named on its command line.
    VmError when it does not start.
    """
    need_program(QEMU)
    command = [
        QEMU,
        *hardware.options(),
        *("-serial", "file:console.log", "-qmp", "unix:qmp,server=on,wait=off"),
        *("-pidfile", str(directory / "pid"), "-daemonize"),
    ]
    with open(directory / "qemu.log", "w+", encoding="utf-8", errors="replace") as log:
        # The monitor's socket has a relative name because the length of a socket's path is limited.
        done = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=keep,
            check=False,
        )
        log.seek(0)
        said = log.read().strip()
    if done.returncode == 0:
        return
    if "Could not set up host forwarding rule" in said:
        ports = ", ".join(str(port) for port in hardware.forward.values() if port)
        raise VmError(
            f"a port of 127.0.0.1 that leads to the machine is in use (asked for: {ports}); QEMU said: {said}"
        )
    raise VmError(f"QEMU did not start (status {done.returncode}): {said or 'it said nothing'}")


class Monitor:
    """A connection to QEMU's monitor (QMP)."""

    def __init__(self, directory: Path) -> None:
        """Connect to the monitor of the process in ``directory``; VmError when there is none."""
        descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        try:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(60)
            self._socket.connect(f"/proc/self/fd/{descriptor}/qmp")
        except OSError as error:
            raise VmError(f"{directory}: QEMU's monitor does not answer ({error}); {last_words(directory)}") from error
        finally:
            os.close(descriptor)
        self._stream = self._socket.makefile("rw", encoding="utf-8")
        self._directory = directory
        self._read()  # the greeting
        self.command("qmp_capabilities")

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._socket.close()

    def _read(self) -> dict[str, Any]:
        try:
            line = self._stream.readline()
        except OSError as error:
            raise VmError(f"{self._directory}: QEMU's monitor stopped answering ({error})") from error
        if not line:
            raise VmError(f"{self._directory}: QEMU ended; {last_words(self._directory)}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def command(self, name: str, **arguments: object) -> Any:
        """Run a command and return what it returns; VmError when QEMU refuses."""
        json.dump({"execute": name, "arguments": arguments}, self._stream)
        self._stream.write("\n")
        self._stream.flush()
        while True:
            answer = self._read()
            if "error" in answer:
                raise VmError(f"{self._directory}: QEMU refused {name}: {answer['error'].get('desc')}")
            if "return" in answer:
                return answer["return"]

    def save(self, state: Path) -> None:
        """Stop the machine and write the state of its devices; its memory stays in its file."""
        self.command("stop")
        self._leave_memory_alone()
        self.command("migrate", uri=f"exec:cat > {shlex.quote(str(state))}")
        self._migrated()

    def restore(self, state: Path) -> None:
        """Resume where `save` stopped."""
        self._leave_memory_alone()
        self.command("migrate-incoming", uri=f"exec:cat {shlex.quote(str(state))}")
        self._migrated()
        self.command("cont")

    def _leave_memory_alone(self) -> None:
        self.command("migrate-set-capabilities", capabilities=[{"capability": "x-ignore-shared", "state": True}])

    def _migrated(self) -> None:
        deadline = Deadline(60)
        while not deadline.over:
            status = self.command("query-migrate").get("status")
            if status == "completed":
                return
            if status == "failed":
                break
            time.sleep(0.02)
        raise VmError(
            f"{self._directory}: QEMU could not save or restore the machine's state; {last_words(self._directory)}"
        )

    def forwards(self) -> dict[int, int]:
        """Return which port of 127.0.0.1 leads to which port of the machine, by the latter."""
        table = self.command("human-monitor-command", **{"command-line": "info usernet"})
        found = re.findall(r"TCP\[HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s+\S+\s+(\d+)", table)
        return {int(inside): int(outside) for outside, inside in found}


def last_words(directory: Path) -> str:
    """Return what QEMU and the machine's console said last, for an error message."""
    parts = []
    for name, what in (("qemu.log", "QEMU said"), ("console.log", "the console's last lines")):
        with contextlib.suppress(OSError):
            text = (directory / name).read_text(encoding="utf-8", errors="replace").strip()
            if text:
                parts.append(f"{what}: " + " | ".join(line.strip() for line in text.splitlines()[-5:]))
    return "; ".join(parts) or "QEMU and the console said nothing"


def processes_in(directory: Path) -> Iterator[tuple[int, int]]:
    """Yield (pid, pidfd) of the QEMU processes whose pid file is named in or below ``directory``.

    The pid file's content is not trusted: its number may be another process's by now. The pidfd, which is closed
    after each turn, cannot become another process's.
    """
    inside = f"{os.path.realpath(directory)}/"
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            descriptor = os.pidfd_open(int(entry))
        except OSError:
            continue
        try:
            if _pid_file(int(entry)).startswith(inside):
                yield int(entry), descriptor
        finally:
            os.close(descriptor)


def _pid_file(pid: int) -> str:
    """Return the pid file that a process of QEMU was started with, "" for any other process."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if os.path.basename(os.fsdecode(words[0])) != QEMU:
            return ""
        return os.path.realpath(os.fsdecode(words[words.index(b"-pidfile") + 1]))
    except (OSError, ValueError, IndexError):
        return ""


def end_processes(directory: Path) -> list[int]:
    """End every QEMU process of ``directory``, by force if needed; return their pids when they are gone."""
    ended = []
    for pid, descriptor in processes_in(directory):
        for sent, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 30)):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, sent)
            if select.select([descriptor], [], [], patience)[0]:
                ended.append(pid)
                break
        else:
            raise VmError(f"the QEMU process {pid} of {directory} does not end, even when killed")
    return ended
