# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a real containerd and a real podman do with networks, and what the modules say of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import host_local, network

IPAM = host_local("10.98.0.0/24")
BRIDGE = {"type": "bridge", "bridge": "pwcapps0", "ipam": IPAM}
APPS = network("pwcapps", BRIDGE, version="0.4.0")
CONF_DIR = Path("/etc/cni/net.d")


@pytest.fixture(scope="module", autouse=True)
def _network_of_the_refused_pod(runtimes):
    yield
    # containerd removes a pod only where it has the pod's network; that of the refused pod is there as well.
    runtimes("stop")
    (CONF_DIR / "10-pwcapps.conflist").write_text(json.dumps({"name": "pwcapps", **APPS["conflist"]}))
    runtimes("uninstall")
    sh("ip link delete pwcapps0 2>/dev/null || true")


@pytest.fixture(autouse=True)
def _no_networks(runtimes):
    yield
    sh(f"rm -rf /var/lib/podwire; find {CONF_DIR} -type f -delete")


def test_the_runtimes_are_found_and_do_what_was_said(host, runtimes):
    predicted = host.run("cni_conf", networks=[APPS], ensure_effective="pwcapps", check_mode=True)
    written = host.run("cni_conf", networks=[APPS], ensure_effective="pwcapps")
    rows = host.run("cni_info", gather=["runtime"])["runtime"]
    assert predicted["effective"] == written["effective"] == rows
    assert [row["runtime"] for row in rows] == ["containerd-1.6", "podman"]
    assert [re.match(r"\d+[.]\d+", row["version"])[0] for row in rows] == ["1.6", "4.3"]
    assert [row["found"] for row in rows] == ["a running containerd", "/usr/bin/podman"]
    assert [row["conf_dir"] for row in rows] == [str(CONF_DIR)] * 2
    assert [row["bin_dirs"] for row in rows] == [["/opt/cni/bin"]] * 2
    assert [row["network"] for row in rows] == ["pwcapps", "podman"]
    assert [entry["network"] for entry in rows[1]["networks"]] == ["pwcapps"]

    assert "pwcapps" in sh("podman network ls --format '{{.Name}}'").splitlines()
    pod = runtimes("pod", "pwc")
    try:
        results = [path.name for path in Path("/var/lib/cni/results").iterdir()]
        assert [name for name in results if re.fullmatch("pwcapps-[0-9a-f]+-eth0", name)]
    finally:
        runtimes("remove-pod", pod)


def test_a_network_is_refused_with_the_error_of_containerd_and_podman_does_not_mind(host, runtimes):
    host.run("cni_conf", networks=[APPS])
    # In a way that containerd notices.
    (CONF_DIR / "00-broken.conflist").write_text('{"cniVersion"')
    refused = host.fail("cni_conf", networks=[APPS], ensure_effective="pwcapps")
    assert refused["code"] == "not_effective"
    assert len([entry for entry in refused["problems"] if entry["level"] == "error"]) == 1
    words = "failed to load CNI config list file /etc/cni/net.d/00-broken.conflist"
    assert re.search(f"containerd-1.6 .*{words}", refused["msg"])

    with pytest.raises(AssertionError, match=f"cni plugin not initialized|{words}"):
        runtimes("pod", "pwc")


@pytest.fixture
def elsewhere(runtimes, work):
    """Let an import of containerd's configuration name another directory, and podman's default be another network."""
    main = Path("/etc/containerd/config.toml")
    imported = Path("/etc/containerd/pwc.d/90.toml")
    dropped = Path("/etc/containers/containers.conf.d/90.conf")
    text = main.read_text()
    main.write_text('imports = ["/etc/containerd/pwc.d/*.toml"]\n' + text)
    for path in (imported, dropped):
        path.parent.mkdir(exist_ok=True)
    path = work / "net.d"
    path.mkdir()
    settings = f'conf_dir = "{path}"\nmax_conf_num = 2\n'
    imported.write_text(f'version = 2\n[plugins."io.containerd.grpc.v1.cri".cni]\n{settings}')
    dropped.write_text('[network]\ndefault_network = "pwcapps"\n')
    yield path
    main.write_text(text)
    imported.unlink()
    dropped.unlink()
    runtimes("stop")
    runtimes("start")


def test_new_configurations_count_of_a_containerd_that_does_not_run_as_well(host, runtimes, elsewhere):
    host.run("cni_conf", networks=[APPS])
    wanted = {"networks": [APPS], "ensure_effective": "pwcapps"}
    refused = host.fail("cni_conf", runtime=["containerd", "podman"], **wanted)
    assert refused["code"] == "not_effective"
    assert f"containerd-1.6 reads {elsewhere}, not {CONF_DIR}" in refused["msg"]

    runtimes("stop")
    rows = host.run("cni_conf", conf_dir=str(elsewhere), **wanted)["effective"]
    assert [row["conf_dir"] for row in rows] == [str(elsewhere), str(CONF_DIR)]
    assert [row["network"] for row in rows] == ["pwcapps", "pwcapps"]
    assert [row["file"] for row in rows] == [f"{path}/10-pwcapps.conflist" for path in (elsewhere, CONF_DIR)]
    assert rows[0]["found"] == "/usr/bin/containerd"
    assert "name of the default network" in rows[1]["reason"]


def test_podman_is_asked_by_network_inspect_once_it_has_run(host, runtimes):
    shown = {"gather": ["readiness"]}

    def podman():
        [row] = [one for one in host.run("cni_info", **shown)["readiness"]["runtimes"] if one["runtime"] == "podman"]
        return row

    written = host.run("cni_conf", networks=[APPS], runtime=["podman"])
    sh("podman network ls")
    assert written["confirmed"] in (True, None)
    again = host.run("cni_conf", networks=[APPS], runtime=["podman"])
    assert (again["confirmed"], again.get("warnings", [])) == (True, [])
    assert podman()["reported"] == {"ready": True, "message": "", "networks": ["pwcapps"]}

    # Its databases are gone, so another run of it would make new ones.
    databases = Path("/var/lib/containers/storage/libpod")
    databases.rename(databases.with_name("aside"))
    try:
        row = podman()
        assert (row["reported"], databases.exists()) == (None, False)
        assert host.run("cni_conf", networks=[APPS], runtime=["podman"])["confirmed"] is None
    finally:
        databases.with_name("aside").rename(databases)


def test_podmans_network_in_memory_is_tried_as_podman_makes_it(host, runtimes):
    leases, dropped = Path("/var/lib/cni/networks/pwcmemory"), Path("/etc/containers/containers.conf.d/91.conf")
    sh(f"mkdir -p {leases} {dropped.parent}")
    dropped.write_text('[network]\ndefault_network = "pwcmemory"\ndefault_subnet = "10.98.9.0/30"\n')

    def told():
        rows = host.run("cni_info", gather=["readiness"])["readiness"]["obstacles"]
        return [(row["code"], row["network"]) for row in rows if (row["runtime"], row["level"]) == ("podman", "error")]

    try:
        assert told() == []
        assert "10.98.9.2/30" in sh("podman run --rm localhost/podwire:1 ip address")
        (leases / "10.98.9.2").write_text("dead\r\neth0")
        assert told() == [("pool_full", "pwcmemory")]
        with pytest.raises(AssertionError, match="no IP addresses available in range set"):
            sh("podman run --rm localhost/podwire:1 ip address")
    finally:
        dropped.unlink()
        sh(f"rm -r {leases}; ip link delete cni-podman0 2>/dev/null || true")
