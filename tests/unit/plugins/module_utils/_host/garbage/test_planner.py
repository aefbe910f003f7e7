# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import time

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import leases
from ansible_collections.podwire.cni.plugins.module_utils._host.addresses import packed
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import cache
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.records import (
    ATTACHED,
    Attached,
    Record,
    Records,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.homes import Homes
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.live import answer_of
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.namespaces import Namespaces
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import change
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.kinds import FIREWALL, IPMASQ, PORTMAP
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.owners import (
    RuleOwner,
    RuleSet,
    chain_name,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage import candidate as candidates
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage import inventory
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage.candidate import LEASE
from ansible_collections.podwire.cni.plugins.module_utils._host.netlink import Link
from ansible_collections.podwire.cni.plugins.module_utils.libcni.cache import Entry, write_entry
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.explained import reasons
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.garbage.gc_host import IDENTITY, Host, alive


@pytest.fixture
def host(tmp_path, monkeypatch):
    return Host(tmp_path, monkeypatch)


def test_a_lease_of_nobody_is_collected_with_its_evidence(host):
    path = host.lease("10.1.0.5", "dead\r\neth0")
    plan = host.plan()
    (row,) = [candidate.row() for candidate in plan.candidates]
    assert (row["kind"], row["action"], row["reason"]) == ("lease", "deleted", "owner_dead")
    assert "reserves it for container dead, interface eth0" in row["evidence"][0]
    assert row["evidence"][1] == "no source names container dead; asked: podman (1), cache (0)"
    assert row["evidence"][2] == "10.1.0.5 is in none of the 1 network namespaces"
    reason = "no source names container dead"
    assert plan.actions() == [{"kind": "release", "target": str(path), "class": "safe", "reason": reason}]
    plan.apply()
    assert not path.exists()
    assert not host.plan().changed


@pytest.mark.parametrize(
    "text, verdict",
    [
        ("live", ("left", "live")),
        ("dead", ("deleted", "owner_dead")),
        ("", ("deleted", "empty")),
        ("dead\r\neth0", ("deleted", "owner_dead")),
    ],
)
def test_leases_of_every_format(host, text, verdict):
    host.lease("10.1.0.5", text)
    assert host.verdicts() == {("lease", "10.1.0.5"): verdict}


def test_a_lease_of_a_live_container_is_counted(host):
    host.lease("10.1.0.5", "live\r\neth0")
    plan = host.plan()
    assert plan.candidates == [] and plan.kept[LEASE] == 1


@pytest.mark.parametrize("text", ["", "dead", "dead\r\neth0"])
def test_an_address_in_use_is_left(host, text):
    host.lease("10.1.0.5", text)
    host.namespaces.append(alive(["10.1.0.5"]))
    assert host.verdicts() == {("lease", "10.1.0.5"): ("left", "address_live")}


@pytest.mark.parametrize("text", ["", "dead", "dead\r\neth0"])
def test_what_is_young_is_left(host, text):
    host.lease("10.1.0.5", text, age=500)
    assert host.verdicts() == {("lease", "10.1.0.5"): ("left", "young")}
    assert host.verdicts(min_age=400)[("lease", "10.1.0.5")][0] == "deleted"


def test_what_seems_to_come_from_the_future_is_young(host):
    host.lease("10.1.0.5", "dead\r\neth0", age=-3600)
    assert host.verdicts() == {("lease", "10.1.0.5"): ("left", "young")}


def test_a_network_with_disable_gc_is_left(host):
    host.lease("10.1.0.5", "dead\r\neth0")
    host.config("demo", disableGC=True)
    assert host.verdicts() == {("lease", "10.1.0.5"): ("left", "disable_gc")}


def test_disable_gc_in_the_configuration_of_the_add_counts_as_well(host):
    host.attached("dead", "10.1.0.5", identity=None)
    path = write_entry(
        host.cache_dir,
        Entry("dead", host.config("demo", disableGC=True), "eth0", "demo", "/nowhere", result={"cniVersion": "1.0.0"}),
    )
    host.aged(path, 3600)
    host.config("demo")
    assert host.verdicts() == {("attachment", "dead/eth0"): ("left", "disable_gc")}


def test_without_every_source_only_what_is_ours_is_collected(host):
    host.why = "podman was found but not asked"
    host.lease("10.1.0.5", "foreign\r\neth0")
    host.lease("10.1.0.6", "dead\r\neth0")
    host.lease("10.1.0.7", "")
    host.attached("dead", "10.1.0.6")
    verdicts = host.verdicts()
    assert verdicts[("lease", "10.1.0.5")] == ("left", "not_ours")
    assert verdicts[("lease", "10.1.0.6")] == ("deleted", "owner_dead")
    assert verdicts[("lease", "10.1.0.7")] == ("left", "not_ours")
    assert verdicts[("attachment", "dead/eth0")] == ("deleted", "owner_dead")


def test_an_empty_live_set_is_refused_only_if_something_would_go(host):
    host.answers = []
    assert host.plan().candidates == []
    host.lease("10.1.0.5", "dead\r\neth0")
    with pytest.raises(HostError) as caught:
        host.plan()
    assert caught.value.code == "empty_live_set"
    assert [row["reason"] for row in caught.value.facts["collected"]] == ["empty_live_set"]
    assert host.verdicts(allow_empty=True) == {("lease", "10.1.0.5"): ("deleted", "owner_dead")}


def test_only_the_networks_and_kinds_that_are_asked_for(host):
    host.lease("10.1.0.5", "dead\r\neth0")
    host.config("other")
    host.lease("10.1.0.6", "dead\r\neth0", network="other")
    assert list(host.verdicts(networks=["other"])) == [("lease", "10.1.0.6")]
    assert host.verdicts(scope=["rules", "cache"]) == {}


def test_attachments_live_and_die_with_their_namespace(host):
    host.attached("one", "10.1.0.5")
    host.attached("two", "10.1.0.6", identity=dict(IDENTITY, cookie=8))
    host.namespaces.append(alive())
    plan = host.plan()
    assert plan.kept["attachment"] == 1
    (candidate,) = plan.candidates
    assert (candidate.container_id, candidate.action) == ("two", "deleted")
    assert "is gone" in candidate.evidence[0]


def test_an_attachment_of_another_tool_lives_while_its_path_leads_somewhere(host, monkeypatch):
    host.attached("one", "10.1.0.5", identity=None)
    monkeypatch.setattr(Namespaces, "at", lambda self, path: self.all[:1])
    assert host.plan().candidates == []


def test_an_attachment_whose_plugin_is_missing_is_left_and_its_address_is_freed(host):
    host.attached("dead", "10.1.0.5")
    host.lease("10.1.0.5", "dead\r\neth0")
    (host.bin_dir / "bridge").unlink()
    assert host.verdicts() == {
        ("attachment", "dead/eth0"): ("left", "missing_plugin"),
        ("lease", "10.1.0.5"): ("deleted", "owner_dead"),
    }


def test_an_interrupted_add_is_taken_back_when_its_namespace_is_gone(host):
    config = network_conf_from_bytes(host.config("demo"))
    given = Attached(Key("demo", "half", "eth0"), config, "/nowhere", [], {}, None)
    Records(host.cache_dir).adding(given, dict(IDENTITY))
    host.aged(host.record("half"), 3600)
    assert host.verdicts() == {("attachment", "half/eth0"): ("deleted", "interrupted")}
    host.namespaces.append(alive())
    assert host.verdicts() == {("attachment", "half/eth0"): ("left", "live")}


def test_an_attachment_that_lost_its_entry_is_detached_when_its_namespace_is_gone(host):
    config = network_conf_from_bytes(host.config("demo"))
    given = Attached(Key("demo", "lost", "eth0"), config, "/nowhere", [], {}, {"ips": [{"address": "10.1.0.5/24"}]})
    Records(host.cache_dir).attached(given.key, Record(ATTACHED, dict(IDENTITY), True, attached=given))
    host.aged(host.record("lost"), 3600)
    assert host.verdicts() == {("attachment", "lost/eth0"): ("deleted", "owner_dead")}
    host.namespaces.append(alive())
    assert host.verdicts() == {}


@pytest.mark.parametrize(
    "content, reason",
    [(b"", "empty"), (b"\0\0\0", "empty"), (b'{"kind": "cniCac', "damaged"), (b"[]", "damaged")],
)
def test_damaged_cache_files_go_unless_their_container_lives(host, content, reason):
    path = host.attached("dead", "10.1.0.5")
    with open(path, "wb") as stream:
        stream.write(content)
    host.aged(path, 3600)
    assert host.verdicts() == {("cache", path): ("deleted", reason)}
    host.namespaces.append(alive())
    assert host.verdicts() == {("cache", path): ("left", "live")}
    host.namespaces.pop()
    host.plan().apply()
    assert not os.path.exists(path) and not os.path.exists(host.record("dead"))
    assert host.verdicts() == {}


def test_a_damaged_file_without_a_note_is_left_if_its_name_has_a_live_container(host):
    folder = os.path.join(host.cache_dir, "results")
    os.makedirs(folder)
    for name in ("demo-live-eth0", "demo-dead-eth0"):
        with open(os.path.join(folder, name), "wb"):
            pass
        host.aged(os.path.join(folder, name), 3600)
    assert [verdict for _key, verdict in sorted(host.verdicts().items())] == [("deleted", "empty"), ("left", "live")]


def test_files_that_nobody_understands_are_left(host):
    folder = os.path.join(host.cache_dir, "results")
    os.makedirs(folder)
    with open(os.path.join(folder, "bare"), "w", encoding="ascii") as stream:
        stream.write('{"cniVersion": "0.3.1", "ips": []}')
    os.symlink("/etc/passwd", os.path.join(folder, "link"))
    os.mkfifo(os.path.join(folder, "pipe"))
    assert {os.path.basename(key[1]): verdict for key, verdict in host.verdicts(min_age=0).items()} == {
        "bare": ("left", "other"),
        "link": ("left", "unreadable"),
        "pipe": ("left", "unreadable"),
    }


def test_a_file_that_has_changed_since_is_not_removed(host):
    path = host.attached("dead", "10.1.0.5")
    with open(path, "wb"):
        pass
    host.aged(path, 3600)
    plan = host.plan()
    with open(path, "wb") as stream:
        stream.write(b"new")
    plan.apply()
    assert os.path.exists(path)


def test_temporary_files_and_stray_notes_go(host):
    path = host.attached("dead", "10.1.0.5")
    os.unlink(path)
    temp = os.path.join(host.cache_dir, ".cniCacheV1-0011.tmp")
    with open(temp, "wb"):
        pass
    host.aged(temp, 3600)
    assert host.verdicts() == {
        ("cache", temp): ("deleted", "leftover"),
        ("cache", host.record("dead")): ("deleted", "stray"),
    }


def test_attachments_from_before_the_boot_go_as_files_where_no_del_is_wanted(host):
    path = host.attached("dead", "10.1.0.5", age=10**9)
    assert host.verdicts(scope=["cache"]) == {("cache", path): ("deleted", "before_boot")}
    assert list(host.verdicts()) == [("attachment", "dead/eth0")]


def test_an_attachment_from_before_the_boot_says_so(host):
    host.attached("old", "10.1.0.5", age=10**9)
    host.attached("new", "10.1.0.6", age=0)
    plan = host.plan(min_age=0)
    rebooted = {one.container_id: [text for text in one.evidence if "rebooted" in text] for one in plan.candidates}
    assert rebooted["new"] == []
    (text,) = rebooted["old"]
    assert text.startswith("the host was rebooted later, at 2")


def test_a_cache_that_cannot_be_listed_is_an_error(host):
    os.makedirs(host.cache_dir)
    with open(os.path.join(host.cache_dir, "results"), "wb"):
        pass
    with pytest.raises(HostError) as caught:
        host.plan()
    assert caught.value.code == "source_unusable"


def test_rules_are_as_old_as_the_lease_or_as_long_as_they_are_known(host):
    host.firewall.sets = [RuleSet("nftables", "ipv4", PORTMAP, "dead", RuleOwner("demo", "dead"), ["10.1.0.5"])]
    name = ("rule", "nftables ipv4 portmap dead")
    assert host.verdicts()[name] == ("left", "young")
    planner = host.planner()
    planner.make()
    planner.remember()
    assert host.verdicts()[name] == ("left", "young")
    seen = host.path / "run" / "seen"
    known = json.loads(seen.read_text())
    seen.write_text(json.dumps({key: moment - 1000 for key, moment in known.items() if moment > 1000}))
    if time.clock_gettime(time.CLOCK_BOOTTIME) > 1000:
        assert host.verdicts()[name] == ("deleted", "owner_dead")
    host.lease("10.1.0.9", "dead\r\neth0", age=5)
    assert host.verdicts()[name] == ("left", "young")


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
    ],
)
def test_rules_by_what_is_known_of_their_owner(host, ruleset, verdict):
    host.namespaces.append(alive(["10.9.9.9"]))
    host.lease("10.1.0.8", "live\r\neth0")
    host.firewall.sets = [ruleset]
    verdicts = host.verdicts(min_age=0, scope=["rules"])
    assert list(verdicts.values()) == ([] if verdict is None else [verdict])


def test_rules_of_live_containers_are_counted(host):
    host.firewall.sets = [RuleSet("n", "ipv4", PORTMAP, name, RuleOwner("demo", "live")) for name in "xy"]
    plan = host.plan(scope=["rules"])
    assert (plan.candidates, plan.kept["rule"]) == ([], 2)


@pytest.mark.parametrize(("container_id", "reason"), [("live", ""), ("dead", "owner_dead"), ("forgotten", "no_owner")])
def test_the_owner_of_rules_is_found_by_the_hash_in_their_name(host, container_id, reason):
    """Leases, attachments and live containers are those that it may be."""
    host.lease("10.1.0.5", "dead\r\neth0")
    name = chain_name("", "demo", container_id)
    host.firewall.sets = [RuleSet("iptables-nft", "ipv4", IPMASQ, name)]
    rows = host.plan(scope=["rules"]).candidates
    assert [row.reason for row in rows] == ([reason] if reason else [])


def test_bridges_that_nothing_uses_are_collected(host):
    host.namespaces[0].links = {22: Link(22, "old0", "bridge", 0, 0, True, False)}
    host.namespaces[0].addresses = {packed("10.7.0.1"): (22, 24)}
    store = host.path / "default" / "gone"
    store.mkdir(parents=True)
    (store / "last_reserved_ip.0").write_text("10.7.0.9")
    plan = host.plan(scope=["links"], min_age=0)
    assert [(one.kind, one.ident, one.network) for one in plan.candidates] == [("link", "old0", "gone")]


@pytest.mark.parametrize("part", ["net.d/demo.conflist", "net.d/demo", "net.d/demo/10-x.conf", "cache"])
def test_only_root_may_decide_what_is_searched_and_what_a_del_runs(host, part):
    (host.conf_dir / "demo").mkdir()
    (host.conf_dir / "demo" / "10-x.conf").write_text('{"type": "tuning"}')
    path = host.attached("dead", "10.1.0.5")
    host.plan()
    os.chmod(path if part == "cache" else host.path / part, 0o777)
    with pytest.raises(HostError) as caught:
        host.plan()
    assert caught.value.code == "unsafe_permissions"


def test_an_empty_plan_has_nothing_to_do(host):
    plan = host.plan()
    assert (plan.pending, plan.changed, plan.namespaces, plan.verbs) == (False, False, 1, [])
    assert set(plan.kept.values()) == {0}


def test_rules_go_before_addresses_are_freed(host):
    host.attached("dead", "10.1.0.5")
    host.lease("10.1.0.5", "dead\r\neth0")
    host.firewall.sets = [RuleSet("n", "ipv4", PORTMAP, "x", RuleOwner("demo", "dead"))]
    assert [step.kind for step in host.plan().steps] == ["remove", "del", "release"]


@pytest.mark.parametrize(
    ("owner", "addresses", "reason"),
    [
        (RuleOwner("demo", "dead"), [], "no source names container dead"),
        (RuleOwner(), ["10.1.0.7", "10.1.0.8"], "no network namespace has 10.1.0.7, 10.1.0.8"),
        (RuleOwner("demo", None, None, "de"), [], "no live container uses it"),
    ],
)
def test_the_reason_is_the_evidence_in_short(host, owner, addresses, reason):
    host.firewall.sets = [RuleSet("n", "ipv4", PORTMAP, "x", owner, addresses)]
    plan = host.plan(min_age=0, scope=["rules"])
    assert reasons(plan) == [reason]
    # The default callback of Ansible shows only texts and objects.
    assert plan.diff()[0]["before"] == {"rules": []}


def test_files_are_explained_by_what_is_wrong_with_them(host):
    path = host.attached("dead", "10.1.0.5")
    for content, reason in ((b"", "is empty, as after a crash"), (b"{", "is damaged")):
        with open(path, "wb") as stream:
            stream.write(content)
        host.aged(path, 3600)
        assert reasons(host.plan()) == [reason]


def test_every_cause_has_words(host):
    causes = {cache.EMPTY, cache.DAMAGED, cache.LEFTOVER, cache.STRAY, "before_boot", "interrupted"}
    assert set(candidates._CAUSES) == causes


def test_the_failure_of_one_thing_does_not_keep_the_others(host, monkeypatch):
    host.lease("10.1.0.5", "dead\r\neth0")
    host.lease("10.1.0.6", "dead\r\neth0")
    real = leases.remove_lease

    def fail_once(lease, timeout):
        if lease.ip == "10.1.0.5":
            raise HostError("no", code="lease_locked")
        real(lease, timeout)

    monkeypatch.setattr(leases, "remove_lease", fail_once)
    plan = host.plan()
    plan.apply()
    assert [(c.ident, c.action) for c in plan.candidates] == [("10.1.0.5", "failed"), ("10.1.0.6", "deleted")]
    assert plan.candidates[0].error["code"] == "lease_locked"


def test_gc_is_sent_only_where_every_container_is_known_and_no_runtime_is(host):
    host.config("demo", cniVersion="1.1.0")
    host.config("off", cniVersion="1.1.0", disableGC=True)
    assert [(verb.network, verb.send) for verb in host.plan().verbs] == [("demo", False), ("off", False)]
    host.found = {"netns": ""}
    plan = host.plan()
    assert [(verb.network, verb.send) for verb in plan.verbs] == [("demo", True), ("off", False)]
    assert plan.pending and not plan.changed
    host.why = "netns was found but not asked"
    assert [verb.send for verb in host.plan().verbs] == [False, False]
    host.why, host.answers = "", []
    assert host.plan(allow_empty=True).verbs == []


def test_a_source_that_is_named_and_not_there_is_missing(host):
    with pytest.raises(HostError) as caught:
        host.plan(keep_from=["nomad"])
    assert caught.value.code == "missing_source"
    assert host.plan(keep_from=["nomad", "netns"], check_mode=True).warnings[0][0] == "missing_source"
    assert host.plan(keep_from=["podman", "netns"]).warnings == []


def test_what_is_live_by_the_cache_has_its_interfaces(host):
    host.attached("one", "10.1.0.5")
    contents = cache.read_cache(host.cache_dir)
    answer = answer_of(contents, Homes(contents.entries, Namespaces([alive()])))
    assert answer.containers == {"one": frozenset(["eth0"])}
    assert answer_of(contents, Homes(contents.entries, Namespaces([]))).containers == {}


def test_everything_but_dels_goes_in_the_order_of_the_plan(host):
    host.attached("one", "10.1.0.5")
    host.attached("two", "10.1.0.6")
    host.lease("10.1.0.5", "one\r\neth0")
    host.lease("10.1.0.7", "")
    lanes = [(step.kind, step.lane) for step in host.plan().steps]
    assert lanes == [("del", "one"), ("del", "two"), ("release", ""), ("release", "")]


def test_the_boot_time(monkeypatch, tmp_path):
    stat = tmp_path / "stat"
    monkeypatch.setattr(inventory, "open", lambda path, encoding: stat.open(encoding=encoding), raising=False)
    stat.write_text("cpu 1\nbtime 1700000000\nprocesses 5\n")
    assert inventory._boot_time() == 1700000000.0
    stat.write_text("cpu 1\n")
    assert inventory._boot_time() == 0.0
    for text in ("btime x\n", None):
        if text is None:
            stat.unlink()
        else:
            stat.write_text(text)
        with pytest.raises(HostError, match="cannot read /proc/stat") as caught:
            inventory._boot_time()
        assert caught.value.code == "kernel_unreadable"


def test_rules_are_removed_together(host, monkeypatch):
    removed = []

    def drop(sets):
        removed.append([one.name for one in sets])
        return [(one, HostError("it changed", code="rules_changed") if one.name == "b" else None) for one in sets]

    monkeypatch.setattr(change, "drop_rules", drop)
    owner = RuleOwner("demo", "dead")
    host.firewall.sets = [RuleSet("n", "ipv4", PORTMAP, name, owner, unclear="x" * (name == "c")) for name in "abc"]
    plan = host.plan(min_age=0, scope=["rules"])
    assert removed == []
    plan.apply()
    assert removed == [["a", "b"]]
    assert [(one.action, one.reason) for one in plan.candidates] == [
        ("deleted", "owner_dead"),
        ("failed", "owner_dead"),
        ("left", "unclear"),
    ]
    assert plan.candidates[1].error["code"] == "rules_changed"
