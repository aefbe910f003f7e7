# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Starts a DEL for each cache file, and kills it before it reaches the first plugin of the chain.

interrupt.py CACHE_DIR BIN_DIR FILE...
"""

from __future__ import annotations

import os
import signal
import sys

from ansible_collections.podwire.cni.plugins.module_utils.libcni.api import CNIConfig, RuntimeConf
from ansible_collections.podwire.cni.plugins.module_utils.libcni.cache import read_entry
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.plugins.module_utils.libcni.invoke import Executor


class Dies(Executor):
    def exec_plugin(self, path: str, *arguments: object, **more: object) -> bytes:
        if os.path.basename(path) in ("bridge", "ptp"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().exec_plugin(path, *arguments, **more)


cache_dir, bin_dir, *files = sys.argv[1:]
for file in files:
    entry = read_entry(file)
    runtime = RuntimeConf(entry.container_id, entry.net_ns, "eth0", entry.cni_args, entry.capability_args)
    child = os.fork()
    if child == 0:
        cni = CNIConfig([bin_dir], cache_dir=cache_dir, timeout=60, executor=Dies())
        cni.del_network_list(network_conf_from_bytes(entry.config), runtime)
        os._exit(0)
    if os.waitpid(child, 0)[1] != signal.SIGKILL:
        sys.exit(f"the DEL of {file} came to its end")
