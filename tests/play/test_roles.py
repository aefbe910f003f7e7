# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The roles: what they do with their variables, what they refuse, and what they leave alone."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils.preflight import DECLARING
from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import host_local, network

pytestmark = pytest.mark.usefixtures("empty_host")

ROLES = ("plugins", "networks", "runtime", "attachments", "host")
SECTIONS = ["plugins", "networks", "netns", "attachments"]


def role(name, variables=None, **apply):
    return {"ansible.builtin.include_role": {"name": f"podwire.cni.{name}", "apply": apply}, "vars": variables or {}}


def rescued(*tasks):
    return {"block": tasks, "rescue": [{"ansible.builtin.meta": "noop"}]}


def site(**variables):
    return {"all": {"hosts": {"here": {"ansible_connection": "local"}}, "vars": variables}}


def variables(folder, plugins, name, subnet, **more):
    """Return variables for roles whose directories are all in *folder*: a network *name*, and a container with it."""
    plugin = {"type": "bridge", "bridge": f"{name}0", "ipam": host_local(subnet, dataDir=f"{folder}/leases")}
    arguments = {"IgnoreUnknown": "1", "COLOUR": "red"}
    return {
        "cni_conf_dir": f"{folder}/net.d",
        "cni_bin_dirs": [f"{folder}/bin"],
        "cni_cache_dir": f"{folder}/cache",
        "cni_lock_timeout": 5,
        "cni_plugins_src": str(plugins),
        "cni_plugins_remote_src": True,
        # A text that is empty is not set.
        **dict.fromkeys(("cni_plugins_version", "cni_plugins_checksum", "cni_plugins_bin_dir"), ""),
        "cni_plugins_names": ["bridge", "host-local"],
        "cni_plugins_mode": "0700",
        "cni_networks_mode": "0600",
        "cni_networks": [network(name, plugin, priority=33)],
        "cni_netns": ["pwr-a"],
        "cni_attachments_parallel": 2,
        "cni_attachments": [
            {"network": name, "container_id": "a", "netns": "pwr-a", "ifname": "net0", "args": arguments}
        ],
        **more,
    }


def files(folder):
    return sh(f"find {folder} -mindepth 1 -type f -printf '%P %m\n' | sort").splitlines() if folder.exists() else []


def test_a_role_that_is_told_nothing_or_empty_texts_as_by_a_survey_does_nothing(controller):
    empty = dict.fromkeys((*DECLARING, "cni_plugins_checksum", "cni_plugins_names", "cni_plugins_bin_dir"), "")
    run = controller(site()).play(*(role(name, texts) for texts in ({}, empty) for name in ROLES))
    modules = Counter((entry.action, entry.status) for entry in run.results if entry.action.startswith("podwire."))
    # The roles runtime and networks use cni_conf, and all but networks have a task for what goes with their section.
    expected = {"cni_plugins": 2, "cni_conf": 4, "cni_netns": 2, "cni_attach": 2, "cni_host": 8}
    assert modules == {(f"podwire.cni.{module}", "skipped"): count for module, count in expected.items()}
    assert "changed=0 " in run.stdout


@pytest.mark.parametrize("name", [*ROLES, "pull"])
def test_a_role_alone_names_variables_that_none_of_the_roles_has(controller, name):
    given = {"cni_plugins_download_url": "https://mirror.example/cni.tgz", "cni_confdir": "/etc/cni/net.d"}
    run = controller(site(**given)).play(role(name))
    printed = " ".join(f"{run.stdout} {run.stderr}".split())
    said = "cni_plugins_download_url is a variable of vexxhost.containers.cni_plugins; use cni_plugins_src."
    assert [printed.count(words) for words in (said, "cni_confdir is set; did you mean cni_conf_dir?")] == [1, 1]


# Refused are values in words that begin with the name of the variable and entries of lists in those of the module.
ENTRY = {"name": "x", "colour": "red"}
REFUSED = [
    ("plugins", {"cni_plugins_names": {"bridge": "yes please"}}, "^cni_plugins_names: .* is not a list"),
    ("plugins", {"cni_plugins_dhcp_daemon": "perhaps"}, "^cni_plugins_dhcp_daemon"),
    ("networks", {"cni_networks_validate": ["everything"]}, "^cni_networks_validate"),
    ("networks", {"cni_networks": [ENTRY]}, "colour"),
    ("runtime", {"cni_runtime": ["nerdctl"]}, "^cni_runtime: 'nerdctl' is not one of"),
    ("attachments", {"cni_attachments_on_drift": "ignore"}, "^cni_attachments_on_drift: 'ignore' is not one of"),
    ("host", {"cni_plugins_names": {"bridge": "yes please"}}, "^cni_plugins_names: .* is not a list"),
    ("host", {"cni_networks_validate": ["everything"]}, "^cni_networks_validate: .* is not one of its values"),
    ("host", {"cni_networks_ensure_effective": "never"}, "^cni_networks_ensure_effective: .* is not one of its values"),
    ("host", {"cni_runtime": ["nerdctl"]}, "^cni_runtime: .* is not one of its values"),
    ("host", {"cni_attachments_on_drift": "ignore"}, "^cni_attachments_on_drift: .* is not one of its values"),
    ("host", {"cni_host_gather": ["everything"]}, "^cni_host_gather: .* is not one of its values"),
    ("host", {"cni_networks": [ENTRY], "cni_attachments": [{"netns": "x"}]}, "colour|network"),
]


def test_a_role_refuses_a_value_before_the_host_is_touched(controller):
    tasks = [rescued(role(name, given)) for name, given, _words in REFUSED]
    # A module on the host would fail otherwise.
    run = controller(site()).play(*tasks, ansible_python_interpreter="/nonexistent/python")
    refused = [entry.result for entry in run.results if entry.status == "failed"]
    for (name, _given, words), result in zip(REFUSED, refused, strict=True):
        assert re.search(words, result["msg"]), (name, result["msg"])
        assert "plan" not in result


def test_the_dhcp_daemon_is_foretold_in_check_mode(controller):
    """There is no systemd here; the scenario plugins_matrix has the daemon run on virtual machines."""
    sh("mkdir -p /etc/systemd/system")
    wanted = {"cni_plugins_dhcp_daemon": True, "cni_bin_dirs": ["/opt/other/bin", "/opt/cni/bin"]}
    pairs = [
        (role(name, wanted, check_mode=True, diff=True), role(name, {"cni_plugins_dhcp_daemon": False}))
        for name in ("plugins", "host")
    ]
    run = controller(site()).play(*(task for pair in pairs for task in pair))
    written, removed, *others = [entry.result for entry in run.results if entry.action == "podwire.cni.cni_host"]
    # The units were foretold, not written, and so none were removed.
    assert [written["changed"], removed["changed"]] == [True, False]
    service, socket = (row["after"] for row in written["diff"])
    assert "ExecStart=/opt/other/bin/dhcp daemon" in service
    assert [row["changed"] for row in others] == [True, False]
    assert [row["after"] for row in others[0]["diff"]] == [service, socket]


@pytest.fixture
def whole_host(controller, generations, tmp_path):
    """Return a function that runs the role of the whole host with words of the command line.

    It returns the sections in which something was done, and the run.
    """
    # Without plugins in a check, only what needs none of them can be validated.
    more = {"cni_networks_validate": ["syntax", "schema"], "cni_plugins_dhcp_daemon": ""}
    more.update(dict.fromkeys(("cni_classes", "cni_runtime", "cni_attachments_timeout"), ""))
    controller = controller(site(**variables(tmp_path / "cni", generations["new"], "pwrhost", "10.78.0.0/24", **more)))
    task = {"ansible.builtin.import_role": {"name": "podwire.cni.host"}, "tags": ["all_of_cni"]}

    def play(*options, **more):
        run = controller.play(task, options=options, **more)
        return list(dict.fromkeys(step["section"] for step in run.plan)), run

    return play


@pytest.mark.parametrize(
    ("tags", "sections"),
    [
        ("--tags all_of_cni", SECTIONS),
        ("--tags runtime", []),
        ("--skip-tags attachments", ["plugins", "networks", "netns"]),
        ("--tags networks,netns --skip-tags netns", ["networks"]),
        ("--skip-tags plugins,networks,runtime,netns,attachments", []),
    ],
)
def test_tags_select_sections(whole_host, tmp_path, tags, sections):
    planned, _run = whole_host("--check", *tags.split())
    assert planned == sections
    assert files(tmp_path / "cni") == []


def test_a_section_alone_and_then_the_rest(whole_host, tmp_path):
    folder = tmp_path / "cni"
    assert whole_host("--tags", "networks")[0] == ["networks"]
    assert files(folder) == ["net.d/33-pwrhost.conflist 600"]

    sections, run = whole_host(real=True)
    assert sections == ["plugins", "netns", "attachments"]
    assert " changed=1 " in run.stdout
    sections, again = whole_host()
    assert sections == []
    assert " changed=0 " in again.stdout

    there = files(folder)
    assert [line for line in there if line.startswith("bin/")] == ["bin/bridge 700", "bin/host-local 700"]
    assert "net.d/33-pwrhost.conflist 600" in there
    assert len([line for line in there if line.startswith("cache/results/pwrhost-a-net0 ")]) == 1
    assert len([line for line in there if line.startswith("leases/pwrhost/10.78.0.2 ")]) == 1


def test_the_roles_of_single_sections(controller, generations, tmp_path):
    folder = tmp_path / "cni"
    more = {
        "cni_bin_dirs": [f"{folder}/bin", str(generations["new"])],
        **dict.fromkeys(("cni_plugins_owner", "cni_plugins_group"), ""),
        "cni_networks_validate": ["syntax", "plugins"],
        "cni_attachments_timeout": 20,
        "cni_attachments_on_drift": "fail",
        "cni_attachments_force": True,
    }
    given = variables(folder, generations["new"], "pwroles", "10.77.0.0/24", **more)
    single = '{"cniVersion": "1.0.0", "name": "single", "type": "loopback"}'
    given["cni_networks"].append({"name": "single", "content": single})
    controller = controller(site(**given))
    roles = [role(name) for name in ("plugins", "networks", "attachments")]
    modules = [f"podwire.cni.{name}" for name in ("cni_plugins", "cni_conf", "cni_netns", "cni_attach")]

    run = controller.play(*roles, real=True)
    assert [run.of(module)[0]["changed"] for module in modules] == [True] * 4
    (attachment,) = run.of("podwire.cni.cni_attach")[0]["attachments"]
    assert (attachment["ifname"], attachment["ips"]) == ("net0", ["10.77.0.2/24"])
    there = files(folder)
    assert [line for line in there if line.startswith("bin/")] == ["bin/bridge 700", "bin/host-local 700"]
    assert {"net.d/33-pwroles.conflist 600", "net.d/10-single.conflist 600"} <= set(there)
    assert (folder / "leases" / "pwroles" / "10.77.0.2").exists()

    flush = {"ansible.builtin.command": "ip -n pwr-a address flush dev net0"}
    again = controller.play(*roles, flush, role("attachments"), status=2)
    assert [again.of(module)[0]["changed"] for module in modules] == [False] * 4
    drifted = again.results[-1]
    assert (drifted.action, drifted.status) == ("podwire.cni.cni_attach", "failed")
    assert drifted.result["attachments"][0]["action"] in ("drifted", "failed")
