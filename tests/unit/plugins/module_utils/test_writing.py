# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Every place of _host that changes a file is known. A new one goes through files.py, or is explained here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HOST = Path(__file__).resolve().parents[4] / "plugins" / "module_utils" / "_host"
CHANGES = re.compile(
    "l?chown|fchown|l?chmod|fchmod|copy(2|file|tree)?|f?truncate|link|makedirs|mkdir|mkfifo|mknod|move|pwrite|remove"
    "|removedirs|rename|replace|rmdir|rmtree|symlink|unlink|utime|write_bytes|write_text"
)
WRITABLE = re.compile(r"O_(WRONLY|RDWR|CREAT|TRUNC)")

_CACHE = "in a directory of the cache, which only root can write to"
_DESCRIPTOR = "through the descriptor of a directory or file"
_RUN = "below /run, in a directory that is root's alone"
_PRIVATE = "in the mount namespace of a private host, which ends with the rehearsal"
# file -> (why it may, what it calls)
ALLOWED = {
    "files.py": ("the one place", "chmod fchmod fchown link makedirs mkdir open rename unlink"),
    "trust.py": ("the one place, part by part of a path", "fchmod mkdir"),
    "paths.py": ("stages and renames in one directory", "open rename"),
    "lock.py": (_RUN, "ftruncate makedirs open pwrite"),
    "named_netns.py": ("names of namespaces, in /run/netns as ip has them", "makedirs unlink"),
    "leases.py": ("the store of host-local, under its lock, without following links", "makedirs open unlink"),
    "kernel/sysctls.py": ("a sysctl, without following links", "open"),
    "attachments/store.py": (f"{_CACHE}, or {_RUN}", "makedirs unlink"),
    "binaries/batch.py": (_DESCRIPTOR, "chmod chown fchmod fchown symlink"),
    "garbage/candidate.py": (_RUN, "makedirs open rename"),
    "garbage/pods.py": (_CACHE, "unlink"),
    "networks/execute.py": (_DESCRIPTOR, "fchmod fchown rmdir"),
    "trials/experiment.py": (_PRIVATE, "makedirs open"),
    "trials/host_copy.py": (_PRIVATE, "open"),
    "trials/memory.py": (_RUN, "makedirs unlink"),
    "trials/planner.py": ("an empty directory that it made", "rmdir"),
    "trials/private_host.py": (_PRIVATE, "chmod makedirs open"),
    "trials/rehearsal.py": (_PRIVATE, "makedirs open symlink"),
}


def changes(tree):
    """Yield the functions by which a file changes others."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function, arguments = node.func, " ".join(map(ast.unparse, node.args[1:]))
        if isinstance(function, ast.Name) and function.id == "open":
            mode = next((ast.unparse(word.value) for word in node.keywords if word.arg == "mode"), arguments)
            if re.match(r"'[rbt]*[wax+]", mode):
                yield "open"
        elif isinstance(function, ast.Attribute):
            module = function.value.id if isinstance(function.value, ast.Name) else ""
            written = function.attr in ("write_bytes", "write_text")
            if function.attr == "open" and module == "os" and WRITABLE.search(arguments):
                yield "open"
            elif written or (module in ("os", "shutil") and CHANGES.fullmatch(function.attr)):
                yield function.attr


def test_every_place_is_known():
    places = {}
    for path in sorted(HOST.rglob("*.py")):
        called = set(changes(ast.parse(path.read_text(encoding="utf-8"))))
        if called:
            places[str(path.relative_to(HOST))] = " ".join(sorted(called))
    assert places == {file: called for file, (_reason, called) in ALLOWED.items()}


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("os.rename(a, b)", ["rename"]),
        ("os.open(p, os.O_RDWR)", ["open"]),
        ("os.open(p, os.O_RDONLY)", []),
        ("open(p, 'ab')", ["open"]),
        ("open(p, mode='w')", ["open"]),
        ("open(p, 'rb')", []),
        ("open(p)", []),
        ("Path(p).write_text('x')", ["write_text"]),
        ("shutil.rmtree(p)", ["rmtree"]),
        ("text.replace('a', 'b')", []),
    ],
)
def test_a_new_place_is_found(text, called):
    assert list(changes(ast.parse(text))) == called
