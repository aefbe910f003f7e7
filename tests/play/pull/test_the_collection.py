# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A host that pulls this collection and runs its playbooks, on a host that has never seen CNI."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.podwire.cni.tests.play.pull.site import PROGRAM, PYTHON, sh

COLLECTION = Path(__file__).parents[3]
# Somebody deletes a plugin and the file of a network before the last three.
PLAYBOOKS = ("bootstrap", "bootstrap", "drift", "remediate", "drift")
LINES = """\
bootstrap.yml   node1: changed: make directory bin, install 3 plugins, make directory net.d, and 3 more (3 safe)
bootstrap.yml   1 host: 1 changed
bootstrap.yml   node1: unchanged
bootstrap.yml   1 host: 1 unchanged
drift.yml       node1: drift: install loopback, create 10-apps.conflist
remediate.yml   node1: repaired: install loopback, create 10-apps.conflist
drift.yml       node1: clean
"""


@pytest.mark.full
def test_bootstrap_drift_and_remediate(real, repository, run_privately, tmp_path):
    settings = yaml.safe_load((COLLECTION / "tests" / "integration" / "integration_config.yml").read_text())
    sh("ansible-galaxy", "collection", "build", "--output-path", repository.path, COLLECTION)
    (archive,) = repository.path.glob("podwire-cni-*.tar.gz")
    repository.write(f"{archive.name}.sha256", hashlib.sha256(archive.read_bytes()).hexdigest())
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.20.0.0/24"}]]}
    apps = {"type": "bridge", "bridge": "apps0", "ipam": ipam}
    variables = {
        # Modules copy only files of root, and a user may own the cache.
        "cni_plugins_src": "/run/home/old",
        "cni_plugins_remote_src": True,
        "cni_plugins_names": ["bridge", "host-local", "loopback"],
        "cni_networks": [{"name": "apps", "conflist": {"cniVersion": "1.0.0", "plugins": [apps]}}],
        "cni_netns": ["web"],
        "cni_attachments": [{"network": "apps", "container_id": "web", "netns": "web"}],
        "cni_report_dir": str(tmp_path / "report"),
    }
    (repository.path / "group_vars").mkdir()
    repository.write("group_vars/all.yml", json.dumps(variables))
    for name in set(PLAYBOOKS):
        repository.write(f"{name}.yml", f"- ansible.builtin.import_playbook: podwire.cni.{name}\n")
    repository.commit()
    real.config["collection"] = archive.name
    for name in set(PLAYBOOKS):
        real.command(playbooks=[f"{name}.yml"])
        (tmp_path / "pull.json").rename(tmp_path / f"{name}.json")
    # Without PYTHONPATH, Ansible has no other copy of the collection than the one that was pulled.
    script = f"""\
    unset PYTHONPATH
    cp -r "$1" /run/home/old
    pull() {{ {" ".join(PYTHON)} {PROGRAM} --config {tmp_path}/"$1".json; }}
    pull bootstrap
    pull bootstrap
    rm /opt/cni/bin/loopback /etc/cni/net.d/*.conflist
    pull drift
    pull remediate
    pull drift
    ls -d {real.state}/collections-*/ansible_collections/podwire/cni"""
    said = run_privately({}, "bash", "-ec", script, "bash", settings["cni_test_plugins_old"])
    shown, name = [], ""
    for line in said.splitlines():
        # The lines of drift and remediate are labels, those of bootstrap are in a message.
        if found := re.search(
            r'^(\S+) of commit|=> \(item=(node1: .*)\)$|^ +"((?:node1: (?!left)|1 host: ).*?)",?$', line
        ):
            name = found[1] or name
            shown += [f"{name:<15} {found[2] or found[3]}"] if found[2] or found[3] else []
    assert shown == LINES.splitlines(), said
    assert len(re.findall(f"^{real.state}/collections-.*/podwire/cni$", said, re.MULTILINE)) == 1, said
