# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A runtime of the host that would use another network than those that a task writes."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh

pytestmark = pytest.mark.usefixtures("crio")

SECTION = "on_not_effective"


def conflist(name, third):
    ipam = {"type": "host-local", "subnet": f"10.96.{third}.0/24"}
    return {"cniVersion": "0.4.0", "name": name, "plugins": [{"type": "bridge", "bridge": f"pwd{third}", "ipam": ipam}]}


NETWORKS = [{"name": "apps", "conflist": conflist("apps", 9)}]


@pytest.fixture
def foreign(work):
    (work / "net.d").mkdir()
    path = work / "net.d" / "05-foreign.conflist"
    path.write_text(json.dumps(conflist("foreign", 10)))
    return path


@pytest.fixture
def host(host, bins, work):
    yield host.with_defaults(conf_dir=str(work / "net.d"), bin_dirs=[str(bins)], cache_dir=str(work / "cache"))
    sh("rm -rf /var/lib/podwire /var/lib/cni; ip -all netns delete; [ ! -e /sys/class/net/pwd9 ] || ip link del pwd9")


def told(result, file):
    """Return the level of each finding; its message names the runtime, both networks and the remedies."""
    findings = result["problems"] if result.get("failed") else result["findings"]
    found = [finding for finding in findings if finding["code"] == "not_effective"]
    for finding in found:
        for text in ("crio", "'apps'", "'foreign'", str(file), "'priority'", "remove", "cni_networks_ensure_effective"):
            assert text in finding["message"]
    return [finding["level"] for finding in found]


MODES = ({"check_mode": True}, {}, {}, {"check_mode": True})


@pytest.mark.parametrize("module", ["cni_conf", "cni_host", "with a section for runtimes"])
def test_a_task_warns_each_time(host, foreign, module):
    def run(**options):
        if module == "cni_conf":
            return host.run("cni_conf", networks=NETWORKS, **options)
        sections = {"runtime": {}} if module != "cni_host" else {}
        sections["networks"] = {"networks": NETWORKS, **{k: options.pop(k) for k in (SECTION,) if k in options}}
        return host.run("cni_host", **sections, **options)

    for mode in MODES:
        assert told(run(**mode), foreign) == ["warning"]
    assert told(run(on_not_effective="ignore"), foreign) == []
    foreign.rename(foreign.parent / "20-foreign.conflist")
    for mode in MODES:
        assert told(run(**mode), foreign) == []


def test_as_an_error_it_prevents_the_write(host, foreign):
    for mode in ({"check_mode": True}, {}):
        refused = host.fail("cni_conf", networks=NETWORKS, on_not_effective="error", **mode)
        assert refused["code"] == "not_effective" and told(refused, foreign) == ["error"]
        refused = host.fail("cni_host", networks={"networks": NETWORKS, "on_not_effective": "error"}, **mode)
        # The error of its section, and the problem itself.
        assert set(told(refused, foreign)) == {"error"}
    assert [path.name for path in foreign.parent.iterdir()] == [foreign.name]
    # With a lower priority, it is the network of the runtime.
    host.run("cni_conf", networks=[{**NETWORKS[0], "priority": 1}], on_not_effective="error")


def test_a_managed_network_before_it_is_intended(host, foreign):
    foreign.unlink()
    first = {"name": "first", "priority": 1, "conflist": conflist("first", 11)}
    for mode in MODES:
        assert told(host.run("cni_conf", networks=[*NETWORKS, first], **mode), foreign) == []
    for mode in MODES:
        assert told(host.run("cni_conf", networks=NETWORKS, **mode), foreign) == []


def test_what_this_task_configures_is_judged_as_it_will_be(host, foreign, work):
    elsewhere = host.with_defaults(conf_dir=str(work / "own"))
    configured = {"runtime": ["crio"], "configure": {"state": "present"}}
    for mode in MODES:
        result = elsewhere.run("cni_host", networks={"networks": NETWORKS}, runtime=configured, **mode)
        assert told(result, foreign) == []


def test_networks_of_attachments_are_for_those(host, foreign):
    attachments = {"attachments": [{"network": "apps", "container_id": "c", "netns": "pwdisplaced"}]}
    sections = {"networks": {"networks": NETWORKS}, "netns": {"names": ["pwdisplaced"]}}
    for runtime in ({}, {"runtime": {}}):
        for mode in MODES:
            assert told(host.run("cni_host", **sections, **runtime, attachments=attachments, **mode), foreign) == []
    assert told(host.run("cni_conf", networks=NETWORKS), foreign) == []
    attachments["attachments"][0]["state"] = "absent"
    host.run("cni_host", attachments=attachments)
