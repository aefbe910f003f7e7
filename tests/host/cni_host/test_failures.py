# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A section that fails stops what depends on it, and nothing else."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.cni_host.conftest import (
    BIN_DIR,
    BREAKS,
    CONF_DIR,
    NAMES,
    brief,
    codes,
    look,
    network,
)
from ansible_collections.podwire.cni.tests.host.host import delete_netns, sh

pytestmark = pytest.mark.parametrize("generation", ["new"], indirect=True)
MANIFEST = Path("/var/lib/podwire/state/manifest.json")
NETNS = [("netns", "create", name) for name in ("pwh-web", "pwh-db", "pwh-job")]


def actions(result):
    return [row["action"] for row in result["attachments"]["attachments"]]


@pytest.mark.parametrize("broken", ["archive", "checksum", "missing"])
def test_plugins_that_cannot_be_fetched_stop_only_what_needs_them(fail, host, work, desired, broken):
    archive = work / "plugins.tgz"
    archive.write_text("no archive")
    desired["plugins"].update({"src": str(archive)})
    code = {"archive": "bad_source", "checksum": "checksum_mismatch", "missing": "bad_source"}[broken]
    if broken == "checksum":
        desired["plugins"]["checksum"] = "sha256:" + 64 * "0"
    if broken == "missing":
        archive.unlink()
    # One cause, and one error: that plugins are missing follows from it.
    codes = {"plugins": code, "networks": code}
    # A file that is missing may be one that an earlier task makes.
    tolerated = ["networks"] + ["plugins"] * (broken == "missing")
    check, run = fail(codes, planned=False, tolerated=tolerated, **desired)
    assert [row["level"] for row in check["findings"] if row["code"] == "bad_source"] == ["error"] * (
        len(tolerated) - 1
    )
    assert brief(run) == NETNS
    for result in [check, run][broken == "missing" :]:
        assert "missing_plugin" not in json.dumps([result["findings"], result["problems"], result["msg"]])
    assert run["msg"].startswith("plugins, networks: ")
    # The networks tell why: their error is not repeated for each attachment.
    assert actions(run) == ["left"] * 4
    assert not BIN_DIR.exists() and not CONF_DIR.exists()


def test_plugins_that_cannot_be_fetched_do_not_stop_a_host_that_has_them(fail, host, work, desired):
    host.run("cni_host", **desired)
    sh("ip -n pwh-web link delete eth0; ip netns add pwh-more")
    desired["plugins"]["src"] = str(work / "none.tgz")
    desired["networks"]["networks"].append(network("pwhmore", 44))
    desired["attachments"]["attachments"].append({"network": "pwhmore", "container_id": "more", "netns": "pwh-more"})
    _check, run = fail({"plugins": "bad_source"}, tolerated=["plugins"], **desired)
    assert brief(run) == [
        ("networks", "create", "10-pwhmore.conflist"),
        ("attachments", "repair", "pwhapps/web/eth0"),
        ("attachments", "add", "pwhmore/more/eth0"),
    ]
    assert run["changed"] and run["msg"].startswith("plugins: ")


def test_one_bad_network_stops_its_attachments_only(fail, host, desired):
    host.run("cni_host", **desired)
    sh("ip -n pwh-web link delete eth0; ip -n pwh-web link delete eth1; echo {} >/etc/cni/net.d/10-pwhbad.conflist")
    apps, bad = desired["networks"]["networks"][0], network("pwhbad", 45)
    apps["content"] = apps["content"].replace('"isGateway": true', '"isGateway": true, "mtu": 1400')
    desired["networks"]["networks"].append(bad)
    desired["netns"]["names"].append("pwh-new")
    desired["attachments"]["attachments"] += [
        {"network": "pwhdata", "container_id": "new", "netns": "pwh-new"},
        {"network": "pwhbad", "container_id": "new", "netns": "pwh-new", "ifname": "eth1"},
    ]
    before = (CONF_DIR / "10-pwhapps.conflist").read_text()
    _check, run = fail({"networks": "foreign_file"}, **desired)
    # The repair of web waits for the new pwhapps: neither its DEL nor its ADD runs. What is on pwhdata goes on.
    assert brief(run) == [
        ("netns", "create", "pwh-new"),
        ("attachments", "repair", "pwhdata/web/eth1"),
        ("attachments", "add", "pwhdata/new/eth0"),
    ]
    assert actions(run) == ["left", "repaired", "none", "none", "added", "left"]
    assert [(step["kind"], step["target"]) for step in run["left"]] == [("repair", "pwhapps/web/eth0")]
    assert (CONF_DIR / "10-pwhapps.conflist").read_text() == before


def test_an_unwritable_directory_of_networks(host, desired):
    """The error appears when the plan is applied: what depends on the networks is planned again."""
    CONF_DIR.mkdir(parents=True)
    sh(f"mount -t tmpfs -o mode=0755,ro podwire-test {CONF_DIR}")
    try:
        run = host.fail("cni_host", **desired)
        assert codes(run) == {"networks": "write_failed"}
        states = {(step["section"], step["state"]) for step in run["plan"]}
        assert states == {("plugins", "done"), ("networks", "failed"), ("networks", "left_out"), ("netns", "done")}
        assert actions(run) == ["left"] * 4
        assert run["changed"]
    finally:
        sh(f"umount {CONF_DIR}")
    host.run("cni_host", **desired)
    assert not host.run("cni_host", check_mode=True, **desired)["changed"]


def test_a_namespace_that_cannot_be_made_stops_its_containers_only(fail, desired):
    Path("/run/netns/pwh-web").mkdir()
    _check, run = fail({"netns": "not_a_namespace"}, **desired)
    # Its section is refused whole: none of its namespaces is made.
    assert {step["section"] for step in run["plan"]} == {"plugins", "networks"}
    assert actions(run) == ["left"] * 4
    assert run["msg"].count("pwh-web") == 1
    os.rmdir("/run/netns/pwh-web")


def test_one_attachment_that_fails_leaves_the_others(fail, host, desired):
    host.run("cni_host", **{name: desired[name] for name in ("plugins", "networks", "netns")})
    sh("ip -n pwh-db link add eth0 type bridge")
    _check, run = fail({"attachments": "ifname_in_use"}, **desired)
    assert actions(run) == ["added", "added", "failed", "added"]
    assert run["attachments"]["attachments"][2]["error"]["code"] == "ifname_in_use"
    assert run["changed"] and run["code"] == "ifname_in_use"


def test_a_damaged_manifest_is_one_problem(fail, host, desired):
    host.run("cni_host", **desired)
    sound = MANIFEST.read_text()
    MANIFEST.write_text("{")
    sh("ip -n pwh-web link delete eth0; rm /opt/cni/bin/tuning")
    delete_netns("pwh-db")
    _check, run = fail({"plugins": "manifest_damaged", "networks": "manifest_damaged"}, **desired)
    assert run["msg"].startswith("plugins, networks: ") and run["msg"].count("manifest.json") == 1
    assert brief(run) == [
        ("netns", "create", "pwh-db"),
        ("attachments", "repair", "pwhapps/web/eth0"),
        ("attachments", "repair", "pwhapps/db/eth0"),
    ]
    MANIFEST.write_text(sound)
    host.run("cni_host", **desired)
    assert not host.run("cni_host", **desired)["changed"]


# ---- removals


REFUSE_DEL = """\
if [ "$CNI_COMMAND" = VERSION ]; then echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}'; exit 0; fi
echo '{"cniVersion": "1.0.0", "code": 100, "msg": "the port is in use"}'
exit 1
"""


def test_what_a_container_that_is_not_detached_needs_stays(host, work, monkeypatch, desired, absent):
    host.run("cni_host", **desired)
    (work / "portmap").symlink_to("/bin/bash")
    (work / "portmap.bash").write_text(REFUSE_DEL)
    monkeypatch.setenv("BASH_ENV", str(work / "portmap.bash"))
    run = host.fail(
        "cni_host",
        bin_dirs=[str(work), str(BIN_DIR)],
        **{**absent, "plugins": {**absent["plugins"], "bin_dir": str(BIN_DIR)}},
    )
    late = ("netns", "networks", "plugins")
    assert codes(run) == {"attachments": "del_failed", **dict.fromkeys(late, "attachments_exist")}
    assert [step["state"] for step in run["plan"]] == ["failed"] * 4 + ["left_out"] * (3 + 2 + len(NAMES))
    assert not run["changed"]
    text = "netns, networks, plugins: nothing is removed here, because pwhdata/web/eth1, "
    assert run["msg"].count(text) == 1
    assert sorted(os.listdir("/run/netns")) == ["pwh-db", "pwh-job", "pwh-web"]
    assert sorted(os.listdir(CONF_DIR)) == ["10-pwhapps.conflist", "10-pwhdata.conflist"]
    assert sorted(os.listdir(BIN_DIR)) == sorted(NAMES)

    host.run("cni_host", **absent)
    assert os.listdir("/run/netns") == os.listdir(CONF_DIR) == os.listdir(BIN_DIR) == []


def test_plugins_in_use_stay_unless_the_task_removes_their_users(fail, change, host, desired, absent):
    host.run("cni_host", **{name: desired[name] for name in ("plugins", "networks")})
    _check, run = fail({"plugins": "plugin_in_use"}, plugins=absent["plugins"], netns={"names": ["pwh-web"]})
    assert "pwhapps" in run["msg"]
    assert brief(run) == [("netns", "create", "pwh-web")]
    ran = change(plugins=absent["plugins"], networks=absent["networks"]).run
    assert {(step["section"], step["kind"]) for step in ran["plan"]} == {("networks", "remove"), ("plugins", "remove")}
    assert ran["plan"][0]["section"] == "networks"


def test_an_attachment_outside_of_the_request_keeps_its_network_and_its_plugins(fail, host, desired, absent):
    host.run("cni_host", **desired)
    del absent["attachments"]["attachments"][-1]
    del absent["netns"]["names"][-1]
    _check, run = fail({"networks": "attachments_exist", "plugins": "plugin_in_use"}, planned=False, **absent)
    assert "job/eth0" in run["networks"]["error"]["message"]
    assert actions(run) == ["deleted"] * 3
    assert sorted(os.listdir(CONF_DIR)) == ["10-pwhapps.conflist", "10-pwhdata.conflist"]
    assert sorted(os.listdir(BIN_DIR)) == sorted(NAMES)


# ---- the whole task


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ({"network": "pwhapps", "container_id": "web", "netns": "pwh-web"}, "duplicate_attachment"),
        ({"network": "pwhdata", "container_id": "../web", "netns": "pwh-web"}, "bad_id"),
    ],
)
def test_a_bad_entry_hides_no_drift_and_changes_nothing(host, desired, bad, code):
    desired["netns"]["names"].append("pwh-idle")
    host.run("cni_host", **desired)
    sh(BREAKS)
    sound = host.run("cni_host", check_mode=True, **desired)
    desired["attachments"]["attachments"].append(bad)
    before = look()
    check = host.fail("cni_host", check_mode=True, **desired)
    assert brief(check) == brief(sound) and len(brief(check)) == 8
    assert codes(check) == {"attachments": code} and check["code"] == code
    run = host.fail("cni_host", **desired)
    assert (run["code"], run.get("changed", False)) == (code, False)
    assert look() == before
    assert "attachments[4]" in run["msg"] and run["msg"] in check["msg"]


def test_another_module_that_holds_the_lock_is_waited_for(host, desired):
    sh("mkdir -p -m 0700 /run/podwire-cni")
    with open("/run/podwire-cni/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = look()
        refused = host.fail("cni_host", lock_timeout=0.1, **desired)
        assert refused["code"] == "lock_timeout"
        assert look() == before
        host.run("cni_host", check_mode=True, lock_timeout=0.1, **desired)
    host.run("cni_host", **desired)
    assert not host.run("cni_host", lock_timeout=0, **desired)["changed"]


@pytest.mark.parametrize(
    ("path", "expected", "done"),
    [
        ("/opt/cni/bin", {"plugins", "networks"}, {"netns"}),
        ("/var/lib/podwire/cni", {"attachments"}, {"plugins", "networks", "netns"}),
    ],
)
def test_a_directory_that_others_can_write_stops_its_section(host, desired, path, expected, done):
    sh(f"mkdir -p {path}; chmod 0777 {path}")
    run = host.fail("cni_host", **desired)
    assert set(codes(run)) == expected, run["msg"]
    assert "unsafe_permissions" in codes(run).values()
    assert {step["section"] for step in run["plan"] if step["state"] == "done"} == done
    assert not list(Path("/var/lib/podwire/cni").rglob("*web*"))
