# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""An experiment changes nothing of the host, whenever it is killed, and is remembered until something differs."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.trials import experiment
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.experiment import (
    Subject,
    forget_others,
    try_networks,
)
from ansible_collections.podwire.cni.tests.host.host import sh, wait_until
from ansible_collections.podwire.cni.tests.tools.sample import number

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from breaks import BIN_DIR, CHAIN, NETWORK, UPLINK, make_host, remove_host

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
try_networks([Subject(sys.argv[1], "1.0.0", json.loads(sys.argv[2]), [sys.argv[3]])])
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


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("sleep 600", "within 1 s"),
        ("(sleep 600 &) ; (sleep 600 &); sleep 600", "within 1 s"),
        ("yes", "4194304 bytes"),
        ("echo '{}' > /etc/pwx-written; cat", ""),
        ("kill -9 1; kill -9 -1; exit 1", ""),
        ("ip link delete pwxup0; exit 1", ""),
        ("mount -o remount,rw /; echo x > /etc/pwx-written; exit 1", ""),
    ],
)
def test_a_plugin_that_does_harm_is_stopped(script, said, monkeypatch, tmp_path):
    monkeypatch.setattr(experiment, "_TIMEOUT", 1.0)
    before = sh(PICTURE)
    program = BIN_DIR / "bridge"
    program.rename(BIN_DIR / "kept")
    try:
        program.write_text(f"#!/bin/bash\n{script}\n")
        program.chmod(0o755)
        seen = observe()
    finally:
        program.unlink()
        (BIN_DIR / "kept").rename(program)
    assert seen.unknown or seen.failed.verb == "ADD"
    assert said in f"{seen.unknown}{seen.failed}"
    assert sh("pgrep -x -f 'sleep 600' || true") == ""
    assert not Path("/etc/pwx-written").exists()
    assert sh(PICTURE) == before
