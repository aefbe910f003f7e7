# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""How much the playbooks print with the default callback of Ansible: the lines grow with the hosts, and not faster."""

from __future__ import annotations

import re

import pytest

from ansible_collections.podwire.cni.tests.play.controller import Controller

A_HOST, AT_ALL, MOST_SKIPPED = 3, 40, 3
# Ansible prints the headers of a play again for each batch: six batches have five more than one. Hosts that are fine
# leave room for that.
HEADERS = {"remediate": 25, "upgrade": 25}
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
    **{f"{playbook} --check": 2 for playbook in ("explain", "smoke", "gc", "upgrade", "teardown")},
    "upgrade": 2,
    "teardown": 2,
    "drift --check": 1,
    "remediate --check": 1,
    "remediate": 1,
}

# The variables of hosts of which a playbook has something to say.
REFUSED = {"name": "lines", "conflist": {"cniVersion": "1.0.0", "plugins": [{"type": "trivial", "ipam": []}]}}
ODD = {
    "unreachable": {"ansible_connection": "ssh", "ansible_host": "192.0.2.1"},
    "failed": {"cni_networks": [REFUSED]},
    # A name that resembles a variable, and one of another collection.
    "warning": {"cni_network": [], "cni_version": "1.9.1"},
}
ODD_PLAYBOOKS = ("bootstrap", "drift", "report", "explain", "smoke", "gc", "remediate", "upgrade", "teardown")


def release(folder, number):
    """Return a directory with a release of the plugin."""
    path = folder / f"release{number}"
    path.mkdir(exist_ok=True)
    (path / "trivial").write_text(f"{PLUGIN}# {number}\n")
    (path / "trivial").chmod(0o755)
    return str(path)


def site(folder, count, variables):
    """Return an inventory of this many hosts, which are this machine, each with directories of its own.

    *variables* are those of some kinds of hosts.
    """
    common = {
        "ansible_connection": "local",
        "cni_conf_dir": f"{folder}/{{{{ inventory_hostname }}}}/net.d",
        "cni_bin_dirs": [f"{folder}/{{{{ inventory_hostname }}}}/bin"],
        "cni_cache_dir": f"{folder}/{{{{ inventory_hostname }}}}/cache",
        "cni_plugins_remote_src": True,
        "cni_plugins_names": ["trivial"],
        "cni_networks": [NETWORK],
        "cni_report_dir": f"{folder}/report",
    }
    hosts = {f"k8s{number}": variables[number % len(variables)] for number in range(1, count + 1)}
    return {"all": {"hosts": hosts, "vars": common}}


def too_many(count, folder, playbooks, variables=({},), status=0, headers=None):
    """Return how many lines each playbook prints that prints too many; each runs on what others have left.

    *headers*: how many more lines some may print.
    """
    controller, printed = Controller(folder, site(folder, count, variables)), {}
    for line, number in playbooks.items():
        playbook, *options = line.split()
        source = release(folder, number)
        values = {"cni_hosts": "all", "cni_plugins_src": source}
        run = controller.run(playbook, "--forks", "4", *options, status=status, **values)
        lines = len((run.stdout + run.stderr).splitlines())
        if lines > A_HOST * count + AT_ALL + (headers or {}).get(playbook, 0):
            printed[line] = lines
        skipped = [int(number) for number in re.findall(r" skipped=([0-9]+) ", run.stdout)]
        assert max(skipped, default=0) <= MOST_SKIPPED, run.stdout
    return printed


@pytest.mark.parametrize("count", [1, 6, *(pytest.param(many, marks=pytest.mark.full) for many in (20, 200))])
def test_at_most_three_lines_a_host(count, tmp_path):
    assert too_many(count, tmp_path, PLAYBOOKS) == {}


@pytest.mark.parametrize(
    ("kinds", "count"),
    [
        (tuple(ODD), 20),
        *(pytest.param((kind,), 20, marks=pytest.mark.full) for kind in ODD),
        pytest.param(tuple(ODD), 200, marks=pytest.mark.full),
    ],
)
def test_also_if_hosts_are_odd(kinds, count, tmp_path):
    variables = [ODD[kind] for kind in kinds]
    assert too_many(count, tmp_path, dict.fromkeys(ODD_PLAYBOOKS, 1), variables, None, HEADERS) == {}
