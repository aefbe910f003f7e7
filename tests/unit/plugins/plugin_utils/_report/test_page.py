# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import hashlib
import random
import re
from html.parser import HTMLParser

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._report.commands import Commands
from ansible_collections.podwire.cni.plugins.plugin_utils._report.fleet import fleet
from ansible_collections.podwire.cni.plugins.plugin_utils._report.page import Written, findings_by_host, pages
from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import INFO_KEYS, build

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "</noscript></details><b>",
    "{{ 7*7 }}{% for x in y %}{# c #}",
    "javascript:alert(1)",
    "\" onclick='alert(1)' x=`",
    "a\u2028b\u2029c\x00\x1b[31m\ud800",
    "\u202egnp.exe",
    "\u05e9\u05dc\u05d5\u05dd",
    "-->]]>",
)
EVERYTHING = "".join(HOSTILE)


def page_of(report):
    """Return the page of a report that has only one."""
    (page,) = pages(Written(report, {}), findings_by_host(report), Commands(report["inventory"]))
    return page


class Page(HTMLParser):
    """What a browser without scripts makes of a page: its elements, their attributes, and its text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.words = [], [], []
        self.feed(html)
        self.text = "".join(self.words)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.extend((tag, *attribute) for attribute in attrs)

    def handle_data(self, data):
        self.words.append(data)


def page(*records):
    return Page(page_of(fleet(records)))


def hostile(text):
    """Return a record in which every text that a host returns is *text*."""
    names = "network path file runtime version reason id container_id ifname owner error message code kind level place"
    row = dict.fromkeys(names.split(), text)
    more = {"plugins": [text], "ips": [text], "ranges": [text], "evidence": [text], "addresses": [text], "name": text}
    row.update(more, size=10, used=9, netns_state=text, config={"plugins": [{"type": text, "bridge": text}]})
    row["capability_args"] = {"portMappings": [{"hostPort": 1, "containerPort": 2, "hostIP": text, "protocol": text}]}
    info = {key: [{**row, "not_chosen": [row], "owners": [row]}] for key in INFO_KEYS}
    info["kernel"] = {"links": [row]}
    actions = {
        "actions": [{"kind": text, "target": text, "class": text, "reason": text}],
        "diff": [{"step": 0, "before": text, "after": ""}],
    }
    results = {
        "networks": {
            **actions,
            "problems": [{**row, "code": "known_vulnerability"}],
            "findings": [{"code": text, "message": text}],
        }
    }
    return build(text, results, info, [text], "2026-11-21T08:00:00Z")


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_host_returns_stays_text(text):
    plain, bad = page(hostile("harmless")), page(hostile(text))
    assert bad.tags == plain.tags
    assert [name[:2] for name in bad.attributes] == [name[:2] for name in plain.attributes]
    for tag, name, value in bad.attributes:
        assert not name.startswith("on") and name not in ("style", "src"), (tag, name)
        assert name not in ("href", "id", "class", "data-sort") or text not in value
        assert name != "href" or value == "report.json" or re.fullmatch(r"#[a-z0-9-]+", value)


def test_what_cannot_be_seen_is_shown_by_its_number():
    html = page_of(fleet([hostile(EVERYTHING)]))
    assert not re.search("[\0-\x08\x0b-\x1f\u2028-\u202e\ud800-\udfff]", html)
    for shown in ("\\u202egnp", "a\\u2028b\\u2029c\\u0000\\u001b[31m\\ud800", "\u05e9\u05dc\u05d5\u05dd", "{{ 7*7 }}"):
        assert shown in html
    html.encode("utf-8")


def test_the_policy_allows_our_own_script_and_style_only():
    html = page_of(fleet([hostile("x")]))
    (policy,) = (value for tag, name, value in Page(html).attributes if tag == "meta" and "default-src" in str(value))
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.pop("default-src") == rules.pop("base-uri") == rules.pop("form-action") == "'none'"
    for element in ("style", "script"):
        (content,) = re.findall("<%s>(.*?)</%s>" % (element, element), html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules.pop(element + "-src") == "'sha256-%s'" % digest
    assert not rules
    assert "http://" not in html and "https://" not in html


def test_the_same_records_make_the_same_page():
    records = [hostile(text) for text in HOSTILE]
    assert page_of(fleet(records)) == page_of(fleet(records[::-1]))


def test_what_needs_somebody_comes_first():
    drifted = {"networks": {"actions": [{"kind": "write", "target": "/x", "class": "safe"}]}}
    html = page_of(fleet([build("a", {}, {}), build("b", drifted, {}), build("c", {}, None, ["no route to it"])]))
    assert re.findall(r"<h3><bdi>(.*?)</bdi></h3>", html) == ["c", "b", "a"]
    assert "no route to it" in html and "podwire.cni.remediate --limit b" in Page(html).text


def test_hosts_of_one_status_are_ordered_by_their_effect():
    def with_step(name, kind, step_class):
        return build(name, {"networks": {"actions": [{"kind": kind, "target": "/x", "class": step_class}]}}, {})

    records = [
        with_step("a", "write", "safe"),
        with_step("b", "rename", "disruptive"),
        with_step("c", "repair", "safe"),
    ]
    assert re.findall(r"<h3><bdi>(.*?)</bdi></h3>", page_of(fleet(records))) == ["c", "b", "a"]


def test_a_fleet_without_hosts_has_a_page():
    assert "<title>CNI: No host was inspected</title>" in page_of(fleet([]))


def junk(dice, depth=0):
    """Return anything that JSON can hold, often under a name that the page looks for."""
    names = "network config plugins type owners ips result runtime not_chosen class netns_state ranges interface"
    names += " capability_args portMappings hostPort size used outside percent collectable links addresses"
    simple = [None, True, -1, 0, 3.5, 10**30, "", "x", "<b>", [], {}]
    kind = dice.randrange(4) if depth < 5 else 3
    if kind == 0:
        return [junk(dice, depth + 1) for _entry in range(dice.randrange(4))]
    if kind < 3:
        return {name: junk(dice, depth + 1) for name in dice.sample(names.split(), dice.randrange(6))}
    return dice.choice(simple)


@pytest.mark.parametrize("seed", range(40))
def test_data_of_any_shape_makes_a_page(seed):
    dice = random.Random(seed)
    info = {key: [junk(dice) for _row in range(3)] if dice.random() < 0.8 else junk(dice) for key in INFO_KEYS}
    results = {"networks": {"actions": [junk(dice)], "diff": junk(dice), "problems": [junk(dice), junk(dice)]}}
    assert "h0-drift" in page_of(fleet([build("web", results, info)]))


def ready(runtime, value, **more):
    return {"runtime": runtime, "conf_dir": "/c", "network": "pods", "ready": value, **more}


def test_each_runtime_has_its_readiness_and_the_reasons():
    runtime = [
        {"runtime": name, "conf_dir": path, "network": "pods"}
        for name, path in (("containerd-2.1", "/c"), ("crio", "/c"), ("crio", "/d"), ("podman", "/c"), ("kubenet", ""))
    ]
    said = {"ready": False, "message": "cni <b>plugin not initialized"}
    status = [
        {"state": "not_ready", "message": "x (code 50): <i>no route"},
        {"state": "ready", "message": "sound-plugin"},
    ]
    told = [
        ready("containerd-2.1", False, reported=said, status=status),
        ready("crio", None, unknown="it does not answer", reported=None),
        ready("kubenet", True, reported={"ready": True}),
        "no row",
    ]
    found = page(build("h", {}, {"runtime": runtime, "readiness": {"ready": False, "runtimes": told}}))
    text = " ".join(found.text.split())
    assert "no x (code 50): <i>no route it reports that its network is not ready: cni <b>plugin not initialized" in text
    assert "unknown it does not answer" in text
    assert "yes it reports that its network is ready" in text
    # The handler with another directory, and podman, were not examined.
    assert text.count("pods \u2013") == 2
    assert "sound-plugin" not in text


def test_a_runtime_without_cni_is_grey_and_says_why():
    runtime = [{"runtime": "podman", "version": "5.4.2", "network": None, "reason": "it uses netavark, not CNI"}]
    unused = {"level": "info", "code": "not_cni", "runtime": "podman", "evidence": "it uses netavark, not CNI"}
    info = {"runtime": runtime, "readiness": {"ready": None, "runtimes": [], "obstacles": [unused]}}
    html = page_of(fleet([build("h", {}, info)]))
    # In place of its network in both tables, as its reason, and as the evidence of the obstacle.
    assert html.count('<bdi class="muted">it uses netavark, not CNI</bdi>') == 4 and 'class="none"' not in html
    # Another runtime of the host has lost its network.
    info["runtime"] = [*runtime, {"runtime": "crio", "network": None}]
    assert page_of(fleet([build("h", {}, info)])).count('class="none"') == 2


def test_a_row_shows_the_version_of_each_runtime():
    runtime = [{"runtime": "podman", "version": "4.9.3", "network": "pods"}]
    html = page_of(fleet([build("h", {}, {"runtime": runtime})]))
    assert '<bdi class="muted">podman 4.9.3</bdi>' in html


def test_the_hosts_of_a_command_are_marked():
    drifted = {"networks": {"actions": [{"kind": "write", "target": "/x", "class": "safe"}]}}
    html = page_of(fleet([build("k8s2", drifted, {})]))
    command = '<i>ansible-playbook</i> <i>podwire.cni.remediate</i> <i>--limit</i> <i class="limit">k8s2</i>'
    assert html.count(command) > 1
