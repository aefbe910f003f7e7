# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What playbooks do with variables that are not set, that a survey has answered, or that cannot be used."""

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils.settings import VARIABLES

NOTHING = "nothing declared for bare: none of cni_networks, "
NOBODY = "no host matched cni_hosts=noeds; check the pattern"
# AWX's surveys send an empty text for what was not answered, and numbers, lists and structures as texts.
SURVEY = {**dict.fromkeys(sorted(VARIABLES - {"cni_hosts"}), ""), "cni_serial": "1, 50%", "cni_runtime": ["podman"]}
NETWORKS = """\
- name: answered
  conflist:
    cniVersion: "1.0.0"
    plugins: [{type: bridge, bridge: drift9, ipam: {type: host-local, subnet: 10.86.0.0/24}}]
"""
ANSWERS = {
    "cni_plugins_remote_src": "yes",
    "cni_plugins_names": "bridge\nhost-local\n\nloopback\n",
    "cni_networks": NETWORKS,
    "cni_networks_validate": "syntax, schema, plugins",
    "cni_attachments": '[{"network": "answered", "container_id": "x", "netns": "drift-x"}]',
    "cni_netns": "drift-x",
    "cni_classes": '["safe"]',
    "cni_lock_timeout": "30",
    "cni_runtime_services": '{"containerd": "containerd-other"}',
}

ROLES = ("plugins", "networks", "runtime", "attachments", "host", "pull")


@pytest.fixture
def site(controller, tmp_path):
    """One host for which something is declared, with a slip, and one whose variables are beside another playbook."""
    local = {"ansible_connection": "local"}
    declared = {"cni_networks": [{"name": "gone", "state": "absent"}], "cni_confdir": "/etc/cni/net.d"}
    hosts = {"bare": local, "declared": {**local, **declared}}
    return controller({"all": {"hosts": hosts, "vars": {"cni_report_dir": str(tmp_path / "report")}}})


def said(run):
    """Return what was printed, in one line: Ansible wraps its warnings."""
    return " ".join(f"{run.stdout} {run.stderr}".split())


@pytest.mark.parametrize(
    ("playbook", "options"), [("bootstrap", {}), ("drift", {"cni_drift_fail": True}), ("remediate", {"cni_serial": 1})]
)
def test_a_host_for_which_nothing_is_declared_fails_and_stops_no_other(site, playbook, options):
    run = site.run(playbook, "--limit", "all", status=2, **options)
    assert re.search("(?m)^bare .* failed=1 ", run.stdout)
    assert re.search("(?m)^declared .* failed=0 ", run.stdout)
    assert NOTHING in run.stdout
    assert "nothing declared for declared" not in run.stdout
    assert "cni_confdir is set; did you mean cni_conf_dir" in said(run)
    if playbook != "bootstrap":
        hosts = site.reported()
        assert {name: host["status"] for name, host in hosts.items()} == {"bare": "error", "declared": "clean"}
        assert hosts["bare"]["error"].startswith("nothing declared for bare")


@pytest.mark.parametrize("playbook", ["drift", "remediate"])
def test_zero_hosts_are_a_failure(site, playbook):
    assert NOBODY in said(site.run(playbook, status=4, cni_hosts="noeds"))


@pytest.mark.parametrize(
    ("playbook", "options", "status"),
    [
        ("bootstrap", ["--check"], 0),
        ("remediate", ["--check"], 0),
        ("gc", [], 0),
        ("smoke", [], 0),
        ("teardown", ["--check"], 0),
        ("upgrade", [], 2),
    ],
)
def test_an_empty_text_means_not_set(site, playbook, options, status):
    run = site.run(playbook, "--limit", "declared", *options, status=status, **SURVEY)
    says = {
        "bootstrap": r"declared .* failed=0 ",
        "remediate": f"{site.folder}/cni-report/report.html",
        "upgrade": "Nothing to install",
    }
    assert re.search(says.get(playbook, ""), said(run))


def test_roles_convert_what_ansible_would_refuse_by_their_types(site):
    """Ansible reads `meta/argument_specs`, which has no options, and ansible-doc reads `argument_specs.yml`."""
    roles = [{"ansible.builtin.include_role": {"name": f"podwire.cni.{name}"}} for name in ROLES]
    empty = dict.fromkeys(sorted(VARIABLES), "")
    assert re.search(r"(?m)^bare .* changed=0 .* failed=0 ", site.play(*roles, hosts="bare", **empty).stdout)
    for role in roles:
        refused = site.play(role, hosts="bare", status=2, **{**empty, "cni_lock_timeout": "soon"})
        assert "cni_lock_timeout: 'soon' is not a number" in said(refused)


def test_texts_mean_what_their_values_mean(site, generations):
    answers = {"cni_report_dir": f"{site.folder}/report", "cni_plugins_src": f"{generations['new']}\n", **ANSWERS}
    site.run("drift", "--limit", "declared", **{**SURVEY, **answers})
    (declared,) = site.report()["hosts"]
    steps = [f"{step['kind']} {step['target']}" for step in declared["steps"]]
    for step in ("create /etc/cni/net.d/10-answered.conflist", "create /run/netns/drift-x", "add answered/x/eth0"):
        assert steps.count(step) == 1, json.dumps(declared, indent=1)


@pytest.mark.parametrize(
    ("playbook", "status", "variables"),
    [
        ("remediate", 4, {"cni_serial": "1,a%"}),
        ("gc", 2, {"cni_gc_scope": "everything"}),
        ("bootstrap", 2, {"cni_lock_timeout": "soon", "cni_networks": "[{"}),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(site, playbook, status, variables):
    refused = said(site.run(playbook, "--limit", "declared", status=status, **variables))
    for name in variables:
        assert f"{name}: " in refused
