# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Every place that enters a network namespace, or names one by a path of /proc, is known, and there is one way in.

On hosts that is `_host/netns.py`: it compares the open descriptor, and enters by it. A new place uses its `Netns`; one
that cannot do so is listed here with its reason.
"""

from __future__ import annotations

import ast
import re

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils.shipped import trees

SETNS, PATH, COMMAND, BY_PATH = "setns", "path in /proc", "command", "entered by a path"
# What a text names, apart from docstrings.
TEXTS = {
    SETNS: re.compile(r"\bsetns\b"),
    PATH: re.compile(r"/ns/net\b|\b(OWN|THREAD)_NETNS\b"),
    COMMAND: re.compile(r"\bnsenter\b|\bnetns exec\b"),
}
# Functions that take any path, and enter what is there.
ENTERING = ("enter_known", "inside")

ALLOWED = {
    ("_host/netns.py", SETNS): "the one way in",
    ("_host/netns.py", PATH): "the host's own namespace, which is never entered as a container's, and this thread's",
    ("_host/paths.py", PATH): "the names of the two",
    ("_host/netns.py", BY_PATH): "back into the namespace of this process",
    ("_host/containers/namespaces.py", BY_PATH): "reads every namespace of the host, its own included",
    ("_host/containers/namespaces.py", PATH): "finds all namespaces by the processes in them; only reads",
    ("_host/containers/containerd.py", PATH): "the device of the file system of namespaces",
    (
        "_host/kernel/links.py",
        PATH,
    ): "descriptors of the host's namespace and of this thread's, between which links move",
    ("_host/netlink.py", PATH): "asks for the number of the host's namespace, by its descriptor",
    ("_host/attachments/executors.py", PATH): "the path of a namespace that a thread of this process holds",
    ("_host/trials/private_host.py", PATH): "mounts a namespace that it has just made, in a mount namespace of its own",
    ("libcni/kernel.py", SETNS): "the system call",
    ("libcni/netns.py", SETNS): "for plugins, which get a path; the descriptor is compared with the host's",
    ("libcni/netns.py", PATH): "the namespace that the thread is in",
    ("libcni/netns.py", BY_PATH): "the other end of a veth, by its descriptor",
    ("libcni/multi/runner.py", BY_PATH): "part of a plugin, which gets a path",
    ("_plugins/multinet_pod.py", BY_PATH): "a plugin, which gets a path",
    ("libcni/skel.py", PATH): "refuses the host's own namespace, as Go's skel does",
    ("libcni/validate.py", PATH): "refuses the host's own namespace, before anything is entered",
}


def texts(tree):
    """Return all texts of a file, without docstrings; one of a formatted string has a blank for each value."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            found.append(node.value)
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
    return found


def places_in(tree):
    """Return how a file enters namespaces."""
    found = {kind for kind, pattern in TEXTS.items() for text in texts(tree) if pattern.search(text)}
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {getattr(function, "id", getattr(function, "attr", "")) for function in calls}
    return found | ({BY_PATH} if names.intersection(ENTERING) else set())


def test_every_place_that_enters_a_namespace_is_known():
    found = {(name, kind) for name, tree in trees() for kind in places_in(tree)}
    assert found - set(ALLOWED) == set(), "use Netns of _host/netns.py"
    assert set(ALLOWED) - found == set(), "the list names what is gone"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("import os\nos.setns(fd, 0)", SETNS),
        ("from ..libcni.kernel import setns\nsetns(fd)", SETNS),
        ("libc('setns', fd)", SETNS),
        ("run(['nsenter', '--net=' + path, 'ip'])", COMMAND),
        ("run(['ip', 'netns', 'exec', name, 'ip'])", COMMAND),
        ("run(f'ip netns exec {name} true')", COMMAND),
        ("os.open(f'/proc/{pid}/ns/net', 0)", PATH),
        ("OWN = '/proc/self/ns/net'", PATH),
        ("with netns.inside(path):\n    pass", BY_PATH),
    ],
)
def test_what_counts_as_entering(source, kind):
    assert places_in(ast.parse(source)) == {kind}


def test_what_does_not_count():
    source = '"""Mounts as ``ip netns exec`` does, see /proc/self/ns/net."""\nvisit([Netns(path)], read)'
    assert places_in(ast.parse(source)) == set()
