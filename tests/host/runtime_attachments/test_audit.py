# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Attachments that a real containerd and a real podman made: audited, and put back in place under open connections."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.footprint.site import Echo, abort, links
from ansible_collections.podwire.cni.tests.host.host import sh, wait_until
from ansible_collections.podwire.cni.tests.host.networks import DEFAULT_ROUTE, PORTMAP, bridge, conflist, host_local

IPAM = host_local("10.98.0.0/24", routes=DEFAULT_ROUTE)
NETWORK = conflist(
    bridge("pwaudit0", ipMasq=True, hairpinMode=True, ipam=IPAM),
    PORTMAP,
    {"type": "firewall", "backend": "iptables"},
    {"type": "tuning"},
    version="0.4.0",
    name="pwaudit",
)
RESULTS = Path("/var/lib/cni/results")
LEASES = Path("/var/lib/cni/networks/pwaudit")


@pytest.fixture(scope="module")
def containers(runtimes):
    """Return name -> container ID as CNI has it: a pod of CRI, a container of ctr, and one of podman."""
    Path("/etc/cni/net.d/10-pwaudit.conflist").write_text(json.dumps(NETWORK))
    pod = runtimes("pod", "pwa-pod")
    runtimes("container", "pwa-ctr")
    podman = sh("podman run --detach --network pwaudit --publish 8080:80 --name pwa localhost/podwire:1")
    yield {"pod": pod, "ctr": "default-pwa-ctr", "podman": podman}
    runtimes("uninstall")
    sh("ip link delete pwaudit0; rm -rf /run/podwire-cni/rehearsals")


class Talk:
    """Open TCP connections to the containers, and through the published port."""

    def __init__(self, rows):
        self._echo = Echo()
        self._connections = []
        for row in rows.values():
            self._echo.listen(row["netns"], 80)
            self._connections.append(self._open(row["ips"][0].split("/")[0], 80))
        self._connections.append(self._open("10.98.0.1", 8080))

    @staticmethod
    def _open(address, port):
        def attempt():
            try:
                return socket.create_connection((address, port), 4)
            except OSError:
                return None

        return wait_until(attempt, 20)

    def alive(self):
        for number, connection in enumerate(self._connections):
            word = f"{number}!".encode()
            connection.sendall(word)
            assert connection.recv(64) == word
        return True

    def close(self):
        for connection in self._connections:
            abort(connection)
        self._echo.close()


def audit(host):
    found = host.run("cni_info", gather=["audit"])
    assert found["problems"] == []
    mine = [row for row in found["audit"]["attachments"] if row["network"] == "pwaudit"]
    return {row["container_id"]: row for row in mine}, found["audit"]


def runtime_state():
    """Return what the runtimes have noted, and the leases."""
    return sh(f"find {RESULTS} {LEASES} -type f ! -name lock ! -name 'last_*' -exec sha256sum {{}} + | sort -k 2")


def test_live_attachments_of_runtimes_are_compared_and_repaired_in_place(host, containers):
    rows, whole = audit(host)
    assert {name: rows[container]["source"] for name, container in containers.items()} == {
        "pod": "containerd",
        "ctr": "containerd",
        "podman": "podman",
    }
    assert [(row["compared"], row["why"], row["differences"]) for row in whole["attachments"]] == [
        ("fully", "", [])
    ] * len(whole["attachments"])
    assert whole["shared"] == []
    assert not host.run("cni_host", audit=True)["changed"]

    state, indexes, leases = runtime_state(), links(), sorted(LEASES.glob("10.*"))
    talk = Talk(rows)
    try:
        assert talk.alive()
        pod = Path(rows[containers["pod"]]["netns"]).name
        sh(
            f"""
            nft flush ruleset
            ip address flush dev pwaudit0 scope global
            echo 0 > /proc/sys/net/ipv4/ip_forward
            ip -n {pod} route delete default
            rm {leases[0]}
            """
        )
        damaged, whole = audit(host)
        texts = [text for row in damaged.values() for text in row["differences"]]
        for text in ("its masquerading rules are gone", "the rules of its port mappings are gone", "lease of"):
            assert any(text in one for one in texts), texts
        assert any("0.0.0.0/0" in text for text in damaged[containers["pod"]]["differences"])
        assert {row["network"] for row in whole["shared"]} == {"", "pwaudit"}

        checked = host.run("cni_host", audit=True, check_mode=True)
        ran = host.run("cni_host", audit=True, classes=["safe"])
        assert {step["class"] for step in ran["plan"]} == {"safe"}
        assert {step["state"] for step in ran["plan"]} == {"done"}
        assert [step["target"] for step in ran["plan"]] == [step["target"] for step in checked["plan"]]
        assert talk.alive()
        assert (runtime_state(), links()) == (state, indexes)
        assert not host.run("cni_host", audit=True)["changed"]
        rows, whole = audit(host)
        assert [row["differences"] for row in whole["attachments"]] == [[]] * len(whole["attachments"])
    finally:
        talk.close()


def test_a_pod_without_its_interface_is_reported_and_left(host, containers):
    rows, _whole = audit(host)
    netns = Path(rows[containers["pod"]]["netns"]).name
    sh(f"ip -n {netns} link delete eth0")
    state = runtime_state()
    result = host.run("cni_host", audit=True)
    assert not result["changed"]
    steps = [step for step in result["plan"] if containers["pod"] in step["target"]]
    assert [step["class"] for step in steps] == ["foreign"]
    assert runtime_state() == state
