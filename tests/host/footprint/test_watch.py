# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The program that repairs attachments on a host without a controller, as the role installs it."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils import repair_program
from ansible_collections.podwire.cni.tests.host.footprint import pictures
from ansible_collections.podwire.cni.tests.host.footprint.site import SILENCE
from ansible_collections.podwire.cni.tests.host.host import PYTHON, sh, wait_until


@pytest.fixture
def program(work):
    target = work / "repair.pyz"
    target.write_bytes(Path(repair_program.make()).read_bytes())
    return target


@pytest.fixture
def site(new_site):
    site = new_site("portmap")
    site.add_container("ctr")
    site.attach()
    site.connect()
    return site


@contextlib.contextmanager
def watching(site, program):
    """Run the service, and provide the lines that it has printed so far."""
    command = [PYTHON, "-I", str(program), "watch", "--cache-dir", str(site.cache)]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        reading = threading.Thread(target=lambda: lines.extend(process.stdout), daemon=True)
        reading.start()
        try:
            yield lines
        finally:
            process.terminate()


def repair(site, program):
    command = [PYTHON, "-I", str(program), "repair", "--cache-dir", str(site.cache)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_lost_rules_come_back_by_themselves(site, program):
    before, others = site.picture(), site.other_rules()
    with watching(site, program) as lines:
        for command in ("nft flush ruleset", "iptables-nft -F FORWARD; iptables-nft -t nat -F"):
            time.sleep(SILENCE)
            del lines[:]
            sh(command)
            wait_until(lambda: [line for line in lines if line.endswith("; put back\n")])
            site.put_other_rules()
            wait_until(lambda: pictures.differences(before, site.picture()) == [])
            assert site.other_rules() == others
            assert site.dead() == []
    assert all(line.startswith(("shared firewall rules", "pwf-portmap")) for line in lines), lines


def test_one_repair_puts_back_everything_of_a_footprint(site, program):
    before = site.picture()
    assert repair(site, program) == (0, "")
    time.sleep(SILENCE)
    sh("ip -n pwf-ctr route flush dev eth0; iptables -t nat -F CNI-HOSTPORT-DNAT")
    sh("ip address flush dev pwf0 scope global")
    status, said = repair(site, program)
    assert status == 0
    assert [line.partition(":")[0] for line in said.splitlines()] == ["pwf-portmap", "pwf-portmap/pwf-ctr-0001/eth0"]
    assert pictures.differences(before, site.picture()) == []
    assert site.dead() == []
    assert repair(site, program) == (0, "")


@pytest.mark.parametrize("alias", ["\x1b[2J\x1b]0;x\x07", "x\nhost: all is well; put back", "\u202eevil", "\u2028"])
def test_a_tenant_writes_nothing_into_the_journal(site, program, alias):
    """Neither what a terminal obeys, nor a line of its own."""
    assert repair(site, program) == (0, "")
    subprocess.run(["ip", "-n", "pwf-ctr", "link", "set", "eth0", "alias", alias], check=True)
    status, said = repair(site, program)
    assert status == 0
    [line] = said.splitlines()
    assert line.isprintable()
    assert line.startswith("pwf-portmap/pwf-ctr-0001/eth0: ")


def test_what_only_add_can_put_back_is_left(new_site, program):
    site = new_site("host-device")
    site.add_container("ctr")
    site.attach()
    sh("ip -n pwf-ctr link delete eth0")
    status, said = repair(site, program)
    assert status == 1
    assert "; not put back, because the other end of eth0 is not recorded" in said
    assert "pwf-host-device/pwf-ctr-0001/eth0" in said


def test_a_namespace_that_is_gone_is_no_drift(site, program):
    for connection in site.connections.values():
        connection.close()
    site.connections.clear()
    sh("ip netns delete pwf-ctr")
    assert repair(site, program)[0] == 0


def test_a_cache_that_others_may_write_is_not_used(site, program):
    site.cache.chmod(0o777)
    status, said = repair(site, program)
    assert status == 2
    assert str(site.cache) in said
