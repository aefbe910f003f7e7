# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What others see of the directory while the module writes, and what a killed module leaves."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import struct

import pytest

from ansible_collections.podwire.cni.plugins.modules import cni_conf
from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.killed import ends

EVENTS = {
    0x2: "MODIFY",
    0x4: "ATTRIB",
    0x40: "MOVED_FROM",
    0x80: "MOVED_TO",
    0x100: "CREATE",
    0x200: "DELETE",
    0x400: "DELETE_SELF",
    0x800: "MOVE_SELF",
}
HEADER = struct.Struct("iIII")


class Watch:
    """An inotify instance that watches one directory."""

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self.fd >= 0
        assert libc.inotify_add_watch(self.fd, os.fsencode(path), sum(EVENTS)) >= 0, os.strerror(ctypes.get_errno())

    def events(self):
        """Return the events since the last call; "neutral" stands for a name that no runtime reads."""
        data, found = os.read(self.fd, 1 << 16), []
        while data:
            _watch, mask, _cookie, length = HEADER.unpack_from(data)
            name = data[HEADER.size : HEADER.size + length].rstrip(b"\0").decode()
            data = data[HEADER.size + length :]
            if not name.endswith((".conf", ".conflist", ".json")):
                name = "neutral"
            found.append((EVENTS[mask & 0xFFF], name))
        return found


@pytest.fixture
def watch(work):
    # A nameless file is possible there; on some other file systems a write has one more, harmless, event.
    sh(f"mount -t tmpfs -o mode=0755 podwire-test {work}; mkdir {work}/net.d")
    made = Watch(work / "net.d")
    yield made
    os.close(made.fd)
    sh(f"umount {work}")


def loop(mtu):
    """Return the text of the network `loop` with that MTU; a large one, so that a torn file is likely to be seen."""
    plugins = [{"type": "loopback", "mtu": mtu, "padding": "x" * 300000, "end": mtu}]
    return json.dumps({"cniVersion": "1.0.0", "name": "loop", "plugins": plugins})


def test_a_runtime_sees_each_change_once_and_no_file_that_is_not_whole(host, watch):
    def change(**network):
        host.run("cni_conf", validate=[], networks=[{"name": "loop", **network}])
        return watch.events()

    write = [("CREATE", "neutral"), ("MOVED_FROM", "neutral"), ("MOVED_TO", "10-loop.conflist")]
    assert change(content=loop(1)) == write
    assert change(content=loop(2)) == write
    assert change(content=loop(2), priority=20) == [
        ("MOVED_FROM", "10-loop.conflist"),
        ("MOVED_TO", "20-loop.conflist"),
    ]
    assert change(state="absent") == [("DELETE", "20-loop.conflist")]


def test_a_module_killed_at_a_change_leaves_the_old_or_the_new_file(work):
    conf_dir = work / "net.d"
    path = conf_dir / "10-loop.conflist"

    def run(kill_at=0, **network):
        arguments = {"conf_dir": str(conf_dir), "validate": [], "networks": [{"name": "loop", **network}]}
        return ends(cni_conf.main, arguments, kill_at)

    assert run(content=loop(0))
    before = path.read_text()
    replaced = set()
    for number in itertools.count(1):
        ended = run(number, content=loop(number))
        found = path.read_text()
        assert json.loads(found) in (json.loads(before), json.loads(loop(number)))
        assert [name for name in os.listdir(conf_dir) if name.endswith((".conf", ".conflist", ".json"))] == [path.name]
        if ended:
            break
        replaced.add(found != before)
        before = found
    assert replaced == {False, True}
    assert os.listdir(conf_dir) == [path.name], "not cleaned up"
    assert run(state="absent")
    assert os.listdir(conf_dir) == [], "not taken for our own after so many crashes"
