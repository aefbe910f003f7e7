# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from ansible_collections.podwire.cni.plugins.lookup import cni_value as module
from ansible_collections.podwire.cni.plugins.plugin_utils import preflight as preflight_module
from ansible_collections.podwire.cni.plugins.plugin_utils.preflight import DECLARING


@pytest.fixture
def warnings(monkeypatch):
    found = []
    monkeypatch.setattr(module.Display, "warning", lambda _self, text, **_options: found.append(text))
    return found


def lookup(variables, **options):
    given = {name: trust_as_template(value) if isinstance(value, str) else value for name, value in variables.items()}
    loader = DataLoader()
    plugin = module.LookupModule(loader=loader, templar=Templar(loader=loader, variables=given))
    (value,) = plugin.run([], {"inventory_hostname": "web1", **given}, **options)
    return value


def preflight(variables):
    return lookup(variables, problems="host")


@pytest.mark.parametrize("empty", ["", None, [], {}, "{{ [] }}", "{{ '' }}"])
@pytest.mark.parametrize("name", DECLARING)
def test_nothing_declared_is_said_with_the_names_of_the_variables(warnings, name, empty):
    sentence = preflight({name: empty, "cni_conf_dir": "/etc/cni/net.d"})
    assert sentence.startswith(f"nothing declared for web1: none of {', '.join(DECLARING)} is set.")
    assert "ansible-inventory --host web1" in sentence
    assert not warnings


@pytest.mark.parametrize("value", ["x", ["x"], False, "{{ ['x'] }}", "{{ unknown }}", [{"a": "{{ unknown }}"}]])
@pytest.mark.parametrize("name", DECLARING)
def test_one_variable_declares_something(warnings, name, value):
    sentence = preflight({name: value})
    # What the variable cannot be is said as well.
    assert not sentence or sentence.startswith(f"{name}: ")
    assert not warnings


def test_every_value_that_cannot_be_used_is_said_and_templates_that_fail_are_left_to_their_tasks(warnings):
    given = {"cni_networks": [{"name": "a"}], "cni_lock_timeout": "soon", "cni_classes": "safe,quick"}
    sentence = preflight({**given, "cni_conf_dir": "{{ unknown }}", "cni_gc_min_age": "x"})
    assert sentence == (
        "cni_classes: 'quick' is not one of its values, which are safe, disruptive; "
        "cni_lock_timeout: 'soon' is not a number; write digits only, such as 60"
    )


def test_nothing_declared_because_of_a_slip_names_the_variable_that_is_meant(warnings):
    sentence = preflight({"cni_network": [{"name": "a"}], "cni_uplink": "eth0"})
    assert "cni_network is set; did you mean cni_networks?" in sentence
    assert "cni_uplink is set, but podwire.cni has no such variable." in sentence
    assert not warnings


@pytest.mark.parametrize("options", [{"problems": "host"}, {"problems": "values"}, {"options": ["lock"]}], ids=str)
def test_a_slip_and_a_variable_of_another_role_beside_what_is_declared_are_warnings(warnings, options):
    given = {"cni_confdir": "/x", "cni_uplink": "eth0", "nomad_cni_version": "1.9.1"}
    assert not lookup({"cni_networks": [{"name": "a", "state": "absent"}], **given}, **options)
    unread = "No role or playbook of podwire.cni reads"
    nomads = "a variable of ansible-nomad (formerly brianshumate.nomad)"
    assert warnings == [
        f"cni_confdir is set; did you mean cni_conf_dir? {unread} cni_confdir.",
        f"nomad_cni_version is {nomads}; use cni_plugins_version. {unread} nomad_cni_version.",
    ]


PRESENT = [{"name": "a"}]


@pytest.mark.parametrize(
    ("variables", "stopped"),
    [
        ({"cni_networks": PRESENT}, True),
        ({"cni_networks": "{{ nets }}", "nets": PRESENT}, True),
        ({"cni_networks": [{"name": "a", "state": "absent"}, {"name": "b", "state": "present"}]}, True),
        ({"cni_networks": PRESENT, "cni_networks_validate": ["syntax", "schema"]}, True),
        ({"cni_networks": PRESENT, "cni_networks_validate": ""}, True),
        ({"cni_networks": PRESENT, "cni_networks_validate": ["syntax"]}, False),
        ({"cni_networks": [{"name": "a", "state": "absent"}]}, False),
        ({"cni_plugins_version": "1.9.1"}, False),
    ],
)
def test_the_controller_is_tested_before_a_host_is_changed(monkeypatch, variables, stopped):
    monkeypatch.setattr(preflight_module, "MISSING", ImportError("jsonschema"))
    sentence = preflight(variables)
    assert ("needs the Python library jsonschema on the controller" in sentence) is stopped
    assert bool(sentence) is stopped
