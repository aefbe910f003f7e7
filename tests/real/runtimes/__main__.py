# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Shows real runtimes what cni_conf writes and predicts, and prints tables; as root in a namespace of tests/private.sh.

The exit status is 1 if a runtime does not load what cni_conf has written, or does not do what its profile predicts.
`./run runtimes` calls this.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import platform
import shutil
import subprocess
import sys

import apptainer
import drop_ins
import image
import installed
import multinet
import predictions
import readiness
import sandboxes
import writes
from containerd import Containerd, crun_script

STATE = "/run/podwire-containerd"
CONF_DIR = STATE + "/net.d"
PARTS = ("writes", "predictions", "sandboxes", "multinet", "readiness", "drop-ins", "apptainer")


def arguments():
    parser = argparse.ArgumentParser(prog="./run runtimes")
    parser.add_argument("--plugins", required=True, help="the directory of the CNI plugins")
    parser.add_argument("--newer", help="the directory of newer plugins, which the part readiness needs")
    parser.add_argument("--packages", required=True, help="where podman, crun and busybox are unpacked")
    parser.add_argument("--containerd", action="append", required=True, help="where one is unpacked; several times")
    parser.add_argument("--apptainer", default="", help="the archive of a system with Apptainer; without it, skip that")
    parser.add_argument(
        "--short", action="store_true", help="few directories, few writes, one sandbox; no copy, no podman"
    )
    parser.add_argument("--writes", type=int, help="how many (300)")
    parser.add_argument("--record", action="store_true", help="write what is seen to observed.json of the unit tests")
    parser.add_argument("name", nargs="*", help="a version such as 1.7, podman, %s; default: all" % ", ".join(PARTS))
    return parser.parse_args()


@contextlib.contextmanager
def control_groups():
    subprocess.run(["mount", "-t", "cgroup2", "podwire-containerd", "/sys/fs/cgroup"], check=True)
    yield
    subprocess.run(["umount", "/sys/fs/cgroup"], check=True)


def prepare(plugins, packages):
    os.makedirs(STATE)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "podwire-containerd", STATE], check=True)
    os.mkdir(CONF_DIR)
    # Modules run only plugins that root owns, and the cache may be a user's.
    shutil.copytree(plugins, "/opt/cni/bin", copy_function=shutil.copy, dirs_exist_ok=True)
    with open(STATE + "/crun", "w") as stream:
        stream.write(crun_script(packages))
    os.chmod(STATE + "/crun", 0o755)
    image.write(STATE + "/image.tar", packages + "/bin/busybox")


def trusted(directory):
    """Return *directory*, or a copy that belongs to root, because modules run no program that a user could replace."""
    if os.stat(directory).st_uid == 0:
        return directory
    os.makedirs(STATE + "/packages", exist_ok=True)
    copy = "%s/packages/%s" % (STATE, os.path.basename(directory))
    subprocess.run(["cp", "--recursive", directory, copy], check=True)
    return copy


@contextlib.contextmanager
def running(packages, networks=1):
    """Run the containerds that are unpacked in *packages*, which all read CONF_DIR."""
    with contextlib.ExitStack() as stack:
        found = []
        for number, directory in enumerate(packages):
            containerd = Containerd(directory, "%s/%d-%d" % (STATE, networks, number), CONF_DIR, networks)
            stack.callback(containerd.stop)
            containerd.start(STATE + "/crun")
            found.append(containerd)
        yield found


def machine():
    with open("/etc/os-release") as stream:
        system = next(line.split("=", 1)[1].strip().strip('"') for line in stream if line.startswith("PRETTY_NAME="))
    with open("/proc/cpuinfo") as stream:
        processor = next((line.split(":", 1)[1].strip() for line in stream if line.startswith("model name")), "unknown")
    said = subprocess.run(["ansible", "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
    return "%s: %s, Linux %s, %d x %s, %s" % (
        datetime.date.today().isoformat(),
        system,
        platform.release(),
        os.cpu_count(),
        processor,
        said.splitlines()[0],
    )


def compare(containerds, options, podman):
    """Compare predictions; return the comparisons."""
    if options.short:
        with running(containerds) as found:
            return predictions.with_containerds(found, predictions.FEW, CONF_DIR)
    comparisons = []
    if containerds:
        with running(containerds) as found, running(containerds, networks=2) as more:
            comparisons = predictions.with_containerds([*found, *more], predictions.layouts.LAYOUTS, CONF_DIR)
    if podman:
        installed.install(options.packages)
        comparisons.append(predictions.with_podman(predictions.layouts.LAYOUTS))
    return comparisons


def main():
    options = arguments()
    parts = [name for name in options.name if name in PARTS]
    runtimes = [name for name in options.name if name not in PARTS]
    containerds = {
        Containerd(directory, "", "").profile.partition("-")[2]: directory for directory in options.containerd
    }
    unknown = set(runtimes) - set(containerds) - {"podman"}
    if unknown:
        sys.exit("no such runtime or part: %s; there are %s" % (sorted(unknown), [*containerds, "podman", *PARTS]))
    chosen = [directory for version, directory in containerds.items() if version in (runtimes or containerds)]
    podman = not options.short and "podman" in (runtimes or ["podman"])
    parts = parts or PARTS

    prepare(options.plugins, options.packages)
    chosen = [trusted(directory) for directory in chosen]
    problems = []
    print(machine(), flush=True)
    if "writes" in parts and chosen:
        with running(chosen) as found:
            ways = ["cni_conf"] if options.short else ["cni_conf", "copy", "copy across"]
            rows, wrong = writes.run(found, ways, options.writes or (15 if options.short else 300), CONF_DIR, STATE)
        show("Writes", writes.HEAD, rows)
        problems += wrong
    if "sandboxes" in parts and chosen:
        with running(chosen) as found:
            names = ["pods"] if options.short else sandboxes.NETWORKS
            rows, wrong = sandboxes.run(found, names, CONF_DIR, STATE)
        show("Pod sandboxes", sandboxes.HEAD, rows)
        problems += wrong
    if "multinet" in parts and chosen:
        with running(chosen) as found:
            rows, wrong = multinet.run(found, CONF_DIR, STATE)
        show("Several networks", multinet.HEAD, rows)
        problems += wrong
    if "readiness" in parts and chosen and options.newer:
        # Their plugins do what this script says, see there.
        with open(STATE + "/plugin.bash", "w") as stream:
            stream.write(readiness.PLUGIN)
        os.environ["BASH_ENV"] = STATE + "/plugin.bash"
        with control_groups(), running(chosen) as found:
            rows, wrong = readiness.run(found, CONF_DIR, STATE, options.plugins, options.newer)
        del os.environ["BASH_ENV"]
        show("Readiness", readiness.HEAD, rows)
        problems += wrong
    if "drop-ins" in parts and chosen:
        with control_groups(), running(chosen) as found:
            rows, wrong = drop_ins.run(found, CONF_DIR, STATE, options.plugins)
        show("Drop-ins", drop_ins.HEAD, rows)
        problems += wrong
    if "predictions" in parts:
        comparisons = compare(chosen, options, podman)
        show("Predictions", predictions.HEAD, [comparison.row() for comparison in comparisons])
        problems += [line for comparison in comparisons for line in comparison.wrong]
        if options.record:
            predictions.record(comparisons)
    if "apptainer" in parts and options.apptainer:
        rows, wrong = apptainer.run(options.apptainer)
        show("Apptainer", apptainer.HEAD, rows)
        problems += wrong
    elif "apptainer" in parts:
        print("\nApptainer is skipped: there is no system with it.")
    if problems:
        print("\nNot as promised:")
        print(*problems, sep="\n")
        sys.exit(1)


def show(title, head, rows):
    print("\n## %s\n" % title)
    for line in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(str(cell) for cell in line) + " |", flush=True)


if __name__ == "__main__":
    main()
