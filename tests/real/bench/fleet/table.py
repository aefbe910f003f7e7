# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Prints what the benchmark of a fleet measured: table.py DIRECTORY FEW MANY REPLAYED"""

from __future__ import annotations

import json
import os
import platform
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from table import records, row

PING = "ansible.builtin.ping"


class Run:
    """What each task of a run took, in milliseconds a host."""

    def __init__(self, directory: str, hosts: int) -> None:
        self._tasks = records(directory, f"tasks.{hosts}")
        self._hosts = hosts
        failed = [task for task in self._tasks if task["failed"]]
        if failed:
            sys.exit(f"tasks failed; there is nothing to compare: {failed}")

    def of(self, *actions: str) -> float:
        """Return what the tasks of these actions take for a host, without those that were skipped on all hosts."""
        found = [task for task in self._tasks if task["action"] in actions and task["skipped"] < self._hosts]
        return sum(task["seconds"] for task in found) * 1000 / self._hosts

    def processor(self, ping: bool) -> float:
        """Return the processor time of the controller for a host, in milliseconds: of the ping, or of the playbook."""
        found = [task["processor"] for task in self._tasks if (task["action"] == PING) is ping]
        return sum(found) * 1000 / self._hosts

    def memory(self) -> float:
        """Return the most memory of the controller's main process, in MiB."""
        return max(task["memory"] for task in self._tasks)

    def ping(self) -> float:
        return self.of(PING)

    def drift(self) -> float:
        """Return what the whole playbook takes for a host."""
        return sum(task["seconds"] for task in self._tasks if task["action"] != PING) * 1000 / self._hosts


def main() -> None:
    directory, few, many, replayed = sys.argv[1], *map(int, sys.argv[2:5])
    small, large, controller = Run(directory, few), Run(directory, many), Run(directory, replayed)
    ping = large.ping()
    expected = {f"report.{many}": (many, many // 10), "report": (replayed, 0)}
    for folder, wanted in expected.items():
        with open(os.path.join(directory, folder, "report.json"), encoding="utf-8") as stream:
            counts = json.load(stream)["counts"]
        if (counts["hosts"], counts["drift"]) != wanted:
            sys.exit(f"the report does not say what is there: {counts}")
    print(f"ansible-core's Python {platform.python_version()}, {os.cpu_count()} CPUs, milliseconds a host\n")
    print(f"  {'':<54} {'ours':>8} {'other':>8} {'':<3} {'ratio':>6}  {'aim':>5}")
    row(f"{many} hosts: drift, records and report / ping", large.drift(), ping, 4.0, "ms")
    # One task a host, and one that makes the report of all.
    row("  cni_report, which runs cni_host / ping", large.of("podwire.cni.cni_report"), ping, None, "ms")
    row(f"growth: the playbook for {many} hosts / for {few}", large.drift(), small.drift(), 1.05, "ms")
    row(f"  (ping for {many} hosts / for {few})", ping, small.ping(), None, "ms")
    ours, other = controller.processor(ping=False), controller.processor(ping=True)
    row(f"{replayed:,} hosts: the controller's processor time / ping", ours, other, 3.0, "ms")
    print(f"  {f'{replayed:,} hosts: memory of the controller':<54} {controller.memory():8.2f} {'':>8} MiB")
    print(
        """
Each host is a mount namespace of this machine with its own networks, manifest and cache; binaries, kernel and
the two attachments are the same for all. The connection is local, there are as many forks as Ansible has by itself.
The controller's rows are about hosts that only repeat what a real host has answered; their own time is taken out."""
    )


if __name__ == "__main__":
    main()
