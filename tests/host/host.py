# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Runs modules on the host of the tests, as tasks of a playbook would.

Most runs are forks of one process that has imported what modules import (tests/tools/preloaded.py). A run with an
interpreter, a wrapper, or variables of Python, and a module that a test starts, have a process of their own, as on a
host.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Iterable, NamedTuple

import ansible
import yaml
from ansible.errors import AnsibleActionFail
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible.plugins import loader as plugins
from ansible.template import Templar
from ansible.utils.display import Display

from ansible_collections.podwire.cni.tests.tools import preloaded

COLLECTION = Path(__file__).parents[2]
PLUGINS = "ansible_collections.podwire.cni.plugins"
PYTHON = "/usr/bin/python3"
# Interfaces, addresses, routes and rules. The kernel follows a lost carrier, and gives link-local addresses, in its own
# time: those are not changes of a module.
NETWORK_STATE = r"""
look() {
  ip "$@" -brief -batch - <<<$'link\naddress show scope global\nroute'
}
{
  look
  for name in $(ip netns list | cut -d' ' -f1 | sort); do
    echo "$name"
    look -n "$name" 2>&1 || true
  done
  iptables-save; ip6tables-save
} | awk '/^#/ { next } $2 ~ /^(UP|DOWN|UNKNOWN|LOWERLAYERDOWN)$/ { $2 = ""; sub(/<.*/, "") }
  { sub(/ linkdown/, ""); sub(/\[[0-9:]*\]/, ""); print }'
"""
_COMPILED = str(preloaded.ADDRESS.with_name("compiled"))

# What AnsiballZ does on a host, except for packing and unpacking: the module finds its arguments, and runs as __main__.
RUN = """\
import importlib, json, os, runpy, sys
from ansible.module_utils.testing import patch_module_args
for name, value in json.loads(os.environ.pop("PODWIRE_PATCHED", "{}")).items():
    module, _colon, words = name.partition(":")
    *parents, attribute = words.split(".")
    part = importlib.import_module(module)
    for parent in parents:
        part = getattr(part, parent)
    setattr(part, attribute, value)
with patch_module_args(json.load(sys.stdin)):
    runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=True)
"""


class Change(NamedTuple):
    """The results of one change of state, each as a module returned it."""

    check: dict[str, Any]
    run: dict[str, Any]
    again: dict[str, Any]
    check_again: dict[str, Any]


class Host:
    """A host with the modules' common options, such as ``conf_dir``, in *defaults*.

    *folder* is for files of the tests' own; ``displayed`` has the warnings of the last module's controller half.
    """

    def __init__(self, folder: Path, **defaults: Any) -> None:
        self.folder = folder
        self.defaults = defaults
        self.displayed: list[str] = []
        self._grouped = yaml.safe_load((COLLECTION / "meta" / "runtime.yml").read_text())["action_groups"]["all"]

    def with_defaults(self, **defaults: Any) -> Host:
        """Return this host with more or other *defaults*."""
        return type(self)(self.folder, **{**self.defaults, **defaults})

    def run(self, module: str, **arguments: Any) -> dict[str, Any]:
        """Return the result of a module that must not fail; ``check_mode`` and others are those of ``attempt``."""
        result = self.attempt(module, **arguments)
        assert not result.get("failed"), f"{module}: {json.dumps(result, indent=1)}"
        return result

    def fail(self, module: str, **arguments: Any) -> dict[str, Any]:
        """Return the result of a module that must fail, by saying so instead of a traceback."""
        result = self.attempt(module, **arguments)
        assert result.get("failed"), f"{module} did not fail: {json.dumps(result, indent=1)}"
        assert "Traceback" not in json.dumps(result), result
        return result

    def change(self, module: str, look: Callable[[], Any], **arguments: Any) -> Change:
        """Check, run, run again and check again, and return the results.

        The check predicts the run, and after the run there is nothing to do. *look* returns what the host shows of the
        change; neither a check nor the second run may change it.
        """
        before = look()
        check = self.run(module, check_mode=True, diff=True, **arguments)
        assert look() == before, "the check changed the host"
        run = self.run(module, diff=True, **arguments)
        after = look()
        again = self.run(module, diff=True, **arguments)
        check_again = self.run(module, check_mode=True, diff=True, **arguments)
        assert look() == after, "the second run changed the host"
        assert check["changed"] and run["changed"]
        assert check["actions"] == run["actions"]
        assert check["diff"] == run["diff"]
        for step in run["actions"]:
            assert 0 < len(step["reason"]) <= 200, step
        for result in (again, check_again):
            assert not result["changed"], json.dumps(result, indent=1)
            assert result["actions"] == []
            assert result["diff"] == []
        return Change(check, run, again, check_again)

    def refuse(
        self, module: str, look: Callable[[], Any], code: str, words: Iterable[str] = (), **arguments: Any
    ) -> dict[str, Any]:
        """Return the result of a run that must fail, and does so in check mode as well; neither changes the host."""
        before = look()
        refused = self.fail(module, **arguments)
        assert not refused.get("changed"), refused
        check = self.fail(module, check_mode=True, **arguments)
        assert look() == before, "what was refused changed the host"
        assert refused["code"] == check["code"] == code, refused["msg"]
        assert f"[{code}]" in refused["msg"], refused["msg"]
        assert [word for word in words if word not in refused["msg"]] == [], refused["msg"]
        assert refused["msg"] == check["msg"]
        return refused

    def attempt(
        self,
        module: str,
        *,
        check_mode: bool = False,
        diff: bool = False,
        environment: dict[str, str] | None = None,
        python: str | None = None,
        wrapper: tuple[str, ...] = (),
        patched: dict[str, Any] | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        """Return the result of a module, also if it failed.

        ``patched`` are values of the code by their names, such as ``_host.lock:PATIENCE``, to shorten what a test has
        to wait for. ``environment`` and ``python`` are those of the host; ``wrapper`` is a command that runs Python,
        such as nice. With ``python`` or ``wrapper``, the module runs in a process of its own.
        """
        if module in self._grouped:
            arguments = {**self.defaults, **arguments}
        if patched:
            names = {f"{PLUGINS}.module_utils.{name}": value for name, value in patched.items()}
            environment = {**(environment or {}), "PODWIRE_PATCHED": json.dumps(names)}
        self.displayed = []

        def execute(
            module_name: str | None = None,
            module_args: dict[str, Any] | None = None,
            task_vars: Any = None,
            **_others: Any,
        ) -> dict[str, Any]:
            given = dict(action._task.args if module_args is None else module_args)
            action._update_module_args(module, given, task_vars or {})
            command = (*wrapper, python or PYTHON) if wrapper or python else ()
            return self.execute(module, given, environment=environment, command=command)

        action = self._action(module, arguments, check_mode, diff)
        action._execute_module = execute
        warn = Display().warning
        Display().warning = lambda message, *_others, **_more: self.displayed.append(str(message))
        try:
            return dict(action.run(None, {"ansible_check_mode": check_mode, "ansible_diff_mode": diff}))
        except AnsibleActionFail as failure:
            # Ansible itself adds what the exception does not bring along.
            return {"failed": True, "msg": str(failure), **failure.result}
        finally:
            Display().warning = warn
            action._remove_tmp_path(action._connection._shell.tmpdir)

    @staticmethod
    def _action(module: str, arguments: dict[str, Any], check_mode: bool, diff: bool) -> Any:
        """Return the controller half of a module; the one of Ansible if it has none of its own."""
        own = (COLLECTION / "plugins" / "action" / f"{module}.py").exists()
        half = importlib.import_module(f"{PLUGINS}.action.{module}" if own else "ansible.plugins.action.normal")
        task, context, loader = Task(), PlayContext(), DataLoader()
        task.action, task.args = f"podwire.cni.{module}", arguments
        task.check_mode, task.diff = check_mode, diff
        return half.ActionModule(
            task=task,
            connection=plugins.connection_loader.get("local", context, task_uuid=task._uuid),
            play_context=context,
            loader=loader,
            templar=Templar(loader=loader, variables={}),
            shared_loader_obj=plugins,
        )

    def start(
        self,
        module: str,
        arguments: dict[str, Any],
        environment: dict[str, str] | None = None,
        command: tuple[str, ...] = (PYTHON,),
    ) -> subprocess.Popen[str]:
        """Start a module with *arguments* as they are, and return its process, whose input has been written."""
        interpreted = {"PYTHONPATH": module_path(), "PYTHONPYCACHEPREFIX": _COMPILED, "PYTHONDONTWRITEBYTECODE": ""}
        process = subprocess.Popen(
            [*command, "-c", RUN, f"{PLUGINS}.modules.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {}), **interpreted},
            text=True,
            cwd="/",
        )
        assert process.stdin
        process.stdin.write(json.dumps(arguments))
        process.stdin.close()
        process.stdin = None
        return process

    def execute(
        self,
        module: str,
        arguments: dict[str, Any],
        environment: dict[str, str] | None = None,
        command: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        """Run the host's half of a module with *arguments* as they are, and return its result.

        With *command*, or with variables that an interpreter reads when it starts, that is a process of its own.
        """
        if command or any(name.startswith(("LANG", "LC_", "PYTHON")) for name in environment or ()):
            return self.result(self.start(module, arguments, environment, command or (PYTHON,)))
        variables = {**os.environ, "PYTHONPATH": module_path(), **(environment or {})}
        _status, printed, errors = interpreter().run(
            RUN, "", f"{PLUGINS}.modules.{module}", env=variables, stdin=json.dumps(arguments)
        )
        return self.parsed(printed, errors)

    @classmethod
    def result(cls, process: subprocess.Popen[str]) -> dict[str, Any]:
        """Wait for a module and return its result."""
        return cls.parsed(*process.communicate(timeout=600))

    @staticmethod
    def parsed(printed: str, errors: str) -> dict[str, Any]:
        """Return the result that a module *printed*, and fail if it also printed *errors*."""
        assert not errors.strip(), errors
        result: dict[str, Any] = json.loads(printed)
        if "warnings" in result:
            # Texts, as a registered result has them.
            result["warnings"] = [
                warning if isinstance(warning, str) else warning["event"]["msg"] for warning in result["warnings"]
            ]
        return result


@functools.lru_cache(maxsize=None)
def module_path() -> str:
    """Return the PYTHONPATH of modules."""
    # Only ansible itself: the host has other libraries than the controller.
    controller = preloaded.ADDRESS.with_name("controller")
    controller.mkdir()
    (controller / "ansible").symlink_to(Path(ansible.__file__).parent)
    return f"{controller}:{COLLECTION.parents[2]}"


@functools.lru_cache(maxsize=None)
def interpreter() -> preloaded.Server:
    """Return the process whose forks run modules, for Host and for tests/tools/python. It ends with the tests."""
    modules = [f"{PLUGINS}.module_utils.{part}" for part in ("_host.*", "_module", "libcni.*")]
    modules += [f"ansible.module_utils.{part}" for part in ("_internal._json._profiles.*", "basic", "testing")]
    modules += ["encodings.ascii", "encodings.cp437", "pyroute2?", "runpy", "tomllib?"]
    # The user could not remove compiled files of root.
    return preloaded.Server(preloaded.ADDRESS, PYTHON, module_path(), modules, PYTHONDONTWRITEBYTECODE="1")


def sh(script: str, check: bool = True) -> str:
    """Run a script of bash on the host and return its output without the last line's end."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        check=False,
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    assert not check or done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout.rstrip("\n")


def lacks(kind: str) -> bool:
    """Tell whether the kernel lacks a kind of link, such as ``vlan id 6``."""
    link = "ip link add pwxa type veth; ip link add link pwxa name pwxb type"
    return "Unknown device type" in sh(f"unshare --net sh -c '{link} {kind} 2>&1' || true")


def needs(*kinds: str) -> None:
    """Skip a test where the kernel lacks one of the kinds of links. Programs without pytest use this file, too."""
    import pytest

    for kind in filter(lacks, kinds):
        pytest.skip(f"the kernel has no {kind}")


# What limits of waits are multiplied by, on a busy machine.
PATIENCE = float(os.environ.get("PODWIRE_PATIENCE") or 1)


def with_iptables(kind: str, folder: Path) -> str:
    """Make *folder* with iptables commands of a kind. Returns the PATH that begins with it."""
    folder.mkdir()
    for family in ("iptables", "ip6tables"):
        for verb in ("", "-save", "-restore"):
            (folder / f"{family}{verb}").symlink_to(f"/usr/sbin/{family}-{kind}{verb}")
    return f"{folder}:{os.environ['PATH']}"


def wait_until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Return what *condition* returns as soon as that is true, and fail if it is not in time."""
    seconds *= PATIENCE
    deadline = time.monotonic() + seconds
    while not (met := condition()):
        assert time.monotonic() < deadline, f"it did not happen in {seconds} s"
        time.sleep(0.02)
    return met


def delete_netns(name: str) -> None:
    """Delete a network namespace, and wait until the kernel has removed the other ends of its veths, a moment later."""
    ends = set(re.findall(r"@if(\d+):", sh(f"ip -n {name} -oneline link show type veth")))
    sh(f"ip netns delete {name}")
    wait_until(lambda: not ends & set(re.findall(r"^(\d+):", sh("ip -oneline link"), re.MULTILINE)))
