# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.podwire.cni.plugins.plugin_utils.preflight import (
    DECLARING,
    FOREIGN,
    SET,
    unknown_variables,
    warn_of_unknown,
)
from ansible_collections.podwire.cni.plugins.plugin_utils.settings import SECTIONS_DECLARING, VARIABLES

ROOT = Path(__file__).parents[4]
WORD = re.compile(r"(?<![.\w/])cni_\w+")


def test_variables_that_are_of_no_role_are_documented():
    specs = [yaml.safe_load(path.read_text()) for path in ROOT.glob("roles/*/meta/argument_specs.yml")]
    roles = {name for spec in specs for name in spec["argument_specs"]["main"]["options"]}
    documented = "\n".join(path.read_text() for path in ROOT.glob("docs/*.md"))
    assert [name for name in sorted(VARIABLES - roles) if not re.search(rf"\b{name}\b", documented)] == []


@pytest.mark.parametrize("role", sorted(path.name for path in ROOT.glob("roles/*")))
def test_what_a_role_says_of_its_defaults_is_what_they_are(role):
    specs = yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text())
    options = specs["argument_specs"]["main"]["options"]
    said = {name: option["default"] for name, option in options.items() if "default" in option}
    assert said == yaml.safe_load((ROOT / "roles" / role / "defaults" / "main.yml").read_text())


def test_every_variable_of_playbooks_and_roles_is_known():
    paths = [*ROOT.glob("playbooks/*.yml"), *ROOT.glob("playbooks/tasks/*.yml"), *ROOT.glob("roles/*/*/*.yml")]
    used = {word for path in paths for word in WORD.findall(path.read_text())}
    # It is a key of what cni_info returns.
    assert [name for name in used - VARIABLES - {"cni_versions"} if not SET.fullmatch(name)] == []
    assert [name for name in VARIABLES if SET.fullmatch(name)] == []


def test_what_declares_something_is_what_the_roles_need_to_do_anything():
    """Each module call of a role has a condition, and each condition is about these variables."""
    tasks = [(path, task) for path in ROOT.glob("roles/*/tasks/main.yml") for task in yaml.safe_load(path.read_text())]
    conditions = set()
    while tasks:
        path, task = tasks.pop()
        inner = [entry for key in ("block", "rescue", "always") for entry in task.get(key, [])]
        if "ansible.builtin.import_tasks" in task:
            inner += yaml.safe_load((path.parent / task["ansible.builtin.import_tasks"]).read_text())
        tasks.extend((path, entry) for entry in inner)
        # What only checks the variables does so always, and cni_host reads the sections that are declared itself.
        assert inner or task.get("when") or {"ansible.builtin.assert", "podwire.cni.cni_host"} & task.keys()
        conditions.update(WORD.findall(str(task.get("when"))))
    # The role host reads the sections that are declared in one go.
    declared = {name for names in SECTIONS_DECLARING.values() for name in names}
    # The role pull declares nothing of a host itself.
    others = {"cni_runtime_state", "cni_runtime_network", "cni_pull_state", "cni_pull_url"}
    assert {name for name in conditions - others if not SET.fullmatch(name)} | declared == set(DECLARING)


def test_every_play_fails_when_zero_hosts_match():
    """But for the plays that work on the controller."""
    plays = [(path.stem, play) for path in ROOT.glob("playbooks/*.yml") for play in yaml.safe_load(path.read_text())]
    others = {name for name, play in plays if "lookup('podwire.cni.cni_hosts'" not in play["hosts"]}
    assert others == {"vm_create", "vm_destroy"}


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_unknown_cni_variables_get_did_you_mean(name):
    """Whichever letter is left out, doubled or swapped with the next one."""
    tails = range(len("cni_"), len(name))
    slips = {name[:at] + name[at + 1 :] for at in tails} | {name[:at] + name[at] + name[at:] for at in tails}
    slips |= {name[:at] + name[at + 1 : at + 2] + name[at] + name[at + 2 :] for at in tails}
    slips = {slip for slip in slips - VARIABLES - FOREIGN.keys() if not SET.fullmatch(slip)}
    found = unknown_variables([*slips, name, "cnix"])
    assert set(found) == {slip for slip in slips if slip.startswith("cni_")}
    assert found == {slip: f"{slip} is set; did you mean {name}?" for slip in found}


@pytest.mark.parametrize("name", ["cni_uplink", "cni_pod_cidr", "cni_my_networks_of_the_lab", "cni_"])
def test_variables_of_others_are_unknown_and_mean_nothing_else(name):
    assert unknown_variables([name]) == {name: ""}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cni_plugins_url", "did you mean cni_plugins_src?"),
        ("cni_runtime_restarts", "did you mean cni_runtime_restart?"),
        ("cni_gc_dry_run", "podwire.cni has no such variable"),
        ("cni_pull_everything", "podwire.cni has no such variable"),
    ],
)
def test_a_name_with_the_prefix_of_a_role_is_never_somebody_elses(name, said):
    assert said in unknown_variables([name])[name]


@pytest.mark.parametrize("name", sorted(FOREIGN))
def test_a_variable_of_another_role_is_said_to_be_one_with_variables_that_exist(name):
    assert name not in VARIABLES
    sentence = unknown_variables([name])[name]
    owner, remedy, *stays = FOREIGN[name]
    assert stays in ([], ["stays"])
    assert sentence == f"{name} is a variable of {owner}; {remedy}."
    assert set(WORD.findall(remedy)) <= VARIABLES


def test_a_variable_whose_role_may_stay_causes_no_warning():
    told = []
    warn_of_unknown(FOREIGN, told.append)
    assert {text.split()[0] for text in told} == {name for name in FOREIGN if len(FOREIGN[name]) == 2}


PAGE = (ROOT / "docs/howto/coming-from.md").read_text(encoding="utf-8")
BEFORE = re.findall(r"^## (.+)\n((?:(?!## |### ).*\n)*)### After", PAGE, re.MULTILINE)


def test_each_variable_before_a_port_is_known_with_its_role():
    names = {}
    for role, text in BEFORE:
        for block in re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            settings = yaml.safe_load(block)
            names.update(dict.fromkeys(settings if isinstance(settings, dict) else (), role))
        names.update(dict.fromkeys(re.findall(r"`(\w+_config)`", text), role))
    assert {role for role, _text in BEFORE} - set(names.values()) == {"Hand-made tasks"}
    # This collection has the variable, too.
    del names["cni_plugins_version"]
    owners = {name: FOREIGN[name][0] for name in names}
    assert [name for name, role in names.items() if role.partition(":")[0] not in owners[name]] == []
