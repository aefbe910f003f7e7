# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.action import cni_plugins
from ansible_collections.podwire.cni.plugins.plugin_utils import module_action


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run the action plugin with options; the host answers with ``run.answer``."""
    monkeypatch.setattr(module_action.ActionBase, "run", lambda self, tmp, task_vars: {})
    plugin = cni_plugins.ActionModule.__new__(cni_plugins.ActionModule)
    plugin._find = lambda path: path

    def execute(**keywords):
        call.calls.append(keywords)
        return dict(call.answer, invocation={"module_args": dict(keywords["module_args"])})

    def call(**options):
        plugin._task = SimpleNamespace(args=options, async_val=0, check_mode=False)
        return plugin.run(None, {})

    plugin._execute_module = execute
    call.calls, call.answer = [], {"changed": False}
    return call


@pytest.mark.parametrize("option", ["_source", "sorce", "versoin"])
def test_an_unknown_option_does_not_show_the_internal_ones(run, option):
    result = run(**{option: {}})
    assert (result["failed"], result["code"]) == (True, "bad_option")
    assert result["msg"].startswith(f"Unsupported parameters for (podwire.cni.cni_plugins) module: {option}")
    assert result["msg"].count("_source") == (option == "_source")
    assert run.calls == []


def test_the_internal_option_is_not_in_the_result(run):
    result = run(version="1.9.1", remote_src=True)
    assert "_source" in run.calls[0]["module_args"]
    assert result["invocation"]["module_args"] == {"version": "1.9.1", "remote_src": True}


def test_upgrade_to_a_release_with_another_src_in_group_vars_is_explained(run, tmp_path):
    result = run(src=str(tmp_path), version="1.9.1")
    assert result["code"] == "bad_checksum"
    assert "to install the release 1.9.1, set 'src' (for the roles: cni_plugins_src) to ''" in result["msg"]
    run.answer = {"failed": True, "code": "checksum_mismatch", "msg": "it has another"}
    for where in ({"src": "/srv/old.tgz"}, {"src": "/srv/old.tgz", "remote_src": True}):
        assert "it has another. 'src' is installed" in run(version="1.9.1", **where)["msg"]
    result = run(version="1.9.1", checksum="sha256:" + 64 * "0", remote_src=True)
    assert "set 'checksum' (for the roles: cni_plugins_checksum) to ''" in result["msg"]
    assert run(src="/srv/old.tgz", checksum="sha256:" + 64 * "0", remote_src=True)["msg"] == "it has another"
