# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Every place that enters a network namespace is known, and there is one way in.

On hosts that is `_host/netns.py`: it compares the open descriptor, and enters by it. A new place uses its `Netns`; one
that cannot do so is listed here with its reason. test_processes_and_programs knows who names a namespace in /proc.
"""

from __future__ import annotations

import ast
import re

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils.shipped import called_as, text_of, trees

SETNS, COMMAND, BY_PATH = "setns", "command", "entered by a path"
# What a text names, apart from docstrings.
TEXTS = {
    SETNS: re.compile(r"\b(setns|pushns|NetNS|unshare)\b"),
    COMMAND: re.compile(r"\b(nsenter|netns exec|unshare -|ip (-\w+ )*-n(etns)?)\b"),
}
# Functions that take any path, and enter what is there.
ENTERING = ("enter_known", "inside")

ALLOWED = {
    ("_host/netns.py", SETNS): "the one way in",
    ("_host/netns.py", BY_PATH): "back into the namespace of this process",
    ("_host/containers/namespaces.py", BY_PATH): "reads every namespace of the host, its own included",
    ("_host/attachments/verbs.py", SETNS): "a new one, for plugins that fail without one",
    ("_host/trials/private_host.py", SETNS): "new ones, for a private host",
    ("libcni/kernel.py", SETNS): "the system call",
    ("libcni/netns.py", SETNS): "for plugins, which get a path; the descriptor is compared with the host's",
    ("libcni/netns.py", BY_PATH): "the other end of a veth, by its descriptor",
    ("libcni/multi/runner.py", BY_PATH): "part of a plugin, which gets a path",
    ("_plugins/multinet_pod.py", BY_PATH): "a plugin, which gets a path",
}


def texts(tree):
    """Return all texts of a file, without docstrings; one of a formatted string has a blank for each value."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and text_of(node) is not None and id(node) not in docs:
            found.append(text_of(node))
        elif isinstance(node, (ast.List, ast.Tuple)):
            # A command in words.
            words = [part.value for part in node.elts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            found.append(" ".join(words))
        elif isinstance(node, ast.JoinedStr):
            found.append("".join(part.value if isinstance(part, ast.Constant) else " " for part in node.values))
        elif isinstance(node, ast.Attribute):
            found.append(node.attr)
        elif isinstance(node, ast.Name):
            found.append(node.id)
        elif isinstance(node, ast.ImportFrom):
            found += [alias.name for alias in node.names]
    return found


def places_in(tree):
    """Return how a file enters namespaces."""
    found = {kind for kind, pattern in TEXTS.items() for text in texts(tree) if pattern.search(text)}
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {getattr(function, "id", getattr(function, "attr", "")) for function in calls}
    names |= {name.rpartition(".")[2] for called, name in called_as(tree).items() if called in names}
    return found | ({BY_PATH} if names.intersection(ENTERING) else set())


def test_every_place_that_enters_a_namespace_is_known():
    found = {(name, kind) for name, tree in trees() for kind in places_in(tree)}
    assert found - set(ALLOWED) == set(), "use Netns of _host/netns.py"
    assert set(ALLOWED) - found == set(), "the list names what is gone"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("import os\nos.setns(fd, 0)", SETNS),
        ("libc('setns', fd)", SETNS),
        ("run(['nsenter', '--net=' + path, 'ip'])", COMMAND),
        ("run(['ip', 'netns', 'exec', name, 'ip'])", COMMAND),
        ("run(f'ip netns exec {name} true')", COMMAND),
        ("with netns.inside(path):\n    pass", BY_PATH),
        ("from .netns import enter_known as go\ngo(path, status)", BY_PATH),
        ("run(['ip', '-n', name, 'link'])", COMMAND),
        ("run(f'ip -json -netns {name} link')", COMMAND),
        ("pyroute2.NetNS(name)", SETNS),
        ("from ..libcni.kernel import unshare as apart\napart(flags)", SETNS),
    ],
)
def test_what_counts_as_entering(source, kind):
    assert places_in(ast.parse(source)) == {kind}


def test_what_does_not_count():
    source = '"""Mounts as ``ip netns exec`` does, see /proc/self/ns/net."""\nvisit([Netns(path)], read)'
    assert places_in(ast.parse(source)) == set()
