# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the microseconds that each plugin call took, one a line; the counterpart of calls/main.go:

calls.py VERB TURNS PLUGIN_DIRECTORY CACHE_DIRECTORY CONFLIST

VERB is add or del, by our libcni; bare: no library at all, `subprocess` runs the first plugin of the network; or write:
no plugin, only the cache entry of an ADD, written and synced.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "plugins" / "module_utils"))

RESULT = {"cniVersion": "1.1.0", "ips": [{"address": "10.1.2.3/24", "gateway": "10.1.2.1", "interface": 0}]}


def main() -> None:
    from libcni import api, cache, conf

    verb, turns, plugins, cache_dir, conflist = sys.argv[1:]
    network = conf.network_conf_from_file(conflist)
    cni = api.CNIConfig([plugins], cache_dir, timeout=60)
    rt = api.RuntimeConf("bench", "/run/netns/bench", "eth0")
    plugin, stdin = os.path.join(plugins, network.plugins[0].type), network.plugins[0].bytes

    entry = cache.Entry("bench", network.bytes, "eth0", network.name, "/run/netns/bench", result=RESULT)

    def bare() -> None:
        subprocess.run([plugin], input=stdin, capture_output=True, check=True)

    call = {
        "add": lambda: cni.add_network_list(network, rt),
        "del": lambda: cni.del_network_list(network, rt),
        "bare": bare,
        "write": lambda: cache.write_entry(cache_dir, entry),
    }[verb]
    for _turn in range(int(turns)):
        begun = time.perf_counter()
        call()
        print(round((time.perf_counter() - begun) * 1e6))


if __name__ == "__main__":
    main()
