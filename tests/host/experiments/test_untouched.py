# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""An experiment changes nothing of the host, whenever it is killed, and is remembered until something differs."""

from __future__ import annotations

import contextlib
import json
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.trials import experiment, private_host
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.experiment import (
    Subject,
    forget_others,
    try_networks,
)
from ansible_collections.podwire.cni.tests.host.experiments.breaks import (
    BIN_DIR,
    CHAIN,
    NETWORK,
    UPLINK,
    make_host,
    remove_host,
)
from ansible_collections.podwire.cni.tests.host.host import sh, wait_until
from ansible_collections.podwire.cni.tests.tools.sample import number

PICTURE = """
ip -oneline link | cut -d: -f2; ip -oneline address show scope global; ip route; ip -6 route show proto static; ip rule
nft -s list ruleset; { iptables-legacy-save; ip6tables-legacy-save; } | grep -v '^#' || true
find /run/netns /run/home/pwx-leases /var/lib/cni /run/cni /etc/cni 2>/dev/null || true
findmnt -rno TARGET; sysctl -a 2>/dev/null | grep -E '^net[.](ipv4|ipv6|bridge)[.]' | grep -v '[.]neigh[.]'
"""
PROGRAM = """
import json, sys
from ansible_collections.podwire.cni.plugins.module_utils._host.trials import experiment
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.experiment import Subject, try_networks
print("begins", flush=True)
print(json.dumps(try_networks([Subject(sys.argv[1], "1.0.0", json.loads(sys.argv[2]), [sys.argv[3]])])[0]))
"""


@pytest.fixture(scope="module", autouse=True)
def _host(generations):
    make_host(generations["new"])
    yield
    remove_host()
    sh("rm -rf /run/podwire-cni/experiments")


def observe(chain=()):
    [seen] = try_networks([Subject(NETWORK, "1.0.0", chain or CHAIN, [str(BIN_DIR)])])
    return seen


def test_a_killed_experiment_leaves_nothing():
    # Tables of iptables appear when the tools are run for the first time.
    assert observe().lost == []
    before = sh(PICTURE)
    seed = random.randrange(10**6)
    moments = random.Random(seed)
    for _number in range(number("KILLS", 35, 3)):
        sh("rm -rf /run/podwire-cni/experiments")
        argv = [sys.executable, "-c", PROGRAM, NETWORK, json.dumps(CHAIN), str(BIN_DIR)]
        run = subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True)
        assert run.stdout.readline() == b"begins\n"
        time.sleep(moments.random() * 1.5)
        run.kill()
        run.wait()
        wait_until(lambda group=run.pid: sh(f"pgrep -g {group} || true") == "")
        assert sh(PICTURE) == before, f"seed {seed}"


MEMORY = Path("/run/podwire-cni/experiments")


def written():
    return {path.name: path.stat().st_mtime_ns for path in MEMORY.iterdir()}


@pytest.mark.parametrize(
    ("change", "undo"),
    [
        ("iptables -P FORWARD DROP", "iptables -P FORWARD ACCEPT"),
        ("iptables-legacy -A FORWARD -j DROP", "iptables-legacy -F"),
        (f"ip address add 192.0.2.77/24 dev {UPLINK}", f"ip address delete 192.0.2.77/24 dev {UPLINK}"),
        ("sysctl -qw net.ipv4.conf.all.rp_filter=1", "sysctl -qw net.ipv4.conf.all.rp_filter=0"),
        (f"mv {BIN_DIR}/tuning {BIN_DIR}/x", f"mv {BIN_DIR}/x {BIN_DIR}/tuning"),
        ("mkdir -p /etc/cni/tuning; echo x > /etc/cni/tuning/allowlist.conf", "rm -r /etc/cni/tuning"),
        (
            "mkdir /run/home/pwx-leases/pwxnet; echo > /run/home/pwx-leases/pwxnet/10.88.7.2",
            "rm -r /run/home/pwx-leases/*",
        ),
    ],
)
def test_an_experiment_counts_until_something_differs(change, undo):
    observe()
    before = written()
    observe()
    assert written() == before
    sh(change)
    try:
        observe()
        assert written() != before
    finally:
        sh(undo)


def test_what_is_not_used_any_more_is_forgotten():
    observe()
    before = written()
    forget_others([Subject(NETWORK, "1.0.0", CHAIN, (str(BIN_DIR),))])
    assert written() == before
    forget_others([Subject("other", "1.0.0", CHAIN, (str(BIN_DIR),))])
    assert written() == {}


def test_a_network_that_cannot_be_tried_is_not_known():
    relative = {"type": "host-local", "subnet": "10.9.9.0/24", "dataDir": "leases"}
    reasons = {
        "cilium-cni": [{"type": "cilium-cni"}],
        "of dhcp come from": [{"type": "macvlan", "master": UPLINK, "ipam": {"type": "dhcp"}}],
        "not an absolute path": [{"type": "bridge", "ipam": relative}],
    }
    shutil.copy("/bin/true", BIN_DIR / "cilium-cni")
    for words, chain in reasons.items():
        assert words in observe(chain).unknown


@contextlib.contextmanager
def replaced(script):
    """Have a script instead of the plugin bridge."""
    program = BIN_DIR / "bridge"
    program.rename(BIN_DIR / "kept")
    try:
        program.write_text(f"#!/bin/bash\n{script}\n")
        program.chmod(0o755)
        yield
    finally:
        program.unlink()
        (BIN_DIR / "kept").rename(program)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("sleep 600", "signal: killed (it did not end within 1 s)"),
        ("(sleep 600 &) ; (sleep 600 &); sleep 600", "signal: killed (it did not end within 1 s)"),
        ("yes", "signal: killed (it printed more than 4194304 bytes)"),
        ("echo '{}' > /etc/pwx-written; cat", ""),
        ("kill -9 1; kill -9 -1; exit 1", ""),
        ("ip link delete pwxup0; exit 1", ""),
        ("mount -o remount,rw /; echo x > /etc/pwx-written; exit 1", ""),
    ],
)
def test_a_plugin_that_does_harm_is_stopped(script, said, monkeypatch):
    monkeypatch.setattr(experiment, "_TIMEOUT", 1.0)
    before = sh(PICTURE)
    with replaced(script):
        seen = observe()
    assert seen.unknown or seen.failed.verb == "ADD"
    assert said in f"{seen.unknown}{seen.failed}"
    assert not said or seen.failed.plugin == "bridge"
    assert sh("pgrep -x -f 'sleep 600' || true") == ""
    assert not Path("/etc/pwx-written").exists()
    assert sh(PICTURE) == before


# It ends by itself, if nothing stops it: all others on this machine want to work, too.
BOMB = "for number in $(seq 3000); do sleep 600 & done; sleep 600"


def test_a_fork_bomb_is_stopped_and_named():
    with replaced(BOMB):
        seen = observe()
    assert "it started more than 500 processes, in bridge" in seen.unknown
    assert sh("pgrep -x -f 'sleep 600' || true") == ""


def test_no_trial_takes_longer_than_the_time_that_is_left(monkeypatch):
    monkeypatch.setattr(experiment, "_TOTAL", 2.0)
    with replaced("sleep 600"):
        subjects = [Subject(f"n{number}", "1.0.0", CHAIN, [str(BIN_DIR)]) for number in range(9)]
        seen = [observation.unknown for observation in try_networks(subjects)]
    # As many at a time as the host has processors; none of the others begins.
    late = "there was no time to try it within 2 s"
    assert late in seen
    assert [why for why in seen if not why.startswith(late)] == []


@pytest.mark.parametrize(("each", "total", "code"), [(1.0, 60.0, "not_rehearsed"), (60.0, 2.0, "too_many")])
def test_what_had_too_little_time_has_not_failed(monkeypatch, each, total, code):
    monkeypatch.setattr(private_host, "_EACH", each)
    [error] = private_host.work_apart([lambda: time.sleep(60)], [], total)
    assert error.code == code
    assert re.fullmatch("it took longer than [0-9.]+ s", error.msg)


# What runs the program -> words of the reason.
IMPOSSIBLE = {
    "no mount namespaces": ("user --map-root-user --net --mount", "max_mnt_namespaces", "namespaces: No space left"),
    "no PID namespaces": ("user --map-root-user --net --mount", "max_pid_namespaces", "namespaces: No space left"),
    "no network namespaces": ("user --map-root-user --net --mount", "max_net_namespaces", "namespaces: No space left"),
    "no memory for commands": ("pid", "", "annot allocate memory"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_a_copy_that_cannot_be_made_is_not_known(case):
    namespaces, limit, words = IMPOSSIBLE[case]
    limited = f"echo 0 > /proc/sys/user/{limit};" if limit else ""
    argv = [sys.executable, "-c", PROGRAM, NETWORK, json.dumps(CHAIN), str(BIN_DIR)]
    done = sh(f"""unshare --{namespaces} sh -c '{limited} exec "$@"' sh {shlex.join(argv)}""")
    assert words in json.loads(done.splitlines()[1])[0]


# The first process that is started in a new PID namespace ends, and then the kernel has no memory for another one.
WITHOUT_MEMORY = """
import ctypes, subprocess
class Copy(experiment.HostCopy):
    def __init__(self):
        super().__init__()
        ctypes.CDLL(None).unshare(0x20000000)
        subprocess.run(["true"])
experiment.HostCopy = Copy
"""


def test_a_process_that_cannot_be_started_is_a_reason():
    begin, program = PROGRAM.split("print(", 1)
    argv = [sys.executable, "-c", f"{begin}{WITHOUT_MEMORY}print({program}", NETWORK, json.dumps(CHAIN), str(BIN_DIR)]
    why = json.loads(sh(shlex.join(argv)).splitlines()[1])[0]
    assert why.endswith("no process can be started: Cannot allocate memory")
