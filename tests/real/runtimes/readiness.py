# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What cni_info's readiness says of a host, beside what real runtimes do with a pod there."""

from __future__ import annotations

import json
import os
import shutil
import time

import predictions
from cri import CriError

from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import scan_conf_dir
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.effective import Effective
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.readiness import Readiness

# Its import makes that of the collection possible.
assert os.path.isdir(predictions.COLLECTIONS)

HEAD = ("host", "containerd", "NetworkReady", "pod", "`ready`", "cause")
BIN_DIR = "/opt/cni/bin"
LEASES = "/var/lib/cni/networks/ready"
# A copy of bash is a plugin that comes after another one: root runs only ELF files, and BASH_ENV names this script.
PLUGIN = """
case ${CNI_COMMAND-} in
  VERSION) echo '{"cniVersion": "1.1.0", "supportedVersions": ["0.4.0", "1.0.0", "1.1.0"]}'; exit 0 ;;
  ADD) exec /usr/bin/python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["prevResult"]))' ;;
  STATUS) echo '{"cniVersion": "1.1.0", "code": 50, "msg": "the datastore is gone"}'; exit 1 ;;
  ?*) exit 0 ;;
esac
"""


def bridge(**keys):
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.99.0.0/24"}]]}
    return {"type": "bridge", "bridge": "pwr-ready", "isGateway": True, "ipam": ipam, **keys}


class Bed:
    """The directories that all containerds share."""

    def __init__(self, conf_dir, old, new):
        self.conf_dir, self.old, self.new = conf_dir, old, new

    def write(self, *plugins, version="1.0.0", name="ready", **keys):
        text = json.dumps({"cniVersion": version, "name": name, "plugins": list(plugins), **keys})
        with open(f"{self.conf_dir}/.new", "w") as stream:
            stream.write(text)
        os.rename(f"{self.conf_dir}/.new", f"{self.conf_dir}/10-ready.conflist")

    def clear(self):
        shutil.rmtree(f"{self.conf_dir}/ready", ignore_errors=True)
        shutil.rmtree(LEASES, ignore_errors=True)
        for name in os.listdir(BIN_DIR):
            os.unlink(f"{BIN_DIR}/{name}")
        for name in os.listdir(self.old):
            shutil.copy(f"{self.old}/{name}", BIN_DIR)
        self.write(bridge())

    def newer(self, *names):
        for name in names:
            shutil.copy(f"{self.new}/{name}", BIN_DIR)


def newest_version(bed):
    bed.newer("bridge", "host-local")
    bed.write(bridge(), version="1.1.0")


def broken_drop_in(bed):
    os.mkdir(f"{bed.conf_dir}/ready")
    with open(f"{bed.conf_dir}/ready/10-more.conf", "w") as stream:
        stream.write("{")
    bed.write(bridge())


def failing_status(bed):
    bed.newer("bridge", "host-local")
    shutil.copy("/bin/bash", f"{BIN_DIR}/unready")
    bed.write(bridge(), {"type": "unready"}, version="1.1.0")


def full_pool(bed):
    bed.write(bridge(bridge="pwr-full", ipam={"type": "host-local", "subnet": "10.99.0.0/29"}))
    os.makedirs(LEASES)
    for number in range(2, 7):
        with open(f"{LEASES}/10.99.0.{number}", "w") as stream:
            stream.write("dead\r\neth0")


HOSTS = {
    "a sound host": lambda bed: bed.write(bridge()),
    "a list at 1.1.0": newest_version,
    '`disableCheck: "true"` as text': lambda bed: bed.write(bridge(), disableCheck="true"),
    "a broken drop-in": broken_drop_in,
    "no `loopback`": lambda _bed: os.unlink(f"{BIN_DIR}/loopback"),
    "a plugin whose STATUS fails": failing_status,
    "no `host-local`": lambda _bed: os.unlink(f"{BIN_DIR}/host-local"),
    "`bridge` is not executable": lambda _bed: os.chmod(f"{BIN_DIR}/bridge", 0o644),
    "a full pool": full_pool,
    "`ipam: {}`": lambda bed: bed.write(bridge(ipam={})),
    "a blank in the name": lambda bed: bed.write(bridge(), name="my pods"),
}


def _explain(containerd, bed, handler):
    """Return the row of the containerd's handler, and the causes."""
    effective = Effective(None, bed.conf_dir, [BIN_DIR], scan_conf_dir(bed.conf_dir), HostView(Manifest("/run/none")))
    found = Readiness(effective, effective.runtimes, [BIN_DIR]).rows()
    own = [one for one in found["runtimes"] if one["runtime"] == containerd.profile]
    [row] = [one for one in own if one["handler"] == handler]
    # The other handler has another directory, and networks of other names.
    errors = [one for one in found["obstacles"] if one["runtime"] == containerd.profile and one["level"] == "error"]
    mine = [one for one in errors if ("-other" in one["file"]) == bool(handler)]
    return row, [one["code"] for one in mine]


def _settled(containerd, bed, handler=""):
    """Return the same once the containerd has noticed the files."""
    deadline = time.monotonic() + 10
    while True:
        row, codes = _explain(containerd, bed, handler)
        if "not_loaded" not in codes or time.monotonic() > deadline:
            return row, codes
        time.sleep(0.1)


def start_pod(containerd, state, handler="", name="pod-ready"):
    """Tell whether a pod gets its network; return what the runtime says if it does not."""
    try:
        sandbox = containerd.cri.run_pod(name, state + "/logs", handler)
    except CriError as error:
        return str(error)
    containerd.cri.stop_pod(sandbox)
    containerd.cri.remove_pod(sandbox)
    return ""


def remove_pods(containerd):
    for sandbox in containerd.cri.pods():
        containerd.cri.stop_pod(sandbox)
        containerd.cri.remove_pod(sandbox)


def run(containerds, conf_dir, state, old, new):
    """Break the host in each way, and compare; return the rows, and what is wrong in them."""
    bed, rows, wrong = Bed(conf_dir, old, new), [], []
    for containerd in containerds:
        containerd.import_image(state + "/image.tar")
    for title, change in HOSTS.items():
        for containerd in containerds:
            bed.clear()
            change(bed)
            row, codes = _settled(containerd, bed)
            said = start_pod(containerd, state)
            reported = row["reported"]
            ready = reported and reported["ready"]
            answer = ("yes" if ready else "no", "fails" if said else "works", str(row["ready"]).lower())
            rows.append((title, containerd.version, *answer, ", ".join(f"`{code}`" for code in codes) or "-"))
            # A node whose STATUS fails is not ready, although containerd starts pods.
            expected = not said and bool(ready)
            if row["ready"] != expected or bool(codes) == expected or len(codes) > 1:
                wrong.append(
                    "%s: %s; the pod: %s; reported: %s" % (containerd.version, rows[-1], said or "works", reported)
                )
            bed.clear()
            remove_pods(containerd)
    _handlers(containerds, bed, state, rows, wrong)
    return rows, wrong


def _handlers(containerds, bed, state, rows, wrong):
    """Add the rows of a runtime handler that has a directory of its own; the other pods are not concerned."""
    sound_text = json.dumps({"cniVersion": "1.0.0", "name": "other", "plugins": [bridge(bridge="pwr-other")]})
    path = bed.conf_dir + "-other/10-other.conflist"
    for title, text in (
        ("a handler without a file", ""),
        ("its file is broken", "{"),
        ("its file is sound", sound_text),
    ):
        if text:
            with open(path + ".new", "w") as stream:
                stream.write(text)
            os.rename(path + ".new", path)
        for containerd in containerds:
            row, codes = _settled(containerd, bed, "other")
            # Releases 1.6 and 1.7 keep a pod that failed, and its name.
            said = start_pod(containerd, state, "other", f"pod-{title[:5]}-{len(text)}".replace(" ", "-"))
            others = _settled(containerd, bed)[0]["ready"]
            pod = "fails" if said else "works"
            causes = ", ".join(f"`{code}`" for code in codes) or "-"
            rows.append((title, containerd.version, "yes", pod, str(row["ready"]).lower(), causes))
            works = text == sound_text
            if (row["ready"], not said, not codes, others) != (works, works, works, True):
                wrong.append(
                    "%s: %s; the pod: %s; other pods: %s" % (containerd.version, rows[-1], said or "works", others)
                )
    # Only now, with the network, can the pods be removed that failed without it.
    for containerd in containerds:
        remove_pods(containerd)
