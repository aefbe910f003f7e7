# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Every place that changes a file as root is known. A new one goes through _host/files.py, or is explained here."""

from __future__ import annotations

import ast
import re

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils.shipped import called_as, text_of, trees

CHANGES = re.compile(
    "l?chown|fchown|l?chmod|fchmod|copy(2|file|mode|stat|tree)?|f?truncate|link|make_archive|makedirs|mkdir|mkfifo|mknod"
    "|move|posix_fallocate|pwritev?|remove|removedirs|removexattr|renames?|replace|rmdir|rmtree|setxattr|symlink|unlink"
    "|unpack_archive|utime"
)
TEMPORARY = re.compile("mkstemp|mkdtemp|mktemp|(Named|Spooled)?Temporary(File|Directory)")
# Methods of pathlib.Path, of archives, and of AnsibleModule.
METHODS = re.compile(
    "write_bytes|write_text|touch|mkdir|rmdir|unlink|symlink_to|hardlink_to|link_to|l?chmod|extract(all)?|urlretrieve"
    r"|atomic_move|set_\w+_if_different"
)
# What opens a file whose mode is among its arguments.
OPENS = re.compile("open|(Tar|Gzip|BZ2|LZMA)File")
READS, MODES_OF_WRITERS = re.compile("r?[bt]?|[bt]?r"), re.compile("[rbt]*[wax+][rbt+]*")
# Flags that are not known here may write.
FLAGS_OF_READERS = re.compile(
    r"((os\.)?O_(RDONLY|CLOEXEC|DIRECTORY|NOFOLLOW|NONBLOCK|PATH|NOATIME)( \| )?|getattr\(os, 'O_PATH', 0\)( \| )?)+"
)

_CACHE = "in a directory of the cache, which only root can write to"
_DESCRIPTOR = "through the descriptor of a directory or file"
_RUN = "below /run, in a directory that is root's alone"
_STANDALONE = "a plugin that somebody builds, outside of modules"
_PULLED = "in the service's state directory, which is root's alone"
_PRIVATE = "in the mount namespace of a private host, which ends with the rehearsal"
# file -> (why it may, what it calls)
ALLOWED = {
    "_host/checks/state.py": ("asks whether host-local could write, and writes nothing", "open"),
    "_host/files.py": ("the one place", "chmod fchmod fchown link makedirs mkdir open rename setxattr unlink"),
    "_host/trust.py": ("the one place, part by part of a path", "chmod mkdir open"),
    "_host/paths.py": ("stages and renames in one directory", "open rename"),
    "_host/lock.py": (_RUN, "ftruncate makedirs open pwrite"),
    "_host/named_netns.py": ("names of namespaces, in /run/netns as ip has them", "makedirs unlink"),
    "_host/leases.py": ("the store of host-local, under its lock, without following links", "makedirs open unlink"),
    "_host/kernel/sysctls.py": ("a sysctl, without following links", "open"),
    "_host/attachments/caches.py": (f"{_CACHE}", "unlink"),
    "_host/attachments/store.py": (f"{_CACHE}, or {_RUN}", "makedirs unlink"),
    "_host/binaries/batch.py": (_DESCRIPTOR, "chmod chown fchmod fchown symlink"),
    "_host/binaries/source.py": ("what was downloaded, in the directory of the module's run", "mkstemp"),
    "_host/garbage/candidate.py": (_RUN, "makedirs open rename"),
    "_host/networks/execute.py": (_DESCRIPTOR, "fchmod fchown rmdir"),
    "_host/trials/host_copy.py": (_PRIVATE, "open"),
    "_host/trials/memory.py": (_RUN, "makedirs unlink"),
    "_host/trials/private_host.py": (_PRIVATE, "chmod makedirs open"),
    "_host/trials/rehearsal.py": (_PRIVATE, "makedirs symlink"),
    "_host/trials/trial.py": ("an empty directory that it made", "rmdir"),
    "libcni/bundle.py": (_STANDALONE, "fchmod open replace unlink"),
    "libcni/cache.py": (
        "the cache, as Go's libcni; the modules check who can write there",
        "mkdir open rename replace rmdir unlink",
    ),
    "libcni/files.py": ("reads, with an opener that adds flags to those of reading", "open"),
    "libcni/multi/records.py": ("beside the cache, as a plugin; modules check who can write there", "link open unlink"),
    "libcni/skel.py": ("/dev/null as standard input or output of a plugin that has none", "open"),
    "pull/__main__.py": (_PULLED, "makedirs open"),
    "pull/common.py": (_PULLED, "fchmod open replace unlink"),
    "pull/repository.py": (_PULLED, "makedirs mkdtemp rmtree unlink"),
}


def changes(tree):
    """Yield the functions by which a file changes others, as often as it names them."""
    names, called = called_as(tree), {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            module, _dot, name = names.get(node.id, f"builtins.{node.id}").rpartition(".")
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            module, name = names.get(owner, owner), node.attr
        else:
            continue
        call = called.get(id(node))
        of_path = isinstance(node, ast.Attribute) and module not in ("os", "shutil") and call is not None
        if (
            (module == "tempfile" and TEMPORARY.fullmatch(name))
            # Also as an argument, of map for one.
            or (module in ("os", "shutil") and CHANGES.fullmatch(name))
            or (OPENS.fullmatch(name) and call is not None and _writes(call, module))
            or (name == "open" and call is None and module in ("builtins", "io", "os"))
            or (of_path and METHODS.fullmatch(name))
            or (of_path and name in ("rename", "replace") and len(call.args) == 1)
        ):
            yield name


def _writes(call, module):
    """Tell whether a call of something named open may write; whatever is not a known way to read may."""
    words = [node.value for node in call.keywords if node.arg == "mode"]
    if module == "os":
        return len(call.args) < 2 or not FLAGS_OF_READERS.fullmatch(ast.unparse(call.args[1]))
    if module in ("builtins", "io"):
        return not all(READS.fullmatch(text_of(mode) or "?") for mode in [*words, *call.args[1:2]])
    # A method of a path, or a function for compressed files.
    return any(MODES_OF_WRITERS.fullmatch(text_of(mode) or "") for mode in [*words, *call.args[:2]])


def test_every_place_is_known():
    places = {}
    for name, tree in trees():
        called = set(changes(tree))
        if called:
            places[name] = " ".join(sorted(called))
    assert places == {file: called for file, (_reason, called) in ALLOWED.items()}


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("os.open(p, os.O_RDWR)", ["open"]),
        ("open(p, 'ab')", ["open"]),
        ("open(p, 'rb')", []),
        ("Path(p).write_text('x')", ["write_text"]),
        ("text.replace('a', 'b')", []),
        ("from shutil import move as put\nput(a, b)", ["move"]),
        ("import os as system\nsystem.unlink(p)", ["unlink"]),
        ("list(map(os.unlink, paths))", ["unlink"]),
        ("flags = os.O_RDWR\nos.open(p, flags)", ["open"]),
        ("os.open(p, os.O_RDONLY | os.O_CLOEXEC)", []),
        ("open(p, mode)", ["open"]),
        ("Path(p).open('w')", ["open"]),
        ("gzip.open(p, 'wb')", ["open"]),
        ("Path(p).replace(q)", ["replace"]),
        ("tempfile.mkstemp(dir=p)", ["mkstemp"]),
        ("write = open\nwrite(p, 'w')", ["open"]),
        ("gzip.GzipFile(p, 'wb')", ["GzipFile"]),
        ("module.atomic_move(p, q)", ["atomic_move"]),
        ("module.set_mode_if_different(p, 0o644, False)", ["set_mode_if_different"]),
        ("shutil.make_archive(p, 'tar')", ["make_archive"]),
        ("from tempfile import NamedTemporaryFile\nNamedTemporaryFile()", ["NamedTemporaryFile"]),
        ("archive.extractall(p)", ["extractall"]),
    ],
)
def test_a_new_place_is_found(text, called):
    assert list(changes(ast.parse(text))) == called
