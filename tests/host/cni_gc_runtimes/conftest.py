# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

"""A host with a containerd and a podman, whose pods and containers are on the network pwgshared, as is pwg-live."""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh, wait_until
from ansible_collections.podwire.cni.tests.host.networks import PORTMAP, bridge, conflist

NETWORK = conflist(bridge("pwgshared0", "10.99.0.0/24", ipMasq=True), PORTMAP, version="0.4.0", name="pwgshared")
LEASES = Path("/var/lib/cni/networks/pwgshared")

# All that belongs to anybody, and whether every address answers.
STATE = r"""
cd /var/lib/cni
# What was assigned last is nobody's state.
find networks -type f ! -name 'last_reserved_ip.*' -exec sha256sum {} + | sort -k 2
find results /var/lib/podwire -type f ! -path '*/state/*' -exec sha256sum {} + | sort -k 2
ls /run/netns
ip -oneline link | sed -E 's/^[0-9]+: ([^:@]+).*/\1/' | sort
iptables-save | sed '/^#/d; s/\[[0-9:]*\]//'
ask() { ping -c 1 -W 2 $1 > /dev/null && echo $1 answers || echo $1 is silent; }
{
  for file in networks/pwgshared/10.*; do
    ask ${file##*/} &
  done
  wait
} | sort
podman ps --all --no-trunc --format '{{.ID}}' | sort
pgrep --full '^/busybox sleep' | sort
"""


@pytest.fixture(scope="session")
def state():
    """Return a function that returns the lines of STATE."""
    return lambda: sh(STATE).splitlines()


@pytest.fixture(scope="module")
def network(runtimes):
    """The network of all containers; the host is left without its bridge."""
    Path("/etc/cni/net.d/10-pwgshared.conflist").write_text(json.dumps(NETWORK))
    yield
    runtimes("uninstall")
    sh("ip link delete pwgshared0 2>/dev/null || true")


def let_go(container):
    """Remove the interface of a container of CRI or podman, and return the name of its namespace."""
    # What these runtimes cache does not name the namespace, but the plugins' result does.
    cached = json.loads(Path(f"/var/lib/cni/results/pwgshared-{container}-eth0").read_text())
    netns = Path(cached["result"]["interfaces"][-1]["sandbox"]).name
    sh(f"ip -netns {netns} link delete eth0")
    return netns


@pytest.fixture(scope="module", autouse=True)
def _containers(runtimes, network):
    """Pods by CRI, containers by ctr and podman, and a pod by podman.

    One of each is gone, which its runtime has not removed yet.
    """
    pods = {name: runtimes("pod", name) for name in ("web", "db", "gone")}
    runtimes("container", "pwg-ctr")
    runtimes("container", "pwg-gone")
    sh(
        f"""
        podman run --detach --network pwgshared --publish 8080:80 --name web localhost/podwire:1
        podman run --detach --network pwgshared --name gone localhost/podwire:1
        podman pod create --network pwgshared --name pod --infra-image localhost/podwire:1 \
          --infra-command '/busybox sleep 100000'
        podman run --detach --pod pod localhost/podwire:1
        # An address without a container is silent after 0.3 s instead of 3 s.
        echo 100 > /proc/sys/net/ipv4/neigh/pwgshared0/retrans_time_ms

        ctr --namespace k8s.io tasks kill --signal SIGKILL {pods["gone"]}
        ctr tasks kill --signal SIGKILL pwg-gone
        kill -KILL $(podman inspect --format '{{{{.State.ConmonPid}}}} {{{{.State.Pid}}}}' gone)
        """
    )
    sh(f"ip netns delete {let_go(pods['gone'])}")
    # Without the namespace podman does not even list its containers.
    let_go(sh("podman inspect --format '{{.Id}}' gone"))


@pytest.fixture(scope="module", autouse=True)
def _live(host, state, _containers):
    """A container of nobody but this collection."""
    attachment = {
        "network": "pwgshared",
        "container_id": "pwg-live",
        "netns": "pwg-live",
        "capability_args": {"portMappings": [{"hostPort": 8090, "containerPort": 80, "protocol": "tcp"}]},
    }
    try:
        sh("ip netns add pwg-live")
        host.run("cni_attach", attachments=[attachment])
        # The kernel ends a namespace some time after its last process.
        wait_until(lambda: len([line for line in state() if line.endswith(" is silent")]) == 3)
        yield
    finally:
        host.run("cni_attach", attachments=[{**attachment, "state": "absent"}])
        sh("ip netns delete pwg-live")


@pytest.fixture
def without_new_links():
    """Return a context at whose end the kernel has removed the interfaces of namespaces that are gone."""

    @contextlib.contextmanager
    def context():
        before = sorted(os.listdir("/sys/class/net"))
        yield
        wait_until(lambda: sorted(os.listdir("/sys/class/net")) == before)

    return context


@pytest.fixture
def die(host, without_new_links):
    """Return a function that attaches two containers, pwg-dead and pwg-dead-too, which then die."""
    port = {"hostPort": 8091, "containerPort": 80, "protocol": "tcp"}
    attachments = [
        {
            "network": "pwgshared",
            "container_id": "pwg-dead",
            "netns": "pwg-dead",
            "capability_args": {"portMappings": [port]},
        },
        {"network": "pwgshared", "container_id": "pwg-dead-too", "netns": "pwg-dead-too"},
    ]
    used = {}

    def make(**options):
        used.update(options)
        sh("ip netns add pwg-dead; ip netns add pwg-dead-too")
        with without_new_links():
            host.run("cni_attach", attachments=attachments, **options)
            sh("ip netns delete pwg-dead; ip netns delete pwg-dead-too")

    yield make
    # The test has collected them, unless it failed.
    if any("pwg-dead" in lease.read_text() for lease in LEASES.glob("10.*")):
        host.run("cni_attach", attachments=[{**one, "state": "absent"} for one in attachments], **used)


def without_counts(collected):
    """Return what was collected, without the number of namespaces: those of short processes come and go."""
    return json.loads(re.sub(r"none of the \d+ network namespaces", "no network namespace", json.dumps(collected)))


@pytest.fixture
def collect_the_dead(host, state, die):
    """Return a function that runs cni_gc, which must collect two dead containers and touch nothing else."""

    def collect(**options):
        before = state()
        die(**{name: value for name, value in options.items() if name == "cache_dir"})
        arguments = {"scope": ["attachments", "leases", "rules", "cache", "links"], "min_age": 0, **options}
        checked = host.run("cni_gc", check_mode=True, **arguments)
        ran = host.run("cni_gc", **arguments)
        assert state() == before
        assert ran["changed"]
        deleted = {entry["container_id"] for entry in ran["collected"] if entry["action"] == "deleted"}
        assert deleted == {"pwg-dead", "pwg-dead-too"}
        assert without_counts(checked["collected"]) == without_counts(ran["collected"])
        again = host.run("cni_gc", **arguments)
        assert not again["changed"]

    return collect
