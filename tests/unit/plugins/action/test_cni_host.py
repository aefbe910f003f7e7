# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import hashlib
import os
import tarfile
from types import SimpleNamespace

import pytest
import yaml

from ansible_collections.podwire.cni.plugins.action import cni_host
from ansible_collections.podwire.cni.plugins.doc_fragments import _attachments, _common, _conf, _host, _networks
from ansible_collections.podwire.cni.plugins.module_utils._host.trust import host_machine
from ansible_collections.podwire.cni.plugins.modules import (
    cni_attach,
    cni_conf,
    cni_host as cni_host_module,
    cni_netns,
    cni_plugins,
)
from ansible_collections.podwire.cni.plugins.plugin_utils import module_action, shipping

GOOD = {"name": "a", "content": '{"cniVersion": "1.0.0", "plugins": [{"type": "bridge"}]}'}
WEB = {"network": "a", "container_id": "web", "netns": "web"}


class Shell:
    tmpdir = "/remote"

    @staticmethod
    def join_path(*parts):
        return "/".join(parts)


@pytest.fixture
def run(monkeypatch):
    """Run the action plugin with sections and options; the host gives the answers in ``run.answers``, the last again.

    ``run.calls`` are the arguments of the module, ``run.sent`` the names of the plugins in each transfer.
    """
    monkeypatch.setattr(module_action.ActionBase, "run", lambda self, tmp, task_vars: {})
    plugin = cni_host.ActionModule.__new__(cni_host.ActionModule)
    plugin._find = lambda path: path
    plugin._connection = SimpleNamespace(_shell=Shell())
    plugin._fixup_perms2 = lambda paths, execute: None
    plugin._templar = SimpleNamespace(template=lambda value: value)

    def transfer(path, _remote):
        with tarfile.open(path) as archive:
            call.sent.append(sorted(archive.getnames()))

    def execute(**keywords):
        call.calls.append(copy.deepcopy(keywords["module_args"]))
        call.background.append(keywords["wrap_async"])
        answer = call.answers.pop(0) if len(call.answers) > 1 else call.answers[0]
        return dict(answer, invocation={"module_args": dict(keywords["module_args"])})

    def call(check_mode=False, async_val=0, **arguments):
        plugin._task = SimpleNamespace(args=arguments, async_val=async_val, check_mode=check_mode, get_ds=dict)
        return plugin.run(None, {})

    plugin._transfer_file = transfer
    plugin._execute_module = execute
    warnings = []
    monkeypatch.setattr(cni_host.Display, "warning", lambda self, text: warnings.append(text))
    call.calls, call.background, call.sent, call.warnings = [], [], [], warnings
    call.answers = [{"changed": False, "problems": []}]
    return call


def refused(run, code, *words, **arguments):
    result = run(**arguments)
    assert (result.get("failed"), result.get("changed"), result.get("code")) == (True, False, code), result
    assert [word for word in words if word not in result["msg"]] == [], result["msg"]
    assert run.calls == [], "the host was contacted"
    return result


# ---- names


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"network": {}}, "network (did you mean networks?). Supported parameters include: attachments, "),
        ({"plugin": {}}, "plugin (did you mean plugins?)."),
        ({"conf_dirs": "/x"}, "conf_dirs (did you mean conf_dir?)."),
        ({"plugins": {"versoin": "1.9.1"}}, "plugins.versoin (did you mean plugins.version?)."),
        ({"networks": {"networks": [], "exlusive": True}}, "networks.exlusive (did you mean "),
        ({"netns": {"name": ["a"]}}, "netns.name (did you mean netns.names?)."),
        ({"attachments": {"zzz": 1}}, "attachments.zzz. Supported parameters include: attachments, check, "),
        ({"runtime": {"networks": []}}, "runtime.networks. Supported parameters include: "),
    ],
)
def test_an_unknown_section_or_option_is_named(run, given, text):
    assert refused(run, "bad_option", text, **given)["msg"].startswith(
        f"Unsupported parameters for (podwire.cni.cni_host) module: {text}"
    )


def test_all_unknown_names_are_told_at_once(run):
    refused(run, "bad_option", ": netn (did", ": networks.x. ", netn={}, networks={"x": 1})


def test_options_that_only_the_action_sets_are_not_shown(run):
    result = refused(run, "bad_option", ": plugins._source", plugins={"version": "1.9.1", "_source": {}})
    assert result["msg"].count("_source") == 1
    assert "_source" not in str(refused(run, "bad_option", plugins={"sorce": 1})["msg"])


@pytest.mark.parametrize("section", ["plugins", "networks", "runtime", "netns", "attachments"])
@pytest.mark.parametrize("value", [["a"], "a", 3, True])
def test_a_section_is_a_mapping(run, section, value):
    refused(run, "bad_option", f"{section}: a section is a mapping", repr(value), **{section: value})


def test_an_empty_section_counts_as_not_given(run):
    assert run(networks=None, plugins=None, conf_dir=None)["changed"] is False
    assert run.calls == [{}]


def test_a_version_that_yaml_has_read_as_a_number(run):
    refused(run, "bad_version", "1.9", plugins={"version": 1.9})


FRAGMENTS = {"_common": _common, "_conf": _conf, "_attachments": _attachments, "_host": _host, "_networks": _networks}
COMMON = [getattr(_common.ModuleDocFragment, name) for name in ("CLASSES", "LOCK")]


def documented_options(module):
    """Return the options of a module, those of its fragments included."""
    documentation = yaml.safe_load(module.DOCUMENTATION)
    options = dict(documentation.get("options", {}))
    for fragment in documentation["extends_documentation_fragment"]:
        _namespace, _name, file, *part = fragment.split(".")
        if file in FRAGMENTS:
            text = getattr(FRAGMENTS[file].ModuleDocFragment, part[0].upper() if part else "DOCUMENTATION")
            options.update(yaml.safe_load(text)["options"])
    return options


def test_options_of_the_action_are_those_of_the_module():
    assert set(cni_host.OPTIONS) == set(documented_options(cni_host_module))


@pytest.mark.parametrize(
    ("section", "module", "others"),
    [
        ("plugins", cni_plugins, set()),
        ("networks", cni_conf, {"runtime", "ensure_effective", "configure"}),
        ("pod_networks", cni_conf, {"runtime", "ensure_effective", "on_not_effective", "configure"}),
        ("netns", cni_netns, set()),
        ("attachments", cni_attach, set()),
    ],
)
def test_a_section_has_the_options_of_its_module(section, module, others):
    documented = documented_options(cni_host_module)[section]["suboptions"]
    assert set(documented) == set(cni_host.OPTIONS[section]["options"])
    common = set(yaml.safe_load(_common.ModuleDocFragment.DOCUMENTATION)["options"])
    shared = common | {name for text in COMMON for name in yaml.safe_load(text)["options"]}
    own = {"conf_dir"} if section == "pod_networks" else set()
    assert set(documented) - own == set(documented_options(module)) - others - shared


# ---- before the host is contacted


def test_contradictions_name_both_sections(run):
    result = refused(
        run,
        "contradiction",
        "the section networks removes 'a', and the section attachments attaches a/web/eth0 to it",
        "the section netns removes 'web', and the section attachments attaches a/web/eth0 in it",
        networks={"networks": [{"name": "a", "state": "absent"}]},
        netns={"names": ["web"], "state": "absent"},
        attachments={"attachments": [WEB]},
    )
    assert result["msg"].count("remove one of the two entries") == 2


def test_bad_networks_never_reach_the_host(run):
    result = refused(
        run, "json_truncated", "networks[0].content", networks={"networks": [{"name": "a", "content": "{"}]}
    )
    assert [entry["code"] for entry in result["problems"]] == ["json_truncated"]
    refused(run, "bad_argument", networks={"networks": []})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"netns": {"names": ["a"], "state": "here"}}, ["state", "here"]),
        ({"attachments": {"attachments": [{"container_id": "a"}]}}, ["network"]),
        ({"plugins": {"state": "absent"}}, ["plugins"]),
        ({"runtime": {"configure": {"max_conf_num": 1}}}, ["runtime"]),
    ],
)
def test_bad_values_never_reach_the_host(run, options, words):
    with pytest.raises(Exception) as error:
        run(**options)
    assert [word for word in words if word not in str(error.value)] == []
    assert run.calls == []


def test_check_mode_tells_what_else_would_change_if_networks_are_refused(run):
    run(check_mode=True, networks={"networks": [dict(GOOD, content="{"), {"src": 1}]}, netns={"names": ["web"]})
    (call,) = run.calls
    assert call["networks"]["networks"] == [{"name": "a"}]
    assert call["_refused"]["networks"]["code"].startswith("json_")
    assert call["netns"] == {"names": ["web"]}


def test_networks_are_rendered_and_their_problems_come_first(run):
    run.answers = [{"changed": True, "problems": [{"code": "from_host"}]}]
    wanted = {**GOOD, "content": GOOD["content"].replace('"bridge"', '"bridge", "isGatway": true')}
    result = run(networks={"networks": [wanted], "mode": "0640"}, conf_dir="/x")
    (call,) = run.calls
    assert call["conf_dir"] == "/x"
    assert call["networks"]["mode"] == "0640"
    assert call["networks"]["networks"][0]["content"].startswith('{\n  "cniVersion": "1.0.0",\n  "name": "a"')
    assert [entry["code"] for entry in result["problems"]] == ["unknown_key", "from_host"]
    assert len(run.warnings) == 1


def test_control_characters_are_escaped(run):
    result = run(networks={"networks": [{"name": "\x1b[31m", "content": "{"}]}, **{"plugin\x1b[31ms": 1})
    assert result["failed"] and "\x1b" not in result["msg"]
    assert run.calls == []


# ---- plugins


@pytest.fixture
def source(tmp_path):
    """A directory with three plugins for the machine of this process; returns its path and the digests."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    with open("/bin/true", "rb") as stream:
        head = stream.read()
    digests = {}
    for name in ("bridge", "portmap", "tuning"):
        (folder / name).write_bytes(head + name.encode())
        (folder / name).chmod(0o755)
        digests[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    return str(folder), digests


def needed(**have):
    return {"changed": False, "plugins_needed": {"machine": host_machine(), "have": have}}


DONE = {"changed": True, "problems": [], "plugins": {"error": None}}


def test_only_plugins_that_the_host_lacks_are_sent(run, source):
    folder, digests = source
    run.answers = [needed(bridge=digests["bridge"], portmap="0" * 64), DONE]
    result = run(plugins={"src": folder}, netns={"names": ["a"]})
    assert result["changed"]
    assert run.sent == [["portmap", "tuning"]]
    first, second = run.calls
    assert first["netns"] == second["netns"] == {"names": ["a"]}
    assert second["plugins"]["src"] == folder
    told = second["_source"]
    assert (told["files"], told["shipped"], told["bundle"]) == (digests, ["portmap", "tuning"], "/remote/plugins.tar")
    assert "_source" not in result["invocation"]["module_args"]


def test_nothing_is_sent_to_a_host_that_has_all(run, source):
    folder, digests = source
    run.answers = [needed(**digests), DONE]
    run(plugins={"src": folder})
    assert run.sent == []
    assert len(run.calls) == 2


def test_nothing_is_sent_in_check_mode(run, source):
    folder, digests = source
    run.answers = [needed(), DONE]
    run(check_mode=True, plugins={"src": folder})
    assert run.sent == []
    assert run.calls[1]["_source"]["files"] == digests


def test_a_host_that_needs_nothing_is_called_once(run, source):
    run.answers = [DONE]
    run(plugins={"src": source[0]})
    assert len(run.calls) == 1


def test_a_source_on_the_host_is_not_read_here(run):
    run.answers = [DONE]
    run(plugins={"src": "/srv/cni", "remote_src": True})
    (call,) = run.calls
    assert call["_source"]["where"] == "/srv/cni"


@pytest.mark.parametrize("state", ["absent", "restored"])
def test_no_source_is_needed_to_remove_plugins(run, state):
    run.answers = [DONE]
    run(plugins={"state": state, "plugins": ["bridge"]})
    assert run.calls == [{"plugins": {"state": state, "plugins": ["bridge"]}}]


def test_a_background_task_asks_first(run, source):
    run.answers = [needed(**source[1]), DONE]
    run(async_val=60, plugins={"src": source[0]})
    assert run.background == [False, True]


def test_a_source_that_cannot_be_read_fails_only_its_section(run, tmp_path):
    broken = tmp_path / "plugins.tgz"
    broken.write_text("no archive")
    error = {"failed": True, "changed": True, "code": "bad_source", "msg": "plugins: broken"}
    run.answers = [needed(), error]
    result = run(plugins={"src": str(broken)}, netns={"names": ["a"]})
    assert run.sent == []
    told = run.calls[1]["_source"]["error"]
    assert told["code"] == "bad_source" and str(broken) in told["message"]
    assert run.calls[1]["netns"] == {"names": ["a"]}
    # What the host did of the rest is in the result.
    assert result["changed"] and result["failed"]


def test_another_src_in_group_vars_is_explained(run):
    error = {"code": "checksum_mismatch", "message": "it has another"}
    run.answers = [{"failed": True, "msg": "plugins: it has another", "plugins": {"error": error}}]
    result = run(plugins={"src": "/srv/old.tgz", "version": "1.9.1", "remote_src": True})
    assert "it has another. 'src' is installed" in result["msg"]


def test_the_file_of_the_transfer_is_removed_here(run, source, monkeypatch, tmp_path):
    monkeypatch.setattr(shipping.C, "DEFAULT_LOCAL_TMP", str(tmp_path), raising=False)
    run.answers = [needed(), DONE]
    before = sorted(os.listdir(tmp_path))
    run(plugins={"src": source[0]})
    assert len(run.sent) == 1
    assert sorted(os.listdir(tmp_path)) == before


def test_drift_that_a_step_repairs_is_no_caution():
    finding = {"code": "drifted", "message": "a/b/eth0 has drifted", "target": "a/b/eth0"}
    warnings = ["[drifted] a/b/eth0 has drifted", "[other] x"]
    result = {"plan": [{"target": "a/b/eth0"}], "findings": [finding], "warnings": warnings}
    assert cni_host.cautions_of(result) == ["[other] x"]
    assert cni_host.cautions_of({**result, "plan": []}) == warnings


def test_a_failed_result_has_what_changed_or_failed():
    idle, error = {"name": "bridge", "action": "none"}, {"code": "add_failed", "message": "no"}
    rows = [
        {"container_id": "a", "action": "none", "error": None},
        {"container_id": "b", "action": "left", "error": None},
        {"container_id": "c", "action": "attached", "error": None},
        {"container_id": "d", "action": "none", "error": error},
    ]
    result = {
        "failed": True,
        "plan": [{"kind": "add"}],
        "plugins": {"changed": False, "error": None, "plugins": [idle]},
        "networks": {"changed": False, "error": error},
        "attachments": {"changed": True, "error": error, "attachments": rows, "pods": []},
    }
    assert cni_host.brief(result) == {
        "failed": True,
        "plan": [{"kind": "add"}],
        "plugins": {"changed": False, "error": None, "plugins": []},
        "networks": {"changed": False, "error": error},
        "attachments": {"changed": True, "error": error, "attachments": rows[2:], "pods": []},
    }
    assert cni_host.brief({**result, "failed": False}) == {**result, "failed": False}
