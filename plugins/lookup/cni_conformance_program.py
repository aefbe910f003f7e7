# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup cni_conformance_program: make the program that judges plugins by the CNI specification."""

from __future__ import annotations

DOCUMENTATION = """
name: cni_conformance_program
short_description: Make the program that judges plugins by the CNI specification
version_added: 0.2.0
author:
  - podwire.cni authors (@podwire)
description:
  - Makes the program that the playbook C(podwire.cni.conformance) runs on hosts, and returns its path. It is one file,
    an archive that Python 3.8 and newer run. Its arguments are those of C(python3 -m libcni).
  - The file is in Ansible's temporary directory on the controller. The same release of the collection always makes the
    same file.
"""

EXAMPLES = """
- name: Copy the program
  ansible.builtin.copy:
    src: "{{ lookup('podwire.cni.cni_conformance_program') }}"
    dest: /root/podwire-cni-conformance.pyz
    mode: "0644"

- name: Judge a plugin
  ansible.builtin.command:
    argv: [python3, /root/podwire-cni-conformance.pyz, conformance, --plugin, /opt/cni/bin/vendor]
  changed_when: false
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
from {PACKAGE}.libcni.cli import main
raise SystemExit(main(sys.argv[1:]))
"""


class LookupModule(LookupBase):
    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[str]:
        return [make_program("podwire-cni-conformance", ["libcni"], _MAIN)]
