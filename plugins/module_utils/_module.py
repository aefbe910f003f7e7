# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every module of the collection shares: arguments, the root rule, and how a plan becomes a result."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, TypeVar

from ansible.module_utils.basic import AnsibleModule

from ._host.errors import HostError
from ._host.lock import run
from ._host.paths import absolute
from ._host.plan import DISRUPTIVE, SAFE, Plan
from ._host.secrets import mask

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


def create_module(arguments: Dict[str, Any], **keywords: Any) -> AnsibleModule:
    """Return the module, after the tests that every module of the collection makes."""
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True, **keywords)
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
    except HostError as error:
        fail(module, error)
    return module


def fail(module: AnsibleModule, error: HostError, **result: Any) -> None:
    """End the module with what *error* says."""
    result.update(error.facts)
    module.fail_json(msg=error.msg, code=error.code, **result)


def execute(module: AnsibleModule, make_plan: Callable[[], P], holder: str, workers: int = 1) -> P:
    """Plan and, outside check mode, apply under the lock; ends the module with the message of a HostError."""

    def allowed() -> P:
        plan = make_plan()
        if "classes" in module.params:
            plan.restrict(module.params["classes"])
        return plan

    try:
        return run(allowed, holder, module.params["lock_timeout"], module.check_mode, workers)
    except HostError as error:
        fail(module, error)
        raise


def result_of(module: AnsibleModule, plan: Plan) -> Dict[str, Any]:
    """Return ``changed``, ``actions`` and, when asked for, ``diff``, all from the one plan; pass its warnings on."""
    for code, message in plan.warnings:
        module.warn("[%s] %s" % (code, message))
    result: Dict[str, Any] = {"changed": plan.changed, "actions": plan.actions()}
    if "classes" in module.params:
        result["left"] = [step.describe() for step in plan.left]
    if module._diff:
        # Structures are masked here; who hands over text has masked it, since only they know how to read it.
        result["diff"] = [mask(entry) for entry in plan.diff() if entry["before"] != entry["after"]]
    return result
