# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What real containerds load of what is written: by cni_conf, and by ansible.builtin.copy beside it.

Every write is a task of a running playbook. It is watched from before it begins until what it wrote is loaded by every
containerd, or two seconds are over. What is loaded meanwhile is seen by asking again and again, and in
containerd's log.
"""

from __future__ import annotations

import sys
import time

import playbook
import tasks

HEAD = (
    *("containerd", "way", "writes", "loaded within 2 s", "never loaded", "intermediate states", "errors among these"),
    "loads per write",
)
DEADLINE = 2.0
# How often containerd is asked.
POLL = 0.005
# What else an event leads to is there by then.
SETTLED = 0.05
BROKEN = ("broken", 0)


class Way:
    """A way to write: its *title*, how a Call becomes a *task*, and the remote_tmp of Ansible."""

    def __init__(self, title, task, remote_tmp):
        self.title = title
        self.task = task
        self.remote_tmp = remote_tmp


def ways(state):
    """Return the ways by name; *state* is on the file system of conf_dir, the home directory is not."""
    return {
        "cni_conf": Way("`cni_conf`", tasks.with_cni_conf, "~/tmp"),
        "copy": Way("`copy`, `remote_tmp` on the same file system", tasks.with_copy, state + "/tmp"),
        "copy across": Way("`copy`, `remote_tmp` on another file system", tasks.with_copy, "~/tmp"),
    }


class Watch:
    """What one containerd has loaded while a task ran, and the sums of all tasks."""

    def __init__(self, containerd):
        self.containerd = containerd
        self.writes = self.missed = self.loads = self.intermediate = self.errors = 0
        self.examples = []

    def begin(self):
        self._log = self.containerd.log_size()
        self._seen = set()
        self._before = self.look()

    def look(self):
        """Ask what is loaded now; None if that is not clear."""
        networks, error = self.containerd.cri.status()
        if not networks and not error:
            # It is about to say why: it takes note of the error only when the networks are gone already.
            return None
        state = tasks.read(*networks[0]) if networks else _state_of(error)
        self._seen.add(state)
        return state

    def end(self, call):
        loads, errors = self.containerd.loads(self._log)
        self.loads += loads
        self.writes += len(call.files)
        if self.look() != call.final:
            self.missed += len(call.files)
        loaded = self._seen | {_state_of(error) for error in errors}
        strange = loaded - call.possible() - {self._before}
        self.intermediate += len(strange)
        self.errors += BROKEN in strange
        self.examples += ["%s %d while it should be %s %d" % (*state, *call.final) for state in sorted(strange)]

    def row(self, way):
        counts = (self.writes, self.writes - self.missed, self.missed, self.intermediate, self.errors)
        return (self.containerd.version, way.title, *counts, "%.2f" % (self.loads / self.writes))

    def promise_broken(self):
        return bool(self.missed or self.intermediate or self.loads != self.writes)


def _state_of(error):
    return tasks.NOTHING if "no network config found" in error else BROKEN


def measure(containerds, way, writes, conf_dir, state):
    """Make the writes and return a Watch for each containerd."""
    calls = tasks.calls(writes)
    watches = [Watch(containerd) for containerd in containerds]
    with playbook.running([way.task(call, conf_dir) for call in calls], way.remote_tmp, state) as (answer, waiting):
        for call in calls:
            while not waiting(None):
                pass
            for watch in watches:
                watch.begin()
            answer()
            while not waiting(POLL):
                for watch in watches:
                    watch.look()
            _wait_for(watches, call.final)
            for watch in watches:
                watch.end(call)
            answer()
    return watches


def _all_loaded(watches, final):
    states = [watch.look() for watch in watches]
    return all(state == final for state in states)


def _wait_for(watches, final):
    deadline = time.monotonic() + DEADLINE
    while not _all_loaded(watches, final) and time.monotonic() < deadline:
        time.sleep(POLL)
    settled = time.monotonic() + SETTLED
    while time.monotonic() < settled:
        for watch in watches:
            watch.look()


def run(containerds, chosen, writes, conf_dir, state):
    """Measure the ways that are *chosen*; return the rows of the table, and the promises that cni_conf has broken."""
    rows, broken = [], []
    for name in chosen:
        way = ways(state)[name]
        # The tables come at the end, and this takes minutes.
        print("%d writes by %s" % (writes, way.title), file=sys.stderr)
        for watch in measure(containerds, way, writes, conf_dir, state):
            rows.append(watch.row(way))
            if name == "cni_conf" and watch.promise_broken():
                broken.append("containerd %s: %s" % (watch.containerd.version, [*watch.row(way), *watch.examples[:3]]))
    return sorted(rows, key=lambda row: row[0]), broken
