# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Leases that keep a real podman from starting containers again after the host has crashed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import bridge, conflist

NETWORK = conflist(bridge("pwstopped0", "10.98.4.0/29"), version="0.4.0", name="pwstopped")
LEASES = Path("/var/lib/cni/networks/pwstopped")

# What a loss of power leaves: neither processes nor links, and nothing in /run and /dev/shm.
CRASH = """
kill -KILL $(podman ps --format '{{.ID}}' | xargs podman inspect --format '{{.State.ConmonPid}} {{.State.Pid}}')
for space in /run/netns/netns-*; do umount $space; rm $space; done
ip link delete pwstopped0
rm -f /dev/shm/libpod_lock
for path in /run/libpod /run/containers /run/crun; do
  umount --lazy $path
  mount -t tmpfs -o mode=0711 podwire-runtimes $path
done
"""


@pytest.fixture
def containers(runtimes):
    """Return the ID of each container after the crash: two ran, one was stopped before, one was never started."""
    Path("/etc/cni/net.d/10-pwstopped.conflist").write_text(json.dumps(NETWORK))
    run = "podman run --detach --network pwstopped --name"
    ids = {name: sh(f"{run} pw-{name} localhost/podwire:1") for name in ("first", "second", "ended")}
    ids["new"] = sh("podman create --network pwstopped --name pw-new localhost/podwire:1")
    sh("podman stop --time 0 pw-ended")
    sh(CRASH)
    yield ids
    runtimes("uninstall")
    sh("ip link delete pwstopped0 2>/dev/null || true; rm -rf /run/podwire-cni/rehearsals")


def told(host, code="lease_of_stopped"):
    """Return the findings of podman with a code."""
    obstacles = host.run("cni_info", gather=["readiness"])["readiness"]["obstacles"]
    return [row for row in obstacles if (row["code"], row["runtime"]) == (code, "podman")]


def test_a_lease_of_a_stopped_container(host, containers):
    findings = told(host)
    assert [row["level"] for row in findings] == ["warning"] * 2
    for name, row in zip(("first", "second"), findings):
        [lease] = [path for path in LEASES.iterdir() if containers[name] in path.read_text()]
        assert f"pw-{name}" in row["message"] and str(lease) in row["message"] and row["network"] == "pwstopped"
        assert containers[name] in row["evidence"] and f"remove {lease}" in row["remedy"]
        if name == "first":
            # It is true, and so is the remedy.
            assert "keeps leases of stopped containers" in row["remedy"]
            assert not host.run("cni_gc", min_age=0, scope=["leases"])["changed"]
            lease.unlink()
            sh("podman start pw-first")
    assert [row["message"].split()[6] for row in told(host)] == ["pw-second,"]

    # The pool is full: what nobody uses comes first.
    for number in range(2, 7):
        path = LEASES / f"10.98.4.{number}"
        if not path.exists():
            path.write_text(f"dead{number}\r\neth0")
    [row] = told(host, "pool_full")
    unused, used = row["evidence"].split("; ")[1:]
    assert "has 4 of them, those of pw-second (stopped), dead" in unused and "cni_gc" in row["remedy"]
    assert used == f"{containers['first']} have the others"
    # Its first start fails, and podman frees the lease.
    with pytest.raises(AssertionError, match="duplicate allocation"):
        sh("podman start pw-second")
    assert told(host) == []
