# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Options that change what a plan does: classes, gather, exclusive, strict, force, restored, runtime."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.tests.host.cni_host.conftest import BIN_DIR, CONF_DIR, NAMES, brief, codes, network
from ansible_collections.podwire.cni.tests.host.host import sh

pytestmark = pytest.mark.parametrize("generation", ["new"], indirect=True)


def actions(result):
    return [row["action"] for row in result["attachments"]["attachments"]]


def left(result):
    return [(step["kind"], step["target"].removeprefix("/etc/cni/net.d/")) for step in result["left"]]


# ---- classes


def test_disruptive_steps_are_left_with_all_that_depends_on_them(host, change, desired):
    host.run("cni_host", **desired)
    sh("ip -n pwh-job route delete default; rm /opt/cni/bin/tuning; ip netns add pwh-late")
    desired["networks"]["networks"][0] = network("pwhapps", 43)
    desired["attachments"]["attachments"] += [
        {"network": "pwhapps", "container_id": "late", "netns": "pwh-late"},
        {"network": "pwhdata", "container_id": "late", "netns": "pwh-late", "ifname": "eth1"},
    ]
    check = host.run("cni_host", check_mode=True, classes=["safe"], **desired)
    run = host.run("cni_host", classes=["safe"], **desired)
    again = host.run("cni_host", classes=["safe"], **desired)
    # Nobody is attached to the old pwhapps. What does not depend on it goes on.
    assert actions(check) == actions(run) == ["none", "none", "none", "repaired", "left", "added"]
    assert brief(check) == brief(run)[:1] + brief(check)[1:]
    assert ("plugins", "install", "tuning") in brief(run)
    assert ("attachments", "add", "pwhapps/late/eth0") not in brief(run)
    assert left(check) == left(run) == left(again)
    assert {("write", "10-pwhapps.conflist"), ("add", "pwhapps/late/eth0")} <= set(left(run))
    assert run["networks"]["networks"][0]["action"] == "left"
    assert not again["changed"]
    assert "10.41." in (CONF_DIR / "10-pwhapps.conflist").read_text()
    # A lost route is put back in place.
    assert ("attachments", "repair", "pwhdata/job/eth0") in brief(run)
    assert "via 10.42.0.1" in sh("ip -n pwh-job route show default")

    change(warnings=None, **desired)
    assert " 10.43." in sh("ip -n pwh-late -oneline address show eth0")


def test_safe_steps_are_left(host, desired):
    host.run("cni_host", **desired)
    sh("rm /opt/cni/bin/tuning; ip -n pwh-web link delete eth0; ip netns delete pwh-job")
    run = host.run("cni_host", classes=["disruptive"], **desired)
    assert brief(run) == []
    steps = [("install", "/opt/cni/bin/tuning"), ("create", "/run/netns/pwh-job"), ("repair", "pwhapps/web/eth0")]
    assert left(run) == steps
    assert actions(run) == ["left", "none", "none", "left"]


def test_a_repair_moves_no_packets_to_the_interface_that_it_makes(host, desired):
    def way():
        return sh("ip -n pwh-web -oneline route get 192.0.2.1").split(" uid ")[0]

    host.run("cni_host", **desired)
    before = way()
    sh(f"ip -n pwh-web link delete {'eth1' if ' dev eth0 ' in before else 'eth0'}")
    assert [step["class"] for step in host.run("cni_host", **desired)["plan"]] == ["safe"]
    assert way() == before
    assert not host.run("cni_host", **desired)["changed"]


def test_removals_are_left(host, desired, absent):
    host.run("cni_host", **desired)
    run = host.run("cni_host", classes=["safe"], **{name: absent[name] for name in ("attachments", "netns")})
    assert run["plan"] == []
    assert not run["changed"]
    assert len(run["left"]) == 4 + 3
    _run = host.fail("cni_host", classes=["safe"], **absent)
    assert codes(_run) == {"plugins": "plugin_in_use"}
    assert sorted(os.listdir(BIN_DIR)) == sorted(NAMES)


# ---- gather


def test_gather_reads_the_host_after_the_changes(host, desired):
    sets = ["conf", "plugins", "attachments", "leases"]
    check = host.run("cni_host", check_mode=True, gather=sets, **desired)["info"]
    run = host.run("cni_host", gather=sets, **desired)["info"]
    assert (check["conf"], check["plugins"], check["attachments"]) == ([], [], [])
    assert [row["network"] for row in run["conf"]] == ["pwhapps", "pwhdata"]
    assert sorted(row["name"] for row in run["plugins"]) == NAMES
    assert len(run["attachments"]) == len(run["leases"]) == 4
    assert run["kernel"] is None
    told = host.run("cni_info", gather=sets)
    assert run == {name: told[name] for name in run}


# ---- networks


def test_exclusive_sets_others_aside_after_the_attachments(host, change, fail, desired):
    host.run("cni_host", **desired)
    foreign = CONF_DIR / "00-foreign.conflist"
    foreign.write_text(json.dumps({"cniVersion": "1.0.0", "name": "foreign", "plugins": [{"type": "loopback"}]}))
    desired["networks"]["networks"].pop()
    desired["networks"]["exclusive"] = True
    desired["attachments"]["attachments"] = [
        {**entry, "state": "absent"} if entry["network"] == "pwhdata" else entry
        for entry in desired["attachments"]["attachments"]
    ]
    # It warns that another file becomes the first one.
    ran = change(warnings=1, **desired).run
    assert brief(ran) == [
        ("attachments", "del", "pwhdata/web/eth1"),
        ("attachments", "del", "pwhdata/job/eth0"),
        ("networks", "set_aside", "00-foreign.conflist"),
        ("networks", "set_aside", "10-pwhdata.conflist"),
    ]
    assert [name for name in os.listdir(CONF_DIR) if name.endswith(".conflist")] == ["10-pwhapps.conflist"]

    back = [{"file": "00-foreign.conflist", "state": "restored"}]
    ran = change(warnings=1, networks={"networks": back}).run
    assert brief(ran) == [("networks", "restore", "00-foreign.conflist")]


def test_a_network_that_exclusive_sets_aside_keeps_its_attachments_from_nothing(fail, host, desired):
    host.run("cni_host", **desired)
    desired["networks"]["networks"].pop()
    desired["networks"]["exclusive"] = True
    attached = desired["attachments"]["attachments"][:1]
    sections = {"networks": desired["networks"], "attachments": {"attachments": attached}}
    _check, run = fail({"networks": "attachments_exist"}, **sections)
    assert "web/eth1" in run["msg"] and "job/eth0" in run["msg"]
    assert run["plan"] == []


def test_strict_makes_warnings_errors_of_the_section(fail, host, desired):
    host.run("cni_host", plugins=desired["plugins"])
    # A secret that every user may read is a warning.
    wanted = network("pwhapps", 41)
    wanted["content"] = wanted["content"].replace('"isGateway": true', '"isGateway": true, "vlan": 1, "password": "s"')
    networks = {"networks": [wanted], "validate": ["syntax", "plugins", "directory"]}
    lax = host.run("cni_host", check_mode=True, networks=networks)
    assert len(lax["warnings"]) == 1
    code = lax["problems"][0]["code"]
    _check, run = fail({"networks": code}, networks={**networks, "strict": True}, netns={"names": ["pwh-web"]})
    assert brief(run) == [("netns", "create", "pwh-web")]


def test_force_of_one_section_is_not_that_of_another(fail, host, desired, absent):
    host.run("cni_host", **desired)
    fail({"plugins": "plugin_in_use"}, plugins=absent["plugins"])
    fail({"plugins": "plugin_in_use"}, plugins=absent["plugins"], attachments={"attachments": [], "force": True})
    run = host.run("cni_host", plugins={"plugins": ["tuning", "portmap"], "state": "absent", "force": True})
    assert [(step["kind"], step["class"]) for step in run["plan"]] == [("remove", "disruptive"), ("remove", "safe")]


# ---- plugins


def test_plugins_are_restored_after_what_they_were_needed_for(host, change, desired, generations):
    host.run("cni_host", plugins={**desired["plugins"], "src": str(generations["old"])})
    host.run("cni_host", **desired)
    ran = change(plugins={"state": "restored"}).run
    assert brief(ran) == [("plugins", "restore", name) for name in NAMES]
    before = (generations["old"] / "bridge").read_bytes()
    assert (BIN_DIR / "bridge").read_bytes() == before


def test_older_plugins_that_a_network_could_not_run_with_are_refused(fail, host, desired, generations):
    """The networks of the same task have the version 1.0.0, one on the host has 1.1.0, which only the newer support."""
    host.run("cni_host", **desired)
    newer = network("pwhapps", 41)
    newer["content"] = newer["content"].replace("1.0.0", "1.1.0")
    desired["networks"]["networks"][0] = newer
    host.run("cni_host", **desired)
    desired["plugins"]["src"] = str(generations["old"])
    before = (BIN_DIR / "bridge").read_bytes()
    run = host.fail("cni_host", **desired)
    assert codes(run) == {"plugins": "network_unsupported"}
    assert (BIN_DIR / "bridge").read_bytes() == before
    # Only a run can tell what a new plugin supports; it is asked before any is replaced.
    assert [step["state"] for step in run["plan"]] == ["failed"] + ["left_out"] * (len(NAMES) - 1)
    assert not run["changed"]


# ---- runtime


def test_a_host_without_a_runtime(host, desired):
    wanted = {**desired, "runtime": {"ensure_effective": "pwhapps"}}
    # Another task may install it.
    check = host.run("cni_host", check_mode=True, **wanted)
    assert [text.partition(" ")[0] for text in check["warnings"]] == ["[missing_runtime]"]
    run = host.fail("cni_host", **wanted)
    assert codes(run) == {"runtime": "missing_runtime"}
    assert {step["section"] for step in run["plan"]} == {"plugins", "networks", "netns", "attachments"}
    assert {step["state"] for step in run["plan"]} == {"done"}


def test_which_network_a_runtime_will_use_is_planned_with_the_networks_of_the_task(host, fail, desired):
    names = ["containerd-1.7", "crio"]
    wanted = {**desired, "runtime": {"runtime": names, "ensure_effective": "pwhapps"}}
    check = host.run("cni_host", check_mode=True, **wanted)
    run = host.run("cni_host", **wanted)
    again = host.run("cni_host", **wanted)
    assert [result["changed"] for result in (check, run, again)] == [True, True, False]
    for result in (check, run, again):
        assert [row["network"] for row in result["runtime"]["effective"]] == ["pwhapps", "pwhapps"]
        assert result["networks"]["effective"] == []
        assert result["runtime"]["changed"] is False
        assert result.get("warnings", []) == []
    wanted["runtime"]["ensure_effective"] = "pwhdata"
    _check, run = fail({"runtime": "not_effective"}, **wanted)
    assert run["plan"] == []
