# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The reasons of the steps of cni_conf, and what their diffs show."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.networks.difference import (
    difference_in_words,
    shown_change,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.explained import reasons
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.networks.conf_host import (
    text,
    unset,
    unwant,
    want,
)


def explained_steps(plan):
    return [(step.kind, os.path.basename(step.target), step.reason) for step in plan.steps]


def test_a_new_network_is_shown_whole(conf_host):
    plan = conf_host.run(want("a"))
    assert explained_steps(plan) == [
        ("make_directory", "net.d", "does not exist"),
        ("create", "10-a.conflist", "does not exist"),
    ]
    assert plan.diff()[1]["before"] == ""
    assert plan.diff()[1]["after"] == text("a").decode()
    plan = conf_host.run(unwant("a"))
    assert explained_steps(plan) == [("remove", "10-a.conflist", "state is absent")]
    assert plan.diff()[0]["before"] == text("a").decode()


def test_of_an_edited_network_only_the_difference_is_shown(conf_host):
    conf_host.run(want("a", mtu=1500, isGateway=True))
    conf_host.put("10-a.conflist", text("a", isGateway=True, mtu=1450))
    plan = conf_host.run(want("a", mtu=1500, isGateway=True))
    assert explained_steps(plan) == [("write", "10-a.conflist", "bridge: mtu 1450, want 1500")]
    (entry,) = plan.diff()
    assert entry["before_header"] == str(conf_host.conf_dir / "10-a.conflist")
    assert entry["after_header"] == "write: bridge: mtu 1450, want 1500"
    assert json.loads(entry["before"]) == {"plugins": [{"type": "bridge", "mtu": 1450}]}
    assert json.loads(entry["after"]) == {"plugins": [{"type": "bridge", "mtu": 1500}]}
    # A text, so that its keys stay in the order of the file.
    assert entry["after"].endswith("\n")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "it is not valid JSON"),
        (b"", "it is not valid JSON"),
        (b"\xff", "it is not valid JSON"),
        (b"[]", "its content differs"),
        (text("a", bridge="b1"), "bridge: bridge b1, want b0"),
        (text("b"), "name b, want a"),
    ],
)
def test_what_became_of_a_managed_file(conf_host, content, reason):
    conf_host.run(want("a"))
    conf_host.put("10-a.conflist", content)
    plan = conf_host.run(want("a"))
    assert plan.steps[0].kind == "write"
    assert reasons(plan) == [reason]
    assert plan.diff()[0]["before"] != plan.diff()[0]["after"]


def test_a_link_in_place_of_a_managed_file(conf_host, tmp_path):
    conf_host.run(want("a"))
    path = conf_host.conf_dir / "10-a.conflist"
    path.rename(tmp_path / "away")
    path.symlink_to(tmp_path / "away")
    assert explained_steps(conf_host.run(want("a"))) == [("write", "10-a.conflist", "it is a symbolic link")]
    assert not path.is_symlink() and (tmp_path / "away").exists()


def test_what_cannot_be_read_is_said(conf_host):
    assert difference_in_words(None, text("a")) == "it cannot be read"
    assert shown_change(None, b"{}") == ("", "{}\n")


def test_names_modes_and_owners(conf_host):
    conf_host.run(want("a"))
    assert explained_steps(conf_host.run(want("a", priority=20))) == [
        ("rename", "10-a.conflist", "want the name 20-a.conflist")
    ]
    plan = conf_host.run(want("a", priority=20), mode=0o600)
    assert explained_steps(plan) == [("set_attributes", "20-a.conflist", "mode 0644, want 0600")]
    assert (plan.diff()[0]["before"], plan.diff()[0]["after"]) == ({"mode": "0644"}, {"mode": "0600"})


def test_what_is_adopted_and_what_is_set_aside(conf_host):
    conf_host.put("10-a.conflist", text("a"))
    conf_host.put("50-b.conflist", text("b"))
    plan = conf_host.run(want("a", file="10-a.conflist"), exclusive=True)
    assert explained_steps(plan) == [
        ("adopt", "10-a.conflist", "is not managed yet"),
        ("set_aside", "50-b.conflist", "is not one of the requested files"),
    ]
    plan = conf_host.run(unset("b"))
    assert explained_steps(plan) == [("restore", "50-b.conflist", "the previous file is wanted")]
    plan = conf_host.run(unwant("b"), force=True)
    assert explained_steps(plan) == [("set_aside", "50-b.conflist", "state is absent")]


def test_secrets_are_in_neither(conf_host):
    conf_host.run(want("a", etcd_key="hunter2222", mtu=1))
    conf_host.put("10-a.conflist", text("a", etcd_key="hunter3333", mtu=2))
    plan = conf_host.plan(want("a", etcd_key="hunter2222", mtu=1))
    assert reasons(plan) == ["bridge: mtu 2, want 1"]
    conf_host.put("10-a.conflist", text("a", etcd_key="hunter3333", mtu=1))
    hidden = conf_host.plan(want("a", etcd_key="hunter2222", mtu=1))
    assert reasons(hidden) == ["a secret differs"]
    assert (hidden.diff()[0]["before"], hidden.diff()[0]["after"]) == ("", "")
    assert "hunter" not in json.dumps([plan.diff(), hidden.diff(), plan.actions(), hidden.actions()])
