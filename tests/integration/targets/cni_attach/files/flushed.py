# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attaches containers, flushes the firewall under them, with and without the command iptables, and repairs them.

flushed.py WORK_DIRECTORY OLD_PLUGINS NEW_PLUGINS, as root in a network namespace of its own. No repair may leave a
container without an address that it had, and with iptables back all of it is repaired. Each first ADD loses a race.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.outcome import AttachSettings
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.planner import AttachPlanner
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import parse_attachments
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.verbs import Verbs
from ansible_collections.podwire.cni.plugins.module_utils._host.lock import run_locked

PATH = os.environ["PATH"]
# bridge; bridge, portmap and firewall
CHAINS = ("b", "bpf")

RACE = """#!/bin/sh
{real} "$@"
status=$?
case "$*" in
  *"-N CNI-ADMIN"*)
    mkdir {once} 2>/dev/null || exit $status
    echo "iptables v1.8.9 (nf_tables):  CHAIN_ADD failed (File exists): chain CNI-ADMIN" >&2
    exit 4
    ;;
esac
exit $status
"""


def shell(command):
    return subprocess.run(command, shell=True, check=False, capture_output=True, text=True).stdout


def directory_of_commands(work, kind):
    """Make a directory in which iptables is of *kind* and return a PATH that begins with it."""
    path = os.path.join(work, f"path-{kind}")
    os.mkdir(path)
    for family in ("iptables", "ip6tables"):
        for verb in ("", "-save", "-restore"):
            os.symlink(f"/usr/sbin/{family}-{kind}{verb}", os.path.join(path, family + verb))
    return f"{path}:{PATH}"


def path_without_iptables(work):
    path = os.path.join(work, "path-none")
    os.mkdir(path)
    for name in ("ip", "nft"):
        os.symlink(f"/usr/sbin/{name}", os.path.join(path, name))
    return path


def path_of_a_broken_iptables(work):
    path = os.path.join(work, "path-broken")
    os.mkdir(path)
    for name in ("iptables", "ip6tables"):
        os.symlink("/bin/false", os.path.join(path, name))
    return f"{path}:{PATH}"


def path_of_a_race(work, path):
    """Return a PATH whose iptables says, the first time, that somebody else has just made the chain CNI-ADMIN."""
    folder = os.path.join(work, f"path-race-{len(os.listdir(work))}")
    os.mkdir(folder)
    command = os.path.join(folder, "iptables")
    with open(command, "w", encoding="utf-8") as stream:
        stream.write(RACE.format(real=os.path.join(path.partition(":")[0], "iptables"), once=f"{folder}/lost"))
    os.chmod(command, 0o755)
    return f"{folder}:{path}"


class Site:
    """Containers on networks of all kinds that one generation of plugins has."""

    def __init__(self, work, number, bin_dir, backends):
        self.lock = os.path.join(work, "lock")
        self.cache = os.path.join(work, "cache")
        self.bin_dir = bin_dir
        self.conf_dir = os.path.join(work, f"net.d.{number}")
        os.mkdir(self.conf_dir)
        self.entries = []
        for index, (chain, backend) in enumerate(itertools.product(CHAINS, backends)):
            name = f"pwf{number}{chain}{index}"
            self.configure(work, name, chain, backend, f"10.{80 + number}.{index}.0/24")
            shell(f"ip netns add {name}; ip -n {name} link set lo up")
            entry = {"network": name, "container_id": name, "netns": name}
            if "p" in chain:
                mapping = {"hostPort": 8000 + 10 * number + index, "containerPort": 80, "protocol": "tcp"}
                entry["capability_args"] = {"portMappings": [mapping]}
            self.entries.append(entry)

    def configure(self, work, name, chain, backend, subnet):
        ipam = {"type": "host-local", "dataDir": os.path.join(work, "leases"), "subnet": subnet}
        bridge = {"type": "bridge", "bridge": name, "isGateway": True, "ipMasq": True, "ipam": ipam}
        if backend:
            bridge["ipMasqBackend"] = backend
        plugins = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}, {"type": "firewall"}]
        with open(os.path.join(self.conf_dir, f"{name}.conflist"), "w", encoding="utf-8") as stream:
            json.dump({"cniVersion": "1.0.0", "name": name, "plugins": plugins[: len(chain)]}, stream)

    def attach(self, check_mode=False, state="present"):
        options = AttachSettings(self.conf_dir, [self.bin_dir], self.cache, on_drift="repair", check_mode=check_mode)
        verbs = Verbs([self.bin_dir], self.cache, 30)
        request = parse_attachments([dict(entry, state=state) for entry in self.entries])
        plan = run_locked(lambda: AttachPlanner(options, verbs).make(request), "test", 5, check_mode, 1, self.lock)
        return [(outcome.action, outcome.error and outcome.error["code"]) for outcome in plan.outcomes]

    def connected(self):
        names = [entry["netns"] for entry in self.entries]
        return [bool(shell(f"/usr/sbin/ip -n {name} -4 -o address show eth0")) for name in names]

    def remove(self):
        for entry in self.entries:
            shell(f"ip netns delete {entry['netns']}; ip link delete {entry['network']}")


def expect(what, have, *wanted):
    """End unless each of *have* is one of *wanted*."""
    for one in have:
        if one not in wanted:
            sys.exit(f"{what}: {have}, expected {' or '.join(map(str, wanted))}")


def flush(kind):
    shell("nft flush ruleset")
    if kind == "legacy":
        shell("for t in nat filter; do iptables-legacy -t $t -F; iptables-legacy -t $t -X; done")


def repair(site, what):
    """Repair twice, looked at before and after: the containers are as they were, and then nothing is left to do."""
    expect(f"{what}, planned", site.attach(check_mode=True), ("repaired", None))
    expect(f"{what}, repaired", site.attach(), ("repaired", None))
    expect(f"{what}, connected", site.connected(), True)
    expect(f"{what}, run again", site.attach(), ("none", None))
    expect(f"{what}, checked again", site.attach(check_mode=True), ("none", None))


def scenario(site, what, kind, paths):
    os.environ["PATH"] = paths[kind, "race"]
    expect(f"{what}, attached although a race was lost", site.attach(), ("added", None))
    os.environ["PATH"] = paths[kind]
    flush(kind)
    repair(site, f"{what}, flushed")
    flush(kind)
    os.environ["PATH"] = paths["none"]
    expect(f"{what}, without iptables", site.attach(), ("repaired", None), ("failed", "missing_tool"))
    expect(f"{what}, connected without iptables", site.connected(), True)
    os.environ["PATH"] = paths["broken"]
    flush(kind)
    expect(f"{what}, iptables is broken", site.attach(), ("repaired", None), ("failed", "tool_failed"))
    expect(f"{what}, connected with a broken iptables", site.connected(), True)
    os.environ["PATH"] = paths[kind]
    flush(kind)
    repair(site, f"{what}, iptables is back")
    flush(kind)
    expect(f"{what}, detached", site.attach(state="absent"), ("deleted", None))


def main(work, old, new):
    os.makedirs(work)
    paths = {kind: directory_of_commands(work, kind) for kind in ("nft", "legacy")}
    paths["none"] = path_without_iptables(work)
    paths["broken"] = path_of_a_broken_iptables(work)
    generations = ((old, (None,)), (new, (None, "iptables", "nftables")))
    for number, ((bin_dir, backends), kind) in enumerate(itertools.product(generations, ("nft", "legacy"))):
        site = Site(work, number, bin_dir, backends)
        paths[kind, "race"] = path_of_a_race(work, paths[kind])
        try:
            scenario(site, f"{bin_dir}, iptables-{kind}", kind, paths)
        finally:
            os.environ["PATH"] = PATH
            site.remove()
            flush(kind)
    print("all repaired")


if __name__ == "__main__":
    main(*sys.argv[1:])
