# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Creating and removing named network namespaces, with pyroute2."""

from __future__ import annotations

import os
import stat
from functools import partial
from typing import Any, Dict, List, Sequence

from .errors import HostError
from .netns import NETNS_DIR, check_name, inspect_paths
from .plan import DISRUPTIVE, SAFE, Plan, Step

NETNS_ARGUMENTS: Dict[str, Any] = {
    "names": {"type": "list", "elements": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}

# What a name in /run/netns can be.
_NOTHING, _NAMESPACE, _LEFTOVER = "nothing", "namespace", "leftover"


class NetnsPlan(Plan):
    """The plan, and a row ``{name, path, action}`` for each name of the request."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: List[Dict[str, Any]] = []

    def expected(self) -> Dict[str, bool]:
        """Return for the path of each namespace that a step creates (True) or removes (False)."""
        return {step.target: step.kind == "create" for step in self.steps}


def plan_netns(names: Sequence[str], present: bool, check_mode: bool = False) -> NetnsPlan:
    """Plan to create the namespaces, or to remove them. Changes nothing.

    Raises HostError ``bad_netns``, ``duplicate_netns`` or ``not_a_namespace``; check mode only notes the last one.
    """
    plan = NetnsPlan()
    for index, name in enumerate(names):
        check_name(name, f"names[{index}]")
        if name in names[:index]:
            raise HostError(f"names[{index}]: {name} is in the list twice; leave one out", code="duplicate_netns")
    paths = [os.path.join(NETNS_DIR, name) for name in names]
    seen = inspect_paths(dict.fromkeys(paths, ()))
    for name, path in zip(names, paths):
        try:
            state = _NAMESPACE if seen[path].identity else _leftover(path)
        except HostError as error:
            plan.refuse(error, check_mode)
            plan.rows.append({"name": name, "path": path, "action": "failed"})
            continue
        action = "none"
        before = None if state == _NOTHING else {"path": path, "is": state}
        if present and state != _NAMESPACE:
            action = "created"
            after = {"path": path, "is": _NAMESPACE}
            reason = "does not exist" if state == _NOTHING else "the file is there, but its namespace is gone"
            plan.add(Step("create", path, SAFE, before, after, partial(_create, name, state), reason=reason))
        elif not present and state != _NOTHING:
            action = "removed"
            step_class, remove = DISRUPTIVE if state == _NAMESPACE else SAFE, partial(_remove, name, state)
            plan.add(Step("remove", path, step_class, before, None, remove, reason="state is absent"))
        plan.rows.append({"name": name, "path": path, "action": action})
    return plan


def _leftover(path: str) -> str:
    """Return what is there instead of a namespace; a file or a link stays when the mount of a namespace is gone."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return _NOTHING
    except OSError as error:
        raise HostError(f"cannot inspect {path}: {error.strerror}", code="not_a_namespace") from error
    if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        return _LEFTOVER
    text = f"{path} is neither a network namespace nor the empty file that one leaves behind"
    raise HostError(f"{text}; inspect it and remove it", code="not_a_namespace")


def _create(name: str, state: str) -> None:
    import pyroute2.netns

    path = os.path.join(NETNS_DIR, name)
    try:
        os.makedirs(NETNS_DIR, mode=0o755, exist_ok=True)
        if state == _LEFTOVER:
            os.unlink(path)
        # By its path, in bytes, because pyroute2 expects names to be ASCII.
        pyroute2.netns.create(os.fsencode(path))
    except Exception as error:
        raise HostError(f"cannot create the network namespace {name}: {_text(error)}", code="create_failed") from error
    if inspect_paths({path: ()})[path].identity is None:
        raise HostError(
            f"created the network namespace {name}, but {path} does not lead to it; check that {NETNS_DIR} is on a "
            "file system that allows mounts",
            code="create_failed",
        )


def _remove(name: str, state: str) -> None:
    path = os.path.join(NETNS_DIR, name)
    try:
        if state == _LEFTOVER or os.path.islink(path):
            # A link leads to a namespace with another path; only the name is removed.
            os.unlink(path)
            return
        import pyroute2.netns

        pyroute2.netns.remove(os.fsencode(path))
    except Exception as error:
        raise HostError(f"cannot remove the network namespace {name}: {_text(error)}", code="remove_failed") from error


def _text(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__
