# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Runs awx/workflow.yml as AWX does, with ansible-runner: workflow.py FLEET HOSTS REPORT

FLEET is a directory for ansible-runner, HOSTS are names with commas, each of which becomes a slice, REPORT is the
directory of the report. Prints a line for each job: node, slice, status, and the artifacts that it sets.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ansible_runner
import yaml

CONTENT = yaml.safe_load(Path(__file__).resolve().parents[3].joinpath("awx", "workflow.yml").read_text())
TEMPLATES = {template["name"]: template for template in CONTENT["job_templates"]}
(WORKFLOW,) = CONTENT["workflow_job_templates"]
NODES = {node["identifier"]: node for node in WORKFLOW["schema"]}


def job(fleet: str, name: str, template: dict[str, Any], variables: dict[str, Any], limit: str) -> tuple[bool, dict]:
    """Run a job, and return whether it was successful, and its artifacts."""
    playbook = f"podwire.cni.{Path(template['playbook']).stem}"
    given = {**template.get("extra_vars", {}), **variables}
    done = ansible_runner.run(
        private_data_dir=fleet,
        playbook=playbook,
        ident=f"{name}-{limit or 'all'}",
        extravars=given,
        limit=limit,
        quiet=True,
    )
    artifacts = {}
    for event in done.events:
        if event["event"] == "playbook_on_stats":
            artifacts = event["event_data"].get("artifact_data", {})
    ended = "successful" if done.rc == 0 else f"failed ({done.rc})"
    print(f"{name} {limit or 'all'}: {ended}, sets {', '.join(sorted(artifacts)) or 'nothing'}", flush=True)
    return done.rc == 0, artifacts


def main() -> None:
    fleet, hosts, report = sys.argv[1], sys.argv[2].split(","), sys.argv[3]
    artifacts: dict[str, Any] = {}
    waiting, done = [WORKFLOW["schema"][0]["identifier"]], set()
    while waiting:
        name = waiting.pop(0)
        if name in done:
            continue
        done.add(name)
        template = TEMPLATES[NODES[name]["unified_job_template"]["name"]]
        # Variables of the workflow stand before artifacts.
        variables = {**artifacts, **WORKFLOW["extra_vars"], "cni_report_dir": report}
        good = True
        for limit in hosts if template["job_slice_count"] > 1 else [""]:
            ended, found = job(fleet, name, template, variables, limit)
            good = good and ended
            # Slices are a workflow of their own, which hands on nothing.
            artifacts.update(found if template["job_slice_count"] == 1 else {})
        related = NODES[name]["related"]
        for link in [*related["success_nodes" if good else "failure_nodes"], *related["always_nodes"]]:
            waiting.append(link["identifier"])


if __name__ == "__main__":
    main()
