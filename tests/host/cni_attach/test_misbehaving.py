# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import PATIENCE, sh, wait_until

pytestmark = pytest.mark.parametrize("generation", ["new"], indirect=True)

ABSENT = {"state": "absent"}
# Of a plugin, in seconds: those that end must do so within it.
TIMEOUT = int(2 * PATIENCE)


@pytest.mark.parametrize(
    ("plugin", "words", "stderr"),
    [
        ("hang", f"did not end within {TIMEOUT} s", "about to hang"),
        ("die", "signal: killed", "about to die"),
        ("garbage", "half a { result", "out of words"),
        ("babble", "failed to unmarshal raw result", ""),
        ("mute", "exit status 3", ""),
        ("flood", "printed more than", ""),
        ("hold", "a process that it left behind", "left one behind"),
    ],
)
def test_a_bad_plugin_is_reported_and_the_next_attachment_is_made(
    host, attach, write_network, fakes, plugin, words, stderr
):
    write_network("pwabad", [{"type": plugin}])
    bad = {"network": "pwabad", "container_id": "web", "netns": "pwa-web"}
    good = {"network": "pwatwo", "container_id": "web", "netns": "pwa-web", "ifname": "eth1"}
    failing = host.fail("cni_attach", attachments=[bad, good], timeout=TIMEOUT)
    attach({**bad, **ABSENT}, {**good, **ABSENT})

    assert [row["action"] for row in failing["attachments"]] == ["failed", "added"]
    assert failing["code"] == "add_failed"
    assert words in failing["msg"]
    assert stderr in failing["attachments"][0]["error"]["stderr"]
    assert failing["attachments"][0]["error"]["plugin"] == plugin
    if plugin in ("hang", "hold"):
        child = (fakes / f"{plugin}.child").read_text().strip()
        wait_until(lambda: not Path("/proc", child).exists())


def test_two_containers_are_attached_at_the_same_time(host, attach, change, write_network, fakes):
    """After the first one, which runs alone, the plugin ends only when two of it run at once."""
    write_network("pwameet", [{"type": "meet"}])
    web = {"network": "pwameet", "container_id": "web", "netns": "pwa-web"}
    db = {"network": "pwameet", "container_id": "db", "netns": "pwa-db"}
    job = {**db, "container_id": "job"}
    failing = host.fail("cni_attach", attachments=[web, db, job], parallel=1, timeout=TIMEOUT)
    assert [row["action"] for row in failing["attachments"]][:2] == ["added", "failed"]

    # The third one met what the second one had left.
    attach(*({**one, **ABSENT} for one in (web, db, job)))
    for path in fakes.glob("meet.*"):
        path.unlink()
    change([web, db, job], ["add"] * 3, ["added"] * 3)
    attach(*({**one, **ABSENT} for one in (web, db, job)))


@pytest.mark.parametrize("namespace", [True, False])
def test_what_a_plugin_without_del_leaves_is_removed(change, write_network, bridge, leases, namespaces, namespace):
    leaky = {**bridge("pwaleak0", "10.64.0.0/24", isGateway=True, ipMasq=True), "type": "leaky"}
    write_network("pwaleak", [leaky])
    web = {"network": "pwaleak", "container_id": "web", "netns": "pwa-web"}
    change([web], ["add"], ["added"])
    assert "10.64.0" in sh("iptables-save")
    if not namespace:
        namespaces()
    change([{**web, **ABSENT}], ["del"], ["deleted"])
    assert "10.64.0" not in sh("iptables-save")
    assert sh("ip -brief link show master pwaleak0") == ""
    assert [path.name for path in (leases / "pwaleak").iterdir() if path.name[0] == "1"] == []
