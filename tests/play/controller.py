# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Runs playbooks as a user would, on hosts that are this machine.

ansible-playbook runs in forks of a process that has imported Ansible, and its modules in forks of one that has imported
them (tests/tools/preloaded.py). With ``real=True``, both have processes of their own.
"""

from __future__ import annotations

import functools
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterable, NamedTuple

from jsonschema import Draft202012Validator

from ansible_collections.podwire.cni.tests.host.host import COLLECTION, PYTHON
from ansible_collections.podwire.cni.tests.tools import preloaded

HERE = Path(__file__).parent
INTERPRETER = str(HERE.parent / "tools" / "python")
CONFIG = f"""\
[defaults]
nocolor = true
callback_plugins = {HERE / "callbacks"}
callbacks_enabled = record
[connection]
pipelining = true
"""
# What a play of any kind imports, besides what the command itself does.
PARTS = (
    *("ansible.cli.playbook", "ansible.executor.module_common", "ansible.executor.task_executor", "controller_half"),
    *("ansible.plugins.action.normal", "ansible.plugins.filter.core", "ansible.plugins.test.core", "jsonschema"),
    *("ansible.plugins.lookup.template", "multiprocessing.popen_fork", "multiprocessing.pool", "yaml", "zipfile"),
)
SCHEMA = COLLECTION / "plugins" / "plugin_utils" / "_report" / "report.schema.json"


class TaskResult(NamedTuple):
    """What a task returned for a host; *status* is ok, item, failed, skipped or unreachable."""

    host: str
    task: str
    action: str
    status: str
    result: dict[str, Any]


class Run(NamedTuple):
    """The end of a playbook: exit status, what it printed, and what its tasks returned."""

    status: int
    stdout: str
    stderr: str
    results: list[TaskResult]

    def of(self, action: str) -> list[dict[str, Any]]:
        """Return the results of a module or action, but for skipped ones."""
        return [entry.result for entry in self.results if entry.action == action and entry.status != "skipped"]

    @property
    def plan(self) -> list[dict[str, Any]]:
        """What cni_host planned, without what became of it, and the actions of the other modules."""
        results = [entry.result for entry in self.results if entry.status != "skipped"]
        steps = [step for key in ("plan", "actions") for result in results for step in result.get(key) or ()]
        return [{key: value for key, value in step.items() if key != "state"} for step in steps]


def steps(host: dict[str, Any]) -> list[str]:
    """Return the steps of a host in a report: kind, target and class of each."""
    return [f"{step['kind']} {step['target']} {step['class']}" for step in host["steps"]]


@functools.lru_cache(maxsize=None)
def config() -> Path:
    """Return the configuration of Ansible for all runs."""
    path = preloaded.ADDRESS.with_name("ansible.cfg")
    path.write_text(CONFIG)
    return path


@functools.lru_cache(maxsize=None)
def _playbooks() -> preloaded.Server:
    address = preloaded.ADDRESS.with_name("ansible-playbook.socket")
    return preloaded.Server(address, sys.executable, os.environ["PYTHONPATH"], PARTS, ANSIBLE_CONFIG=str(config()))


class Controller:
    """A directory with an inventory, from which playbooks are run. *inventory* is a mapping, as in YAML.

    Each host of it needs ``ansible_connection: local``, unless it shall not be reached.
    """

    def __init__(self, folder: Path, inventory: dict[str, Any]) -> None:
        self.folder = folder
        self.inventory = folder / "inventory.yml"
        # JSON is YAML, and keeps strings strings.
        self.inventory.write_text(json.dumps(inventory, indent=1))

    def run(
        self, playbook: str, *options: str, status: int | None = 0, real: bool = False,
        env: dict[str, str] | None = None, **variables: Any,
    ) -> Run:  # fmt: skip
        """Run a playbook of the collection, or a file, which must end with *status*, None for any.

        *options* are words of the command line, and *variables* those of `-e`. *env* cannot hold settings of Ansible
        unless the run is *real*.
        """
        record = self.folder / "record"
        record.unlink(missing_ok=True)
        environment = {**os.environ, "ANSIBLE_CONFIG": str(config()), "PODWIRE_RECORD": str(record), **(env or {})}
        variables = {"ansible_python_interpreter": PYTHON if real else INTERPRETER, **variables}
        name = playbook if "/" in playbook else f"podwire.cni.{playbook}"
        words = ["ansible-playbook", "-i", str(self.inventory), name, "-e", json.dumps(variables), *options]
        if real:
            command = [str(Path(sys.executable).with_name(words[0])), *words[1:]]
            done = subprocess.run(
                command, env=environment, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            ended, stdout, stderr = done.returncode, done.stdout, done.stderr
        else:
            code = "from ansible.cli.playbook import main; main()"
            ended, stdout, stderr = _playbooks().run(code, *words, env=environment, cwd=str(self.folder))
        assert status in (None, ended), f"{shlex.join(words)}\nended with {ended}\n{stdout}{stderr}"
        lines = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
        return Run(ended, stdout, stderr, [TaskResult(**json.loads(line)) for line in lines])

    def play(self, *tasks: dict[str, Any], hosts: str = "all", options: Iterable[str] = (), **more: Any) -> Run:
        """Run tasks as a play, with words of the command line and what else `run` takes."""
        path = self.folder / "play.yml"
        path.write_text(json.dumps([{"hosts": hosts, "gather_facts": False, "tasks": tasks}], indent=1))
        return self.run(str(path), *options, **more)

    def report(self) -> dict[str, Any]:
        """Return the report that a playbook has written to ``report`` in the folder; it must keep the schema."""
        report: dict[str, Any] = json.loads((self.folder / "report" / "report.json").read_text(encoding="utf-8"))
        Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(report)
        return report

    def reported(self) -> dict[str, dict[str, Any]]:
        """Return the hosts of that report by name."""
        return {host["host"]: host for host in self.report()["hosts"]}
