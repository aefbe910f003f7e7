# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Measures how long the readiness of 160 networks of Nomad takes: readiness.py DIRECTORY_OF_PLUGINS OUTPUT

Writes the median seconds of processor time as JSON. Trials have a measure of their own (experiment.py); here they have
shown nothing.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

# First, as it names the folder of the plugins.
from experiment import TURNS, subject
from module_utils._host.confdir import scan_conf_dir
from module_utils._host.hostview import HostView
from module_utils._host.manifest import Manifest
from module_utils._host.runtimes import discover
from module_utils._host.runtimes.effective import Effective
from module_utils._host.runtimes.runtime import Runtime
from module_utils._host.trials import readiness
from module_utils._host.trials.experiment import Observation


def seconds(conf_dir: str) -> float:
    begin = time.process_time()
    view = HostView(Manifest(f"{conf_dir}/state"))
    effective = Effective(None, conf_dir, [], scan_conf_dir(conf_dir), view)
    rows = readiness.Readiness(effective, effective.runtimes, []).rows()
    took = time.process_time() - begin
    if any(row["level"] == "error" for row in rows["obstacles"]):
        sys.exit(f"the networks are not ready here: {rows['obstacles'][:3]}")
    return took


def main(plugins: str, output: str) -> None:
    readiness.try_networks = lambda subjects: [Observation() for _subject in subjects]
    readiness.forget_others = lambda _subjects: None
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        nomad = Runtime("nomad", "1.8.0", "the benchmark", folder, [plugins])
        nomad.pid = os.getpid()
        discover.runtimes_on_host = lambda _conf_dir, _view: [nomad]
        for number in range(160):
            conflist = {"cniVersion": "1.0.0", "name": f"bench{number}", "plugins": subject(number, plugins).plugins}
            Path(folder, f"{number:03}.conflist").write_text(json.dumps(conflist))
        taken = [seconds(folder) for _turn in range(TURNS)]
    Path(output).write_text(json.dumps({"seconds": median(taken)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
