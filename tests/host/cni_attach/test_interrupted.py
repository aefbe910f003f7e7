# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh, wait_until

WEB = {"network": "pwaslow", "container_id": "web", "netns": "pwa-web"}
GONE = {"network": "pwaslow", "container_id": "web", "state": "absent"}


@pytest.fixture(autouse=True)
def _killed(host, bridge, write_network, fakes):
    """The module was killed in the middle of an ADD, in the second plugin of the chain."""
    write_network("pwaslow", [bridge("pwaslow0", "10.72.0.0/24"), {"type": "slow"}])
    (fakes / "be-slow").touch()
    module = host.start("cni_attach", {**host.defaults, "attachments": [WEB]})
    try:
        wait_until((fakes / "slow.pid").exists)
        assert json.loads(Path("/run/podwire-cni/lock").read_text())["pid"] == module.pid
    finally:
        module.kill()
        module.communicate()
        if (fakes / "slow.pid").exists():
            os.kill(int((fakes / "slow.pid").read_text()), signal.SIGKILL)
    (fakes / "be-slow").unlink()


def test_an_interrupted_attachment_is_made_and_has_one_address(attach, change, leases):
    ran = change([WEB], ["repair"], ["added"]).run
    assert ran["attachments"][0]["reason"] == "interrupted"
    assert len(list((leases / "pwaslow").glob("10.*"))) == 1
    attach(GONE)


def test_an_interrupted_attachment_is_detached(change, cache, leases):
    assert len(list((leases / "pwaslow").glob("10.*"))) == 1
    change([GONE], ["del"], ["deleted"])
    assert list((leases / "pwaslow").glob("10.*")) == []
    assert list(cache.rglob("*pwaslow*")) == []
    assert sh("ip -n pwa-web -brief link show type veth") == ""
