# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import network

PODS = '{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "loopback"}]}'


@pytest.fixture
def look(conf_dir):
    """Return a function that lists what is in the directory of the networks."""
    return lambda: sorted(sh(f"find {conf_dir} -mindepth 1 -printf '%P %m %U %s %i %l\\n'").splitlines())


@pytest.fixture
def pods(conf_dir):
    """A network that another program has written."""
    path = conf_dir / "87-pods.conflist"
    path.write_text(PODS)
    path.chmod(0o600)
    return path


def test_only_the_listed_network_stays_and_the_others_come_back(host, change, conf_dir, look, pods):
    (conf_dir / "05-broken.conflist").touch()
    (conf_dir / ".hidden.json").write_text('{"hello": "world"}\n')
    (conf_dir.parent / "target").write_text('{"cniVersion": "0.4.0", "name": "linked", "type": "loopback"}\n')
    (conf_dir / "88-linked.conf").symlink_to("../target")
    (conf_dir / "calico-kubeconfig.conf").write_text("token: not-to-be-read\n")
    (conf_dir / "89-cluster.conf").write_text("apiVersion: v1\nkind: Config\ntoken: not-to-be-read\n")
    (conf_dir / "README").write_text("text\n")
    (conf_dir / "folder.conflist").mkdir()
    (conf_dir / "folder.conflist" / "10-inner.conf").write_text("{\n")
    before = look()
    gone = [".hidden.json", "05-broken.conflist", "87-pods.conflist", "88-linked.conf"]
    aside = [f"{name}.podwire-aside" for name in gone]

    ran = change([network("only")], ["create", *["set_aside"] * 4], ["created"], exclusive=True).run
    # The same files are there, under names that no runtime reads; folders and kubeconfigs have kept theirs.
    after = [line for line in look() if not line.startswith("10-only.conflist ")]
    assert sorted(line.replace(".podwire-aside", "") for line in after) == before
    assert sorted(line.split()[0] for line in after if ".podwire-aside " in line) == aside
    assert (
        sorted(os.path.basename(diff["after"]["path"]) for diff in ran["diff"] if isinstance(diff["after"], dict))
        == aside
    )
    # What holds no network is in nobody's use.
    assert {step["class"] for step in ran["actions"][1:]} == {"disruptive", "safe"}
    assert "not-to-be-read" not in json.dumps(ran)

    told = host.run("cni_info", gather=["conf"])["aside"]
    assert [entry["network"] for entry in told] == ["", "", "pods", "linked"]
    assert told[2]["path"] == f"{pods}.podwire-aside"
    assert told[2]["original_path"] == str(pods)
    assert not any(entry["managed"] for entry in told)

    wanted = [
        {"name": "pods", "state": "restored"},
        *({"file": name, "state": "restored"} for name in (".hidden.json", "88-linked.conf", "05-broken.conflist")),
        {"name": "never", "state": "restored"},
    ]
    networks = change(wanted, ["restore"] * 4, [*["restored"] * 4, "none"]).run["networks"]
    assert [line for line in look() if not line.startswith("10-only.conflist ")] == before
    assert [entry["name"] for entry in networks] == ["pods", "", "linked", "", "never"]
    assert networks[0]["path"] == str(pods)
    assert networks[4]["path"] is None
