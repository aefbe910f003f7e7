# Copyright (c) 2026 the podwire.cni authors; GNU General Public License v3.0+
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup cni_repair_program: make the program that repairs attachments on a host without a controller."""

from __future__ import annotations

DOCUMENTATION = """
name: cni_repair_program
short_description: Make the program that repairs attachments on a host without a controller
version_added: 1.0.0
author:
  - podwire.cni authors (@podwire)
description:
  - Internal. For the playbooks and roles of this collection; it may change in any release.
  - Makes the program that the role P(podwire.cni.attachments#role) installs with O(ignore:cni_attachments_watch), and
    returns its path. It is one file, an archive that Python 3.8 and newer run.
  - The file is in Ansible's temporary directory on the controller. The same release of the collection always makes the
    same file.
"""

EXAMPLES = """
- name: Install the program
  ansible.builtin.copy:
    src: "{{ lookup('podwire.cni.cni_repair_program') }}"
    dest: /usr/local/lib/podwire-cni/repair.pyz
    owner: root
    group: root
    mode: "0644"
"""

RETURN = """
_raw:
  description: The path of the program.
  type: list
  elements: path
"""

import os
import zipfile
from pathlib import Path
from typing import Any

from ansible import constants as C
from ansible.plugins.lookup import LookupBase

_UTILS = Path(__file__).parents[1] / "module_utils"
_PACKAGE = "podwire_cni"
_MAIN = f"""\
import sys
from {_PACKAGE}._host.attachments.watch import main
raise SystemExit(main(sys.argv[1:]))
"""
# The same content makes the same file, whenever it is made.
_TIME = (1980, 1, 1, 0, 0, 0)


class LookupModule(LookupBase):
    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[str]:
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
        return [path]
