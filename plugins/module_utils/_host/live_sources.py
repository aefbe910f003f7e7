# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking the sources of live containers: which are on the host, which are asked, and whether that is all of them."""

from __future__ import annotations

import os
import stat
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from . import source_containerd, source_nomad, source_podman
from .all_netns import read_namespaces
from .errors import HostError
from .gc_cache import Contents
from .gc_outcome import Settings
from .live import Answer, LiveSet
from .plan import Plan


class Runtime(NamedTuple):
    """A source that has to be found before it can be asked."""

    present: Callable[[], Optional[str]]
    ask: Callable[[], Answer]


RUNTIMES = {
    "containerd": Runtime(source_containerd.present, source_containerd.ask),
    "podman": Runtime(source_podman.present, source_podman.ask),
    "nomad": Runtime(source_nomad.present, source_nomad.ask),
}
SOURCES = ("cache", "netns", *RUNTIMES)

# Runtimes that use CNI and are no source: where one of them is, nobody knows all containers.
_OTHERS = {"CRI-O": "/run/crio/crio.sock", "cri-dockerd": "/run/cri-dockerd.sock"}


def find(settings: Settings, contents: Contents, plan: Plan) -> LiveSet:
    """Return all that lives, by the sources that are to be asked.

    Raises HostError ``source_unusable``, ``missing_source`` (outside check mode), ``netns_unusable``.
    """
    found = {"netns": "/proc and the named network namespaces"}
    if contents.entries:
        found["cache"] = f"{settings.cache_dir} has {len(contents.entries)} entries"
    wanted = settings.keep_from
    for name, runtime in RUNTIMES.items():
        evidence = runtime.present()
        if evidence is not None:
            found[name] = evidence
        elif wanted is not None and name in wanted:
            _tell_missing(name, settings, plan)
    names = sorted(found) if wanted is None else sorted(name for name in set(wanted) if name in found)
    answers = [RUNTIMES[name].ask() for name in names if name in RUNTIMES]
    if settings.keep:
        answers.append(Answer("keep", settings.keep, asked="the list keep"))
    paths = [entry.netns for entry in contents.entries if entry.netns]
    paths += [path for answer in answers for path in answer.namespaces]
    namespaces = read_namespaces(paths, with_links="link" in settings.scope)
    if "cache" in names:
        answers.append(contents.answer(settings.cache_dir, namespaces))
    if "netns" in names:
        asked = "named network namespaces, those that are mounted, and those of processes"
        answers.append(Answer("netns", {}, count=len(namespaces.all), asked=asked))
    return LiveSet(answers, found, namespaces, _why_incomplete(names, found))


def _tell_missing(name: str, settings: Settings, plan: Plan) -> None:
    message = (
        f"keep_from names {name}, but nothing on this host speaks of it; leave it out, or leave keep_from out "
        "to ask every source that is found"
    )
    if not settings.check_mode:
        raise HostError(message, code="missing_source", source=name)
    plan.warn("missing_source", message)


def _why_incomplete(names: Sequence[str], found: Dict[str, Any]) -> str:
    """Return why the live set may lack somebody, "" if every source was asked."""
    left_out: List[str] = sorted(set(found) - set(names))
    if left_out:
        return f"{', '.join(left_out)} was found but not asked"
    for name, path in _OTHERS.items():
        if _is_socket(path):
            return f"{name} is here ({path}) and cannot be asked"
    return ""


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def other_runtime(live: LiveSet) -> str:
    """Return what says that a runtime is on the host, "" if nothing does."""
    for name in RUNTIMES:
        if name in live.found:
            return f"{name} is on this host ({live.found[name]})"
    for name, path in _OTHERS.items():
        if _is_socket(path):
            return f"{name} is on this host ({path})"
    return ""
