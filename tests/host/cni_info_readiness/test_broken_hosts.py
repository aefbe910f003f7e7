# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Each host has one fault, and beside it something that looks like one: exactly the fault is an error."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.cni_info_readiness import broken
from ansible_collections.podwire.cni.tests.host.host import sh, wait_until

# Beginning with the second one: the first would be the network of a host that has no other. containerd 2.1, which is
# forky's, does not ignore the last.
CASES = [
    (fault, broken.HERRINGS[number % (len(broken.HERRINGS) - bool(newer))], generation, newer)
    for number, fault in enumerate(broken.FAULTS, 1)
    for generation in (("old", "new") if fault in broken.REPORTED else ("old",))
    for newer in ((None, "forky") if fault in broken.REPORTED else (None,))
]
# This one does not write to the directory, which would make containerd look.
CASES[-1] = (broken.WRITTEN_FROM_ELSEWHERE, broken.UNUSED_PLUGIN, "old", None)
NAMES = [f"{fault.name}-{generation}-{newer or 'bookworm'}" for fault, _herring, generation, newer in CASES]


def same(node, codes):
    """Return the readiness once containerd has noticed the change."""

    def settled():
        found = node.explain()
        print(json.dumps([found.row, found.obstacles], indent=1))
        return found if [obstacle["code"] for obstacle in found.errors] == codes else None

    return wait_until(settled)


def test_a_sound_host_is_ready(node):
    found = same(node, [])
    assert found.row["ready"] is True
    assert found.row["reported"] == {"ready": True, "message": "", "networks": ["pods"]}
    assert found.row["status"][0]["state"] == "unknown"


@pytest.mark.parametrize("herring", broken.HERRINGS, ids=str)
def test_a_red_herring_alone_is_no_fault(node, herring):
    herring.make(node)
    assert same(node, []).row["ready"] is True


@pytest.mark.parametrize(
    ("fault", "herring", "generation", "newer"), CASES, ids=NAMES, indirect=["generation", "newer"]
)
@pytest.mark.usefixtures("generation")
def test_the_fault_is_named_and_nothing_else(node, fault, herring):
    fault.make(node)
    herring.make(node)
    found = same(node, [fault.code])
    assert found.row["ready"] is False
    [error] = found.errors
    assert error == found.obstacles[0]
    for key in ("message", "evidence", "remedy"):
        assert error[key], key
        assert "herring" not in error[key]
    said = f"{error['message']} {error['evidence']}"
    assert [word for word in fault.words if word not in said] == [], said


# What is done to an installed plugin, and the code of the error.
OVERWRITTEN = {
    "a script that fails": ("printf '#!/bin/sh\\nexit 1\\n' > {path}", "plugin_failed"),
    "a text": ("echo nothing of use > {path}; truncate -s 4096 {path}", "not_a_program"),
    "cut": ("truncate -s 8192 {path}", "plugin_failed"),
    "not executable": ("chmod 0644 {path}", "not_executable"),
    "another plugin": ("cp {other} {path}", ""),
}


@pytest.mark.parametrize("name", ["bridge", "host-local"])
@pytest.mark.parametrize("how", OVERWRITTEN)
def test_a_plugin_that_is_not_what_was_installed_is_the_first_cause(node, name, how):
    (script, code), path = OVERWRITTEN[how], broken.BIN_DIR / name
    other = node.old / ("bridge" if name == "host-local" else "host-local")
    sh(f"rm {broken.BIN_DIR}/bridge {broken.BIN_DIR}/host-local")
    node.host.run("cni_plugins", src=str(node.old), remote_src=True, plugins=["bridge", "host-local"])
    sh(script.format(path=path, other=other))
    found = node.explain()
    assert found.row["ready"] is False, found
    [first] = found.errors
    assert first == found.obstacles[0]
    assert first["code"] == code or not code
    assert str(path) in (first["remedy"] if not code else first["message"])
    assert "install" in first["remedy"] or code == "not_executable"


@pytest.mark.parametrize("generation", ["old", "new"], indirect=True)
@pytest.mark.usefixtures("generation")
def test_without_iptables_only_containers_with_ports_fail(node):
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}, "backend": "iptables"}
    broken.write("10-pods.conflist", broken.bridge(), portmap)
    # Its tables are gone with it.
    sh(f"nft flush ruleset; {broken.NO_IPTABLES}")
    found = same(node, [])
    assert found.row["ready"] is True
    (row,) = [row for row in found.obstacles if row["code"] == "missing_tool"]
    assert row["level"] == "warning" and "portmap needs iptables, which is not in PATH, to publish" in row["message"]


def test_a_plugin_that_talks_to_a_daemon_is_not_known_to_be_ready(node):
    shutil.copy(node.fake, broken.BIN_DIR / "cilium-cni")
    broken.write("10-pods.conflist", {"type": "cilium-cni"})
    found = same(node, [])
    assert found.row["ready"] is None
    assert "what the plugin cilium-cni talks to cannot be copied" in found.row["unknown"]
    [obstacle] = [one for one in found.obstacles if one["code"] == "not_tried"]
    assert (obstacle["level"], obstacle["network"]) == ("info", "pods")


@pytest.mark.parametrize(("name", "generation"), [("pwother", "old"), ("pwother-with-more-than-15-bytes", "new")])
@pytest.mark.usefixtures("generation")
def test_a_master_can_have_another_name(node, name):
    sh(f"ip link add pwup up type veth peer pwp; ip link property add dev pwup altname {name}; ip link set pwp up")
    broken.write("10-pods.conflist", {**broken.bridge(), "type": "macvlan", "master": name})
    assert same(node, []).row["ready"] is True


def test_a_directory_that_is_a_link_is_read_as_the_runtime_reads_it(node):
    # containerd watches the directory that a link leads to, from its start on.
    sh(f"mv {broken.CONF_DIR} /run/home/net.d; ln -s /run/home/net.d {broken.CONF_DIR}")
    try:
        node.runtimes("stop")
        node.runtimes("start")
        assert same(node, []).row["ready"] is True
    finally:
        sh(f"rm {broken.CONF_DIR}; mv /run/home/net.d {broken.CONF_DIR}")
        node.runtimes("stop")
        node.runtimes("start")


def test_a_containerd_that_does_not_run(node):
    node.runtimes("stop")
    try:
        found = node.explain()
        assert [one["code"] for one in found.errors] == ["not_running"]
        assert (found.row["ready"], found.row["reported"]) == (False, None)
    finally:
        node.runtimes("start")


def test_a_containerd_that_hangs_is_not_known_to_be_ready(node):
    pid = int(sh("pgrep -xo containerd"))
    sh(f"kill -STOP {pid}")
    try:
        found = node.explain()
        assert (found.row["ready"], found.errors) == (None, [])
        assert "no complete answer within 5 s" in found.row["unknown"]
        assert [one["code"] for one in found.obstacles] == ["not_answered"]
        conflist = {"cniVersion": "1.0.0", "plugins": [{"type": "loopback"}]}
        conf = node.host.run("cni_conf", networks=[{"name": "more", "conflist": conflist}])
        assert conf["confirmed"] is None
        assert any("no complete answer within 5 s" in text for text in conf["warnings"])
    finally:
        sh(f"kill -{signal.SIGCONT.value} {pid}")


@pytest.mark.parametrize(
    ("plugin", "state", "code"), [("unready", "not_ready", 50), ("hangs", "unknown", None), ("fine", "ready", None)]
)
def test_status_is_what_the_plugin_says(node, plugin, state, code):
    # containerd 1.6 never asks for STATUS; podman's rows show the same.
    shutil.copy(node.fake, broken.BIN_DIR / plugin)
    broken.write("20-more.conflist", {"type": plugin}, network="more", version="1.1.0")
    [podman] = [one for one in node.readiness()["runtimes"] if one["runtime"] == "podman"]
    [row] = [one for one in podman["status"] if one["network"] == "more"]
    assert (row["state"], row["code"]) == (state, code)
    if plugin != "fine":
        assert plugin in row["message"]


def test_confirmed_is_the_same_truth(node):
    (broken.CONF_DIR / "10-pods.conflist").unlink()
    wanted = {"networks": [{"name": "pods", "conflist": {"cniVersion": "1.0.0", "plugins": [broken.bridge()]}}]}
    assert node.host.run("cni_conf", **wanted)["confirmed"] is True
    assert node.host.run("cni_conf", **wanted)["confirmed"] is True
    Path(broken.BIN_DIR / "loopback").unlink()
    again = node.host.run("cni_conf", **wanted)
    assert again["confirmed"] is False
    assert any("loopback" in text for text in again["warnings"])
    assert node.host.run("cni_host", networks=wanted)["networks"]["confirmed"] is False
    refused = node.host.fail("cni_conf", ensure_effective="pods", **wanted)
    assert refused["code"] == "missing_plugin"
    smoke = node.host.fail("cni_smoke")
    assert smoke["code"] == "smoke_failed"
    assert [row["status"] for row in smoke["networks"]] == ["passed"]
    assert "containerd-1.6 cannot start containers on pods: there is no plugin 'loopback'" in smoke["msg"]
    sh("ip link delete pwd0 2>/dev/null || true")


def test_a_declared_network_that_no_runtime_uses_is_tried_as_well(node):
    missing = {"type": "tuning", "sysctl": {"net.ipv4.conf.IFNAME.nothing": "1"}}
    conflist = {"cniVersion": "1.0.0", "plugins": [broken.bridge(), missing]}
    broken.UNUSED_NETWORK.make(node)
    written = node.host.run("cni_conf", networks=[{"name": "spoilt", "conflist": conflist}])
    assert written["confirmed"] is True
    assert [text for text in written["warnings"] if "ADD of the network 'spoilt' fails in a copy of this host" in text]
    # podman can use every network. containerd uses the first, which is pods.
    sh("mount --bind /dev/null /usr/bin/podman")
    try:
        found = node.readiness()
    finally:
        sh("umount /usr/bin/podman")
    assert found["ready"] is True
    failing = [row for row in found["obstacles"] if row["code"] == "add_fails"]
    assert [(row["network"], row["runtime"], row["level"]) for row in failing] == [("spoilt", "", "warning")]


def test_a_plugin_that_was_overwritten_is_the_cause_in_a_network_that_no_runtime_uses_as_well(node):
    sh(f"rm {broken.BIN_DIR}/tuning")
    node.host.run("cni_plugins", src=str(node.old), remote_src=True, plugins=["tuning"])
    conflist = {"cniVersion": "1.0.0", "plugins": [broken.bridge(), {"type": "tuning"}]}
    node.host.run("cni_conf", networks=[{"name": "spoilt", "conflist": conflist}])
    shutil.copy("/bin/true", broken.BIN_DIR / "tuning")
    obstacles = node.readiness()["obstacles"]
    remedies = [row["remedy"] for row in obstacles if (row["code"], row["network"]) == ("add_fails", "spoilt")]
    assert remedies
    assert all(f"install {broken.BIN_DIR}/tuning again" in remedy for remedy in remedies), obstacles


def test_loopback_is_in_use(node):
    refused = node.host.fail("cni_plugins", plugins=["loopback"], state="absent", force=False)
    assert refused["code"] in ("plugin_in_use", "foreign_file")
