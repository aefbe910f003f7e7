# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The program that repairs attachments on a host without a controller, as the role ``attachments`` installs it."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from ansible import constants as C

_UTILS = Path(__file__).parents[1] / "module_utils"
_PACKAGE = "podwire_cni"
_MAIN = f"""\
import sys
from {_PACKAGE}._host.attachments.watch import main
raise SystemExit(main(sys.argv[1:]))
"""
# The same content makes the same file, whenever it is made.
_TIME = (1980, 1, 1, 0, 0, 0)


def make() -> str:
    """Make the program in Ansible's temporary directory; return its path. It is one file, a zip that Python runs."""
    path = os.path.join(C.DEFAULT_LOCAL_TMP, "podwire-cni-repair.pyz")  # type: ignore[attr-defined]
    partial = f"{path}.{os.getpid()}"
    files = {"__main__.py": _MAIN.encode(), f"{_PACKAGE}/__init__.py": b""}
    for folder in ("_host", "libcni"):
        for file in sorted((_UTILS / folder).rglob("*.py")):
            files[f"{_PACKAGE}/{file.relative_to(_UTILS)}"] = file.read_bytes()
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for arcname, content in files.items():
            archive.writestr(zipfile.ZipInfo(arcname, _TIME), content, zipfile.ZIP_DEFLATED)
    # Several hosts may be at this task at once.
    os.replace(partial, path)
    return path
