# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the filters that validate networks. Private to the collection."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  validate:
    description:
      - Levels of validation to run on the input, and on what is made from it. V(syntax) checks what libcni itself
        refuses. V(schema) checks the keys, types and values of each known plugin.
    type: list
    elements: str
    choices: [syntax, schema]
    default: [syntax, schema]
requirements:
  - jsonschema (for the level V(schema) of O(validate))
"""

    PROBLEMS = r"""
options:
  file:
    description: Value of C(file) in the problems.
    type: str
  strict:
    description: Treat warnings as errors, like O(podwire.cni.cni_conf#module:strict).
    type: bool
    default: false
"""
