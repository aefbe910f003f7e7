# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which drop-ins cni_conf predicts that a runtime appends, beside what real runtimes do with them."""

from __future__ import annotations

import json
import os
import shutil
import time

from readiness import BIN_DIR, Bed, bridge, remove_pods, start_pod

from ansible_collections.podwire.cni.plugins.module_utils._host.files import Attributes
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.planner import plan_networks
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.request import ConfRequest, WantedNetwork
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.cri import cri_status

HEAD = ("drop-ins", "containerd", "predicted", "loaded", "a plugin of them runs for a pod", "warning")
# Runtimes run scripts, too.
RECORDER = """#!/bin/sh
case $CNI_COMMAND in
  VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}' ;;
  ADD)
    echo ran >>%s
    exec /usr/bin/python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["prevResult"]))'
    ;;
esac
"""


class DropIns:
    """What cni_conf writes beside a conflist, beside what the real runtimes make of it."""

    def __init__(self, containerd, bed, state):
        self.containerd, self.bed, self.state = containerd, bed, state
        self.log = f"{state}/drop-in.log"

    def write(self, names):
        """Have drop-ins of these names; return the plan, as cni_conf makes it for this containerd alone."""
        plugins = [bridge()]
        if names == "inlined":
            conflist, drop_ins = {"loadOnlyInlinedPlugins": True}, None
        else:
            conflist, drop_ins = {}, dict.fromkeys(names, b'{"type": "recorder"}')
        data = {"cniVersion": "1.0.0", "name": "ready", "plugins": plugins, **conflist}
        wanted = WantedNetwork("ready", True, json.dumps(data).encode(), "10-ready.conflist", drop_ins=drop_ins)
        request = ConfRequest(
            [wanted], self.bed.conf_dir, [BIN_DIR], "/var/lib/podwire/cni", Attributes(0o644), levels=(), runtimes=None
        )
        plan = plan_networks(request, HostView(Manifest(f"{self.state}/drop-ins")))
        if plan.changed:
            plan.apply()
        return plan

    def row(self, title, names):
        """Return the row of the table, and what is wrong in it."""
        plan = self.write(names)
        [(runtime, own)] = [
            pair
            for pair in zip(plan.judged.runtimes, plan.effective)
            if pair[0].name == self.containerd.profile and not pair[0].handler
        ]
        warned = any(
            one.code == "drop_in_ignored" and one.message.startswith(self.containerd.profile) for one in plan.problems
        )
        expected = 1 + len(own["drop_ins"])
        deadline = time.monotonic() + 5
        while True:
            status = cri_status(runtime.address, 10)
            # Not the network of another part, which it may have loaded before.
            loaded = len(status.chains[0]) if status.chains and status.networks == ["ready"] else 0
            if loaded == expected or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        if os.path.exists(self.log):
            os.unlink(self.log)
        failed = start_pod(self.containerd, self.state)
        ran = os.path.exists(self.log)
        remove_pods(self.containerd)
        answers = (len(own["drop_ins"]), loaded - 1, "yes" if ran else "no", "yes" if warned else "no")
        right = loaded == expected and ran == bool(own["drop_ins"]) and not failed
        return (title, self.containerd.version, *map(str, answers)), "" if right else f"the pod: {failed or 'works'}"


def run(containerds, conf_dir, state, old):
    """Write, add and remove drop-ins; return the rows, and those that were predicted wrongly."""
    rows, wrong = [], []
    for containerd in containerds:
        containerd.import_image(state + "/image.tar")
        bed = Bed(conf_dir, old, old)
        bed.clear()
        os.unlink(f"{conf_dir}/10-ready.conflist")
        with open(f"{BIN_DIR}/recorder", "w") as stream:
            stream.write(RECORDER % f"{state}/drop-in.log")
        os.chmod(f"{BIN_DIR}/recorder", 0o755)
        drop_ins = DropIns(containerd, bed, state)
        for title, names in (
            ("written with the conflist", ["10-a.conf"]),
            ("a second one added alone", ["10-a.conf", "20-b.conf"]),
            ("`loadOnlyInlinedPlugins` beside them", "inlined"),
            ("both removed", []),
        ):
            row, wrong_in_it = drop_ins.row(title, names)
            rows.append(row)
            if wrong_in_it:
                wrong.append(f"{row}: {wrong_in_it}")
        shutil.rmtree(f"{state}/drop-ins")
        bed.clear()
    return rows, wrong
