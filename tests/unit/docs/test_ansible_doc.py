# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What ansible-doc shows: nothing internal, real types, and the version that is released."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
VERSION = yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"]


def ansible_doc(*words):
    command = [Path(sys.executable).with_name("ansible-doc"), "--json", *words]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


@pytest.fixture(scope="module")
def modules():
    return ansible_doc(*sorted(ansible_doc("--list", "podwire.cni")))


@pytest.fixture(scope="module")
def roles():
    shown = ansible_doc("--type", "role", *sorted(ansible_doc("--type", "role", "--list", "podwire.cni")))
    return {name: role["entry_points"]["main"] for name, role in shown.items()}


def names(options):
    """Yield the name of every option, with those of options of options."""
    for name, option in options.items():
        yield name
        yield from names(option.get("suboptions") or option.get("options") or {})


def arguments_of(spec):
    for name, option in spec.items():
        yield name
        yield from arguments_of(option.get("options") or {})


def test_lookups_of_the_playbooks_are_not_listed():
    assert len(list((ROOT / "plugins" / "lookup").glob("cni_*.py"))) == 2
    assert ansible_doc("--type", "lookup", "--list", "podwire.cni") == {}


def test_modules_show_every_option_that_users_set_and_no_other(modules):
    for full_name, shown in modules.items():
        name = full_name.rpartition(".")[2]
        documented = list(names(shown["doc"]["options"]))
        assert [option for option in documented if option.startswith("_")] == []
        # Those of the others are in the sections of cni_host.
        spec = getattr(
            importlib.import_module(f"ansible_collections.podwire.cni.plugins.modules.{name}"), "ARGUMENTS", {}
        )
        taken = [option for option in arguments_of(spec) if not option.startswith("_")]
        assert [option for option in taken if option not in documented] == []


def test_modules_without_changes_have_no_diff(modules):
    support = {name: shown["doc"]["attributes"]["diff_mode"]["support"] for name, shown in modules.items()}
    assert {name for name, value in support.items() if value == "N/A"} == {
        "podwire.cni.cni_info",
        "podwire.cni.cni_report",
    }


def test_roles_show_types(roles):
    for entry in roles.values():
        assert {name for name, option in entry["options"].items() if option["type"] == "raw"} == set()


def test_everything_was_added_in_the_version_that_is_released(modules, roles):
    filters = ansible_doc("--type", "filter", *sorted(ansible_doc("--type", "filter", "--list", "podwire.cni")))
    callbacks = ansible_doc("--type", "callback", "podwire.cni.steps")
    added = [shown["doc"]["version_added"] for shown in [*modules.values(), *filters.values(), *callbacks.values()]]
    added += [entry["version_added"] for entry in roles.values()]
    assert set(added) == {VERSION}
