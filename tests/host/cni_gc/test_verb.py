# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.tests.host.host import delete_netns

LIVE = {"network": "pwgverb", "container_id": "pwg-live"}


@pytest.fixture
def told(attach, work):
    """What GC told the plugin, in a file. One of two containers is dead."""
    attach([LIVE, {"network": "pwgverb", "container_id": "pwg-dead"}])
    delete_netns("pwg-dead")
    told = work / "told"
    # It was told something before it attached.
    told.unlink(missing_ok=True)
    return told


def test_a_plugin_is_told_who_lives_and_only_in_a_run(gc, told, detach):
    checked = gc.run("cni_gc", min_age="0", keep=[{"container_id": "pwg-kept"}], check_mode=True)
    assert not told.exists()

    ran = gc.run("cni_gc", min_age="0", keep=[{"container_id": "pwg-kept"}])
    assert checked["gc"] == ran["gc"]
    assert [(verb["network"], verb["action"]) for verb in ran["gc"]] == [("pwgverb", "sent")]
    assert [one["action"] for one in ran["collected"]] == ["deleted"]
    # A second message would make this no JSON.
    message = json.loads(told.read_text())
    valid = [{"containerID": "pwg-kept", "ifname": "eth0"}, {"containerID": "pwg-live", "ifname": "eth0"}]
    assert message["cni.dev/valid-attachments"] == valid
    assert message["cni.dev/attachments"] == valid
    assert (message["name"], message["cniVersion"]) == ("pwgverb", "1.1.0")
    detach([LIVE])


def test_the_failure_of_a_plugin_is_told(gc, told, work):
    gc.run("cni_gc", min_age="0")
    (work / "be-broken").write_text("")
    broken = gc.fail("cni_gc", min_age="0")
    assert broken["code"] == "gc_failed"
    assert not broken["changed"]
    assert "out of order" in broken["msg"]
    assert broken["gc"][0]["action"] == "failed"
