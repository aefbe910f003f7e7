# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A git repository whose commits are signed, and a host that pulls from it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

PROGRAM = Path(__file__).parents[3] / "roles" / "pull" / "files" / "pull"
# -I ignores PYTHONDONTWRITEBYTECODE, and root's files here could not be removed by the user who runs the tests.
PYTHON = ["/usr/bin/python3", "-I", "-B"]
# Appends what it is to a file, so that a test sees how often it ran.
PLAY = """\
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.shell: echo {text} >> {{{{ ran }}}}
"""


def sh(*words, **options):
    return subprocess.run([*map(str, words)], check=True, capture_output=True, text=True, **options).stdout.strip()


class Repository:
    """A repository whose *keys* (name -> private SSH key) sign."""

    def __init__(self, path, ran, keys):
        self.path, self.keys, self._second = path, keys, 0
        sh("git", "init", "--quiet", "--initial-branch", "main", path)
        for name, value in {"user.name": "a", "user.email": "a@example.org", "gpg.format": "ssh"}.items():
            self.git("config", name, value)
        self.name("main")
        self.write("hosts.yml", json.dumps({"all": {"hosts": {"node1": {}}, "vars": {"ran": str(ran)}}}))

    def git(self, *words, **environment):
        # No two commits are of the same second, unless a test says so.
        self._second = max(self._second + 1, int(time.time()))
        dated = {"GIT_COMMITTER_DATE": f"{self._second} +0000", **environment}
        return sh("git", "-C", self.path, *words, env={**os.environ, **dated})

    def write(self, name, text):
        (self.path / name).write_text(text)

    def name(self, branch, repository="fleet"):
        """Write which repository and branch a commit is for."""
        self.write("podwire-pull.json", json.dumps({"repository": repository, "branch": branch}))

    def play(self, text, name="local.yml"):
        """Write a playbook that notes a text."""
        self.write(name, PLAY.format(text=text))

    def commit(self, key="team", date=None):
        """Commit all, signed with a key or not, and return the commit."""
        self.git("add", "--all")
        signed = ["-c", f"user.signingkey={self.keys[key]}", "commit", "-S"] if key else ["commit", "--no-gpg-sign"]
        when = {"GIT_COMMITTER_DATE": f"{date} +0000"} if date else {}
        self.git(*signed, "--quiet", "--allow-empty", "--message", "a change", **when)
        return self.git("rev-parse", "HEAD")


class Puller:
    """The program with a configuration of its own."""

    def __init__(self, directory, url):
        self.directory, self.state, self.ran = directory, directory / "state", directory / "ran"
        self.config = {
            "state_dir": str(self.state),
            "machine_id": "",
            "name": "node1",
            "ansible_path": "",
            "url": str(url),
            "repository": "fleet",
            "branch": "main",
            "verify": "ssh",
            "rollback": False,
            "collection": "",
            "collection_sha256": "",
            "inventory": "hosts.yml",
            "playbooks": ["local.yml"],
            "once_playbooks": [],
            "boot_playbooks": [],
            "interval": 1800,
            "timeout": 20,
            "run_timeout": 60,
            "max_age": 86400,
            "report_dir": str(directory / "report"),
            "push": "",
            "textfile": str(directory / "pull.prom"),
        }

    def command(self, *words, **config):
        path = self.directory / "pull.json"
        path.write_text(json.dumps({**self.config, **config}))
        return [*PYTHON, str(PROGRAM), "--config", str(path), *words]

    def run(self, *words, status=0, trigger="", environment=(), **config):
        """Run it, and return the status file."""
        environment = {**os.environ, "TRIGGER_UNIT": trigger, **dict(environment)}
        done = subprocess.run(
            self.command(*words, **config), env=environment, capture_output=True, text=True, check=False
        )
        self.said = done.stdout + done.stderr
        assert done.returncode == status, self.said
        assert "Traceback" not in self.said
        return json.loads((self.state / "status.json").read_text())

    def codes(self):
        return [problem["code"] for problem in json.loads((self.state / "status.json").read_text())["problems"]]

    def noted(self):
        """Return what the playbooks have noted, and forget it."""
        found = self.ran.read_text().split() if self.ran.exists() else []
        self.ran.unlink(missing_ok=True)
        return found

    def edit_status(self, **changed):
        path = self.state / "status.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))

    def trees(self):
        return sorted(path.name for path in (self.state / "trees").iterdir()) if (self.state / "trees").exists() else []
