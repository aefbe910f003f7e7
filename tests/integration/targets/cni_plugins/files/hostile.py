# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes archives that must not be installed: hostile.py SOURCE_DIRECTORY TARGET_DIRECTORY. Prints their names."""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, b""


def regular(name, content):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), 0o755
    return info, content


def main():
    source, target = sys.argv[1:]
    with open(os.path.join(source, "loopback"), "rb") as stream:
        good = stream.read()
    with open("/bin/true", "rb") as stream:
        no_plugin = stream.read()
    other_machine = good[:18] + b"\xb7\x00" + good[20:]
    archives = {
        "symlink": ("bad_archive", [special("./ptp", tarfile.SYMTYPE, "/etc/shadow")]),
        "hardlink": ("bad_archive", [special("./ptp", tarfile.LNKTYPE, "./loopback")]),
        "device": ("bad_archive", [special("./null", tarfile.CHRTYPE)]),
        "fifo": ("bad_archive", [special("./pipe", tarfile.FIFOTYPE)]),
        "absolute": ("bad_archive", [regular("/opt/cni/bin/ptp", good)]),
        "dotdot": ("bad_archive", [regular("./../ptp", good)]),
        "twice": ("bad_archive", [regular("loopback", good)]),
        "other_machine": ("wrong_machine", [regular("./ptp", other_machine)]),
        "no_plugin": ("plugin_failed", [regular("./ptp", no_plugin)]),
        "truncated_plugin": ("plugin_failed", [regular("./ptp", good[:4000])]),
        "no_archive": ("bad_source", None),
    }
    for name, (_code, members) in archives.items():
        path = os.path.join(target, name + ".tgz")
        if members is None:
            with open(path, "w") as stream:
                stream.write("not found\n" * 100)
            continue
        with tarfile.open(path, "w:gz", compresslevel=1) as tar:
            for info, content in [regular("./loopback", good), *members]:
                tar.addfile(info, io.BytesIO(content))
    print(json.dumps([{"name": name, "code": code} for name, (code, _members) in archives.items()]))


if __name__ == "__main__":
    main()
