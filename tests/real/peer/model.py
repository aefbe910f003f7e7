# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A case: files, what the plugins answer, and commands; and what was seen of it.

In paths and texts of a case, @ROOT@ is the directory that the case runs in.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import typing as t
from dataclasses import dataclass, field

ROOT = "@ROOT@"
NETNS = "/run/netns/blue"
CONTAINER = "cid-1"
# What is on the disk before a case and belongs to neither side.
PRIVATE = ("bin", "record", "script.json")


@dataclass
class Link:
    """A symbolic link."""

    target: str


@dataclass
class Directory:
    """An empty directory."""

    mode: int = 0o700


File = t.Union[bytes, Link, Directory]


@dataclass
class Step:
    """One command. `files` are written before it; None removes."""

    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    files: dict[str, File | None] = field(default_factory=dict)


@dataclass
class Case:
    """`script`: answers of the plugins, by plugin and command (see recorder/main.go); `mode`: of all files."""

    files: dict[str, File] = field(default_factory=dict)
    plugins: list[str] = field(default_factory=list)
    script: dict[str, list[dict[str, t.Any]]] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    name: str = ""
    mode: int = 0o600

    def environment(self, root: str, step: Step) -> dict[str, str]:
        """Return the whole environment of a step."""
        env = {
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "NETCONFPATH": f"{ROOT}/net.d",
            "CNI_PATH": f"{ROOT}/bin",
            "CNI_CACHE_DIR": f"{ROOT}/cache",
            "CNI_CONTAINERID": CONTAINER,
            **self.env,
            **step.env,
            "PEER_RECORD": f"{ROOT}/record",
            "PEER_SCRIPT": f"{ROOT}/script.json",
        }
        return {name: value.replace(ROOT, root) for name, value in env.items()}

    def arguments(self, root: str, step: Step) -> list[str]:
        """Return a step's command line."""
        return [text.replace(ROOT, root) for text in step.argv]

    def lay(self, root: str, recorder: str) -> None:
        """Make the case's directory anew."""
        shutil.rmtree(root, ignore_errors=True)
        os.makedirs(root + "/bin")
        os.mkdir(root + "/record")
        for plugin in self.plugins:
            os.symlink(recorder, f"{root}/bin/{plugin}")
        with open(root + "/script.json", "w", encoding="utf-8") as file:
            json.dump(self.script, file)
        write(root, self.files, self.mode)


def write(root: str, files: t.Mapping[str, File | None], mode: int) -> None:
    """Write files below a case's directory."""
    for name, content in files.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.islink(path) or os.path.isfile(path):
            os.unlink(path)
        elif os.path.isdir(path):
            shutil.rmtree(path)
        if isinstance(content, Link):
            os.symlink(content.target, path)
        elif isinstance(content, Directory):
            os.mkdir(path, content.mode)
        elif content is not None:
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, mode)


@dataclass
class Call:
    """One call of a plugin, as the plugin saw it."""

    plugin: str
    command: str
    argv: list[str]
    directory: str
    env: list[bytes]
    stdin: bytes


@dataclass
class Seen:
    """What one step did. `files`: by path below the case's directory, the kind and mode, and the content."""

    status: int
    stdout: bytes
    stderr: bytes
    calls: list[Call]
    files: dict[str, tuple[str, bytes]]


def read_calls(root: str, done: int) -> list[Call]:
    """Return the calls that were recorded after the first `done`."""
    calls = []
    for name in sorted(os.listdir(root + "/record"))[done:]:
        with open(f"{root}/record/{name}", encoding="utf-8") as file:
            raw = json.load(file)
        decode = base64.b64decode
        calls.append(
            Call(
                raw["plugin"],
                raw["command"],
                raw["args"],
                raw["dir"],
                [decode(item) for item in raw["env"]],
                decode(raw["stdin"] or ""),
            )
        )
    return calls


# A directory that was moved out of the way has any name.
ASIDE = "cache/.cniCacheV1-ANY.aside"
_RANDOM = re.compile(r"cache/\.cniCacheV1-[0-9a-f]{16}\.aside")


def read_files(root: str) -> dict[str, tuple[str, bytes]]:
    """Return what is below a case's directory."""
    found: dict[str, tuple[str, bytes]] = {}

    def walk(directory: str) -> None:
        with os.scandir(directory) as entries:
            for entry in entries:
                name = os.path.relpath(entry.path, root)
                if name in PRIVATE:
                    continue
                name = _RANDOM.sub(ASIDE, name)
                mode = "%06o" % entry.stat(follow_symlinks=False).st_mode
                if entry.is_symlink():
                    found[name] = mode, os.fsencode(os.readlink(entry.path))
                elif entry.is_dir():
                    found[name] = mode, b""
                    walk(entry.path)
                else:
                    with open(entry.path, "rb") as file:
                        found[name] = mode, file.read()

    walk(root)
    return found
