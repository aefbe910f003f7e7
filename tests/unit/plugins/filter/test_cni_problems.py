# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.podwire.cni.plugins.filter import networks as module

cni_problems = module.FilterModule().filters()["cni_problems"]
GOOD = {"cniVersion": "1.0.0", "name": "a", "plugins": [{"type": "bridge", "mtu": 1500}]}
MANIFEST = {
    "apiVersion": "k8s.cni.cncf.io/v1",
    "kind": "NetworkAttachmentDefinition",
    "metadata": {"name": "a"},
    "spec": {"config": json.dumps(GOOD)},
}


def test_a_mapping_and_a_text_are_validated():
    assert cni_problems(GOOD) == []
    (entry,) = cni_problems(
        '{"cniVersion": "1.0.0", "name": "a",\n"plugins": [{"type": "bridge", "mtu": "1"}]}', file="x"
    )
    assert (entry["level"], entry["file"], entry["pointer"], entry["line"]) == ("error", "x", "/plugins/0/mtu", 2)


def test_the_name_may_be_given_beside_the_configuration():
    nameless = {key: value for key, value in GOOD.items() if key != "name"}
    assert cni_problems(nameless, "a") == []
    assert cni_problems(nameless)[0]["code"] == "no_name"


def test_a_level_can_be_left_out():
    assert cni_problems(dict(GOOD, plugins=[{"type": "bridge", "mtu": "x"}]), validate=["syntax"]) == []


def test_strict_turns_warnings_into_errors():
    data = dict(GOOD, plugins=[{"type": "bridge", "mtuu": 1, "portIsolation": True}])
    assert [entry["level"] for entry in cni_problems(data)] == ["warning", "info"]
    assert [entry["level"] for entry in cni_problems(data, strict=True)] == ["error", "info"]
    assert [entry["level"] for entry in cni_problems(data, strict="no")] == ["warning", "info"]


@pytest.mark.parametrize(
    ("value", "options"), [([], {}), (5, {}), (GOOD, {"validate": ["plugins"]}), (GOOD, {"strict": "perhaps"})]
)
def test_misuse_is_an_error_of_the_filter(value, options):
    with pytest.raises(AnsibleFilterError, match="cni_problems"):
        cni_problems(value, **options)


@pytest.mark.parametrize(
    ("name", "value"),
    [("cni_problems", GOOD), ("cni_nads", MANIFEST), ("cni_multus", [{"name": "a", "conflist": GOOD}])],
)
def test_a_missing_library_is_named_with_the_remedy(monkeypatch, name, value):
    monkeypatch.setattr(module, "MISSING", ImportError("No module named 'jsonschema'"))
    checked = module.FilterModule().filters()[name]
    with pytest.raises(AnsibleFilterError, match=r"jsonschema.*install"):
        checked(value)
    assert bool(checked(value, validate=["syntax"])) == (name != "cni_problems")
