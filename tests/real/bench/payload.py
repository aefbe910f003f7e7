# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Measures what Ansible sends to a host for a module, as it is on the way: payload.py OUTPUT

Writes KiB by module as JSON, those of ansible.builtin.ping included.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ansible.executor.module_common import modify_module
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader, module_loader
from ansible.template import Templar

MODULES = ("ansible.builtin.ping", "podwire.cni.cni_host", "podwire.cni.cni_conf", "podwire.cni.cni_attach")


def kibibytes(module: str) -> float:
    context = module_loader.find_plugin_with_context(module)
    templar = Templar(loader=DataLoader(), variables={})
    built = modify_module(
        module_name=context.resolved_fqcn,
        module_path=context.plugin_resolved_path,
        module_args={},
        templar=templar,
        task_vars={"ansible_python_interpreter": "/usr/bin/python3"},
        module_compression="ZIP_DEFLATED",
    )
    return len(built.b_module_data) / 1024


def main(output: str) -> None:
    init_plugin_loader([])
    Path(output).write_text(json.dumps({module.rpartition(".")[2]: kibibytes(module) for module in MODULES}))


if __name__ == "__main__":
    main(*sys.argv[1:])
