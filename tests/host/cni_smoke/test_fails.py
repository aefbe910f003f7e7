# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

"""Networks that do not work, with the new generation of the plugins: none of this depends on it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh, wait_until
from ansible_collections.podwire.cni.tests.tools import sample

pytestmark = pytest.mark.parametrize("generation", ["new"])


@pytest.fixture
def bridged(write, host_local):
    """Return a function that configures a network with a bridge and a fake plugin."""

    def configure(name, bridge, subnet, *fakes, **options):
        plugin = {"type": "bridge", "bridge": bridge, "isGateway": True, "ipam": host_local(subnet=subnet), **options}
        write(30, name, [plugin, *fakes])

    return configure


def test_a_plugin_refuses_and_its_message_is_shown_without_the_secret(bridged, smoke):
    bridged("pwsrefuse", "pwsref0", "10.52.0.0/24", {"type": "refuse", "token": "very-secret-token"})
    tried = smoke(fails=True, networks=["pwsrefuse"])
    assert tried["code"] == "smoke_failed"
    (row,) = tried["networks"]
    assert row["add"] == "failed"
    assert row["del"] == "passed"
    assert row["error"]["code"] == "add_failed"
    assert row["error"]["plugin"] == "refuse"
    assert "not with" in tried["msg"]


def test_a_pool_is_full(host, write, host_local, smoke):
    pool = {"subnet": "10.56.0.0/24", "rangeStart": "10.56.0.9", "rangeEnd": "10.56.0.9"}
    ipam = host_local(ranges=[[pool]])
    write(30, "pwsfull", [{"type": "bridge", "bridge": "pwsfull0", "isGateway": True, "ipam": ipam}])
    attachment = {"network": "pwsfull", "container_id": "web", "netns": "pws-web", "ifname": "eth1"}
    host.run("cni_attach", attachments=[attachment])
    tried = smoke(fails=True, networks=["pwsfull"])
    assert "no IP addresses available" in tried["msg"]
    assert tried["networks"][0]["leaks"] == []
    assert host.run("cni_attach", attachments=[{**attachment, "state": "absent"}])["changed"]


@pytest.mark.usefixtures("networks")
def test_del_fails_and_the_next_run_takes_back_what_was_left(host, bridged, smoke, work):
    bridged("pwsstubborn", "pwsstub0", "10.53.0.0/24", {"type": "stubborn"})
    stubborn = work / "be-stubborn"
    stubborn.touch()
    failed = host.fail("cni_smoke", networks=["pwsstubborn", "pwsold"])
    assert failed["code"] == "smoke_failed"
    # The address is free, and the other network was tried all the same.
    other, row = failed["networks"]
    assert (other["network"], other["status"]) == ("pwsold", "passed")
    assert (row["network"], row["status"]) == ("pwsstubborn", "failed")
    assert row["del"] == "failed"
    assert row["error"]["code"] == "del_failed"
    assert {leak["removed"] for leak in row["leaks"]} == {True}
    assert "lease" in {leak["kind"] for leak in row["leaks"]}

    stubborn.unlink()
    again = host.run("cni_smoke", networks=["pwsold"])
    assert again["changed"]
    assert [step["kind"] for step in again["actions"]] == ["take_back", "take_back", "try"]
    smoke(networks=["pwsold"])


@pytest.mark.usefixtures("container")
def test_the_gateway_does_not_answer(host, smoke):
    sh("iptables -I INPUT -i pwsboth0 -p icmp -j DROP")
    tried = smoke(fails=True, networks=["pwsboth"])
    (row,) = tried["networks"]
    assert row["ping"] == "failed"
    assert row["error"]["code"] == "ping_failed"
    assert row["del"] == "passed"
    assert "10.46.0.1" in tried["msg"]
    assert host.run("cni_smoke", networks=["pwsboth"], ping=False)["networks"][0]["ping"] is None


def test_a_second_add_fails(bridged, smoke, left):
    bridged("pwssingle", "pwssing0", "10.57.0.0/24", {"type": "single"}, ipMasq=True)
    (row,) = smoke(fails=True, networks=["pwssingle"])["networks"]
    assert (row["add"], row["container"], row["del"]) == ("passed", "failed", "passed")
    assert row["ping"] == "passed"
    assert (row["error"]["code"], row["error"]["plugin"]) == ("add_failed", "single")
    assert left("pwssingle") == ""


@pytest.fixture
def during(host, bridged, work):
    """Return a function that starts the module, and returns its process at one moment, such as ``ADD 2``.

    At those of plugins, the last one of the chain waits. The function also returns the number of its process.
    """
    bridged("pwsslow", "pwsslow0", "10.55.0.0/24", {"type": "slow"}, ipMasq=True)
    slow, number = work / "be-slow", work / "slow.pid"
    # So that packets between containers are lost.
    sh("nft 'add table bridge pws; add chain bridge pws forward { type filter hook forward priority 0; policy drop; }'")
    processes = []

    def start(moment):
        slow.write_text(moment)
        process = host.start("cni_smoke", {**host.defaults, "networks": ["pwsslow"]})
        processes.append(process)
        entries = work / "cache" / "smoke" / "results"
        wait_until(lambda: number.exists() or (moment == "packets" and len(list(entries.glob("pwsslow*"))) == 2))
        slow.unlink()
        # Whoever holds the lock stands in it.
        assert json.loads(Path("/run/podwire-cni/lock").read_text())["pid"] == process.pid
        return process, int(number.read_text()) if number.exists() else None

    try:
        yield start
    finally:
        for process in processes:
            process.kill()
            process.communicate()
        if number.exists() and Path("/proc", number.read_text().strip()).exists():
            os.kill(int(number.read_text()), signal.SIGKILL)
        sh("nft delete table bridge pws")


MOMENTS = ["ADD 2", "ADD 1", "CHECK 1", "packets", "DEL 1", "DEL 2"][:: sample.STEP]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_module_that_is_told_to_end_undoes_the_test(host, during, left, moment):
    process, plugin = during(moment)
    process.terminate()
    result = host.result(process)
    assert result["failed"]
    assert result["code"] == "interrupted"
    assert plugin is None or not Path("/proc", str(plugin)).exists()
    assert left("pwsslow") == ""
    again = host.run("cni_smoke", networks=["pwsslow"], packets=False)
    assert not again["changed"]
    assert [step["kind"] for step in again["actions"]] == ["try"]
    assert left("pwsslow") == ""


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_next_run_takes_back_what_a_killed_one_left(host, during, left, moment):
    process, plugin = during(moment)
    process.kill()
    if plugin is not None:
        os.kill(plugin, signal.SIGKILL)
    process.wait()
    assert left("pwsslow") != ""
    check = host.run("cni_smoke", networks=["pwsslow"], packets=False, check_mode=True)
    again = host.run("cni_smoke", networks=["pwsslow"], packets=False)
    assert again["changed"] is check["changed"] is True
    assert again["actions"] == check["actions"]
    begun = 1 if moment in ("ADD 1", "CHECK 1") else 2
    assert [step["kind"] for step in again["actions"]] == ["take_back"] * begun + ["try"]
    assert left("pwsslow") == ""
