# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares what the profiles predict with what real runtimes do, as root in a namespace of tests/private.sh.

    predictions.py containerd PACKAGES PROFILE [NETWORKS]   the containerd of the packages unpacked in PACKAGES, such as
                                                            containerd-1.7, with NETWORKS (1) as max_conf_num
    predictions.py podman                                   podman 4 as `runtimes.py install` made it usable

The directories are those of tests/unit/plugins/module_utils/_host/runtimes/layouts.py. --record writes what was seen to
observed.json beside it, which the unit tests compare with.
"""

import json
import os
import subprocess
import sys
import time

import runtimes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNIT = ROOT + "/tests/unit/plugins/module_utils/_host/runtimes"
sys.path[:0] = [os.path.dirname(os.path.dirname(os.path.dirname(ROOT))), UNIT]

import layouts  # noqa: E402
from predicted import agree, containerd_prediction, podman_prediction  # noqa: E402

STATE = "/run/podwire-predictions"
CONF_DIR = STATE + "/net.d"
CONFIG = """
version = 2
root = "{state}/root"
state = "{state}/state"
[grpc]
address = "{state}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
restrict_oom_score_adj = true
disable_cgroup = true
[plugins."io.containerd.grpc.v1.cri".cni]
conf_dir = "{conf_dir}"
bin_dir = "/opt/cni/bin"
max_conf_num = {networks}
"""


# --- containerd


def message(data):
    """Return the fields of a protobuf message as lists of numbers and bytes."""
    fields, place = {}, 0

    def number():
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if not byte & 128:
                return value

    while place < len(data):
        tag = number()
        value = number()
        if tag & 7 == 2:
            value, place = data[place : place + value], place + value
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def status():
    """Return what containerd has loaded, as CRI's verbose Status tells it."""
    information = {}
    for entry in message(runtimes.call("Status", b"\x08\x01")).get(2, []):
        pair = message(entry)
        information[pair[1][0].decode()] = pair.get(2, [b""])[0].decode()
    loaded = (json.loads(information.get("cniconfig") or "{}") or {}).get("Networks") or []
    networks = [network["Config"]["Name"] for network in loaded if network["IFName"] != "lo"]
    error = information.get("lastCNILoadStatus", "")
    return {"networks": networks, "error": "" if error == "OK" else error.replace(CONF_DIR, "DIR")}


def wait(condition, seconds):
    """Return what containerd says as soon as the condition holds for it, or after the time."""
    deadline = time.monotonic() + seconds
    while True:
        seen = status()
        if condition(seen) or time.monotonic() > deadline:
            return seen
        time.sleep(0.02)


def look_again():
    """Make containerd load the directory once more."""
    path = CONF_DIR + "/neutral"
    with open(path, "w"):
        pass
    os.unlink(path)


def start(packages, networks):
    runtimes.SOCKET, runtimes.LOG = STATE + "/containerd.sock", STATE + "/log"
    os.makedirs(STATE + "/root")
    # An overlay cannot lie on an overlay.
    subprocess.run(["mount", "-t", "tmpfs", "podwire-predictions", STATE + "/root"], check=True)
    with open(STATE + "/config.toml", "w") as stream:
        stream.write(CONFIG.format(state=STATE, conf_dir=CONF_DIR, networks=networks))
    argv = [packages + "/usr/bin/containerd", "--config", STATE + "/config.toml"]
    with open(STATE + "/log", "ab") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    for _attempt in range(300):
        if os.path.exists(runtimes.SOCKET):
            return process
        time.sleep(0.1)
    sys.exit("containerd does not start: " + STATE + "/log")


def containerd(packages, profile, networks="1"):
    process = start(packages, networks)
    for number, (title, files) in enumerate(layouts.LAYOUTS.items()):
        # A network that nobody has seen shows that containerd looks.
        before = "before-%d" % number
        layouts.put(CONF_DIR, {"10-before.conflist": layouts.network(before)})
        look_again()
        wait(lambda seen, before=before: seen["networks"] == [before], 10)
        layouts.put(CONF_DIR, files)
        look_again()
        predicted = containerd_prediction(profile, CONF_DIR, int(networks))
        wait(lambda seen, predicted=predicted: agree(predicted, seen), 4)
        # It may have looked at an earlier state only.
        time.sleep(0.1)
        yield title, predicted, status()
    process.terminate()
    process.wait()
    subprocess.run(["umount", "--lazy", STATE + "/root"], check=True)


# --- podman


def podman():
    for title, files in layouts.LAYOUTS.items():
        layouts.put("/etc/cni/net.d", files)
        listed = subprocess.run(
            ["podman", "network", "ls", "--format", "{{.Name}}"], stdout=subprocess.PIPE, check=True
        )
        yield (
            title,
            podman_prediction("/etc/cni/net.d"),
            {"networks": sorted(listed.stdout.decode().split()), "error": ""},
        )


def write(column, observed):
    """Add a column to observed.json: for each directory what was seen, and by whom."""
    path = UNIT + "/observed.json"
    everything = {}
    if os.path.exists(path):
        with open(path) as stream:
            everything = json.load(stream)
    for title, seen in observed.items():
        rows = everything.setdefault(title, [])
        for row in rows:
            row["by"] = [name for name in row["by"] if name != column]
        same = [row for row in rows if {"networks": row["networks"], "error": row["error"]} == seen]
        if not same:
            same = [dict(seen, by=[])]
            rows += same
        same[0]["by"] = sorted([*same[0]["by"], column])
        everything[title] = sorted((row for row in rows if row["by"]), key=lambda row: row["by"])
    everything = {title: rows for title, rows in everything.items() if title in layouts.LAYOUTS}
    lines = ",\n".join(json.dumps(title) + ": " + json.dumps(rows) for title, rows in sorted(everything.items()))
    with open(path, "w") as stream:
        stream.write("{\n" + lines + "\n}\n")


def main(name, *words):
    record = "--record" in words
    words = [word for word in words if word != "--record"]
    os.makedirs(CONF_DIR)
    os.makedirs("/etc/cni/net.d", exist_ok=True)
    column = " ".join(words[1:]) or name
    observed, wrong, count = {}, 0, 0
    for title, predicted, seen in {"containerd": containerd, "podman": podman}[name](*words):
        count += 1
        observed[title] = seen
        if not agree(predicted, seen):
            wrong += 1
            print("%s: predicted %s, seen %s" % (title, predicted, seen))
    if record:
        write(column, observed)
    print("%s: %d directories, %d predictions wrong" % (column, count, wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
