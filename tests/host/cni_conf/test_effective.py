# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What runtimes would do with the networks."""

from __future__ import annotations

from ansible_collections.podwire.cni.tests.host.networks import network

IPAM = {"type": "host-local", "subnet": "10.66.0.0/24"}
WANTED = [
    network("first", {"type": "bridge", "bridge": "pweff0", "ipam": IPAM}, priority=10),
    network("second", priority=20),
]
RUNTIMES = ["containerd-1.7", "crio", "podman", "nomad", "k3s"]


def test_what_a_runtime_would_not_use_is_refused_before_anything_is_written(host, conf_dir):
    for wanted, runtimes in (
        ("second", ["containerd-1.7", "crio", "k3s"]),
        # k3s reads a directory of its own.
        ("first", ["k3s"]),
    ):
        refused = host.fail("cni_conf", networks=WANTED, runtime=RUNTIMES, ensure_effective=wanted)
        assert refused["code"] == "not_effective"
        assert [entry["message"].split()[1] for entry in refused["problems"]] == runtimes
        assert list(conf_dir.iterdir()) == []


def test_check_mode_says_what_runtimes_would_do_after_a_run(host, conf_dir):
    check = host.run("cni_conf", networks=WANTED, runtime=RUNTIMES, check_mode=True)
    run = host.run("cni_conf", networks=WANTED, runtime=RUNTIMES)
    again = host.run("cni_conf", networks=WANTED, runtime=RUNTIMES)
    assert [result["changed"] for result in (check, run, again)] == [True, True, False]
    assert check["effective"] == run["effective"] == again["effective"]
    rows = run["effective"]
    assert [row["runtime"] for row in rows] == RUNTIMES
    assert [row["network"] for row in rows] == ["first", "first", "podman", None, None]
    assert rows[0]["file"] == f"{conf_dir}/10-first.conflist"
    assert [entry["reason"] for entry in rows[0]["not_chosen"]] == ["10-first.conflist sorts before it"]
    assert [entry["network"] for entry in rows[3]["networks"]] == ["first", "second"]
    assert sorted(path.name for path in conf_dir.iterdir()) == ["10-first.conflist", "20-second.conflist"]

    absent = [{"name": name, "state": "absent"} for name in ("first", "second")]
    assert host.run("cni_conf", networks=absent, runtime=[])["effective"] == []


def test_nobody_uses_a_network_on_a_host_without_runtimes(host, conf_dir):
    host.run("cni_conf", networks=WANTED)
    refused = host.fail("cni_conf", networks=[{"name": "second", "state": "absent"}], ensure_effective="first")
    assert refused["code"] == "missing_runtime"
    assert [entry["code"] for entry in refused["problems"]] == ["missing_runtime"]
