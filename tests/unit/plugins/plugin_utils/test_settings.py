# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Every variable of the roles and playbooks, in each form that a survey may give it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from ansible_collections.podwire.cni.plugins.plugin_utils.settings import GROUPS, SECTIONS, VARIABLES, Settings, spec_of
from ansible_collections.podwire.cni.plugins.plugin_utils.values import BadValue

ROOT = Path(__file__).parents[4]
NAMES = sorted(VARIABLES)
NOTHING = ["", " ", "\n", "\r\n", None]
ROLES = {
    path.parts[-3]: yaml.safe_load(path.read_text())["argument_specs"]["main"]["options"]
    for path in ROOT.glob("roles/*/meta/argument_specs.yml")
}
STRUCTURE = {"name": "a", "conflist": {"cniVersion": "1.0.0", "plugins": [{"type": "bridge", "mtu": 1400}]}}


def settings(**variables):
    return Settings(variables, lambda value: value)


def kind(name):
    spec = spec_of(name)
    return "mappings" if spec.get("elements") == "dict" else spec.get("type", "str")


def native(name):
    """Return a value of a variable in its own type."""
    if name == "cni_serial":
        return ["1", "10%"]
    if kind(name) == "list":
        return list((spec_of(name).get("choices") or ["a/b", "c-d", "1"])[:3])
    found = {"bool": True, "int": 7, "float": 2.5, "dict": STRUCTURE, "mappings": [STRUCTURE, {"name": "b"}]}
    return found.get(kind(name)) or (spec_of(name).get("choices") or ["/a/b"])[-1]


def forms(name):
    """Return the texts of that value."""
    value = native(name)
    if kind(name) in ("dict", "mappings"):
        block, flow = yaml.safe_dump(value), yaml.safe_dump(value, default_flow_style=True)
        return [json.dumps(value), json.dumps(value, indent=2) + "\n", block, block.replace("\n", "\r\n"), flow]
    if kind(name) == "list":
        lines = "\n".join(value)
        words = [lines, lines.replace("\n", "\r\n"), f"\n{lines}\n\n", ",".join(value), ", ".join(value) + ","]
        return [*words, json.dumps(value), yaml.safe_dump(value), yaml.safe_dump([*value, ""])]
    if kind(name) == "bool":
        return ["true", "True", "yes", "on", "1", " true\n"]
    return [str(value), f" {value}\n"]


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_text_means_not_set(name):
    default = spec_of(name).get("default")
    for empty in [*NOTHING, *([[""], ["", " "]] if kind(name) in ("list", "mappings") else [])]:
        found = settings(**{name: empty})
        assert found.value(name) == default
        assert not found.is_set(name)
        assert found.value(name, default="other") == "other"
    assert settings().value(name) == default


@pytest.mark.parametrize("name", NAMES)
def test_every_form_has_the_value_of_the_variable_s_own_type(name):
    assert settings(**{name: native(name)}).value(name) == native(name)
    for text in forms(name):
        found = settings(**{name: text})
        value = found.value(name)
        assert value == native(name), text
        assert type(value) is type(native(name))
        assert found.is_set(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_argument_specifications_of_the_roles_have_the_types_and_choices_of_the_values(name):
    for options in ROLES.values():
        if name in options:
            spec, told = spec_of(name), options[name]
            kind = spec.get("type", "str").replace("raw", "str")
            assert (told["type"], told.get("elements")) == (kind, spec.get("elements"))
            assert told.get("choices", []) == list(spec.get("choices") or [])


@pytest.mark.parametrize("name", NAMES)
def test_what_no_value_can_be_is_refused_in_a_sentence_that_names_the_variable(name):
    # A template that fails, an unknown word, half a structure, and something long with a terminal escape.
    bad = ["{", "[1, ", "soon", "- a\n- [b", "x" * 5000 + "\x1b[31m", "[" * 600]
    refused = 0
    for text in bad:
        try:
            settings(**{name: text}).value(name)
        except BadValue as error:
            refused += 1
            assert str(error).startswith(f"{name}: ")
            assert len(str(error)) < 400 and "\x1b" not in str(error) and "\n" not in str(error)
    plain = kind(name) in ("str", "path", "raw", "list") and not spec_of(name).get("choices")
    assert refused >= (0 if plain and kind(name) != "list" else 2), name


def test_false_zero_and_empty_lists_are_values():
    found = settings(cni_gc_apply="false", cni_lock_timeout="0", cni_classes=[], cni_remediate_classes="[]")
    assert found.value("cni_gc_apply") is False
    assert found.value("cni_lock_timeout") == 0
    assert found.value("cni_classes") == [] == found.value("cni_remediate_classes")
    assert found.options("classes", "lock") == {"classes": [], "lock_timeout": 0.0}


def test_dates_in_structures_stay_text():
    found = settings(cni_networks="- {name: a, content: 2026-01-02}").value("cni_networks")
    assert found == [{"name": "a", "content": "2026-01-02"}]
    json.dumps(found)


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_options_are_those_whose_variables_are_set(group):
    always = {"runtime": {"configure": {"wait": 30}}}.get(group, {})
    assert settings().options(group) == always
    for option, name in GROUPS[group].variables.items():
        found = settings(**{name: forms(name)[0]}).options(group)
        outer, _dot, inner = option.partition(".")
        assert (found[outer][inner] if inner else found[outer]) == native(name)


@pytest.mark.parametrize(
    ("run", "skip", "selected"),
    [
        (["all"], [], list(SECTIONS)),
        (["networks"], [], ["networks"]),
        (["netns", "plugins"], [], ["plugins", "netns"]),
        (["mine"], [], list(SECTIONS)),
        (["mine", "runtime"], [], ["runtime"]),
        (["all"], ["attachments"], ["plugins", "pod_networks", "networks", "runtime", "netns"]),
        (["all", "networks"], [], list(SECTIONS)),
        (["networks"], ["networks"], []),
    ],
)
def test_tags_select_sections(run, skip, selected):
    declared = {"cni_plugins_version": "1.9.1", "cni_networks": '[{"name": "a"}]', "cni_runtime": "podman"}
    declared |= {"cni_netns": "a\nb", "cni_attachments": [{"network": "a"}]}
    declared |= {"cni_pod_networks": '[{"name": "p"}]'}
    tags = {"ansible_run_tags": run, "ansible_skip_tags": skip}
    assert settings(**declared, **tags).sections() == selected
    arguments = settings(**declared, **tags).options_of_host()
    assert [name for name in arguments if name in SECTIONS] == selected
    assert settings(**tags).sections() == []
    assert settings(**dict.fromkeys(declared, ""), **tags).sections() == []


def test_what_a_playbook_decides_no_variable_overrides():
    instead = {"__cni_host_instead": {"cni_classes": "safe"}, "__cni_host_only": ["plugins"]}
    found = settings(cni_classes="safe,disruptive", cni_plugins_src="/x", cni_networks=[{"name": "a"}], **instead)
    assert found.options_of_host() == {"plugins": {"src": "/x"}, "classes": ["safe"]}


def test_multus_runs_the_networks_of_the_host():
    network = {"name": "a", "conflist": {"cniVersion": "1.0.0", "plugins": [{"type": "bridge"}]}}
    multus = '{"cluster_network": "a", "settings": {"kubeconfig": "/etc/kube"}}'
    found = settings(cni_networks=[network], cni_multus=multus).options_of_host()
    assert found["pod_networks"]["networks"] == [network]
    assert [entry["name"] for entry in found["networks"]["networks"]] == ["multus-cni-network", "a"]
    assert found["networks"]["networks"][1]["state"] == "absent"
    assert "pod_networks" not in settings(cni_networks=[network], cni_multus={"settings": {}}).options_of_host()
    with pytest.raises(BadValue, match=r"cni_multus: .* is not a mapping"):
        settings(cni_networks=[network], cni_multus=[1]).options_of_host()
