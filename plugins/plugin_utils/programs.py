# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of one file that run on a host without Ansible: archives of parts of module_utils."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

from ansible import constants as C

_UTILS = Path(__file__).parents[1] / "module_utils"
PACKAGE = "podwire_cni"
# The same content makes the same file, whenever it is made.
_TIME = (1980, 1, 1, 0, 0, 0)


def make_program(name: str, folders: Sequence[str], main: str) -> str:
    """Return the path of a program in Ansible's temporary directory, an archive that Python runs. Raises OSError.

    *folders* of module_utils become parts of the package ``PACKAGE``; *main* is the code that runs.
    """
    path = os.path.join(C.DEFAULT_LOCAL_TMP, f"{name}.pyz")  # type: ignore[attr-defined]
    partial = f"{path}.{os.getpid()}"
    files = {"__main__.py": main.encode(), f"{PACKAGE}/__init__.py": b""}
    for folder in folders:
        for file in sorted((_UTILS / folder).rglob("*.py")):
            files[f"{PACKAGE}/{file.relative_to(_UTILS)}"] = file.read_bytes()
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for arcname, content in files.items():
            archive.writestr(zipfile.ZipInfo(arcname, _TIME), content, zipfile.ZIP_DEFLATED)
    # Several hosts may be at this task at once.
    os.replace(partial, path)
    return path
