# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import shlex

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._report.commands import Commands
from ansible_collections.podwire.cni.plugins.plugin_utils._report.findings import (
    causes_of,
    finding_of_step,
    findings,
    subject_of,
)
from ansible_collections.podwire.cni.plugins.plugin_utils._report.fleet import fleet
from ansible_collections.podwire.cni.plugins.plugin_utils._report.page import findings_by_host
from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build, unusable

CONFLIST = "/etc/cni/net.d/10-pods.conflist"


def step(reason, kind="write", target=CONFLIST, step_class="safe"):
    return {"kind": kind, "target": target, "class": step_class, "reason": reason}


def drifted(host, *steps):
    return build(host, {"networks": {"actions": list(steps)}}, {})


def causes(*records, since=None):
    return causes_of(findings_by_host(fleet(records)), Commands(), since or {})


def unreachable(host, message):
    return build(host, {"host": {"unreachable": True, "msg": message}}, None)


def test_hosts_with_the_same_difference_have_one_cause():
    found = causes(*(drifted(f"h{number}", step("mtu 1500, want 1450")) for number in range(3)))
    (cause,) = found
    assert (cause.subject, cause.reason, cause.first.step_class, cause.first.price) == (
        "10-pods.conflist",
        "mtu 1500, want 1450",
        "safe",
        "no interruption",
    )
    assert (cause.hosts, cause.count) == (["h0", "h1", "h2"], 3)
    assert shlex.split(cause.command[1]) == ["ansible-playbook", "podwire.cni.remediate", "--limit", "h0,h1,h2"]


@pytest.mark.parametrize("codes", [{"lost": ["addr"]}, {"lost": ["addr", "route"]}, {"why": "check"}])
def test_reasons_of_one_code_have_one_cause_whatever_their_words(codes):
    reasons = ("eth0 has lost its address 10.1.0.2/24", "fd00::2/64 is gone")

    def record(host, index, codes):
        key = {"network": "pods", "container_id": f"c{index}", "ifname": "eth0"}
        action = {**step(reasons[index], "repair", f"pods/c{index}/eth0"), **codes}
        return build(
            host, {"attachments": {"actions": [action], "attachments": [{**key, "reason": codes.get("why")}]}}, {}
        )

    (cause,) = causes(record("a", 0, codes), record("b", 1, codes))
    assert (cause.subject, cause.reason, cause.hosts) == (
        "attachment to pods",
        f"for example: {reasons[0]}",
        ["a", "b"],
    )
    # Alone, it is told in full.
    assert causes(record("a", 0, codes))[0].reason == reasons[0]
    assert len(causes(record("a", 0, codes), record("b", 1, {"lost": ["rule"]}))) == 2


@pytest.mark.parametrize(
    "other",
    [
        step("mtu 1400, want 1450"),
        step("mtu 1500, want 1450", target="/etc/cni/net.d/20-x.conflist"),
        step("mtu 1500, want 1450", step_class="disruptive"),
        step("mtu 1500, want 1450", kind="rename"),
    ],
)
def test_other_differences_are_other_causes(other):
    assert len(causes(drifted("a", step("mtu 1500, want 1450")), drifted("b", other))) == 2


def test_a_host_counts_once_and_what_it_has_several_times_is_counted():
    steps = [step("eth0 is gone", "repair", f"pods/c{number}/eth0") for number in range(4)]
    (cause,) = causes(drifted("a", *steps))
    assert (cause.hosts, cause.count) == (["a"], 4)


def not_ready(host, *steps, says="loads no network", **more):
    obstacles = [{"level": "error", "code": "no_network", "message": says}]
    info = {"readiness": {"ready": False, "obstacles": obstacles}, **more}
    return build(host, {"networks": {"actions": list(steps)}}, info)


def test_causes_are_ordered_by_their_effect():
    lost = step("eth0 has lost 10.1.0.2/24", "repair", "pods/c/eth0")
    gone = {**lost, "target": "pods/d/eth0", "class": "disruptive", "reason": "eth0 is gone"}
    foreign = {**lost, "target": "pods/e/eth0", "class": "foreign", "reason": "eth0 is away"}
    found = causes(
        build("a", {}, {"garbage": [{"collectable": True}]}),
        drifted("b", step("mtu")),
        drifted("c", step("renamed", "rename", step_class="disruptive")),
        unusable("d", "no"),
        build("e", {}, {"pools": [{"network": "pods", "size": 2, "used": 2}]}),
        drifted("f", gone),
        drifted("g", lost),
        drifted("h", foreign),
        not_ready("i"),
        vulnerable("j", "CVE-2025-67499"),
    )
    assert [cause.reason for cause in found] == [
        "loads no network",
        "eth0 is gone",
        "eth0 has lost 10.1.0.2/24",
        "eth0 is away",
        "pods: all 2 addresses are taken",
        "no",
        "renamed",
        "mtu",
        "CVE-2025-67499",
        "1 leak of dead containers",
    ]


def test_a_host_begins_with_its_worst_finding():
    steps = [step("mtu"), step("eth0 is gone", "repair", "pods/c/eth0", "disruptive")]
    (host,) = fleet([not_ready("h", *steps)])["hosts"]
    assert [finding.reason for finding in findings(host)] == ["loads no network", "eth0 is gone", "mtu"]


# ---- one cause for one event


def test_a_firewall_flush_with_a_lost_address_is_one_cause():
    flushed = [
        step("the chain CNI-FORWARD is gone", "repair", "shared firewall rules and forwarding"),
        step("its masquerading is gone", "repair", "pods/web/eth0"),
        step("eth0 has lost 10.1.0.3/24, its masquerading is gone", "repair", "pods/db/eth0"),
    ]
    (cause,) = causes(drifted("k8s2", *flushed))
    assert (cause.hosts, cause.count) == (["k8s2"], 3)
    assert {part.subject for part in cause.parts} == {"shared firewall rules and forwarding", "attachment to pods"}
    assert cause.command == ("Repair", "ansible-playbook podwire.cni.remediate --limit k8s2")


def upgraded(host, *names, reason="upgraded to 1.9.1 by upgrade; the inventory says 1.1.1", step_class="safe"):
    actions = [step(reason, "replace", f"/opt/cni/bin/{name}", step_class) for name in names]
    return build(host, {"plugins": {"actions": actions}}, {})


def test_an_upgrade_is_one_cause_whatever_plugins_each_host_has():
    (cause,) = causes(upgraded("a", "bridge", "portmap", "tuning"), upgraded("b", "bridge"))
    reason = "upgraded to 1.9.1 by upgrade; the inventory says 1.1.1"
    assert (cause.subject, cause.reason, cause.count) == ("3 plugins", reason, 4)
    assert [part.subject for part in cause.parts] == ["3 plugins"]
    (cause,) = causes(upgraded("a", "bridge"), upgraded("b", "bridge"))
    assert cause.subject == "plugin bridge"
    # One that was edited is something else, and so is another release.
    assert len(causes(upgraded("a", "bridge"), upgraded("b", "bridge", reason="sha256 differs from 1.1.1"))) == 2
    assert len(causes(upgraded("a", "bridge"), upgraded("b", "bridge", reason="1.0.0 to 1.1.1"))) == 2
    both = causes(upgraded("a", "bridge"), upgraded("b", "bridge", step_class="disruptive"))
    assert sorted(cause.command[0] for cause in both) == ["Repair", "Replace plugins"]


def test_equal_commands_are_merged_and_others_are_not():
    both = [step("mtu 1500, want 1450"), step("not installed", "install", "/opt/cni/bin/bridge")]
    (cause,) = causes(drifted("a", *both), drifted("b", *both))
    assert (cause.hosts, cause.count, len(cause.parts)) == (["a", "b"], 4, 2)
    assert cause.since == "" and cause.command[1].endswith("--limit a,b")
    found = causes(drifted("a", *both), drifted("b", both[1]))
    assert [(found.hosts, len(found.parts)) for found in found] == [(["a", "b"], 1), (["a"], 1)]
    # What no command deals with is told one by one.
    pools = [{"network": name, "size": 1, "used": 1} for name in ("a", "b")]
    assert len(causes(build("h", {}, {"pools": pools}))) == 2


def test_a_merged_cause_is_as_old_as_its_oldest_part():
    record = drifted("a", step("x"), step("y", "repair", "pods/c/eth0"))
    keys = [finding.key for finding in findings(fleet([record])["hosts"][0])]
    since = {"a": dict(zip(keys, ("2026-11-02", "2026-11-01")))}
    assert [cause.since for cause in causes(record, since=since)] == ["2026-11-01"]


def test_hosts_have_one_cause_whatever_they_say_of_themselves():
    away = "ssh: connect to host {} port 22: timed out"
    (cause,) = causes(*(unreachable(name, away.format(name)) for name in ("web1", "web2")))
    assert (cause.subject, cause.reason) == ("Unreachable", "ssh: connect to the host port 22: timed out")
    assert cause.command == ("Inspect again", "ansible-playbook podwire.cni.drift --limit web1,web2")
    assert [cause.hosts for cause in causes(not_ready("a", says="a has"), not_ready("b", says="b has"))] == [["a", "b"]]


def test_a_cause_is_as_old_as_its_oldest_finding():
    records = [drifted(name, step("x")) for name in "abc"]
    key = findings(fleet(records)["hosts"][0])[0].key
    since = {"a": {key: "2026-11-02"}, "b": {key: "2026-11-01"}}
    assert causes(*records, since=since)[0].since == "2026-11-01"


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (drifted("h", step("x", step_class="disruptive")), ["remediate", "cni_remediate_classes"]),
        (build("h", {}, {"garbage": [{"collectable": True}]}), ["gc", "cni_gc_apply=true"]),
        (build("h", {}, {"readiness": {"ready": False}}), ["explain"]),
        (unusable("h", "its file h.json is unusable: x"), ["drift"]),
    ],
)
def test_what_deals_with_a_cause_is_offered(record, words):
    ((_what, command),) = [cause.command for cause in causes(record)]
    assert f"podwire.cni.{words[0]} --limit h" in command and all(word in command for word in words)


def test_a_step_of_another_owner_is_no_cause_unless_a_container_has_lost_its_network():
    assert causes(drifted("h", step("istio", "leave", step_class="foreign"))) == []
    (cause,) = causes(drifted("h", step("eth0 is gone", "repair", "pods/c/eth0", "foreign")))
    assert (cause.first.level, cause.command) == ("attention", ("", ""))


@pytest.mark.parametrize(
    ("kind", "target", "subject"),
    [
        ("write", CONFLIST, "10-pods.conflist"),
        ("install", "/opt/cni/bin/bridge", "plugin bridge"),
        ("repair", "pods/web/eth0", "attachment to pods"),
        # What all networks share.
        ("repair", "shared firewall rules and forwarding", "shared firewall rules and forwarding"),
        ("write", "/", "/"),
        ("odd", "", "odd"),
    ],
)
def test_a_step_is_about_something_that_has_a_short_name(kind, target, subject):
    assert subject_of(kind, target) == subject


@pytest.mark.parametrize(
    ("kind", "step_class", "price"),
    [
        ("write", "safe", "no interruption"),
        ("repair", "disruptive", "about 1 s off the network"),
        ("set_aside", "disruptive", "a network goes"),
        ("new_kind", "disruptive", "may interrupt containers"),
        ("repair", "foreign", "a run leaves it"),
    ],
)
def test_every_class_has_a_price(kind, step_class, price):
    assert finding_of_step(step("x", kind, step_class=step_class)).price == price


def vulnerable(host, name):
    message = f"portmap is release 1.6.2, which has {name}; install 6.6.6 or later"
    problem = {"level": "warning", "code": "known_vulnerability", "message": message, "vulnerability": name}
    return build(host, {"networks": {"problems": [problem]}}, {})


def test_a_known_vulnerability_is_dealt_with_by_an_upgrade():
    (cause,) = causes(vulnerable("h1", "CVE-2025-67499 (GHSA-jv3w-x3r3-g6rm)"))
    what, command = cause.command
    assert what == "Upgrade to 1.9.1"
    # The release is one that the collection knows, whatever a host says.
    assert shlex.split(command)[1:] == ["podwire.cni.upgrade", "--limit", "h1", "-e", "cni_plugins_version=1.9.1"]


def test_a_vulnerability_that_is_not_known_here_has_no_release():
    (cause,) = causes(vulnerable("h1", "CVE-2031-1234"))
    assert cause.command == ("", "")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("the host web1 is down", "the host is down"),
        ("web1 is down", "the host is down"),
        ("a host of web1.example.net", "a host of the host.example.net"),
    ],
)
def test_an_error_speaks_of_the_host(error, reason):
    (cause,) = causes(unreachable("web1", error))
    assert cause.reason == reason


def test_what_has_changed_is_told_in_the_words_of_the_page():
    record = build(
        "web1",
        {"networks": {"actions": [step("mtu 1500, want 1450"), step("eth0: gone", "repair", "pods/c/eth0")]}},
        {"garbage": [{"collectable": True}]},
        time="2026-11-01T00:00:00Z",
    )
    records = [record, vulnerable("h1", "CVE-2025-67499"), unreachable("h2", "a: b"), unusable("h3", "no way")]
    said = [one.key for found in findings_by_host(fleet(records)).values() for one in found if one.level]
    assert sorted(said) == [
        "/etc/cni/net.d/10-pods.conflist: mtu 1500, want 1450",
        "Failed: no way",
        "Leaks: leases, rules or interfaces of dead containers",
        "Unreachable: a: b",
        "Vulnerable: CVE-2025-67499",
        "pods/c/eth0: eth0: gone",
    ]
