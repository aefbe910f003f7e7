# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The workflow for AWX: awx.awx would accept it, and its graph is what docs/awx.md says. tests/real/engines runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.podwire.cni.plugins.plugin_utils.settings import VARIABLES

ROOT = Path(__file__).resolve().parents[3]
CONTENT = yaml.safe_load((ROOT / "awx" / "workflow.yml").read_text(encoding="utf-8"))
TEMPLATES = {template["name"]: template for template in CONTENT["job_templates"]}
(WORKFLOW,) = CONTENT["workflow_job_templates"]
NODES = {node["identifier"]: node for node in WORKFLOW["schema"]}

# Options of the modules of awx.awx 24: job_template, workflow_job_template, and the nodes of the latter's schema.
OF_TEMPLATE = {
    *("name", "organization", "project", "inventory", "playbook", "job_type", "job_slice_count"),
    *("ask_variables_on_launch", "extra_vars", "forks", "limit", "credentials", "execution_environment", "verbosity"),
}
OF_WORKFLOW = {"name", "organization", "extra_vars", "inventory", "limit", "schema", "survey_enabled", "survey_spec"}
OF_NODE = {
    *("extra_data", "inventory", "scm_branch", "job_type", "job_tags", "skip_tags", "limit", "diff_mode", "verbosity"),
    *("all_parents_must_converge", "identifier", "state", "unified_job_template", "related"),
}
LINKS = ("success_nodes", "failure_nodes", "always_nodes")


def test_all_keys_are_options_of_awx():
    assert set(CONTENT) == {"job_templates", "workflow_job_templates"}
    assert [set(template) - OF_TEMPLATE for template in CONTENT["job_templates"]] == [set()] * len(TEMPLATES)
    assert set(WORKFLOW) <= OF_WORKFLOW
    for node in WORKFLOW["schema"]:
        assert set(node) <= OF_NODE
        assert set(node["unified_job_template"]) <= {
            "name",
            "type",
            "organization",
            "inventory",
            "description",
            "timeout",
        }
        # The module wants all four, also empty ones.
        assert set(node["related"]) == {*LINKS, "credentials"}


def test_nodes_run_job_templates_of_the_file():
    assert len(NODES) == len(WORKFLOW["schema"]) and len(TEMPLATES) == len(CONTENT["job_templates"])
    used = [node["unified_job_template"] for node in WORKFLOW["schema"]]
    assert sorted(template["name"] for template in used) == sorted(TEMPLATES)
    for template in used:
        assert template["type"] == "job_template"
        assert template["organization"]["name"] == TEMPLATES[template["name"]]["organization"]


def test_every_node_is_reached_and_leads_to_the_report():
    links = {
        name: [link["identifier"] for kind in LINKS for link in node["related"][kind]] for name, node in NODES.items()
    }
    assert {target for targets in links.values() for target in targets} <= set(NODES)
    (first,) = set(NODES) - {target for targets in links.values() for target in targets}
    order, waiting = [], [first]
    while waiting:
        name = waiting.pop(0)
        assert len(order) < 10
        order.append(name)
        waiting += links[name]
    assert set(order) == set(NODES) and order[-1] == "report"
    # There is a report in any case, and the other hosts wait for the canaries.
    assert NODES["canaries"]["related"]["success_nodes"] == [{"identifier": "slices"}]
    assert NODES["canaries"]["related"]["failure_nodes"] == [{"identifier": "report"}]
    assert NODES["slices"]["related"]["always_nodes"] == [{"identifier": "report"}]


@pytest.mark.parametrize("name", TEMPLATES)
def test_variables_and_playbooks_exist(name):
    template = TEMPLATES[name]
    assert (ROOT / "playbooks" / template["playbook"]).exists()
    assert set(template.get("extra_vars", {})) | set(WORKFLOW["extra_vars"]) <= set(VARIABLES)
    # Artifacts of the job before become its variables.
    assert template["ask_variables_on_launch"] is True


def test_only_artifacts_say_that_the_canaries_have_passed():
    given = [WORKFLOW["extra_vars"], *(template.get("extra_vars", {}) for template in TEMPLATES.values())]
    assert not any("cni_canary_passed" in variables for variables in given)
    assert WORKFLOW["extra_vars"]["cni_canary"]
    slices = {name: TEMPLATES[node["unified_job_template"]["name"]]["job_slice_count"] for name, node in NODES.items()}
    assert slices["canaries"] == slices["report"] == 1 and slices["slices"] > 1
