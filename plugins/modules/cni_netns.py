#!/usr/bin/python
# Copyright (c) 2026 the podwire.cni authors; GNU General Public License v3.0+
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_netns
short_description: Create and remove named network namespaces
version_added: 1.0.0
author:
  - podwire.cni authors (@podwire)
description:
  - Creates network namespaces in C(/run/netns), as C(ip netns add) does, or removes them.
  - Container runtimes create the namespaces of their containers themselves. Use this module on hosts without a
    runtime, for example for services that run in a namespace of their own, and for tests.
  - A new namespace has one interface, loopback, which is down.
  - Leftovers of a deleted namespace in C(/run/netns) (a plain file, or a dangling link) do not count as a
    namespace. It is replaced or removed.
options:
  names:
    description:
      - Names of the namespaces.
      - A name must not be empty, V(.) or V(..). It has at most 255 bytes, contains no slashes, white space or control
        characters, and does not start with a dash.
    type: list
    elements: str
    required: true
  state:
    description:
      - V(present) creates missing namespaces.
      - V(absent) removes the names. A namespace exists as long as a process runs in it or something else holds it.
      - Detach a namespace from its networks with M(podwire.cni.cni_attach) before you remove it. This module does not
        check for attachments.
    type: str
    choices:
      - present
      - absent
    default: present
requirements:
  - Python 3.8 or later on the managed host
  - pyroute2 0.7.2 or later on the managed host (C(python3-pyroute2) on Debian and Fedora)
extends_documentation_fragment:
  - podwire.cni._common.lock
  - podwire.cni._attributes
seealso:
  - module: podwire.cni.cni_attach
"""

EXAMPLES = r"""
- name: Create two namespaces
  podwire.cni.cni_netns:
    names:
      - web
      - db

- name: Remove them
  podwire.cni.cni_netns:
    names:
      - web
      - db
    state: absent
"""

RETURN = r"""
netns:
  description: The namespaces, in the order of the request.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the namespace.
      type: str
    path:
      description: Path of the namespace.
      type: str
    action:
      description: What was done, or would be done in check mode.
      type: str
      choices: [none, created, removed, failed]
      sample: created
findings:
  description:
    - The warnings, which are also printed. C(target) is that of a step in RV(actions), if the warning is about it.
  returned: always
  type: list
  elements: dict
  sample: []
actions:
  description: >-
    The steps of the plan, the same in check mode and in a run. C(reason) says in a few words what is not as desired.
  returned: success
  type: list
  elements: dict
  sample:
    - kind: create
      target: /run/netns/web
      class: safe
      reason: does not exist
code:
  description: Error code.
  returned: failure
  type: str
  sample: bad_netns
"""

import importlib.util
import sys

# Mitogen takes only a file for a module that has the words "from ansible_collections." in it.
from ..module_utils._host.named_netns import NETNS_ARGUMENTS, NetnsPlan, plan_netns
from ..module_utils._module import LOCK_ARGUMENTS, create_module, execute, finish, result_of

MISSING = (
    f"cni_netns needs the Python library pyroute2, which {sys.executable} does not have; install the package "
    "python3-pyroute2 (apt, dnf, zypper), py3-pyroute2 (apk) or python-pyroute2 (pacman), or set "
    "ansible_python_interpreter to a Python that has it"
)


def main() -> None:
    module = create_module(dict(NETNS_ARGUMENTS, **LOCK_ARGUMENTS))
    # Find pyroute2 without importing it: a run without changes does not need its 25 MiB.
    if importlib.util.find_spec("pyroute2") is None:
        module.fail_json(msg=MISSING, code="missing_required_lib")

    def plan_names() -> NetnsPlan:
        return plan_netns(module.params["names"], module.params["state"] == "present", module.check_mode)

    plan = execute(module, plan_names, "cni_netns")
    finish(module, plan, netns=plan.rows, **result_of(module, plan))


if __name__ == "__main__":
    main()
