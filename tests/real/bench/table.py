# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Prints what the benchmarks measured: table.py DIRECTORY"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections import defaultdict
from statistics import median


def records(directory: str, name: str) -> list[dict]:
    """Read a file with one JSON object a line."""
    with open(os.path.join(directory, name), encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


class Durations:
    """The seconds that each task took, by the task's name."""

    def __init__(self, lines: list[dict]) -> None:
        self._seconds: dict[str, list[float]] = defaultdict(list)
        for line in lines:
            if line["task"].startswith("Unchanged") and line["changed"]:
                sys.exit(f"the task {line['task']!r} changed something; there is nothing to compare")
            # A plain loop times itself, so that its interpreter's start is not in it; so does that of Go's programs.
            seconds = float(line["stdout"]) if line["task"].startswith(("Plain", "Go ")) else line["seconds"]
            self._seconds[line["task"]].append(seconds)

    def of(self, task: str) -> float:
        """Return the median without the first repeat, which fills caches."""
        return median(self._seconds[task][1:])


def row(what: str, ours: float, theirs: float, aim: float | None, unit: str) -> None:
    """Print one line of the table."""
    ratio = ours / theirs
    verdict = "" if aim is None else f"{aim:5.2f}  {'met' if ratio <= aim else 'NOT MET'}"
    print(f"  {what:<54} {ours:8.2f} {theirs:8.2f} {unit:<3} {ratio:6.2f}  {verdict}".rstrip())


def limit(what: str, ours: float, most: float, unit: str) -> None:
    """Print one line of what has a limit of its own."""
    verdict = "met" if ours < most else "NOT MET"
    print(f"  {what:<54} {ours:8.2f} {'':>8} {unit:<3} {'':>6}  < {most:g}  {verdict}")


def host(durations: Durations, processes: list[dict]) -> None:
    """Print how long cni_info takes where there is much to tell."""

    def module(name: str, what: str) -> float:
        return median([line[what] for line in processes if line["name"] == name][1:])

    what = "20 networks, 500 attachments: cni_info"
    limit(f"{what}, module", module("info_of_500", "seconds"), 3, "s")
    limit(f"{what}, peak memory", module("info_of_500", "kilobytes") / 1024, 150, "MiB")
    ping = durations.of("Ping beside 500 attachments")
    row(f"{what} / ping", durations.of("All of 500 attachments"), ping, None, "s")
    row("  without the kernel's state / ping", durations.of("All but the kernel of 500 attachments"), ping, 1.5, "s")
    row("  of files only (conf, plugins) / ping", durations.of("Files of a host with 500 attachments"), ping, None, "s")


def footprints(durations: Durations, directory: str) -> None:
    """Print what recording, comparing and putting back what ADDs changed costs."""
    lines = records(directory, "footprints")
    [recording] = [line for line in lines if line["name"] == "record"]
    row("50 ADDs: with footprints / without", recording["with"], recording["without"], 1.05, "s")
    looks = [line for line in lines if line["name"] == "look"][1:]
    limit("500 attachments: compared with the host", median(line["seconds"] for line in looks), 1, "s")
    limit("500 attachments: memory for that", median(line["kilobytes"] for line in looks) / 1024, 150, "MiB")
    row(
        "one address put back / nothing to do",
        durations.of("One address put back"),
        durations.of("Unchanged cni_attach of one"),
        1.5,
        "s",
    )


def libcni(directory: str) -> None:
    [found] = records(directory, "libcni")
    row("one DEL, a plugin that does nothing: libcni / Go's", found["python"], found["go"], 1.0, "us")
    for count in (500, 10_000):
        row(f"  beside {count} cache entries / beside none", found[f"python_{count}"], found["python"], 1.1, "us")
    row("  (subprocess alone / Go's libcni)", found["bare"], found["go"], None, "us")
    row("  (a durable cache write / Go's DEL, which writes none)", found["write"], found["go"], None, "us")
    limit("import of what cni_attach needs of libcni", found["import"], 25, "ms")


def multinet(directory: str) -> None:
    """Print what podwire-multinet costs beyond the networks that it adds."""
    with open(os.path.join(directory, "multinet"), encoding="utf-8") as stream:
        found = json.load(stream)
    name = "a pod with three networks: podwire-multinet / the chains"
    row(name, found["plugin"], found["chains"], None, "ms")
    limit("  more than the chains, by the clock", found["more"], 60, "ms")
    limit("  more than the chains, in processor time", found["processor"], 60, "ms")


def experiment(directory: str) -> None:
    """Print how long networks are tried in a copy of the host."""
    [found] = records(directory, "experiment")
    limit("one network tried in a copy of the host", found["one"], 1.5, "s")
    limit("  ten networks", found["ten"], 15, "s")
    limit("  ten networks, again", found["again"], 1, "s")
    [readiness] = records(directory, "readiness")
    limit("readiness of 160 networks, in processor time", readiness["seconds"], 0.2, "s")


def payload(directory: str) -> None:
    """Print what Ansible sends to a host for a task."""
    [kibibytes] = records(directory, "payload")
    for module, most in (("cni_host", 600), ("cni_conf", 350), ("cni_attach", 400)):
        limit(f"what is sent for {module} (a ping: {kibibytes['ping']:.0f})", kibibytes[module], most, "KiB")


def own_plugins(directory: str) -> None:
    [found] = records(directory, "own_plugins")
    bare, python, go = (found.pop(name) for name in ("bare", "python", "go"))
    for call, took in found.items():
        row(f"{call} with nothing to do / a Python that does nothing", took, bare, 3.0, "ms")
    row("ADD, DEL: bridge, 3 plugins in Python / 3 of Go's", python, go, None, "ms")


def main() -> None:
    directory = sys.argv[1]
    durations = Durations(records(directory, "durations"))
    ping = durations.of("Ping before CHECKs")
    print(f"ansible-core's Python {platform.python_version()}, {os.cpu_count()} CPUs, medians of interleaved repeats\n")
    print(f"  {'':<54} {'ours':>8} {'other':>8} {'':<3} {'ratio':>6}  {'aim':>5}")
    unchanged = durations.of("Unchanged cni_host")
    row("nothing to do: cni_host / one ping", unchanged, durations.of("Ping beside cni_host"), 2.0, "s")
    checks = durations.of("Plain loop of check")
    unchanged = durations.of("Unchanged cni_host with attachments")
    row("nothing to do: cni_host of 50 / ping + 1.2 x 50 CHECKs", unchanged, ping + 1.2 * checks, 1.0, "s")
    unchanged = durations.of("Unchanged cni_attach with attachments")
    row("nothing to do: cni_attach of 50 / ping + 50 CHECKs", unchanged, ping + checks, 1.0, "s")
    many = durations.of("Many added by cni_attach") + durations.of("Many deleted by cni_attach")
    go = durations.of("Go adds and deletes")
    row("200 ADDs and DELs: cni_attach / Go's, one by one", many, go, 0.65, "s")
    floor = durations.of("Plain parallel add of many") + durations.of("Plain parallel del of many")
    row("  (what this machine allows: its plugins in parallel)", floor, go, None, "s")
    row("  (with a CHECK after each of Go's ADDs)", many, durations.of("Go adds, checks and deletes"), None, "s")
    print()
    footprints(durations, directory)
    print()
    libcni(directory)
    print()
    multinet(directory)
    own_plugins(directory)
    experiment(directory)
    print()
    payload(directory)
    processes = records(directory, "processes")
    print()
    host(durations, processes)
    print()
    what = "1,000 leases, 500 attachments, 500 chains: cni_gc"
    limit(f"{what} plans", durations.of("Plan of cni_gc"), 3, "s")
    memory = median(line["kilobytes"] for line in processes if line["name"] == "cni_gc")
    limit(f"{what}, peak memory", memory / 1024, 150, "MiB")
    print(
        """
Go's libcni is version 1.3.0, as Debian has it; its program is run once for each verb and container, ours is one module
for all.
18 plugins of 1.9.1, 10 networks (bridge, host-local, tuning), 50 containers in one network; cni_host has the sections
plugins, networks and netns (three namespaces), or only attachments. The plain loop of
CHECKs has as many workers as cni_attach. The 500 attachments have a namespace each; every other of their 20 networks
(bridge, host-local, tuning) masquerades. Half of the attachments that cni_gc finds live, and nothing else does."""
    )


if __name__ == "__main__":
    main()
