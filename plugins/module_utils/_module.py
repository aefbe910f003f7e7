# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The shared parts of all modules: arguments, the check for root, and how a plan becomes a result."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any, Callable, Dict, List, NoReturn, Set, TypeVar

from ansible.module_utils.basic import AnsibleModule

from ._host.errors import HostError, coded
from ._host.lock import run_locked
from ._host.paths import absolute
from ._host.plan import DISRUPTIVE, SAFE, Plan
from ._host.secrets import MASK, one_line, published, secrets_of

P = TypeVar("P", bound=Plan)

COMMON_ARGUMENTS: Dict[str, Any] = {
    "conf_dir": {"type": "path", "default": "/etc/cni/net.d"},
    "bin_dirs": {"type": "list", "elements": "path", "default": ["/opt/cni/bin"]},
    "cache_dir": {"type": "path", "default": "/var/lib/podwire/cni"},
}
LOCK_ARGUMENTS: Dict[str, Any] = {"lock_timeout": {"type": "float", "default": 60}}
CLASSES_ARGUMENTS: Dict[str, Any] = {
    "classes": {"type": "list", "elements": "str", "choices": [SAFE, DISRUPTIVE], "default": [SAFE, DISRUPTIVE]}
}
SETS = ["conf", "plugins", "attachments", "leases", "kernel", "audit", "garbage", "runtime", "readiness"]
GATHER_ARGUMENTS: Dict[str, Any] = {"gather": {"type": "list", "elements": "str", "choices": SETS}}

# The exit status, once there is an answer.
_answered: List[int] = []


def _end_at_once() -> None:
    """End the process without destroying each object, which takes a tenth of the time of an unchanged run."""
    if _answered:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_answered[0])


# Data of containers, whose keys tell nothing about secrets; only the names go into the log and the invocation.
_OPAQUE = ("args", "capability_args")


class Module(AnsibleModule):
    """A module whose arguments and results show no secrets and no terminal control characters, wherever they appear.

    The option ``no_log`` is not enough: Ansible removes such values from all texts of the result, even a port number.
    """

    def warn(self, warning: str, **keywords: Any) -> None:
        super().warn(published(warning, self._known(), ""), **keywords)

    def exit_json(self, **result: Any) -> NoReturn:
        _answered.append(0)
        super().exit_json(**self._published(result))

    def fail_json(self, msg: str, **result: Any) -> NoReturn:
        _answered.append(1)
        # Only a list of problems has several lines.
        text = msg if result.get("problems") else one_line(str(msg))
        result["msg"] = coded(text, result.get("code", ""))
        super().fail_json(**self._published(result))

    def _published(self, result: Dict[str, Any]) -> Dict[str, Any]:
        result["invocation"] = {"module_args": _without_opaque(self.params)}
        out: Dict[str, Any] = published(result, self._known())
        return out

    def _known(self) -> Set[str]:
        """Return the secrets among the arguments that are long enough not to be part of other words."""
        return {secret for secret in secrets_of(self.params) if len(secret) >= 8}

    def _log_invocation(self) -> None:
        shown = {name: str(value) for name, value in published(_without_opaque(self.params)).items()}
        self.log("Invoked with " + " ".join(f"{name}={value}" for name, value in shown.items()), log_args=shown)


def _without_opaque(params: Any) -> Any:
    if isinstance(params, dict):
        return {
            name: dict.fromkeys(value, MASK) if name in _OPAQUE and isinstance(value, dict) else _without_opaque(value)
            for name, value in params.items()
        }
    return [_without_opaque(entry) for entry in params] if isinstance(params, list) else params


def create_module(arguments: Dict[str, Any], **keywords: Any) -> AnsibleModule:
    """Return the module, after the checks that all modules of the collection make."""
    # First, so that it runs last.
    atexit.register(_end_at_once)
    # Enough to walk through a JSON value, which may have 500 levels.
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 5000))
    module = Module(argument_spec=arguments, supports_check_mode=True, **keywords)
    if os.geteuid() != 0:
        module.fail_json(
            msg="this module must run as root: set 'become: true' on the task or the play", code="not_root"
        )
    # A login without a login shell often lacks sbin, where plugins look for iptables and nft.
    os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/local/sbin:/usr/sbin:/sbin"
    try:
        for option in ("conf_dir", "cache_dir", "bin_dir"):
            if module.params.get(option):
                module.params[option] = absolute(module.params[option], option)
        if "bin_dirs" in module.params:
            module.params["bin_dirs"] = [absolute(path, "bin_dirs") for path in module.params["bin_dirs"]]
            if not module.params["bin_dirs"]:
                raise HostError("bin_dirs: the list is empty; name at least one directory", code="no_bin_dir")
        if "timeout" in module.params and module.params["timeout"] <= 0:
            raise HostError("timeout must be more than 0 seconds", code="bad_timeout")
    except HostError as error:
        fail(module, error)
    return module


def fail(module: AnsibleModule, error: HostError, **result: Any) -> NoReturn:
    """End the module with *error*."""
    result.update(error.facts)
    module.fail_json(msg=error.msg, code=error.code, **result)


def execute(module: AnsibleModule, make_plan: Callable[[], P], holder: str, workers: int = 1) -> P:
    """Plan and, outside check mode, apply under the lock; a HostError ends the module."""

    def allowed() -> P:
        plan = make_plan()
        if "classes" in module.params:
            plan.restrict(module.params["classes"])
        return plan

    try:
        return run_locked(allowed, holder, module.params["lock_timeout"], module.check_mode, workers)
    except HostError as error:
        fail(module, error)


def finish(module: AnsibleModule, plan: Plan, **result: Any) -> None:
    """End the module with *result*. In check mode, it fails if something could not be planned."""
    if plan.error is not None:
        fail(module, HostError(plan.error.msg, plan.error.code, **dict(plan.error.facts, **result)))
    module.exit_json(**result)


def result_of(module: AnsibleModule, plan: Plan) -> Dict[str, Any]:
    """Return ``changed``, ``actions``, ``findings`` and, if requested, ``diff``; print the warnings."""
    for code, message in plan.warnings:
        module.warn(f"[{code}] {message}")
    result: Dict[str, Any] = {"changed": plan.changed, "actions": plan.actions(), "findings": plan.findings()}
    if "classes" in module.params:
        result["left"] = [step.describe() for step in plan.left]
    if module._diff:
        # Structures are masked as all results are. Text was masked by the code that knows its format.
        result["diff"] = [entry for entry in plan.diff() if entry["before"] != entry["after"]]
    return result
