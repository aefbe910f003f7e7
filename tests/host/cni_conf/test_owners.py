# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Files of daemons that would write them again."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.host.networks import network

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


def test_a_network_that_cilium_has_renamed_stays_away_as_long_as_cilium_runs(host, change, conf_dir, daemon):
    host.run("cni_conf", networks=[network("only", priority=20)])
    path = conf_dir / "20-only.conflist"
    renamed = path.rename(conf_dir / "20-only.conflist.cilium_bak")
    with daemon("cilium-agent") as pid:
        modes = (True, False, False, True)
        results = [host.run("cni_conf", networks=ONLY, check_mode=check, diff=True) for check in modes]
        for result in results:
            assert not result["changed"]
            left = {"kind": "leave", "target": str(path), "class": "foreign", "reason": "Cilium has renamed it"}
            assert result["actions"] == [left]
            assert [entry["action"] for entry in result["networks"]] == ["foreign"]
            assert {entry["level"] for entry in result["problems"]} == {"warning"}
        (found,) = results[0]["problems"]
        assert found["code"] == "foreign_owner"
        assert f"cilium-agent, process {pid}" in found["message"]
        assert "cni.exclusive=false" in found["message"]
        assert list(conf_dir.iterdir()) == [renamed]
    change(ONLY, ["create"], ["created"])
