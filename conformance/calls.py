# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""One call of a plugin: what it gets, how it ends, and how to repeat it by hand."""

from __future__ import annotations

import json
import os
import shlex
import typing as t

from libcni import gojson
from libcni.errors import JSONError
from libcni.process import run_program

_SHOWN = 2000


class Call:
    """A finished call. `env` are the CNI_ variables, `stdin` what the plugin read, `ended` how it ended."""

    def __init__(self, path: str, env: t.Mapping[str, str], stdin: bytes, timeout: float) -> None:
        self.path = path
        self.env = dict(env)
        self.stdin = stdin
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("CNI_")}
        self.ended = run_program(path, [path], stdin, {**inherited, **env}, timeout)

    @property
    def verb(self) -> str:
        return self.env.get("CNI_COMMAND", "")

    @property
    def ok(self) -> bool:
        return not self.ended.failure

    @property
    def started(self) -> bool:
        """Whether the plugin could be started at all."""
        return self.ended.returncode is not None or self.ended.killed

    def document(self) -> t.Optional[t.Dict[str, t.Any]]:
        """Return the JSON object that is the whole stdout, None if it is anything else."""
        try:
            return gojson.as_object(gojson.loads(self.ended.stdout), "")
        except JSONError:
            return None

    def embedded(self) -> t.Optional[t.Dict[str, t.Any]]:
        """Return the object that stdout holds beside other text, so that a stray line is reported as just that."""
        document = self.document()
        text = self.ended.stdout.decode("utf-8", "replace")
        at = text.find("{")
        while document is None and at >= 0:
            try:
                candidate = json.JSONDecoder().raw_decode(text, at)[0]
            except (ValueError, RecursionError):
                at = text.find("{", at + 1)
                continue
            document = candidate if isinstance(candidate, dict) else None
            break
        return document

    @property
    def error_code(self) -> t.Optional[int]:
        code = (self.embedded() or {}).get("code")
        return code if isinstance(code, int) and not isinstance(code, bool) else None

    def outcome(self) -> str:
        """Return in one line how the call ended."""
        name = self.verb or "the call"
        if self.ok:
            return f"{name} succeeded" + (f" and printed {self._quoted(self.ended.stdout)}" * bool(self.ended.stdout))
        text = self._quoted(self.ended.stdout or self.ended.stderr)
        return f"{name} failed ({self.ended.failure})" + f": {text}" * bool(text)

    @staticmethod
    def _quoted(data: bytes) -> str:
        text = " ".join(data.decode("utf-8", "replace").split())
        text = "".join(char if char.isprintable() else "?" for char in text)
        return text if len(text) <= 300 else f"{text[:300]}..."

    def shell(self) -> str:
        """Return the call as a command for a shell."""
        env = " ".join(f"{name}={shlex.quote(value)}" for name, value in sorted(self.env.items()))
        stdin = self.stdin.decode("utf-8", "replace")
        return f"printf %s {shlex.quote(stdin[:_SHOWN])} | env {env} {shlex.quote(self.path)}"

    def as_data(self) -> t.Dict[str, t.Any]:
        """Return the call for the report."""
        return {
            "environment": self.env,
            "stdin": self.stdin.decode("utf-8", "replace")[:_SHOWN],
            "stdout": self.ended.stdout.decode("utf-8", "replace")[:_SHOWN],
            "stderr": self.ended.stderr.decode("utf-8", "replace")[-_SHOWN:],
            "status": self.ended.returncode,
            "failure": self.ended.failure,
            "shell": self.shell(),
        }


def left_processes(kept: t.Container[int] = ()) -> t.List[str]:
    """Return the processes of the sandbox, and end them: nothing but this one and *kept* runs between two calls."""
    names = []
    for word in os.listdir("/proc"):
        if not word.isdigit() or int(word) == os.getpid() or int(word) in kept:
            continue
        try:
            with open(f"/proc/{word}/stat", encoding="utf-8", errors="replace") as stream:
                name, _bracket, rest = stream.read().partition("(")[2].rpartition(")")
            if rest.split()[0] not in "ZX":
                names.append(name)
                os.kill(int(word), 9)
            os.waitpid(int(word), 0)
        except (OSError, IndexError):
            continue
    return names
