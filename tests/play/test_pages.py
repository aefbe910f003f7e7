# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What the first pages show of a playbook is what it prints, whole or between lines of three dots."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml

from ansible_collections.podwire.cni.tests.host.host import COLLECTION, sh
from ansible_collections.podwire.cni.tests.play.controller import Controller

CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
PLAYBOOK = ["ansible-playbook", "-i", "inventory.yml"]
# What each host needs to be this machine.
LOCAL = {"ansible_connection": "local", "cni_plugins_version": "", "cni_plugins_remote_src": True}
APART = {
    "cni_conf_dir": "{{ inventory_dir }}/{{ inventory_hostname }}/net.d",
    "cni_bin_dirs": ["{{ inventory_dir }}/{{ inventory_hostname }}/bin"],
    "cni_cache_dir": "{{ inventory_dir }}/{{ inventory_hostname }}/cache",
}
# What happens before the last command of a page, and what its hosts need to be apart.
SUBNET = "sed -i s/10.22.0.0/10.23.0.0/ node2/net.d/10-podnet.conflist"
PAGES = {"README.md": (SUBNET, APART), "docs/getting-started.md": ("true", {})}


def variables(page):
    """Return the variables that a page sets for its group, and the names of its hosts."""
    files = dict(re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    group = yaml.safe_load(files["inventory.yml"])["nodes"]
    return {**group.get("vars", {}), **yaml.safe_load(files.get("group_vars/nodes.yml", "{}"))}, list(group["hosts"])


@pytest.mark.usefixtures("empty_host")
@pytest.mark.parametrize("name", ["README.md", pytest.param("docs/getting-started.md", marks=pytest.mark.full)])
def test_what_a_page_shows_is_printed(name, tmp_path, generations):
    page = (COLLECTION / name).read_text(encoding="utf-8")
    change, apart = PAGES[name]
    values, hosts = variables(page)
    values = {**values, **LOCAL, **apart, "cni_plugins_src": str(generations["new"])}
    controller = Controller(tmp_path, {"nodes": {"hosts": {host: {} for host in hosts}, "vars": values}})
    commands = [found for block in CONSOLE.findall(page) for found in COMMAND.findall(block)]
    runs = [(shlex.split(line, comments=True), shown) for line, shown in commands if line.startswith(PLAYBOOK[0])]
    for number, (words, shown) in enumerate(runs):
        assert words[:3] == PLAYBOOK
        if number == len(runs) - 1:
            sh(f"cd {tmp_path}; {change}")
        run = controller.run(words[3].rpartition(".")[2], "--forks", "1", *words[4:])
        printed = re.sub(r" +$", "", run.stdout.replace(str(tmp_path), "/home/ops"), flags=re.MULTILINE).strip() + "\n"
        whole, *parts = re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE)
        assert whole in ("", printed)
        assert [part for part in parts if part not in printed] == []
        assert run.stderr == ""
    assert any(shown for _words, shown in runs)
