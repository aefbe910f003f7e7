# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Kills the module at random points; the next run converges.

A point is a call that can change the host, counted from the moment at which the module has the lock. So a seed means
the same points on a slow machine as on a fast one, except for the order of attachments that are made at the same time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import re
import signal
import sys
import time

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.podwire.cni.plugins.module_utils._host import netlink
from ansible_collections.podwire.cni.plugins.modules import cni_host
from ansible_collections.podwire.cni.tests.host.cni_host.conftest import BIN_DIR, BREAKS, CONF_DIR, empty, network
from ansible_collections.podwire.cni.tests.host.host import sh, wait_until
from ansible_collections.podwire.cni.tests.tools import sample

KILLS = sample.number("KILLS", 55, 3)
SEED = int(os.environ.get("PODWIRE_SEED", "20261123"))
NAMES = ["bridge", "host-local", "loopback", "portmap", "tuning"]
LOCK = "/run/podwire-cni/lock"
RUNTIMES_READ = (".conf", ".conflist", ".json")
# Audit events of calls that change something, and functions without such an event.
EVENTS = {
    "open",
    "fcntl.flock",
    "os.chmod",
    "os.chown",
    "os.link",
    "os.mkdir",
    "os.posix_spawn",
    "os.fork",
    "os.remove",
}
EVENTS |= {"os.rename", "os.rmdir", "os.symlink", "os.truncate", "socket.bind", "socket.connect", "subprocess.Popen"}
FUNCTIONS = ("fsync", "pwrite", "write", "fchmod", "fchown", "ftruncate", "waitpid", "waitid")
# Opening a file to read it changes nothing, and there are hundreds of sysctls.
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Point:
    """Counts the calls of this process after it has the lock; at call number *number*, it writes to *pipe*, and dies.

    *alone*: it goes on, and is killed by whoever reads the pipe.
    """

    def __init__(self, number, pipe, alone):
        self.number, self.pipe, self.alone = number, pipe, alone
        self.count = -1
        self.pid = os.getpid()
        self.write = os.write
        sys.addaudithook(self.audit)
        for name in FUNCTIONS:
            setattr(os, name, self.counting(getattr(os, name)))
        netlink.Dumps.change = self.counting(netlink.Dumps.change)

    def audit(self, event, arguments):
        if event in EVENTS and (event != "open" or arguments[2] & WRITES):
            self.count_call(event == "open" and arguments[0] == LOCK and arguments[2] & os.O_RDWR)

    def counting(self, function):
        def call(*arguments, **keywords):
            self.count_call(False)
            return function(*arguments, **keywords)

        return call

    def count_call(self, locks):
        if os.getpid() != self.pid or not (locks or self.count >= 0):
            return
        self.count += 1
        if self.count == self.number:
            self.write(self.pipe, b"x")
            if not self.alone:
                os.kill(self.pid, signal.SIGKILL)


def module(arguments, number=None, delay=None):
    """Run the module in a copy of this process. Return its result; the count of its calls if it ended in time.

    With *number*, it is killed at that call; *delay* seconds later if that is not None.
    """
    points, output = os.pipe(), os.memfd_create("result")
    pid = os.fork()
    if not pid:
        os.dup2(output, 1)
        point = Point(number, points[1], delay is not None)
        try:
            # Closed before the process ends, because that is at once.
            given = patch_module_args(arguments)
            with open(os.dup(output), "w") as stream, contextlib.redirect_stdout(stream), given:
                cni_host.main()
        except SystemExit:
            pass
        finally:
            point.write(points[1], b"%d" % point.count)
            os._exit(0)
    os.close(points[1])
    told = os.read(points[0], 9)
    if told == b"x" and delay is not None:
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
    _pid, status = os.waitpid(pid, 0)
    os.close(points[0])
    os.lseek(output, 0, 0)
    with open(output) as stream:
        text = stream.read()
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return None if killed else json.loads(text), int(told) if told.isdigit() else 0


def plugins_that_run():
    """Return the processes of plugins, which outlive a module that is killed."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/exe").startswith(str(BIN_DIR)):
                found.append(pid)
    return found


@pytest.fixture
def arguments(source, desired):
    """The arguments of the host's half of the module."""
    desired["netns"]["names"].append("pwh-idle")
    told = {"where": source, "only_ask": False, "last": False, "checksum": ""}
    desired["_source"] = told
    return desired


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Pieces:
    """Tells whether files are whole: each is one of those that *arguments* asks for, or what was there before."""

    def __init__(self, arguments, source):
        self.texts = {entry["name"]: {entry["content"]} for entry in arguments["networks"]["networks"]}
        self.plugins = {name: {digest(source / name), None} for name in NAMES}

    def check(self, where):
        for path in BIN_DIR.glob("*") if BIN_DIR.exists() else []:
            if not path.name.endswith(".podwire-tmp"):
                assert digest(path) in self.plugins[path.name], f"{where}: {path} is torn"
        for path in CONF_DIR.glob("*") if CONF_DIR.exists() else []:
            if path.name.endswith(RUNTIMES_READ):
                name = path.stem.partition("-")[2]
                assert path.read_text() in self.texts[name], f"{where}: {path} is torn"
            else:
                assert path.name.endswith(".podwire-tmp"), f"{where}: {path}"


def rules():
    """Return all rules of the firewall, without addresses and names that are derived from them."""
    text = re.sub(r"\[\d+:\d+\]|^#.*|/32|10\.4\d\.0\.\d+\b|CNI-[0-9a-f]+", "", sh("iptables-save"), flags=re.MULTILINE)
    return sorted(filter(None, text.splitlines()))


def converged():
    """Return all that the desired state consists of, without addresses, which depend on the order of attachments."""
    return {
        "files": sorted(str(path) for folder in (BIN_DIR, CONF_DIR) for path in folder.iterdir()),
        "namespaces": sorted(os.listdir("/run/netns")),
        "leases": {
            name: len([lease for lease in os.listdir(f"/var/lib/cni/networks/{name}") if lease[0].isdigit()])
            for name in sorted(os.listdir("/var/lib/cni/networks"))
        },
        "interfaces": sorted(
            f"{name} {line.split()[0].partition('@')[0]}"
            for name in sorted(os.listdir("/run/netns"))
            for line in sh(f"ip -n {name} -brief link").splitlines()
        ),
        "routes": sorted(
            f"{name} {line.split(' src ')[0]}"
            for name in sorted(os.listdir("/run/netns"))
            for line in sh(f"ip -n {name} route").splitlines()
        ),
        "host": len(sh("ip -oneline link").splitlines()),
        "rules": rules(),
        "cache": sorted(os.listdir("/var/lib/podwire/cni/results")),
    }


def kill_and_converge(arguments, pieces, prepare, expected):
    """Kill the module at random points of its way to *expected*, and run it again each time. Return the kills.

    *prepare* gives the host the state from which the module starts.
    """
    choice = random.Random(SEED)
    prepare()
    _result, calls = module(arguments)
    assert calls > 100
    assert converged() == expected
    found = {"kills": 0, "changed again": 0, "temporary": 0}
    while found["kills"] < KILLS:
        prepare()
        number = choice.randrange(calls)
        delay = choice.choice([None, None, choice.uniform(0, 0.02)])
        result, _calls = module(arguments, number, delay)
        if result is not None:
            # It ended before the kill.
            continue
        where = f"killed at call {number} of {calls}" + (f" and {delay:.3f} s" if delay is not None else "")
        wait_until(lambda: not plugins_that_run())
        found["kills"] += 1
        found["temporary"] += any(
            name.endswith(".podwire-tmp")
            for folder in (BIN_DIR, CONF_DIR)
            if folder.exists()
            for name in os.listdir(folder)
        )
        pieces.check(where)
        result, _calls = module(arguments)
        assert not result.get("failed"), (where, result["msg"])
        found["changed again"] += result["changed"]
        assert converged() == expected, f"{where}\n{sh('iptables-save')}"
        result, _calls = module(arguments)
        assert not result.get("failed") and not result["changed"], (where, result.get("msg"), result["plan"])
    return found


@pytest.fixture
def pieces(arguments, generations, generation):
    return Pieces(arguments, generations[generation])


@pytest.fixture
def expected(arguments):
    result, _calls = module(arguments)
    assert not result.get("failed"), result["msg"]
    return converged()


@pytest.mark.parametrize("generation", ["old"], indirect=True)
def test_a_run_on_an_empty_host_that_is_killed_is_completed_by_the_next(arguments, pieces, expected, capsys):
    found = kill_and_converge(arguments, pieces, empty, expected)
    assert found["changed again"] > KILLS / 2
    assert found["temporary"] > 0
    with capsys.disabled():
        print(f"\nkilled on an empty host: {found}")


@pytest.mark.parametrize("generation", ["new"], indirect=True)
def test_a_run_that_repairs_a_host_and_is_killed_is_completed_by_the_next(arguments, pieces, expected, capsys):
    pieces.texts["pwhapps"].add(network("pwhapps", 43)["content"])
    pieces.plugins["portmap"].add(hashlib.sha256(b"garbage").hexdigest())
    found = kill_and_converge(arguments, pieces, lambda: sh(BREAKS), expected)
    assert found["changed again"] > KILLS / 2
    with capsys.disabled():
        print(f"\nkilled in a repair: {found}")
