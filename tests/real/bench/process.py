# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in for the managed host's Python: runs a module and notes its duration and its peak memory.

Appends ``{"name", "seconds", "kilobytes"}`` to $BENCH_DIR/processes. The name comes from
the task's environment.
"""

import json
import os
import subprocess
import sys
import time

payload = sys.stdin.buffer.read()
begun = time.monotonic()
process = subprocess.Popen(["/usr/bin/python3", *sys.argv[1:]], stdin=subprocess.PIPE)
process.stdin.write(payload)
process.stdin.close()
_pid, status, usage = os.wait4(process.pid, 0)
seconds = time.monotonic() - begun
with open(os.path.join(os.environ["BENCH_DIR"], "processes"), "a", encoding="utf-8") as stream:
    line = {"name": os.environ["BENCH_NAME"], "seconds": seconds, "kilobytes": usage.ru_maxrss}
    stream.write(json.dumps(line) + "\n")
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)
