# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What the profiles predict, beside what real runtimes do with the same directories.

The directories are those of tests/unit/plugins/module_utils/_host/runtimes/layouts.py. What is seen can be recorded in
observed.json beside it, which the unit tests compare every change of the rules with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

UNIT = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    "unit/plugins/module_utils/_host/runtimes",
)
# The directory that has ansible_collections.
COLLECTIONS = os.path.abspath(__file__).partition("/ansible_collections/")[0]
sys.path[:0] = [COLLECTIONS, UNIT]

import layouts  # noqa: E402
from predicted import agree, containerd_prediction, podman_prediction  # noqa: E402

HEAD = ("runtime", "`max_conf_num`", "directories", "agree", "differ")
FEW = (
    *("empty", "two lists", "100 comes before 20", "a single one before a list", "broken before", "broken after"),
    *("a list in a json", "a link to nothing", "no name", "version as number"),
)


class Comparison:
    """*column* is the runtime's name in observed.json."""

    def __init__(self, runtime, networks, column):
        self.runtime = runtime
        self.networks = networks
        self.column = column
        self.seen = {}
        self.wrong = []

    def add(self, title, predicted, seen):
        self.seen[title] = seen
        if not agree(predicted, seen):
            self.wrong.append("%s, %s: predicted %s, seen %s" % (self.runtime, title, predicted, seen))

    def row(self):
        count = len(self.seen)
        return (self.runtime, self.networks or "-", count, count - len(self.wrong), len(self.wrong))


def _ask(containerd, conf_dir):
    networks, error = containerd.cri.status()
    return {"networks": [name for name, _source in networks], "error": error.replace(conf_dir, "DIR")}


def _wait(containerd, conf_dir, condition, seconds):
    """Return when the condition holds for what containerd says, or after the time."""
    deadline = time.monotonic() + seconds
    while not condition(_ask(containerd, conf_dir)) and time.monotonic() < deadline:
        time.sleep(0.01)


def _look_again(conf_dir):
    """Make every containerd load the directory once more."""
    path = conf_dir + "/neutral"
    with open(path, "w"):
        pass
    os.unlink(path)


def with_containerds(containerds, titles, conf_dir):
    """Show the directories to all of them; return a Comparison for each."""
    found = []
    for containerd in containerds:
        # As the unit tests name it: with the number of networks where that is not the default.
        column = containerd.profile + (" %d" % containerd.networks if containerd.networks != 1 else "")
        found.append(Comparison("containerd " + containerd.version, containerd.networks, column))
    for number, title in enumerate(titles):
        # A network that nobody has seen shows that containerd looks.
        before = "before-%d" % number
        layouts.put(conf_dir, {"10-before.conflist": layouts.network(before)})
        _look_again(conf_dir)
        for containerd in containerds:
            _wait(containerd, conf_dir, lambda seen, before=before: seen["networks"] == [before], 10)
        layouts.put(conf_dir, layouts.LAYOUTS[title])
        _look_again(conf_dir)
        predictions = [containerd_prediction(one.profile, conf_dir, one.networks) for one in containerds]
        for containerd, predicted in zip(containerds, predictions):
            _wait(containerd, conf_dir, lambda seen, predicted=predicted: agree(predicted, seen), 4)
        # One may have looked at an earlier state only.
        time.sleep(0.1)
        for containerd, comparison, predicted in zip(containerds, found, predictions):
            comparison.add(title, predicted, _ask(containerd, conf_dir))
    layouts.put(conf_dir, {})
    return found


def with_podman(titles, conf_dir="/etc/cni/net.d"):
    """Show the directories to podman, whose command is `podman`."""
    version = subprocess.run(["podman", "--version"], stdout=subprocess.PIPE, check=True).stdout.decode().split()[-1]
    comparison = Comparison("podman " + version, None, "podman")
    os.makedirs(conf_dir, exist_ok=True)
    for title in titles:
        layouts.put(conf_dir, layouts.LAYOUTS[title])
        listed = subprocess.run(
            ["podman", "network", "ls", "--format", "{{.Name}}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        seen = {"networks": sorted(listed.stdout.decode().split()), "error": ""}
        comparison.add(title, podman_prediction(conf_dir, version), seen)
    layouts.put(conf_dir, {})
    return comparison


def record(comparisons):
    """Write to observed.json, for each directory, what was seen and by whom."""
    path = UNIT + "/observed.json"
    with open(path) as stream:
        everything = json.load(stream)
    for comparison in comparisons:
        for title, seen in comparison.seen.items():
            _record(everything.setdefault(title, []), comparison.column, seen)
    lines = [
        json.dumps(title) + ": " + json.dumps(sorted((row for row in rows if row["by"]), key=lambda row: row["by"]))
        for title, rows in sorted(everything.items())
        if title in layouts.LAYOUTS
    ]
    with open(path, "w") as stream:
        stream.write("{\n" + ",\n".join(lines) + "\n}\n")


def _record(rows, column, seen):
    for row in rows:
        row["by"] = [name for name in row["by"] if name != column]
    same = [row for row in rows if {"networks": row["networks"], "error": row["error"]} == seen]
    if not same:
        same = [dict(seen, by=[])]
        rows += same
    same[0]["by"] = sorted([*same[0]["by"], column])
