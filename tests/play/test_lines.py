# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""How much the playbooks print with the default callback of Ansible: the lines grow with the hosts, and not faster."""

from __future__ import annotations

import re

import pytest

from ansible_collections.podwire.cni.tests.play.controller import Controller

A_HOST, AT_ALL, MOST_SKIPPED = 3, 40, 3
# A plugin of a network that needs nothing from the host.
PLUGIN = """\
#!/bin/sh
case "$CNI_COMMAND" in
  VERSION) printf '{"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0"]}' ;;
  ADD) printf '{"cniVersion": "1.0.0", "interfaces": [{"name": "lo", "sandbox": "%s"}]}' "$CNI_NETNS" ;;
esac
"""
NETWORK = {"name": "lines", "conflist": {"cniVersion": "1.0.0", "plugins": [{"type": "trivial"}]}}
# Each on what the ones before it have left, with a number of the release of the plugin that is to be installed.
PLAYBOOKS = {
    "bootstrap --check": 1,
    "bootstrap": 1,
    "drift": 1,
    "report": 1,
    "report --limit k8s*": 1,
    "explain": 1,
    "smoke": 1,
    "gc": 1,
    "upgrade": 2,
    "teardown": 2,
    "drift --check": 1,
    "remediate --check": 1,
    "remediate": 1,
}


def release(folder, number):
    """Return a directory with a release of the plugin."""
    path = folder / f"release{number}"
    path.mkdir(exist_ok=True)
    (path / "trivial").write_text(f"{PLUGIN}# {number}\n")
    (path / "trivial").chmod(0o755)
    return str(path)


def site(folder, count):
    """Return an inventory of this many hosts, which are this machine, each with directories of its own."""
    variables = {
        "ansible_connection": "local",
        "cni_conf_dir": f"{folder}/{{{{ inventory_hostname }}}}/net.d",
        "cni_bin_dirs": [f"{folder}/{{{{ inventory_hostname }}}}/bin"],
        "cni_cache_dir": f"{folder}/{{{{ inventory_hostname }}}}/cache",
        "cni_plugins_remote_src": True,
        "cni_plugins_names": ["trivial"],
        "cni_networks": [NETWORK],
        "cni_report_dir": f"{folder}/report",
    }
    return {"all": {"hosts": {f"k8s{number}": {} for number in range(1, count + 1)}, "vars": variables}}


@pytest.mark.parametrize("count", [1, 6, *(pytest.param(many, marks=pytest.mark.full) for many in (20, 200))])
def test_at_most_three_lines_a_host(count, tmp_path):
    controller = Controller(tmp_path, site(tmp_path, count))
    printed = {}
    for line, number in PLAYBOOKS.items():
        playbook, *options = line.split()
        source = release(tmp_path, number)
        run = controller.run(playbook, "--forks", "4", *options, cni_hosts="all", cni_plugins_src=source)
        printed[line] = len((run.stdout + run.stderr).splitlines())
        skipped = [int(number) for number in re.findall(r" skipped=([0-9]+) ", run.stdout)]
        assert max(skipped) <= MOST_SKIPPED, run.stdout
    assert {line: lines for line, lines in printed.items() if lines > A_HOST * count + AT_ALL} == {}
