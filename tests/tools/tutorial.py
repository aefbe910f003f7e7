# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Follows a page word by word: gives its commands to a shell, and compares what they print with the page.

Blocks of the language ``sh`` are commands without a prompt. In those of ``console``, commands begin with ``$ ``, and
the lines below a command are its output. A line ``...`` of it stands for any lines, and ``...`` in a line for any text.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

BLOCK = re.compile(r"^```(?P<language>console|sh)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
# A command that opens a shell ends with that shell, so its status is not asked for.
SHELLS = ("./run playground",)
MARK = "tutorial-status-"
# No command of a page takes as long, even on a busy machine.
PATIENCE = 1200


@dataclass
class Command:
    text: str
    output: list[str] = field(default_factory=list)


def commands(page: str) -> list[Command]:
    """Return the commands of a page, with their output."""
    found: list[Command] = []
    for block in BLOCK.finditer(page):
        if block["language"] == "sh":
            found.append(Command(block["text"].rstrip("\n"), ["..."]))
            continue
        for line in block["text"].splitlines():
            if line.startswith("$ "):
                found.append(Command(line[2:]))
            elif found:
                found[-1].output.append(line)
    return found


def missing(expected: Sequence[str], printed: str) -> str | None:
    """Return the first line of *expected* that *printed* does not have at its place; None if it has all of them.

    Lines of hosts that follow each other may come in any order, as hosts answer.
    """
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    begin = at = 0
    for number, line in enumerate(expected):
        words = " ".join(line.split())
        if words == "...":
            continue
        if not (number and _of_host(line) and _of_host(expected[number - 1])):
            begin = at
        pattern = re.compile(".*".join(map(re.escape, words.split("..."))))
        place = next((place for place in range(begin, len(lines)) if pattern.fullmatch(lines[place])), None)
        if place is None:
            return line
        at = max(at, place + 1)
    return None


def _of_host(line: str) -> bool:
    return re.match(r"(ok|changed|fatal): \[", line) is not None


class Shell:
    """A shell that gets commands one by one, as from somebody who waits for each of them."""

    def __init__(self, words: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
        )
        self._rest = b""
        self._number = 0

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, kind: object, *_details: object) -> None:
        if kind is not None:
            # A process of sudo ends with its input.
            with contextlib.suppress(PermissionError):
                self._process.terminate()
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def run(self, command: Command) -> tuple[int, str]:
        """Return the exit status of a command, and what it printed. Raises EOFError if the shell ends."""
        if command.text in SHELLS:
            last = next(line for line in reversed(command.output) if line != "...")
            self._send(f"{command.text}\n")
            return 0, self._until(re.compile(".*".join(map(re.escape, last.split("..."))).encode()))
        self._number += 1
        mark = f"{MARK}{self._number}"
        # In a separate line, which the shell below reads if the command was to leave one.
        self._send(f"{command.text}\n")
        self._send(f'echo "{mark}:$?"\n')
        text = self._until(re.compile(rf"^{mark}:(\d+)\n".encode(), re.MULTILINE))
        printed, _mark, status = text.rpartition(f"{mark}:")
        return int(status), printed

    def _send(self, text: str) -> None:
        assert self._process.stdin
        # A shell that has ended takes nothing; what it printed before is still read.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(text.encode())

    def _until(self, pattern: re.Pattern[bytes]) -> str:
        assert self._process.stdout
        stream = self._process.stdout.fileno()
        end = time.monotonic() + PATIENCE
        while not (match := pattern.search(self._rest)):
            ready, _write, _error = select.select([stream], [], [], max(0, end - time.monotonic()))
            data = os.read(stream, 65536) if ready else b""
            if not data:
                raise EOFError(self._rest.decode(errors="replace"))
            self._rest += data
        text, self._rest = self._rest[: match.end()], self._rest[match.end() :]
        return text.decode(errors="replace")


def follow(page: str, words: Sequence[str], prepare: Sequence[str] = ()) -> Iterator[str]:
    """Follow *page* in the shell that *words* start, and yield a line for each command, with [ok] or [FAILED].

    It stops at the first command that fails. *prepare* are commands that the page does not have.
    """
    with Shell(words) as shell:
        try:
            for text in prepare:
                shell.run(Command(text))
            for command in commands(page):
                status, printed = shell.run(command)
                lacking = missing(command.output, printed)
                name = command.text.splitlines()[0]
                if status or lacking is not None:
                    yield printed.rstrip("\n")
                    yield f"  [FAILED] {name}: " + (
                        f"exit status {status}" if status else f"it does not print the line {lacking!r}"
                    )
                    return
                yield f"  [ok] {name}"
        except EOFError as rest:
            yield f"{rest}\n  [FAILED] the shell has ended"
