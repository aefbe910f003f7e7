# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of ``cni_gc``, its candidates with their outcomes, and its plan."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ..attachments.remains import Dropped
from ..errors import HostError
from ..plan import Plan

ATTACHMENT, LEASE, RULE, CACHE, LINK = "attachment", "lease", "rule", "cache", "link"
SCOPES = {"attachments": ATTACHMENT, "leases": LEASE, "rules": RULE, "cache": CACHE, "links": LINK}

# The order in which they are collected.
ORDER = (RULE, ATTACHMENT, LEASE, CACHE, LINK)

_CAUSES = {
    "interrupted": "its ADD was interrupted",
    "empty": "is empty, as after a crash",
    "damaged": "is damaged",
    "leftover": "was being written when its writer died",
    "stray": "is the record of an attachment that the cache does not have",
    "before_boot": "is older than this boot",
}

DELETED, LEFT, FAILED = "deleted", "left", "failed"


class GcSettings:
    """The options of cni_gc. ``keep_from`` None: every source that is found. ``min_age`` in seconds.

    ``keep``: container ID -> names of interfaces (None: all); ``networks`` None: all; ``scope``: kinds to collect.
    """

    __slots__ = (
        "allow_empty",
        "bin_dirs",
        "cache_dir",
        "check_mode",
        "conf_dir",
        "keep",
        "keep_from",
        "min_age",
        "networks",
        "scope",
        "timeout",
    )

    def __init__(
        self,
        conf_dir: str,
        bin_dirs: Sequence[str],
        cache_dir: str,
        keep_from: Optional[Sequence[str]] = None,
        keep: Optional[Mapping[str, Optional[FrozenSet[str]]]] = None,
        networks: Optional[Sequence[str]] = None,
        scope: Sequence[str] = ("attachments", "leases", "rules", "cache"),
        min_age: float = 600,
        allow_empty: bool = False,
        check_mode: bool = False,
        timeout: float = 60,
    ) -> None:
        self.conf_dir = conf_dir
        self.bin_dirs = list(bin_dirs)
        self.cache_dir = cache_dir
        self.keep_from = None if keep_from is None else list(keep_from)
        self.keep = dict(keep or {})
        self.networks = None if networks is None else frozenset(networks)
        self.scope = frozenset(SCOPES[name] for name in scope)
        self.min_age = min_age
        self.allow_empty = allow_empty
        self.check_mode = check_mode
        self.timeout = timeout

    def wants(self, network: str) -> bool:
        """Tell whether a network ("" if it is not known) is among those to work on."""
        return self.networks is None or network in self.networks


class Candidate:
    """One object that may be garbage.

    ``kind``: see above; ``ident``: its name among its kind; ``network``, ``container_id``: "" if not known;
    ``addresses`` must not be in use anywhere; ``since``: when it was made (seconds since the epoch, None: not known);
    ``managed``: whether cache_dir shows that this collection made it; ``cause``: what is wrong with it itself ("": only
    its owner's death would make it garbage); ``target``: its name in the plan; ``before``: its state for the diff;
    ``remove`` removes it.
    """

    __slots__ = (
        "action",
        "addresses",
        "before",
        "cause",
        "container_id",
        "error",
        "evidence",
        "ident",
        "ifname",
        "kind",
        "managed",
        "network",
        "reason",
        "remove",
        "reused",
        "since",
        "target",
    )

    def __init__(
        self,
        kind: str,
        network: str,
        ident: str,
        target: str,
        remove: Callable[[], None],
        container_id: str = "",
        ifname: str = "",
        addresses: Sequence[str] = (),
        since: Optional[float] = None,
        managed: bool = False,
        cause: str = "",
        before: Any = None,
        evidence: Sequence[str] = (),
    ) -> None:
        self.kind = kind
        self.network = network
        self.ident = ident
        self.target = target
        self.remove = remove
        self.container_id = container_id
        self.ifname = ifname
        self.addresses = list(addresses)
        self.since = since
        self.managed = managed
        self.cause = cause
        self.before = before
        self.evidence = list(evidence)
        self.reused = False
        self.action = LEFT
        self.reason = ""
        self.error: Optional[Dict[str, Any]] = None

    def leave(self, reason: str, evidence: str) -> None:
        self.action = LEFT
        self.reason = reason
        self.evidence.append(evidence)

    def collect(self, reason: str) -> None:
        self.action = DELETED
        self.reason = reason

    def fail(self, error: HostError) -> None:
        self.action = FAILED
        self.error = dict(error.facts, code=error.code, message=error.msg)

    def why(self) -> str:
        """Return in a few words why it is garbage; the whole evidence is in ``evidence``."""
        if self.cause:
            return _CAUSES[self.cause]
        if self.container_id:
            return f"no source names container {self.container_id}"
        if self.addresses:
            addresses = ", ".join(address.partition("/")[0] for address in self.addresses)
            return f"no network namespace has {addresses}"
        return "no live container uses it"

    @property
    def key(self) -> Tuple[str, str, str]:
        """What identifies it among all candidates."""
        return self.kind, self.network, self.target

    def row(self) -> Dict[str, Any]:
        """Return the module's result for it."""
        return {
            "kind": self.kind,
            "network": self.network,
            "id": self.ident,
            "container_id": self.container_id,
            "ifname": self.ifname,
            "addresses": self.addresses,
            "evidence": self.evidence,
            "action": self.action,
            "reason": self.reason,
            "error": self.error,
        }


class GcPlan(Plan):
    """The plan, with a candidate for each object that does not clearly have a live owner, and a count of the rest.

    ``verbs``: for each network that has GC, whether it is sent, see entries.GcVerb.
    """

    def __init__(self) -> None:
        super().__init__()
        self.candidates: List[Candidate] = []
        self.kept: Dict[str, int] = dict.fromkeys(SCOPES.values(), 0)
        self.live: List[Dict[str, Any]] = []
        self.complete = True
        self.why = ""
        self.namespaces = 0
        self.verbs: List[Any] = []
        self.finish_deletions: Callable[[], Dropped] = lambda: Dropped({}, [])

    @property
    def pending(self) -> bool:
        return self.changed or any(verb.send for verb in self.verbs)

    def apply(self, workers: int = 1) -> None:
        # As long as its address is reserved, no new container's rules can be taken for those of the dead one. So rules
        # come first, then DELs, which free addresses. Only DELs gain from running in parallel.
        for kind in ORDER:
            steps = [step for step in self.steps if step.item[0] == kind]
            self.apply_steps(steps, workers if kind == ATTACHMENT else 1)
            if kind == ATTACHMENT:
                self._finish_deletions()
        # Plugins get GC when everything else is done, so that they find a clean host.
        for verb in self.verbs:
            if verb.send:
                verb.run()

    def _finish_deletions(self) -> None:
        dropped = self.finish_deletions()
        for key in dropped.rows:
            kept = dropped.kept(key)
            if kept:
                self.warn("rules_left", f"{key}: its DEL left what could not be removed ({kept}); run again")


def when(moment: float) -> str:
    """Return a human-readable time."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(moment))
