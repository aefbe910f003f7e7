# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The targets of ansible-test, which are playbooks: what they test is Ansible with this collection."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).resolve().parent
PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")
# The longest first, so that no worker ends long after the others.
LONGEST = ("upgrade",)
TARGETS = sorted(
    (path.name for path in (HERE.parent / "integration" / "targets").iterdir()),
    key=lambda name: (name not in LONGEST, name),
)


@pytest.mark.parametrize("target", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in TARGETS])
def test_target(target, tmp_path, run_privately):
    """Run a target as ansible-test does, on a host that has never seen CNI: namespaces of its own."""
    settings = yaml.safe_load((HERE.parent / "integration" / "integration_config.yml").read_text())
    plugins = {}
    for name in ("cni_test_plugins_old", "cni_test_plugins_new"):
        # Modules run only files of root, and a user may own the cache.
        plugins[settings[name]] = settings[name] = f"/run/home/{name}"
    (tmp_path / "settings.yml").write_text(yaml.safe_dump(settings))
    (tmp_path / "ansible.cfg").write_text("[defaults]\nnocolor = true\n[connection]\npipelining = true\n")
    (tmp_path / "inventory").write_text(
        "[testgroup]\ntesthost ansible_connection=local ansible_python_interpreter=/usr/bin/python3\n"
    )
    play = {
        "hosts": "testhost",
        "gather_facts": True,
        "vars_files": [str(tmp_path / "settings.yml")],
        "vars": {"output_dir": "/run/home/output"},
        "pre_tasks": [
            {"ansible.builtin.file": {"path": "{{ output_dir }}", "state": "directory", "mode": "0700"}},
            *({"ansible.builtin.command": f"cp --recursive {source} {copy}"} for source, copy in plugins.items()),
        ],
        "roles": [target],
    }
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    environment = {
        "ANSIBLE_CONFIG": tmp_path / "ansible.cfg",
        "ANSIBLE_INVENTORY": tmp_path / "inventory",
        "ANSIBLE_ROLES_PATH": HERE.parent / "integration" / "targets",
    }
    run_privately(environment, PLAYBOOK, tmp_path / "play.yml")
