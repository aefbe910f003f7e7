# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import leases
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import caches
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import (
    ADDING,
    ATTACHED,
    Attached,
    AttachmentStore,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.live import Homes, answer_of
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.namespaces import Namespaces
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import change
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.kinds import FIREWALL, IPMASQ, PORTMAP
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.owners import RuleOwner, RuleSet, chain_name
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage.candidate import LEASE
from ansible_collections.podwire.cni.plugins.module_utils.libcni.cache import Entry, write_entry
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.explained import reasons
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.garbage.gc_host import IDENTITY, Host, alive
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with


@pytest.fixture
def gc_host(tmp_path, monkeypatch):
    return Host(tmp_path, monkeypatch)


def test_a_lease_of_nobody_is_collected_with_its_evidence(gc_host):
    path = gc_host.lease("10.1.0.5", "dead\r\neth0")
    plan = gc_host.plan()
    (row,) = [candidate.row() for candidate in plan.candidates]
    assert (row["kind"], row["action"], row["reason"]) == ("lease", "deleted", "owner_dead")
    assert "reserves it for container dead, interface eth0" in row["evidence"][0]
    assert row["evidence"][1] == "no source names container dead; asked: podman (1), cache (0)"
    assert row["evidence"][2] == "10.1.0.5 is in none of the 1 network namespaces"
    reason = "no source names container dead"
    assert plan.actions() == [{"kind": "release", "target": str(path), "class": "safe", "reason": reason}]
    plan.apply()
    assert not path.exists()
    assert not gc_host.plan().changed


@pytest.mark.parametrize(
    "text, verdict",
    [
        ("live", ("left", "live")),
        ("dead", ("deleted", "owner_dead")),
        ("", ("deleted", "empty")),
        ("dead\r\neth0", ("deleted", "owner_dead")),
    ],
)
def test_leases_of_every_format(gc_host, text, verdict):
    gc_host.lease("10.1.0.5", text)
    assert gc_host.verdicts() == {("lease", "10.1.0.5"): verdict}


def test_a_lease_of_a_live_container_is_counted(gc_host):
    gc_host.lease("10.1.0.5", "live\r\neth0")
    plan = gc_host.plan()
    assert plan.candidates == [] and plan.kept[LEASE] == 1


@pytest.mark.parametrize("text", ["", "dead", "dead\r\neth0"])
def test_an_address_in_use_is_left(gc_host, text):
    gc_host.lease("10.1.0.5", text)
    gc_host.namespaces.append(alive(["10.1.0.5"]))
    assert gc_host.verdicts() == {("lease", "10.1.0.5"): ("left", "address_live")}


def test_an_address_in_use_is_named_without_its_prefix(gc_host):
    gc_host.attached("dead", "10.1.0.5", identity=None)
    gc_host.namespaces.append(alive(["10.1.0.5"]))
    (candidate,) = gc_host.plan().candidates
    assert (candidate.action, candidate.reason) == ("left", "address_live")
    assert candidate.evidence[-1] == f"10.1.0.5 is in use in {gc_host.namespaces[-1].name}"


@pytest.mark.parametrize("text", ["", "dead", "dead\r\neth0"])
def test_what_is_young_is_left(gc_host, text):
    gc_host.lease("10.1.0.5", text, age=500)
    assert gc_host.verdicts() == {("lease", "10.1.0.5"): ("left", "young")}
    assert gc_host.verdicts(min_age=400)[("lease", "10.1.0.5")][0] == "deleted"


def test_what_seems_to_come_from_the_future_is_young(gc_host):
    gc_host.lease("10.1.0.5", "dead\r\neth0", age=-3600)
    assert gc_host.verdicts() == {("lease", "10.1.0.5"): ("left", "young")}


def test_disable_gc_in_the_configuration_of_the_add_counts_as_well(gc_host):
    gc_host.attached("dead", "10.1.0.5", identity=None)
    path = write_entry(
        gc_host.cache_dir,
        Entry(
            "dead", gc_host.config("demo", disableGC=True), "eth0", "demo", "/nowhere", result={"cniVersion": "1.0.0"}
        ),
    )
    gc_host.aged(path, 3600)
    gc_host.config("demo")
    assert gc_host.verdicts() == {("attachment", "dead/eth0"): ("left", "disable_gc")}


def test_without_every_source_only_what_is_ours_is_collected(gc_host):
    gc_host.why = "podman was found but not asked"
    gc_host.lease("10.1.0.5", "foreign\r\neth0")
    gc_host.lease("10.1.0.6", "dead\r\neth0")
    gc_host.lease("10.1.0.7", "")
    gc_host.attached("dead", "10.1.0.6")
    verdicts = gc_host.verdicts()
    assert verdicts[("lease", "10.1.0.5")] == ("left", "not_ours")
    assert verdicts[("lease", "10.1.0.6")] == ("deleted", "owner_dead")
    assert verdicts[("lease", "10.1.0.7")] == ("left", "not_ours")
    assert verdicts[("attachment", "dead/eth0")] == ("deleted", "owner_dead")


def test_only_the_networks_and_kinds_that_are_asked_for(gc_host):
    gc_host.lease("10.1.0.5", "dead\r\neth0")
    gc_host.config("other")
    gc_host.lease("10.1.0.6", "dead\r\neth0", network="other")
    assert list(gc_host.verdicts(networks=["other"])) == [("lease", "10.1.0.6")]
    assert gc_host.verdicts(scope=["rules", "cache"]) == {}


def test_attachments_live_and_die_with_their_namespace(gc_host):
    gc_host.attached("one", "10.1.0.5")
    gc_host.attached("two", "10.1.0.6", identity=dict(IDENTITY, cookie=8))
    gc_host.namespaces.append(alive())
    plan = gc_host.plan()
    assert plan.kept["attachment"] == 1
    (candidate,) = plan.candidates
    assert (candidate.container_id, candidate.action) == ("two", "deleted")
    assert "is gone" in candidate.evidence[0]


def test_an_attachment_whose_plugin_is_missing_is_left_and_its_address_is_freed(gc_host):
    gc_host.attached("dead", "10.1.0.5")
    gc_host.lease("10.1.0.5", "dead\r\neth0")
    (gc_host.bin_dir / "bridge").unlink()
    assert gc_host.verdicts() == {
        ("attachment", "dead/eth0"): ("left", "missing_plugin"),
        ("lease", "10.1.0.5"): ("deleted", "owner_dead"),
    }


# The second one has lost its entry.
@pytest.mark.parametrize(
    ("result", "state", "reason", "living"),
    [
        (None, {"state": ADDING}, "interrupted", [("left", "live")]),
        ({"ips": [{"address": "10.1.0.5/24"}]}, {"state": ATTACHED, "interface": True}, "owner_dead", []),
    ],
)
def test_a_record_without_an_entry_goes_when_its_namespace_is_gone(gc_host, result, state, reason, living):
    config = network_conf_from_bytes(gc_host.config("demo"))
    given = Attached(Key("demo", "web", "eth0"), config, "/nowhere", [], {}, result)
    AttachmentStore(gc_host.cache_dir).write(given.changed(identity=dict(IDENTITY), **state))
    gc_host.aged(gc_host.record("web"), 3600)
    assert gc_host.verdicts() == {("attachment", "web/eth0"): ("deleted", reason)}
    gc_host.namespaces.append(alive())
    assert list(gc_host.verdicts().values()) == living


@pytest.mark.parametrize(
    "content, reason",
    [
        *((content, "empty") for content in (b"", b"\0\0\0", b" \r\n\t")),
        *((content, "damaged") for content in (b'{"kind": "cniCac', b"{", b"[]", b"0", b"\xff")),
    ],
)
def test_damaged_cache_files_go_unless_their_container_lives(gc_host, content, reason):
    path = gc_host.attached("dead", "10.1.0.5")
    Path(path).write_bytes(content)
    gc_host.aged(path, 3600)
    assert gc_host.verdicts() == {("cache", path): ("deleted", reason)}
    gc_host.namespaces.append(alive())
    assert gc_host.verdicts() == {("cache", path): ("left", "live")}
    gc_host.namespaces.pop()
    gc_host.plan().apply()
    assert not os.path.exists(path) and not os.path.exists(gc_host.record("dead"))
    assert gc_host.verdicts() == {}


def test_a_damaged_file_without_a_note_is_left_if_its_name_has_a_live_container(gc_host):
    folder = os.path.join(gc_host.cache_dir, "results")
    os.makedirs(folder)
    for name in ("demo-live-eth0", "demo-dead-eth0"):
        Path(folder, name).write_bytes(b"")
        gc_host.aged(os.path.join(folder, name), 3600)
    assert [verdict for _key, verdict in sorted(gc_host.verdicts().items())] == [("deleted", "empty"), ("left", "live")]


def test_files_that_nobody_understands_are_left(gc_host):
    folder = os.path.join(gc_host.cache_dir, "results")
    os.makedirs(folder)
    Path(folder, "bare").write_text('{"cniVersion": "0.3.1", "ips": []}')
    os.symlink("/etc/passwd", os.path.join(folder, "link"))
    os.mkfifo(os.path.join(folder, "pipe"))
    assert {os.path.basename(key[1]): verdict for key, verdict in gc_host.verdicts(min_age=0).items()} == {
        "bare": ("left", "other"),
        "link": ("left", "unreadable"),
        "pipe": ("left", "unreadable"),
    }


def test_temporary_files_and_stray_notes_go(gc_host):
    path = gc_host.attached("dead", "10.1.0.5")
    os.unlink(path)
    temp = os.path.join(gc_host.cache_dir, ".cniCacheV1-0011.tmp")
    Path(temp).write_bytes(b"")
    gc_host.aged(temp, 3600)
    assert gc_host.verdicts() == {
        ("cache", temp): ("deleted", "leftover"),
        ("cache", gc_host.record("dead")): ("deleted", "stray"),
    }


def test_attachments_from_before_the_boot_go_as_files_where_no_del_is_wanted(gc_host):
    path = gc_host.attached("dead", "10.1.0.5", age=10**9)
    assert gc_host.verdicts(scope=["cache"]) == {("cache", path): ("deleted", "before_boot")}
    assert list(gc_host.verdicts()) == [("attachment", "dead/eth0")]


def test_an_attachment_from_before_the_boot_says_so(gc_host):
    gc_host.attached("old", "10.1.0.5", age=10**9)
    gc_host.attached("new", "10.1.0.6", age=0)
    plan = gc_host.plan(min_age=0)
    rebooted = {one.container_id: [text for text in one.evidence if "rebooted" in text] for one in plan.candidates}
    assert rebooted["new"] == []
    (text,) = rebooted["old"]
    assert text.startswith("the host was rebooted later, at 2")


@pytest.mark.parametrize("place", ["", "results", "podwire"])
def test_a_file_in_the_place_of_the_cache_is_named(gc_host, place):
    path = Path(gc_host.cache_dir, place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    with fails_with("cache_unreadable", f"{path} is a file, and no directory; .*move it away"):
        gc_host.plan()


def test_a_cache_of_pods_whose_path_is_relative_is_not_read(gc_host, monkeypatch):
    """The plugin refuses it."""
    monkeypatch.chdir(gc_host.path)
    (gc_host.path / "pods" / "pods").mkdir(parents=True)
    (gc_host.path / "pods" / "pods" / "web:eth0").write_text("{")
    for folder, collected in (("pods", []), (str(gc_host.path / "pods"), ["web"])):
        gc_host.config("demo", plugins=[{"type": "podwire-multinet", "cniDir": folder}])
        assert [candidate.container_id for candidate in gc_host.plan().candidates] == collected


def test_rules_are_as_old_as_the_lease_or_as_long_as_they_are_known(gc_host):
    gc_host.firewall.sets = [RuleSet("nftables", "ipv4", PORTMAP, "dead", RuleOwner("demo", "dead"), ["10.1.0.5"])]
    name = ("rule", "nftables ipv4 portmap dead")
    assert gc_host.verdicts()[name] == ("left", "young")
    gc_host.plan().note_undated()
    assert gc_host.verdicts()[name] == ("left", "young")
    seen = gc_host.path / "run" / "seen"
    known = json.loads(seen.read_text())
    seen.write_text(json.dumps({key: moment - 1000 for key, moment in known.items() if moment > 1000}))
    if time.clock_gettime(time.CLOCK_BOOTTIME) > 1000:
        assert gc_host.verdicts()[name] == ("deleted", "owner_dead")
    gc_host.lease("10.1.0.9", "dead\r\neth0", age=5)
    assert gc_host.verdicts()[name] == ("left", "young")


@pytest.mark.parametrize(
    "ruleset, verdict",
    [
        (RuleSet("n", "ipv4", PORTMAP, "x", RuleOwner("demo", "live")), None),
        (RuleSet("n", "ipv4", PORTMAP, "x", RuleOwner("demo", "dead")), ("deleted", "owner_dead")),
        (RuleSet("n", "ipv4", PORTMAP, "x", RuleOwner("demo", "dead"), ["10.9.9.9"]), ("left", "address_live")),
        (RuleSet("n", "ipv4", PORTMAP, "x", RuleOwner("demo", None, None, "li")), ("left", "live")),
        (RuleSet("n", "ipv4", PORTMAP, "x", RuleOwner("demo", None, None, "de")), ("deleted", "owner_dead")),
        (RuleSet("n", "ipv4", PORTMAP, "x"), ("left", "no_owner")),
        (RuleSet("n", "ipv4", PORTMAP, "x", inert=True), ("deleted", "owner_dead")),
        (RuleSet("n", "ipv4", PORTMAP, "x", RuleOwner("demo", "dead"), unclear="odd"), ("left", "unclear")),
        # The firewall plugin's rules name nothing but an address.
        (RuleSet("n", "ipv4", FIREWALL, "10.1.0.7", addresses=["10.1.0.7"]), ("deleted", "owner_dead")),
        (RuleSet("n", "ipv4", FIREWALL, "10.1.0.8", addresses=["10.1.0.8"]), None),
        (RuleSet("n", "ipv4", FIREWALL, "10.1.0.6", addresses=["10.1.0.6"]), None),
    ],
)
def test_rules_by_what_is_known_of_their_owner(gc_host, ruleset, verdict):
    gc_host.namespaces.append(alive(["10.9.9.9"]))
    gc_host.lease("10.1.0.8", "live\r\neth0")
    gc_host.attached("dead", "10.1.0.8", identity=None)
    gc_host.attached("live", "10.1.0.6", identity=None)
    gc_host.firewall.sets = [ruleset]
    verdicts = gc_host.verdicts(min_age=0, scope=["rules"])
    assert list(verdicts.values()) == ([] if verdict is None else [verdict])


def test_rules_of_live_containers_are_counted(gc_host):
    gc_host.firewall.sets = [RuleSet("n", "ipv4", PORTMAP, name, RuleOwner("demo", "live")) for name in "xy"]
    plan = gc_host.plan(scope=["rules"])
    assert (plan.candidates, plan.kept["rule"]) == ([], 2)


@pytest.mark.parametrize(("container_id", "reason"), [("live", ""), ("dead", "owner_dead"), ("forgotten", "no_owner")])
def test_the_owner_of_rules_is_found_by_the_hash_in_their_name(gc_host, container_id, reason):
    """Leases, attachments and live containers are those that it may be."""
    gc_host.lease("10.1.0.5", "dead\r\neth0")
    name = chain_name("", "demo", container_id)
    gc_host.firewall.sets = [RuleSet("iptables-nft", "ipv4", IPMASQ, name)]
    rows = gc_host.plan(scope=["rules"]).candidates
    assert [row.reason for row in rows] == ([reason] if reason else [])


def test_an_empty_plan_has_nothing_to_do_and_no_live_set_to_confirm(gc_host):
    gc_host.answers = []
    plan = gc_host.plan()
    assert (plan.pending, plan.changed, plan.live.empty, plan.verbs) == (False, False, True, [])
    assert set(plan.kept.values()) == {0}


def test_rules_go_before_addresses_are_freed(gc_host):
    gc_host.attached("dead", "10.1.0.5")
    gc_host.lease("10.1.0.5", "dead\r\neth0")
    gc_host.firewall.sets = [RuleSet("n", "ipv4", PORTMAP, "x", RuleOwner("demo", "dead"))]
    assert [step.kind for step in gc_host.plan().steps] == ["remove", "del", "release"]


@pytest.mark.parametrize(
    ("owner", "addresses", "reason"),
    [
        (RuleOwner("demo", "dead"), [], "no source names container dead"),
        (RuleOwner(), ["10.1.0.7", "10.1.0.8"], "no network namespace has 10.1.0.7, 10.1.0.8"),
        (RuleOwner("demo", None, None, "de"), [], "no live container uses it"),
    ],
)
def test_the_reason_is_the_evidence_in_short(gc_host, owner, addresses, reason):
    gc_host.firewall.sets = [RuleSet("n", "ipv4", PORTMAP, "x", owner, addresses)]
    plan = gc_host.plan(min_age=0, scope=["rules"])
    assert reasons(plan) == [reason]
    # The default callback of Ansible shows only texts and objects.
    assert plan.diff()[0]["before"] == {"rules": []}


def test_files_are_explained_by_what_is_wrong_with_them(gc_host):
    path = gc_host.attached("dead", "10.1.0.5")
    for content, reason in ((b"", "is empty, as after a crash"), (b"{", "is damaged")):
        Path(path).write_bytes(content)
        gc_host.aged(path, 3600)
        assert reasons(gc_host.plan()) == [reason]


def test_the_failure_of_one_thing_does_not_keep_the_others(gc_host, monkeypatch):
    gc_host.lease("10.1.0.5", "dead\r\neth0")
    gc_host.lease("10.1.0.6", "dead\r\neth0")
    real = leases.remove_lease

    def fail_once(lease, timeout):
        if lease.ip == "10.1.0.5":
            raise HostError("no", code="lease_locked")
        real(lease, timeout)

    monkeypatch.setattr(leases, "remove_lease", fail_once)
    plan = gc_host.plan()
    plan.apply()
    assert [(c.ident, c.action) for c in plan.candidates] == [("10.1.0.5", "failed"), ("10.1.0.6", "deleted")]
    assert plan.candidates[0].error["code"] == "lease_locked"


def test_gc_is_sent_only_where_every_container_is_known_and_no_runtime_is(gc_host):
    gc_host.config("demo", cniVersion="1.1.0")
    gc_host.config("off", cniVersion="1.1.0", disableGC=True)
    assert [(verb.network, verb.send) for verb in gc_host.plan().verbs] == [("demo", False), ("off", False)]
    gc_host.found = {"netns": ""}
    plan = gc_host.plan()
    assert [(verb.network, verb.send) for verb in plan.verbs] == [("demo", True), ("off", False)]
    assert plan.verbs[1].reason == "the network sets disableGC"
    assert plan.pending and not plan.changed
    gc_host.why = "netns was found but not asked"
    reasons_against = [verb.reason for verb in gc_host.plan().verbs]
    assert reasons_against[0] == "not every container is known: netns was found but not asked"
    assert [verb.send for verb in gc_host.plan().verbs] == [False, False]
    gc_host.why, gc_host.answers = "", []
    assert gc_host.plan(allow_empty=True).verbs == []


def test_what_is_live_by_the_cache_has_its_interfaces(gc_host):
    gc_host.attached("one", "10.1.0.5")
    contents = caches.read_cache(gc_host.cache_dir)
    answer = answer_of(contents, Homes(contents.entries, Namespaces([alive()])))
    assert answer.containers == {"one": frozenset(["eth0"])}
    assert answer_of(contents, Homes(contents.entries, Namespaces([]))).containers == {}


def test_everything_but_dels_goes_in_the_order_of_the_plan(gc_host):
    gc_host.attached("one", "10.1.0.5")
    gc_host.attached("two", "10.1.0.6")
    gc_host.lease("10.1.0.5", "one\r\neth0")
    gc_host.lease("10.1.0.7", "")
    lanes = [(step.kind, step.lane) for step in gc_host.plan().steps]
    assert lanes == [("del", "one"), ("del", "two"), ("release", ""), ("release", "")]


def test_rules_are_removed_together(gc_host, monkeypatch):
    removed = []

    def drop(sets):
        removed.append([one.name for one in sets])
        return {one.key: HostError("it changed", code="rules_changed") for one in sets if one.name == "b"}

    monkeypatch.setattr(change, "drop_rules", drop)
    owner = RuleOwner("demo", "dead")
    gc_host.firewall.sets = [RuleSet("n", "ipv4", PORTMAP, name, owner, unclear="x" * (name == "c")) for name in "abc"]
    plan = gc_host.plan(min_age=0, scope=["rules"])
    assert removed == []
    plan.apply()
    assert removed == [["a", "b"]]
    assert [(one.action, one.reason) for one in plan.candidates] == [
        ("deleted", "owner_dead"),
        ("failed", "owner_dead"),
        ("left", "unclear"),
    ]
    assert plan.candidates[1].error["code"] == "rules_changed"
