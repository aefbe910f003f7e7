# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup cni_repair_program: make the program that repairs attachments on a host without a controller."""

from __future__ import annotations

DOCUMENTATION = """
name: cni_repair_program
short_description: Make the program that repairs attachments on a host without a controller
version_added: 0.1.0
author:
  - podwire.cni authors (@podwire)
description:
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

from typing import Any

from ansible.plugins.lookup import LookupBase

from ..plugin_utils.programs import PACKAGE, make_program

_MAIN = f"""\
import sys
from {PACKAGE}._host.attachments.watch import main
raise SystemExit(main(sys.argv[1:]))
"""


class LookupModule(LookupBase):
    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[str]:
        return [make_program("podwire-cni-repair", ["_host", "libcni"], _MAIN)]
