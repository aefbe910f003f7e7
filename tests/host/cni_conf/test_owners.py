# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Files of daemons that would write them again."""

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.podwire.cni.tests.host.cni_conf.networks import conflist, network

ONLY = [network("only")]


@pytest.fixture
def calico(conf_dir):
    path = conf_dir / "10-calico.conflist"
    path.write_text('{"cniVersion": "0.3.1", "name": "pods", "plugins": [{"type": "calico"}]}')
    path.chmod(0o600)
    return path


def owner(path, pid):
    """Return the words of a message about Calico's file."""
    return [str(path), "Calico", "calico-node", f"process {pid}", "operator's Installation"]


@pytest.mark.parametrize(
    ("entry", "options", "words"),
    [
        (network("only", priority=20), {"exclusive": True, "force": True}, ["set aside"]),
        ({"name": "pods", "state": "absent"}, {"force": True}, []),
    ],
    ids=["set aside", "removed"],
)
def test_the_file_of_a_daemon_that_runs_is_not_touched(refuse, calico, daemon, entry, options, words):
    with daemon("calico-node") as pid:
        refuse("foreign_owner", [*owner(calico, pid), *words], [entry], **options)


def test_the_file_of_a_daemon_that_runs_is_not_adopted(host, files, calico, daemon):
    with daemon("calico-node") as pid:
        before = files()
        # In a run, the plugin that is not there is an error, too.
        for check in (False, True):
            networks = [network("pods", file="10-calico.conflist")]
            refused = host.fail("cni_conf", check_mode=check, networks=networks)
            assert not refused.get("changed")
            assert refused["code"] == "foreign_owner"
            assert "foreign_owner" in [entry["code"] for entry in refused["problems"] if entry["level"] == "error"]
            assert [word for word in [*owner(calico, pid), "adopted"] if word not in refused["msg"]] == []
        assert files() == before


def test_a_network_is_written_beside_that_of_a_daemon_and_its_file_is_set_aside_after_it(
    host, change, calico, conf_dir, daemon
):
    with daemon("calico-node"):
        change([network("only", priority=20)], ["create"], ["created"])
    change(ONLY, ["set_aside"], ["none"], exclusive=True)
    (conf_dir / "10-calico.conflist.podwire-aside").rename(calico)
    # The owner is told without the daemon, too.
    assert [entry["owner"] for entry in host.run("cni_info", gather=["conf"])["conf"]] == ["Calico", ""]


def test_a_network_that_cilium_has_renamed_stays_away_as_long_as_cilium_runs(host, change, conf_dir, daemon):
    host.run("cni_conf", networks=[network("only", priority=20)])
    path = conf_dir / "20-only.conflist"
    renamed = path.rename(conf_dir / "20-only.conflist.cilium_bak")
    with daemon("cilium-agent") as pid:
        results = [
            host.run("cni_conf", networks=ONLY, check_mode=check, diff=True) for check in (True, False, False, True)
        ]
        for result in results:
            assert not result["changed"]
            assert result["actions"] == [
                {"kind": "leave", "target": str(path), "class": "foreign", "reason": "Cilium has renamed it"}
            ]
            assert [entry["action"] for entry in result["networks"]] == ["foreign"]
            assert {entry["level"] for entry in result["problems"]} == {"warning"}
        (found,) = results[0]["problems"]
        assert found["code"] == "foreign_owner"
        assert f"cilium-agent, process {pid}" in found["message"]
        assert "cni.exclusive=false" in found["message"]
        assert list(conf_dir.iterdir()) == [renamed]
    change(ONLY, ["create"], ["created"])


BRIDGE = {"type": "bridge", "bridge": "mesh0"}
ISTIO = {"type": "istio-cni", "log_level": "info"}


def test_a_plugin_that_istio_has_added_stays_as_long_as_istio_runs(host, change, conf_dir, daemon):
    path = conf_dir / "10-mesh.conflist"
    host.run("cni_conf", networks=[network("mesh", BRIDGE)])
    path.write_text(json.dumps({"name": "mesh", **conflist(BRIDGE, ISTIO)}, indent=2) + "\n")
    reason = "a running program has added istio-cni"
    leave = {"kind": "leave", "target": str(path), "class": "foreign", "reason": reason}
    larger = {**BRIDGE, "mtu": 1400}

    def ask(plugin):
        options = {"validate": ["syntax", "schema", "directory"], "networks": [network("mesh", plugin)]}
        return [host.run("cni_conf", check_mode=check, diff=True, **options) for check in (True, False, False, True)]

    with daemon("install-cni") as pid:
        results = ask(BRIDGE)
        assert [result["changed"] for result in results] == [False] * 4
        assert [result["actions"] for result in results] == [[leave]] * 4
        assert "istio-cni" in results[0]["diff"][0]["before"]
        assert "istio-cni" not in results[0]["diff"][0]["after"]
        (found,) = results[1]["problems"]
        assert found["code"] == "foreign_owner"
        assert re.search(f"Istio.*process {pid}.*chained. false", found["message"])
        assert "istio-cni" in path.read_text()

        results = ask(larger)
        assert [result["changed"] for result in results] == [True, True, False, False]
        assert results[0]["actions"] == results[1]["actions"]
        assert [step["kind"] for step in results[1]["actions"]] == ["leave", "write"]
        assert json.loads(path.read_text())["plugins"] == [larger, ISTIO]
    change([network("mesh", larger)], ["write"], ["updated"])
    assert json.loads(path.read_text())["plugins"] == [larger]
