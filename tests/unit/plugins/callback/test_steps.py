# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.callback import steps as module

WRITE = {"kind": "write", "target": "/etc/a", "class": "disruptive", "reason": "mtu 1500, want 1400"}
INSTALL = {"kind": "install", "target": "/opt/cni/bin/bridge", "class": "safe", "reason": "not installed"}
DIFF = {
    "before_header": "/etc/a",
    "after_header": "write: mtu 1500, want 1400",
    "before": "x\nmtu 1500\n",
    "after": "x\nmtu 1400\n",
}


@pytest.fixture
def show(monkeypatch):
    """Return a function that shows the result of a task by a method of the plugin, and returns the lines."""
    plugin = module.CallbackModule()
    lines = []
    plugin._display = SimpleNamespace(display=lambda text, color=None: lines.extend(text.split("\n")))
    monkeypatch.setattr(plugin, "get_option", {"width": 60}.get)

    def call(result, method="ok", action="podwire.cni.cni_host"):
        lines.clear()
        task = SimpleNamespace(name="Bring the host", action=action)
        host = SimpleNamespace(get_name=lambda: "web1")
        getattr(plugin, f"v2_runner_on_{method}")(SimpleNamespace(result=result, task=task, host=host))
        return lines

    return call


def test_steps_have_a_line_and_a_reason_where_something_is_changed(show):
    assert show({"plan": [INSTALL, WRITE], "diff": [DIFF]}) == [
        "Bring the host (web1)",
        "  + install        /opt/cni/bin/bridge",
        "  ~ write          /etc/a  (disruptive)",
        "                   mtu 1500, want 1400",
        "       x",
        "      -mtu 1500",
        "      +mtu 1400",
    ]


def test_what_changes_nothing_is_not_shown(show):
    assert show({"plan": []}) == show({"changed": True, "rc": 0}, action="ansible.builtin.command") == []


def test_items_warnings_and_messages(show):
    assert show({"results": [{"steps": [INSTALL], "warnings": ["[x] y"]}]})[1:] == [
        "  + install        /opt/cni/bin/bridge",
        "  ! [x] y",
    ]
    assert show({"msg": ["a", "b"]}, action="ansible.builtin.debug") == ["a", "b"]


def test_failures(show):
    assert show({"msg": "no"}, "failed") == ["Bring the host (web1)", "  failed: no"]
    assert show({"msg": "all", "results": [{"failed": True, "msg": "one"}]}, "failed")[1:] == ["  failed: one"]
    assert show({"msg": "no route " * 8}, "unreachable")[1:] == [
        "  unreachable: no route no route no route no route no route",
        "    no route no route no route",
    ]


@pytest.mark.parametrize("junk", [None, 5, "x", [1], {"a": 1}])
def test_results_of_others_may_have_any_shape(show, junk):
    for key in ("plan", "steps", "actions", "diff", "results"):
        show({key: junk if key != "results" else [junk], "warnings": []}, action="somebody.else.module")
