# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What the role refuses before it changes a host, and the configuration that it writes for the program."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import yaml

from ansible_collections.podwire.cni.tests.play.controller import Controller

ROLE = Path(__file__).parents[3] / "roles" / "pull"
REFUSED = {
    "cni_pull_url": [
        "https://me:s3cret@git.example/cni.git",
        "https://s3cret@git.example/cni.git",
        "HTTPS://me:s3cret@git.example/cni.git",
        "https://git.example/cni.git?private_token=s3cret",
        "ssh://git:s3cret@git.example/cni.git",
    ],
    "cni_pull_pip_arguments": ["--index-url https://me:s3cret@index.example/simple"],
}
ACCEPTED = {
    "cni_pull_url": ["https://git.example/@team/cni.git", "ssh://git@git.example/cni.git", "git@git.example:cni.git"],
    "cni_pull_pip_arguments": ["--no-index --find-links /srv/wheels"],
}


def test_secrets_that_programs_would_have_as_arguments_are_refused(tmp_path):
    """Of the role, only the task that refuses is run."""
    tasks = yaml.safe_load((ROLE / "tasks" / "present.yml").read_text())
    usable = {"cni_pull_url": "https://git.example/cni.git", "cni_pull_allowed_signers": "me ssh-ed25519 AAAA"}
    cases = [{name: value} for kind in (REFUSED, ACCEPTED) for name, values in kind.items() for value in values]
    said = run(tmp_path, tasks[:1], {f"host{index}": {**usable, **case} for index, case in enumerate(cases)})
    refused = [case for index, case in enumerate(cases) if f"[host{index}]: FAILED!" in said]
    assert refused == [{name: value} for name, values in REFUSED.items() for value in values], said
    # Not the URL, which journals would keep.
    assert "s3cret" not in said
    assert said.count('"msg": "cni_pull_url contains a password') == len(REFUSED["cni_pull_url"])


def test_the_configuration_is_complete(puller, tmp_path):
    plain = {
        "cni_pull_url": "git@git.example:cni.git",
        "__cni_pull_supported": True,
        "__cni_pull_machine": {"content": ""},
    }
    hosts = {"plain": plain, "mirror": {**plain, "cni_pull_repository": "fleet", "cni_pull_max_age": "60"}}
    template = {
        "src": str(ROLE / "templates" / "pull.json.j2"),
        "dest": str(tmp_path) + "/{{ inventory_hostname }}.json",
    }
    said = run(tmp_path, [{"ansible.builtin.template": template}], hosts)
    assert said.count("failed=0") == 2, said
    configured = {name: json.loads((tmp_path / f"{name}.json").read_text()) for name in hosts}
    assert set(configured["plain"]) == set(puller.config)
    assert [configured["plain"][key] for key in ("repository", "max_age")] == ["git@git.example:cni.git", 86400]
    assert [configured["mirror"][key] for key in ("repository", "max_age")] == ["fleet", 60]


def test_a_key_ring_that_was_not_completed_is_made_by_the_next_run(tmp_path, monkeypatch):
    place = Path("/var/lib/podwire/pull/keys")
    place.mkdir(parents=True)
    (tmp_path / "gpg").write_text(f"#!/bin/sh\nmkdir {tmp_path}/failed && exit 1; echo >$2/ring\n")
    (tmp_path / "gpg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    tasks = yaml.safe_load((ROLE / "tasks" / "keys.yml").read_text())
    hosts = {"one": {"cni_pull_gpg_keys": "keys", "cni_pull_verify": "gpg"}}
    try:
        said = [run(tmp_path, tasks, hosts) for _run in "123"]
        assert (place / "gnupg" / "ring").exists() and "failed=1" in said[0] and "changed=0" in said[2], said
    finally:
        shutil.rmtree(place.parent)


def run(directory, tasks, hosts):
    """Run tasks on this machine as these hosts (name -> variables), and return what Ansible has printed."""
    controller = Controller(directory, {"all": {"hosts": hosts, "vars": {"ansible_connection": "local"}}})
    done = controller.play(*tasks, status=None)
    return done.stdout + done.stderr
