# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The real Apptainer: what it does with the networks of this collection, and what cni_gc does with its containers.

It runs in a system of its own, whose root a process holds in a mount namespace. The modules run there, too, with that
system's Python. Containers run with --no-privs, because this machine may lack capabilities that Apptainer would keep.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from ansible_collections.podwire.cni.tests.host.host import COLLECTION, Host, module_path, wait_until

HEAD = ("what", "seen")
ROOT = "/run/podwire-apptainer"
CONFIG = "/etc/apptainer/apptainer.conf"
WAIT = 60.0
ENVIRONMENT = ("env", "--chdir=/", "PATH=/usr/sbin:/usr/bin:/sbin:/bin")

# Makes a root of the directory, in this mount namespace only, and stays there.
HOLD = r"""
set -eu
cd "$0"
mount --bind . .
cd "$0"
mount -t proc proc proc; mount -t sysfs sysfs sys; mount --rbind /dev dev
mount -t tmpfs -o mode=0755 tmpfs run
for path in "$@"; do mkdir -p "./$path"; mount --rbind "$path" "./$path"; done
mkdir -p .old
pivot_root . .old
cd /
echo ready
exec sleep 100000
"""

# A container: an empty root with busybox in it.
SANDBOX = r"""
mkdir -p /sandbox/bin /sandbox/etc /sandbox/proc /sandbox/sys /sandbox/dev /sandbox/tmp /sandbox/root /sandbox/var/tmp
cp "$(command -v busybox)" /sandbox/bin/
for name in sh sleep ip; do ln -sf busybox /sandbox/bin/$name; done
touch /sandbox/etc/passwd /sandbox/etc/group /sandbox/etc/resolv.conf /sandbox/etc/hosts
mkdir -p /etc/cni/hpc.d
"""


class System:
    """The system in *archive*, as long as ``with`` lasts."""

    def __init__(self, archive):
        self._archive = archive
        self._holder = None
        self._started = []

    def __enter__(self):
        os.makedirs(ROOT)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755,size=2G", "podwire-apptainer", ROOT], check=True)
        subprocess.run(
            ["tar", "--extract", "--numeric-owner", "--file", self._archive, "--directory", ROOT], check=True
        )
        folder = Path("/run/home/apptainer")
        folder.mkdir(parents=True)
        self.host = Host(folder, conf_dir="/etc/cni/hpc.d", bin_dirs=["/usr/lib/cni"], cache_dir="/var/lib/cni")
        # The modules import Ansible from a folder that has a link to it.
        controller = module_path().partition(":")[0]
        ansible = os.path.realpath(os.path.join(controller, "ansible"))
        self._holder = subprocess.Popen(
            [
                *("unshare", "--mount", "--propagation=private", "bash", "-c", HOLD, ROOT),
                *(str(folder), controller, ansible, str(COLLECTION.parents[2])),
            ],
            stdout=subprocess.PIPE,
        )
        if self._holder.stdout.readline() != b"ready\n":
            raise SystemExit("the system with Apptainer does not start")
        self._enter = ["nsenter", f"--target={self._holder.pid}", "--mount", "--root", "--wd=/"]
        self.sh(SANDBOX)
        return self

    def __exit__(self, *_exception):
        for process in self._started:
            self.kill(process)
        self._holder.kill()
        self._holder.wait()
        subprocess.run(["umount", "--lazy", ROOT], check=True)

    def sh(self, script, check=True):
        """Run a script in the system and return its output."""
        done = subprocess.run(
            [*self._enter, *ENVIRONMENT, "sh", "-euc", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise SystemExit(f"{script}\n{done.stdout}")
        return done.stdout.strip()

    def module(self, name, **arguments):
        return self.host.run(name, wrapper=tuple(self._enter), python="/usr/bin/python3", **arguments)

    def container(self, network, *arguments):
        """Start a container; return its process, and its cache entry, or None and what Apptainer printed."""
        words = [word for argument in arguments for word in ("--network-args", argument)]
        before = set(self.entries())
        process = subprocess.Popen(
            [
                *(*self._enter, *ENVIRONMENT, "apptainer", "exec", "--no-privs", "--net", "--network", network, *words),
                *("--no-home", "--no-mount", "/tmp,/etc/hosts,/etc/localtime", "/sandbox", "sleep", "1000"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._started.append(process)
        deadline = time.monotonic() + WAIT
        while not (new := [entry for entry in self.entries() if entry not in before]):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                return process, None, process.stdout.read().decode("utf-8", "replace")
            time.sleep(0.1)
        entry = self.entries()[new[0]]
        return process, entry, ""

    def entries(self):
        """Return the cache entries by file name."""
        folder = Path(f"/proc/{self._holder.pid}/root/var/lib/cni/results")
        found = {}
        for path in sorted(folder.glob("*")) if folder.is_dir() else ():
            try:
                found[path.name] = json.loads(path.read_text())
            except (OSError, ValueError):
                # It is being written.
                continue
        return found

    def kill(self, process):
        """Kill a container as nobody should: Apptainer cannot delete what it added."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def conflist(name, bridge, subnet, **more):
    ipam = {"type": "host-local", "ranges": [[{"subnet": subnet}]]}
    first = {"type": "bridge", "bridge": bridge, "isGateway": True, "ipMasq": True, "ipam": ipam, **more}
    plugins = [first, {"type": "portmap", "capabilities": {"portMappings": True}}]
    return {"cniVersion": "1.0.0", "name": name, "plugins": plugins}


class Course:
    """What is done one after another: ``rows`` for the table, ``wrong`` for what is not as promised."""

    def __init__(self, system):
        self.system = system
        self.rows = []
        self.wrong = []

    def see(self, what, seen, as_promised):
        self.rows.append((what, seen))
        if not as_promised:
            self.wrong.append(f"Apptainer: {what}: {seen}")

    def row(self):
        """Return what cni_info tells of Apptainer."""
        rows = self.system.module("cni_info", gather=["runtime"])["runtime"]
        return next(row for row in rows if row["runtime"] == "apptainer")

    def gc(self, **options):
        scope = ["attachments", "leases", "rules", "cache", "links"]
        return self.system.module("cni_gc", min_age="0", scope=scope, **options)

    def left(self):
        """Return what of containers is left: cache entries, leases and rules."""
        leases = self.system.sh("ls /var/lib/cni/networks/hpc 2>/dev/null | grep -E '^[0-9]' || true").split()
        rules = [line for line in self.system.sh("iptables-save").splitlines() if "id: " in line]
        return [*self.system.entries(), *leases, *rules]

    def packaged(self):
        row = self.row()
        names = [network["network"] for network in row["networks"]]
        own = ["bridge", "ptp", "my-ipvlan", "my-macvlan", "fakeroot"]
        self.see("version, networks of its package", f"{row['version']}: {', '.join(names)}", len(names) == len(own))

    def bootstrap(self):
        def configure(**options):
            return self.system.module(
                "cni_conf",
                networks=[{"name": "hpc", "priority": 10, "conflist": conflist("hpc", "hpc0", "10.91.0.0/24")}],
                runtime=["apptainer"],
                configure={"allow": {"networks": ["hpc"], "users": ["nobody"], "groups": []}},
                ensure_effective="hpc",
                **options,
            )

        check, ran, again = configure(check_mode=True), configure(), configure()
        kinds = [step["kind"] for step in ran["actions"]]
        same = check["actions"] == ran["actions"] and not again["changed"]
        self.see("`cni_conf` with `configure`: check, run, run again", f"{' and '.join(kinds)}; then nothing", same)
        row = self.row()
        self.see("it reads", f"`{row['conf_dir']}`: {row['reason']}", row["conf_dir"] == "/etc/cni/hpc.d")
        lines = self.system.sh(f"grep -n '^allow net' {CONFIG}").splitlines()
        self.see("who may use it", "; ".join(f"`{line}`" for line in lines), len(lines) == 3)

    def run_containers(self):
        system = self.system
        one, first, said = system.container("hpc", "IP=10.91.0.77", "portmap=8091:80/tcp")
        if first is None:
            self.see("a container with a fixed address and a port", said[-200:], False)
            return
        ports = first["capabilityArgs"]["portMappings"]
        address = first["result"]["ips"][0]["address"]
        self.see("a container with `IP=10.91.0.77` and `portmap=8091:80/tcp`", address, address == "10.91.0.77/24")
        self.see("its port mapping", f"`{json.dumps(ports)}`", ports[0]["hostPort"] == 8091)
        self.see("its ID and its path", f"{first['containerId']}, `{first['netns']}`", first["containerId"].isdigit())
        seen = system.sh(f"test -e {first['netns']} && echo yes || echo no")
        self.see("whether the path is visible outside", seen, seen == "no")
        self.edit()
        two, second, said = system.container("hpc")
        addresses = [entry["result"]["ips"][0]["address"] for entry in system.entries().values()]
        self.see("two containers at once", ", ".join(addresses), second is not None)
        if second is None:
            return
        self.live(first)
        system.kill(one)
        wait_until(lambda: not os.path.exists(f"/proc/{first['containerId']}"))
        self.one_is_dead(first, second)
        system.kill(two)
        wait_until(lambda: not os.path.exists(f"/proc/{second['containerId']}"))
        gone = self.gc(allow_empty=True)["collected"]
        kinds = ", ".join(sorted(f"{one['kind']} {one['action']}" for one in gone))
        left = ", ".join(self.left())
        self.see("`cni_gc` after `kill -9` of the other", f"{kinds}; left: {left or 'nothing'}", not left)

    def edit(self):
        """Edit the conflist: what runs keeps its own, and the edit is found."""
        config = conflist("hpc", "hpc0", "10.91.0.0/24", mtu=1400)
        wanted = [{"name": "hpc", "priority": 10, "conflist": config}]
        drift = self.system.module("cni_conf", networks=wanted, check_mode=True)
        self.system.module("cni_conf", networks=wanted)
        reasons = "; ".join(step["reason"] for step in drift["actions"])
        self.see("an edit of the conflist, as drift", reasons, drift["changed"])

    def live(self, entry):
        # The ID is the number of its process.
        pid = entry["containerId"]
        before = self.left()
        alive = self.gc()
        self.see("`cni_gc` beside both", f"{len(alive['collected'])} objects found", alive["collected"] == [])
        # Even if nobody sees its address.
        subprocess.run(["nsenter", f"--target={pid}", "--net", "ip", "addr", "flush", "eth0"], check=True)
        flushed = self.gc()
        same = not flushed["changed"] and self.left() == before
        self.see("the same, with the address of the first flushed", f"{len(flushed['collected'])} objects found", same)
        (row,) = (
            row
            for row in self.system.module("cni_info", gather=["attachments"])["attachments"]
            if row["container_id"] == pid
        )
        self.see("`netns_state` of the first", f"`{row['netns_state']}`", row["netns_state"] == "hidden")

    def one_is_dead(self, dead, alive):
        found = self.gc()["collected"]
        ids = {one["container_id"] for one in found if one["action"] == "deleted"}
        left = list(self.system.entries())
        seen = f"collected of {'the first' if ids == {dead['containerId']} else ids} only"
        as_promised = ids == {dead["containerId"]} and left == [f"hpc-{alive['containerId']}-eth0"]
        self.see("`cni_gc` after `kill -9` of the first, with the same path as the other", seen, as_promised)

    def broken(self):
        system = self.system
        system.sh("echo '{b' > /etc/cni/hpc.d/05-broken.conflist")
        _process, entry, said = system.container("hpc")
        error = said.strip().splitlines()[-1] if said.strip() else "it starts"
        predicted = [one["network"] for one in self.row()["networks"]]
        self.see(
            "a broken file that sorts before",
            f"`{error}`; predicted: {predicted or 'no network'}",
            entry is None and not predicted,
        )
        system.sh("rm /etc/cni/hpc.d/05-broken.conflist")
        _process, entry, said = system.container("nope")
        error = said.strip().splitlines()[-1] if said.strip() else "it starts"
        self.see("a network that no file has", f"`{error}`", entry is None)

    def unconfigure(self):
        system = self.system
        system.module(
            "cni_conf",
            networks=[{"name": "hpc", "state": "absent"}],
            runtime=["apptainer"],
            configure={"state": "absent"},
        )
        row = self.row()
        self.see(
            "`configure: {state: absent}`: it reads",
            f"`{row['conf_dir']}`",
            row["conf_dir"] == "/etc/apptainer/network",
        )


def run(archive):
    """Return the rows of the table, and what is not as promised."""
    with System(archive) as system:
        course = Course(system)
        course.packaged()
        course.bootstrap()
        course.run_containers()
        course.broken()
        course.unconfigure()
    return course.rows, course.wrong
