# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Asking the sources of live containers: which are on the host, and whether all of them answered.

Whatever any source names is alive, whichever sources the user lists.
"""

from __future__ import annotations

import os
from typing import AbstractSet, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ..attachments.caches import CacheContents
from ..attachments.store import CachedAttachment
from ..errors import HostError
from . import containerd, nomad, podman
from .live import Answer, Homes, LiveSet, answer_of, seen_from_here
from .namespaces import Namespaces, read_namespaces

RUNTIMES = {"containerd": containerd.find_containerd, "podman": podman.find_podman, "nomad": nomad.find_nomad}

# Traces of runtimes that use CNI. If one is there and its runtime cannot be asked, not all containers are known. A
# stopped runtime leaves its containers and its state, so looking for its socket is not enough.
_OTHERS = {
    "containerd": ("/var/lib/containerd/io.containerd.metadata.v1.bolt",),
    "podman": podman.TRACES,
    "CRI-O": ("/run/crio",),
    "cri-dockerd": ("/run/cri-dockerd.sock", "/var/lib/cri-dockerd"),
}


def find_live(
    caches: Sequence[CacheContents],
    bridges: AbstractSet[str],
    keep_from: Optional[Sequence[str]] = None,
    keep: Optional[Mapping[str, Optional[FrozenSet[str]]]] = None,
) -> LiveSet:
    """Return everything that is alive. *caches*: first that of this collection; *bridges*: those of CNI networks.

    *keep*: container ID -> names of interfaces (None: all). *keep_from*: the sources that must answer (None: every one
    that is found); other runtimes are asked as well, but need not answer. Raises HostError ``source_unusable``,
    ``processes_hidden``, ``netns_unusable``.
    """
    evidence = {"netns": "/proc and the named network namespaces"}
    if caches[0].entries:
        evidence["cache"] = f"{caches[0].cache_dir} has {len(caches[0].entries)} entries"
    answers: List[Answer] = []
    for name, find in RUNTIMES.items():
        runtime = find()
        if runtime is None:
            continue
        evidence[name] = runtime.evidence
        try:
            answers.append(runtime.ask())
        except HostError:
            if keep_from is None or name in keep_from:
                raise
    why = _why_incomplete(set(evidence) if keep_from is None else set(keep_from), evidence)
    if keep:
        answers.append(Answer("keep", keep, asked="the option keep"))
    entries = [entry for contents in caches for entry in contents.entries]
    paths = [path for entry in entries for path in entry.paths]
    paths += [path for answer in answers for path in answer.namespaces]
    namespaces = read_namespaces(paths)
    homes = Homes(entries, namespaces)
    _test_view(namespaces, homes, entries, bridges)
    for contents in reversed(caches):
        if contents.entries:
            evidence[contents.source] = f"{contents.cache_dir} has {len(contents.entries)} entries"
            answers.append(answer_of(contents, homes))
    asked = "named network namespaces, those that are mounted, and those of processes"
    answers.append(Answer("netns", {}, number=len(namespaces.all), asked=asked))
    return LiveSet(answers, evidence, namespaces, homes, why)


def _test_view(
    namespaces: Namespaces, homes: Homes, entries: Sequence[CachedAttachment], bridges: AbstractSet[str]
) -> None:
    """Raise HostError ``processes_hidden`` if this host has processes that /proc does not show.

    A container may be alive in a namespace to which only such a process leads.
    """
    why = _hidden(namespaces, homes, entries, bridges) if namespaces.nested else ""
    if why:
        raise HostError(
            f"cannot tell which containers are alive: /proc shows only the processes of one PID namespace, and {why}; "
            "run the module in the host's PID namespace (docker and podman: --pid=host, Kubernetes: hostPID: true)",
            code="processes_hidden",
        )


def _hidden(
    namespaces: Namespaces, homes: Homes, entries: Sequence[CachedAttachment], bridges: AbstractSet[str]
) -> str:
    """Return the evidence of processes outside of this PID namespace, "" if there is none.

    A system container (LXC, kind) has a PID namespace of its own, too, but is a complete host.
    """
    if namespaces.outside:
        return "it is not the host's, although the network namespace is"
    links = namespaces.host.links
    names = {link.name for link in links.values()}
    for link in links.values():
        if link.name in namespaces.unseen and link.master in links and links[link.master].name in bridges:
            return f"none of them leads to the namespace at the other end of {link.name}"
    for entry in entries:
        for name in entry.host_ends:
            if name in namespaces.unseen:
                return f"none of them leads to the namespace at the other end of {name}"
        # A missing host end proves death: both ends of a veth go with the namespace of either.
        processes = [path for path in entry.paths if path.startswith("/proc/")]
        proven = seen_from_here(entry, namespaces) or not names.issuperset(entry.host_ends)
        if processes and not proven and not homes.of(entry):
            return f"{processes[0]}, which {entry.key or entry.name} was attached to, may be a path in another one"
    return ""


def _why_incomplete(names: AbstractSet[str], evidence: Dict[str, str]) -> str:
    """Return why the live set may lack containers, "" if every source had to answer."""
    left_out = sorted(set(evidence) - names)
    if left_out:
        return f"keep_from leaves out {' and '.join(left_out)}, found on this host"
    name, path = _other(evidence)
    return f"found {path} of {name}, which cannot be asked" if name else ""


def _other(evidence: Mapping[str, str]) -> Tuple[str, str]:
    """Return a runtime that cannot be asked, and a trace of it; ("", "") if there is none.

    In an administrator's container, the traces of the host's runtimes are below the root of the first process.
    """
    for name, traces in _OTHERS.items():
        for path in traces:
            if name not in evidence and (os.path.exists(path) or os.path.exists(f"/proc/1/root{path}")):
                return name, path
    return "", ""


def other_runtime(live: LiveSet) -> str:
    """Return the evidence that a runtime is on the host, "" if there is none."""
    for name in RUNTIMES:
        if name in live.evidence:
            return f"{name} is on this host ({live.evidence[name]})"
    name, path = _other(live.evidence)
    return f"{name} is on this host ({path})" if name else ""
