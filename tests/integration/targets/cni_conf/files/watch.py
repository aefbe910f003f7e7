# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the events that a directory's watcher gets while a network is made, changed, renamed and removed."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import subprocess
import sys

from direct import render, succeed

NAMES = {
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
    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0 or libc.inotify_add_watch(self.fd, os.fsencode(path), sum(NAMES)) < 0:
            sys.exit("inotify: %s" % os.strerror(ctypes.get_errno()))

    def events(self):
        """Return the events since the last call as [event, "final" or "neutral" or the name]."""
        data, found = os.read(self.fd, 1 << 16), []
        while data:
            _watch, mask, _cookie, length = HEADER.unpack_from(data)
            name = data[HEADER.size : HEADER.size + length].rstrip(b"\0").decode()
            data = data[HEADER.size + length :]
            if not name.endswith((".conf", ".conflist", ".json")):
                name = "neutral"
            found.append([NAMES[mask & 0xFFF], name])
        return found


def main():
    place = sys.argv[1]
    os.mkdir(place)
    # There a nameless file can be had; on some other file systems a write has one more, harmless, event.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "podwire-test", place], check=True)
    try:
        print(json.dumps(observe(os.path.join(place, "net.d"))))
    finally:
        subprocess.run(["umount", place], check=True)


def observe(conf_dir):
    os.mkdir(conf_dir)
    watch, found = Watch(conf_dir), {}
    for title, network in (
        ("create", {"content": render(1)}),
        ("change", {"content": render(2)}),
        ("rename", {"content": render(2), "priority": 20}),
        ("remove", {"state": "absent"}),
    ):
        succeed(conf_dir, **network)
        found[title] = watch.events()
    return found


if __name__ == "__main__":
    main()
