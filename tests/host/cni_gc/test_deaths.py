# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import netns
from ansible_collections.podwire.cni.tests.host.cni_gc import containers
from ansible_collections.podwire.cni.tests.host.cni_gc.containers import DEAD, DEATHS, LIVE, NAMES, NETWORK
from ansible_collections.podwire.cni.tests.host.host import COLLECTION, sh


@pytest.fixture
def host_address():
    """An address of the host for its ports."""
    address = "10.80.0.1"
    sh(f"ip address add {address}/32 dev lo")
    yield address
    sh(f"ip address delete {address}/32 dev lo")


@pytest.fixture
def all_attached(gc, attach):
    attach([containers.attachment_with_port(name) for name in NAMES])


@pytest.fixture
def listeners(all_attached):
    """The sockets that listen in the containers that will live, by name."""
    paths = [f"/run/netns/{name}" for name in LIVE]
    found = netns.visit([netns.Netns(path) for path in paths], lambda: socket.create_server(("", 80)))
    yield dict(zip(LIVE, found.values()))
    for listener in found.values():
        listener.close()


def test_many_containers_die_in_many_ways_and_the_rest_does_not_notice(
    gc, generations, listeners, host_address, collect, detach, work, leases
):
    cache = work / "cache"
    nothing = gc.run("cni_gc", min_age="0", scope=["attachments", "leases", "rules", "cache", "links"])
    assert not nothing["changed"]
    assert nothing["collected"] == []

    # A DEL is killed half way.
    files = [str(containers.cache_file(cache, name)) for name in DEATHS["interrupted"]]
    program = Path(__file__).parent / "files" / "interrupt.py"
    subprocess.run(
        [sys.executable, program, cache, generations["new"], *files],
        check=True,
        env={**os.environ, "PYTHONPATH": str(COLLECTION.parents[2])},
    )
    # A DEL fails for want of a plugin.
    without = [{**containers.attachment(name), "netns": name, "state": "absent"} for name in DEATHS["binary"]]
    gc.fail("cni_attach", attachments=without, bin_dirs=[str(work / "fake")])
    for name in DEATHS["veth"]:
        sh(f"ip -n {name} link delete eth0")
    sh(f"for name in {' '.join(DEAD)}; do ip netns delete $name; done")
    # Nothing tells whose the rules of the plugin firewall for these addresses are.
    unknown = {containers.address(cache, name) for name in DEATHS["chain"] if NETWORK[name] == "pwgone"}
    containers.forget(cache, DEATHS["lease"])
    containers.forget(cache, DEATHS["chain"])
    containers.release(leases, DEATHS["chain"])
    containers.truncate(cache, DEATHS["truncated"])
    traces = containers.traces(cache, leases)
    reserved = [trace for trace in traces if trace.startswith("lease ")]
    assert len(reserved) > 0.4 * len(NAMES)
    assert len(traces) - len(reserved) > 2 * len(NAMES)

    young = gc.run("cni_gc", scope=["attachments", "leases", "rules", "cache"])
    assert not young["changed"]
    assert {one["reason"] for one in young["collected"]} == {"young"}

    # Some of them died long ago, before a reboot, and now there are other namespaces of the same names.
    containers.reboot(cache, DEATHS["reboot"])
    sh(f"for name in {' '.join(DEATHS['reboot'])}; do ip netns add $name; done")

    ran = collect()
    assert containers.traces(cache, leases) == []
    assert {one["container_id"] for one in ran["collected"]} == {*DEAD, ""}
    ids = {one["id"] for one in ran["collected"] if one["container_id"] == ""}
    assert ids == {f"iptables-nft ipv4 firewall {address}" for address in unknown}
    assert {one["action"] for one in ran["collected"]} == {"deleted"}
    assert ran["kept"]["attachment"] == len(LIVE)
    check_answers(cache, host_address, listeners)
    # Two of each network.
    detach([{**containers.attachment(name), "capability_args": {}} for name in LIVE[:8]])


def check_answers(cache, host_address, listeners):
    """Every container that lives answers a ping, and a connection to its port of the host reaches it."""
    for name, listener in listeners.items():
        sh(f"ping -c 1 -W 5 -q {containers.address(cache, name)}")
        listener.settimeout(10)
        with socket.create_connection((host_address, containers.PORT[name]), timeout=10):
            connection, _peer = listener.accept()
            connection.close()
