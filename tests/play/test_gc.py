# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook gc, on a host where a container has died without a DEL. tests/host/cni_gc has what counts as a leak."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import host_local, network

LEASE = Path("/var/lib/cni/networks/pwgone/10.46.0.2")
NETWORK = network("pwgone", {"type": "ptp", "ipam": host_local(subnet="10.46.0.0/24")})


def test_leaks_are_listed_and_collected_on_request_only(controller, host, generations, empty_host):
    variables = {"cni_bin_dirs": [str(generations["new"])], "cni_gc_min_age": 0}
    controller = controller({"all": {"hosts": {"here": {"ansible_connection": "local"}}, "vars": variables}})
    host = host.with_defaults(bin_dirs=variables["cni_bin_dirs"])
    host.run("cni_conf", networks=[NETWORK])
    containers = ["gone", "alive"]
    host.run("cni_netns", names=containers)
    host.run(
        "cni_attach", attachments=[{"network": "pwgone", "container_id": name, "netns": name} for name in containers]
    )
    sh("ip netns delete gone")

    listed = "attachment gone/eth0 of pwgone ("
    reported = controller.run("gc", real=True, cni_hosts="here")
    predicted = controller.run("gc", "--check", cni_hosts="here", cni_gc_apply=True)
    for run, changed in ((reported, 0), (predicted, 1)):
        assert f'"here: leaks to collect: {listed}' in run.stdout
        assert "1 host: 1 with leaks to collect" in run.stdout
        assert f"changed={changed} " in run.stdout
    assert LEASE.exists()

    run = controller.run("gc", cni_hosts="here", cni_gc_apply=True)
    assert f'"here: leaks collected: {listed}' in run.stdout
    assert "1 host: 1 with leaks collected" in run.stdout
    assert "changed=1 " in run.stdout
    assert not LEASE.exists()
