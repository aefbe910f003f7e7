# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs modules in forks of one process that has imported everything: most of a short run of a module is its start.

Reads a line of JSON for each run, ``{"module", "arguments", "environment"}``, and answers with ``[stdout, stderr]``.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import runpy
import sys
import traceback

from ansible.module_utils.testing import patch_module_args

UTILS = "ansible_collections.podwire.cni.plugins.module_utils"


def import_all() -> None:
    for room in (f"{UTILS}._host", f"{UTILS}.libcni"):
        package = importlib.import_module(room)
        for found in pkgutil.walk_packages(package.__path__, f"{room}."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)


def run(request: dict[str, object]) -> None:
    """Run a module as a process of its own would, in this fork."""
    os.environ.clear()
    os.environ.update(request["environment"])
    try:
        with patch_module_args(request["arguments"]):
            runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit:
        pass
    except BaseException:  # noqa: BLE001 - the test shows it
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()


def forked(request: dict[str, object]) -> list[str]:
    files = [os.memfd_create(name) for name in ("stdout", "stderr")]
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, file in enumerate(files, 1):
            os.dup2(file, number)
        run(request)
        os._exit(0)
    os.waitpid(child, 0)
    texts = []
    for file in files:
        os.lseek(file, 0, os.SEEK_SET)
        with os.fdopen(file, encoding="utf-8") as stream:
            texts.append(stream.read())
    return texts


def main() -> None:
    import_all()
    for line in sys.stdin:
        print(json.dumps(forked(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
