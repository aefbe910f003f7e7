# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from types import SimpleNamespace

import pytest
import yaml

from ansible_collections.podwire.cni.plugins.action import cni_conf
from ansible_collections.podwire.cni.plugins.doc_fragments import _common, _conf, _networks
from ansible_collections.podwire.cni.plugins.modules import cni_conf as cni_conf_module
from ansible_collections.podwire.cni.plugins.plugin_utils import module_action, reading

GOOD = {"name": "a", "content": '{"cniVersion": "1.0.0", "plugins": [{"type": "bridge", "isGatway": true}]}'}


@pytest.fixture
def action(monkeypatch):
    plugin = cni_conf.ActionModule.__new__(cni_conf.ActionModule)
    plugin.calls = []
    plugin.answer = {"changed": True, "problems": [{"code": "from_host"}]}
    plugin._task = SimpleNamespace(args={"networks": [dict(GOOD)]}, async_val=0, get_ds=dict)

    def execute(**keywords):
        plugin.calls.append(keywords)
        return plugin.answer

    plugin._execute_module = execute
    monkeypatch.setattr(module_action.ActionBase, "run", lambda self, tmp, task_vars: {})
    plugin.warnings = []
    monkeypatch.setattr(cni_conf.Display, "warning", lambda self, text: plugin.warnings.append(text))
    return plugin


def test_the_module_is_called_once_with_rendered_text(action):
    result = action.run(None, {})
    (call,) = action.calls
    assert call["module_name"] == "podwire.cni.cni_conf"
    assert call["module_args"]["networks"][0]["content"].startswith('{\n  "cniVersion": "1.0.0",\n  "name": "a"')
    assert result["changed"]
    assert [entry["code"] for entry in result["problems"]] == ["unknown_key", "from_host"]
    assert len(action.warnings) == 1


@pytest.mark.parametrize("check_mode", [False, True])
def test_strict_turns_warnings_into_errors_in_check_mode_as_in_a_run(action, check_mode):
    action._task.check_mode = check_mode
    action._task.args["strict"] = "yes"
    result = action.run(None, {})
    assert action.calls == []
    assert action.warnings == []
    assert (result["failed"], result["changed"], result["code"]) == (True, False, "unknown_key")
    assert [entry["level"] for entry in result["problems"]] == ["error"]
    assert "'strict'" in result["msg"]
    action._task.args["strict"] = False
    assert action.run(None, {})["changed"]
    (call,) = action.calls
    assert call["module_args"]["strict"] is False


def test_a_missing_library_matters_only_for_the_schema(action, monkeypatch):
    monkeypatch.setattr(cni_conf, "MISSING", ImportError("No module named 'jsonschema'"))
    action._task.args = {"networks": [{"name": "a", "state": "absent"}]}
    assert "failed" not in action.run(None, {})
    action._task.args = {"networks": [GOOD], "validate": ["syntax"]}
    assert "failed" not in action.run(None, {})
    action._task.args = {"networks": [GOOD]}
    result = action.run(None, {})
    assert (result["failed"], result["code"]) == (True, "missing_required_lib")
    assert result["msg"].startswith(
        "the level 'schema' of 'validate' needs the Python library jsonschema on the controller"
    )
    assert "install" in result["msg"]


def test_files_are_read_with_a_limit_and_a_clear_error(action, monkeypatch, tmp_path):
    path = tmp_path / "big.json"
    path.write_bytes(b" " * (reading.MAX_SIZE + 1))
    monkeypatch.setattr(action, "_find_needle", lambda folder, name: str(path), raising=False)
    with pytest.raises(ValueError, match="larger than 1 MiB"):
        action._read("big.json")

    def missing(folder, name):
        raise reading.AnsibleFileNotFound("long text")

    monkeypatch.setattr(action, "_find_needle", missing, raising=False)
    with pytest.raises(ValueError, match=r"file 'big.json' not found on the controller"):
        action._read("big.json")


def test_an_unknown_option_is_named_and_not_networks(action):
    action._task.args = {"network": [GOOD], "force": True}
    result = action.run(None, {})
    assert (result["code"], action.calls) == ("bad_argument", [])
    assert result["msg"].startswith(
        "Unsupported parameters for (podwire.cni.cni_conf) module: network (did you mean networks?). Supported "
    )


def test_options_of_the_action_are_those_of_the_module():
    options = yaml.safe_load(cni_conf_module.DOCUMENTATION)["options"]
    fragments = [fragment.ModuleDocFragment for fragment in (_common, _conf, _networks)]
    texts = [text for fragment in fragments for name, text in vars(fragment).items() if name.isupper()]
    shared = {name for text in texts for name in yaml.safe_load(text)["options"]}
    assert set(cni_conf.ARGUMENTS) == set(options) | shared


@pytest.mark.parametrize(
    ("networks", "said"),
    [(None, "the option is missing; "), ([], "it is []; "), ("a", 'it is the string "a"; '), ({"name": "a"}, "it is ")],
)
def test_networks_of_the_wrong_kind_are_shown(action, networks, said):
    action._task.args = {"networks": networks}
    result = action.run(None, {})
    assert f": {said}" in result["msg"]
    assert "write a list of networks" in result["msg"]


def test_control_characters_of_a_configuration_are_escaped(action):
    evil = "\x1b[31m\u202e"
    action._task.args = {"networks": [{"name": "a", "content": '{"cniVersion": "%s"' % evil}, {"name": evil}]}
    result = action.run(None, {})
    shown = [result["msg"], *(entry["message"] for entry in result["problems"])]
    assert result["failed"] and len(shown) > 1
    assert [text for text in shown if "\x1b" in text or "\u202e" in text] == []
