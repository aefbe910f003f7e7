# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.host.host import delete_netns, sh

# Two containers that live, and three that die without a DEL.
LIVE = [{"network": "pwgone", "container_id": "pwg-live"}, {"network": "pwgfour", "container_id": "pwg-old"}]
DEAD = [
    {"network": "pwgone", "container_id": "pwg-lease"},
    {"network": "pwgfour", "container_id": "pwg-cache"},
    {
        "network": "pwgone",
        "container_id": "pwg-rules",
        "capability_args": {"portMappings": [{"hostPort": 18081, "containerPort": 80, "protocol": "tcp"}]},
    },
]


pytestmark = pytest.mark.parametrize("generation", ["old", "new"])


def test_lost_addresses_stale_cache_files_and_orphan_rules_are_reported_and_collected(
    gc, attach, detach, collect, leases, work
):
    attached = attach([*LIVE, *DEAD])
    nothing = gc.run("cni_gc", min_age="0", scope=["attachments", "leases", "rules", "cache", "links"])
    assert not nothing["changed"]
    assert nothing["collected"] == []

    cache = work / "cache"
    old, rules = (attached[index]["ips"][0].partition("/")[0] for index in (1, 4))
    for entry in DEAD:
        delete_netns(entry["container_id"])
    # One leaves its address only, one an empty cache file, one its rules.
    sh(f"rm {cache}/*/pwgone-pwg-lease-eth0 {cache}/*/pwgone-pwg-rules-eth0")
    (cache / "results" / "pwgfour-pwg-cache-eth0").write_text("")
    (leases / "pwgone" / rules).unlink()
    # An empty reservation, and two in the old format.
    (leases / "pwgone" / "10.81.0.200").write_text("")
    (leases / "pwgfour" / old).write_text("pwg-old")
    (leases / "pwgfour" / "10.84.0.200").write_text("pwg-gone")

    before = gc.run("cni_info", gather=["leases", "garbage"])
    collected = collect()["collected"]
    after = gc.run("cni_info", gather=["leases", "garbage"])
    left = sh(f"iptables-save; ls {cache}/results {cache}/podwire")

    # Lost addresses are free again.
    (lost,) = (one for one in collected if one["kind"] == "lease" and one["container_id"] == "pwg-lease")
    assert (lost["action"], lost["reason"]) == ("deleted", "owner_dead")
    assert "reserves it for container pwg-lease, interface eth0" in " ".join(lost["evidence"])
    assert "no source names container pwg-lease" in " ".join(lost["evidence"])
    (empty,) = (one for one in collected if one["kind"] == "lease" and one["id"] == "10.81.0.200")
    assert (empty["action"], empty["reason"]) == ("deleted", "empty")
    (gone,) = (one for one in collected if one["kind"] == "lease" and one["container_id"] == "pwg-gone")
    assert gone["action"] == "deleted"
    (alive,) = (one for one in collected if one["kind"] == "lease" and one["container_id"] == "pwg-old")
    assert (alive["action"], alive["reason"]) == ("left", "live")
    assert "old format" in alive["evidence"][0]
    (full,) = (pool for pool in before["pools"] if pool["network"] == "pwgone")
    assert full["used"] == 3
    (pool,) = (pool for pool in after["pools"] if pool["network"] == "pwgone")
    assert (pool["used"], pool["free"]) == (1, 252)
    assert [owner["container_id"] for owner in pool["owners"]] == ["pwg-live"]

    # Stale cache files.
    (stale,) = (one for one in collected if one["kind"] == "cache" and one["container_id"] == "pwg-cache")
    assert stale["reason"] == "empty"
    assert [entry["container_id"] for entry in DEAD if entry["container_id"] in left] == []

    # Orphan rules.
    orphans = [one for one in collected if one["kind"] == "rule"]
    assert len([one for one in orphans if one["container_id"] == "pwg-rules"]) >= 2
    assert {one["action"] for one in orphans} == {"deleted"}
    assert "18081" not in left
    assert "pwg-live" in left

    # cni_info said so before.
    collectable = [one["id"] for one in before["garbage"] if one["collectable"]]
    assert sorted(collectable) == sorted(one["id"] for one in collected if one["action"] == "deleted")
    assert [one for one in after["garbage"] if one["collectable"]] == []

    detach(LIVE)
