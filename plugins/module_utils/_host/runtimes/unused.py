# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the runtimes of a host read what a run writes: its directory of networks, and its plugins."""

from __future__ import annotations

import os
from typing import Dict, Iterable, List, Optional, Sequence

from ..binaries.types import types_of
from ..confdir import ConfFile
from ..hostview import HostView
from ..plan import Plan
from ..problems import WARNING, Finding
from .discover import runtimes_on_host, same_directory
from .profiles import CONFIGURABLE, OWN
from .runtime import Runtime


def unused_directories(
    runtimes: Sequence[Runtime], conf_dir: str, files: Sequence[ConfFile], bin_dirs: Sequence[str], view: HostView
) -> List[Finding]:
    """Return a warning if no runtime reads *conf_dir*, which has *files*, and one for each that runs other plugins."""
    names = dict.fromkeys(name for file in files for name in types_of(file.plugins))
    unread = _unused_conf_dir(runtimes, conf_dir) if any(file.network for file in files) else []
    return [*unread, *unused_bin_dirs(runtimes, conf_dir, names, bin_dirs, view)]


def _unused_conf_dir(runtimes: Sequence[Runtime], conf_dir: str) -> List[Finding]:
    """Return a warning if there are runtimes that read networks, and none reads *conf_dir*."""
    readers = [runtime for runtime in _using(runtimes) if _reads_directory(runtime)]
    if not readers or any(same_directory(runtime.conf_dir, conf_dir) for runtime in readers):
        return []
    reading = ", ".join(f"{runtime.name} reads {runtime.conf_dir}" for runtime in readers)
    what = f"no runtime of this host reads this directory of networks: {reading}"
    remedy = _remedy("conf_dir", readers[0].conf_dir, readers[0], f"read {conf_dir}")
    return [Finding(WARNING, "conf_dir_unused", what, remedy, conf_dir, evidence=reading)]


def unused_bin_dirs(
    runtimes: Sequence[Runtime], conf_dir: str, names: Iterable[str], bin_dirs: Sequence[str], view: HostView
) -> List[Finding]:
    """Return a warning for each runtime that does not run the plugins *names* of *bin_dirs*: it has others, or none.

    That concerns the runtimes that read *conf_dir*. If there are none, plugins are unused only if no runtime runs them.
    """
    paths = {name: path for name, path in ((name, view.plugin_path(name, bin_dirs)) for name in names) if path}
    using = _using(runtimes)
    readers = [r for r in using if _reads_directory(r) and same_directory(r.conf_dir, conf_dir)]
    findings = [_not_run(runtime, paths, view) for runtime in readers or using]
    return [finding for finding in findings if finding is not None and (readers or None not in findings)]


def warn_of_unused(plan: Plan, names: Iterable[str], bin_dir: str, conf_dir: str, view: HostView) -> None:
    """Add a warning for each runtime that does not run the plugins *names* of *bin_dir*, as *view* shows them."""
    if names:
        for finding in unused_bin_dirs(runtimes_on_host(conf_dir, view), conf_dir, names, [bin_dir], view):
            plan.warn(finding.code, finding.sentence)


def _using(runtimes: Sequence[Runtime]) -> List[Runtime]:
    """Return the runtimes that are on this host and use CNI. Multus is a plugin, which its runtime runs."""
    return [runtime for runtime in runtimes if runtime.evidence and runtime.reads and runtime.name != "multus"]


def _reads_directory(runtime: Runtime) -> bool:
    return runtime.profile.choice != OWN and not runtime.conf_file


def _not_run(runtime: Runtime, paths: Dict[str, str], view: HostView) -> Optional[Finding]:
    """Return a warning if the runtime does not run the plugins at *paths*, by their names."""
    run = {name: view.plugin_path(name, runtime.bin_dirs) for name in paths}
    others = [name for name, path in paths.items() if os.path.realpath(path) != os.path.realpath(run[name])]
    if not others:
        return None
    folder, instead = os.path.dirname(paths[others[0]]), next((run[name] for name in others if run[name]), "")
    searched = f"it searches {', '.join(runtime.bin_dirs)}"
    why = f"it runs {instead} instead" if instead else searched
    what = f"{runtime.name} does not run the plugins {', '.join(others)} in this directory: {why}"
    remedy = _remedy("bin_dirs", os.path.dirname(instead) or runtime.bin_dirs[0], runtime, f"search {folder}")
    return Finding(WARNING, "bin_dir_unused", what, remedy, folder, evidence=searched, runtime=runtime.name)


def _remedy(option: str, path: str, runtime: Runtime, does: str) -> str:
    remedy = f"set {option} (cni_{option}) to {path}"
    if runtime.kind not in CONFIGURABLE:
        return remedy
    return f"{remedy}, or configure {runtime.kind} to {does} (cni_conf: runtime and configure; cni_runtime)"
