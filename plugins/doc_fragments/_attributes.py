# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes of the modules of the collection. Private to the collection."""

from __future__ import annotations

_ALWAYS = """\
  idempotent:
    support: full
    description: When run twice in a row outside check mode, with the same arguments, the second run reports no change.
  platform:
    support: full
    platforms: linux
    description: Target operating systems that the module can be operated against.
  async:
    support: full
    description: Supports being used with the C(async) keyword.
"""


class ModuleDocFragment:
    DOCUMENTATION: str = f"""
attributes:
  check_mode:
    support: full
    description: Can run in C(check_mode) and predict what a run would change, without changing anything.
    details:
      - Check mode and a run use the same plan. What only a run can know, such as an allocated address, is V(null) in
        check mode.
      - A missing prerequisite (binary, network, namespace, directory) is an error in a run and a warning in check mode.
  diff_mode:
    support: full
    description: Returns details on what has changed, or would change in C(check_mode), when in diff mode.
    details: Secrets are masked. See C(docs/how-it-works.md) for how secrets are recognised.
{_ALWAYS}"""

    INFO: str = f"""
attributes:
  check_mode:
    support: full
    description: Can run in C(check_mode) and changes nothing in either mode.
  diff_mode:
    support: N/A
    description: Returns details on what has changed, or would change in C(check_mode), when in diff mode.
{_ALWAYS}"""

    GROUP = r"""
attributes:
  action_group:
    description: Use C(group/podwire.cni.all) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - podwire.cni.all
"""
