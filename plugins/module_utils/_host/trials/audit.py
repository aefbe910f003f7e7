# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Audits the attachments that container runtimes made: live ones are compared with what rehearsals of their ADDs show.

What is lost is put back in place, or reported: an attachment that a runtime owns is never detached.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..attachments.caches import CacheContents, HostStores
from ..attachments.drift import Drifts, FindFreed, InPlaceSteps, Present
from ..attachments.request import Key
from ..attachments.store import CachedAttachment
from ..binaries.types import is_multus
from ..containers.live import LiveSet
from ..containers.namespaces import Namespace
from ..containers.sources import RUNTIMES, find_live
from ..errors import HostError
from ..footprints.object_kinds import phrases_of
from ..footprints.state import Drift
from ..kinds import bridge_of
from ..netns import inspect_paths, same
from ..plan import Plan
from ..secrets import mask_text
from ..struct import grouped
from .rehearsal import forget_rehearsals, rehearse


class Live(NamedTuple):
    """One live attachment that a runtime made: where its cache entry is, and which source has it."""

    present: Present
    cache_dir: str
    source: str

    @property
    def key(self) -> Key:
        return self.present.attached.key

    @property
    def netns(self) -> str:
        return self.present.attached.netns

    @property
    def delegates(self) -> bool:
        """Whether Multus has left it to other networks."""
        return any(is_multus(plugin.network) for plugin in self.present.attached.config.plugins)

    def row(self, drift: Drift) -> Dict[str, Any]:
        """Return what a module returns of it."""
        return {
            "network": self.key.network,
            "container_id": self.key.container_id,
            "ifname": self.key.ifname,
            "netns": self.netns,
            "cache_dir": self.cache_dir,
            "source": self.source,
            "ips": self.present.attached.ips,
            "compared": "partly" if drift.why else "fully",
            "why": mask_text(drift.why),
            "differences": phrases_of(drift.differences, True),
        }


class Audit:
    """The audit of one host. Reads, asks the runtimes, and runs ADDs in private copies of the host.

    ``drifts``: what attachments and their networks need, and have lost. ``problems``: (code, sentence) about what could
    not be read.
    """

    def __init__(self, bin_dirs: Sequence[str], stores: HostStores, find_freed: Optional[FindFreed] = None) -> None:
        self._bin_dirs = list(bin_dirs)
        self._find_freed = find_freed
        self._stores = stores
        self._lives: List[Live] = []
        self.drifts = Drifts()
        self.problems: List[Tuple[str, str]] = []

    def run(self) -> Dict[str, Any]:
        """Compare everything, and return :meth:`rows`. Who lives is a problem if it cannot be known."""
        try:
            self._lives = self._find_live()
        except HostError as error:
            text = f"the attachments that runtimes made were not audited: {error.msg}"
            self.problems.append((error.code, text))
            return self.rows()
        presents = [live.present for live in self._lives]
        self.drifts = Drifts(presents, None, partial(rehearse, bin_dirs=self._bin_dirs), self._find_freed)
        for text in self.drifts.problems:
            self.problems.append(("rules_unreadable", f"{text}; drift of what could not be read goes undetected"))
        return self.rows()

    # ---- who lives

    def _find_live(self) -> List[Live]:
        caches = [self._stores.contents, *self._stores.others]
        kept = [entry.key for contents in caches for entry in contents.entries if entry.managed and entry.key]
        entries = [(contents, entry) for contents in caches for entry in contents.entries if _is_of_runtime(entry)]
        by_key: Dict[Key, Live] = {}
        if entries:
            bridges = {bridge_of(plugin) for contents in caches for _network, plugin in contents.networks}
            live = self._stores.live or find_live(caches, bridges - {""})
            for attachment in (self._live_one(contents, entry, live) for contents, entry in entries):
                if attachment is not None:
                    by_key.setdefault(attachment.key, attachment)
        direct = {key[1:] for key, attachment in by_key.items() if not attachment.delegates}
        seen = inspect_paths({attachment.netns: (attachment.key.ifname,) for attachment in by_key.values()})
        lives = [
            attachment._replace(present=attachment.present._replace(identity=seen[attachment.netns].identity or {}))
            for key, attachment in sorted(by_key.items())
            if seen[attachment.netns].identity and not (attachment.delegates and key[1:] in direct)
        ]
        forget_rehearsals([*kept, *(attachment.key for attachment in lives)])
        return lives

    @staticmethod
    def _live_one(contents: CacheContents, entry: CachedAttachment, live: LiveSet) -> Optional[Live]:
        """Return the attachment if its namespace exists. The path of a process counts only if a runtime has it."""
        attached, home = entry.attached, live.homes.namespace_of(entry)
        if attached is None or home is None or home.own:
            return None
        answers = [answer for answer in live.answers if answer.source in RUNTIMES]
        source = next((answer.source for answer in answers if attached.key.container_id in answer.containers), "")
        leading = [path for path in entry.paths if home in live.namespaces.at(path)]
        if leading and not source and all(path.startswith("/proc/") for path in leading):
            return None
        # A path may lead there only in the mount namespace of its runtime.
        path = next((path for path in leading if _leads_to(path, home)), home.path)
        return Live(Present(attached.changed(netns=path), {}, entry.written), contents.cache_dir, source)

    # ---- what was found

    def rows(self) -> Dict[str, Any]:
        """Return ``{attachments, shared}`` as data. Containers that have died meanwhile are left out."""
        drifts = [(live, self.drifts.of(live.key)) for live in self._lives]
        rows = [live.row(drift) for live, drift in drifts if drift is not None]
        return {"attachments": rows, "shared": self.drifts.shared_rows()}

    def dead(self) -> Set[str]:
        """Return the targets of attachments whose namespace is no longer the one that was audited."""
        seen = inspect_paths({live.netns: () for live in self._lives})
        return {str(live.key) for live in self._lives if not same(seen[live.netns].identity, live.present.identity)}


class AuditPlan(Plan):
    """What puts back what attachments of runtimes have lost. ``rows``: see Audit.rows."""

    def __init__(self, audit: Audit, judged: Iterable[Drift] = ()) -> None:
        """*judged* is what another part of the plan repairs or reports already."""
        super().__init__()
        self._audit = audit
        self.rows = audit.rows()
        for code, text in audit.problems:
            self.warn(code, text)
        self._steps = InPlaceSteps(self, audit.drifts.order)
        keys = {(drift.owner, difference.key) for drift in judged for difference in drift.differences}
        for drift in audit.drifts.shared:
            drift.differences = [lost for lost in drift.differences if (drift.owner, lost.key) not in keys]
        self._steps.add_all([*audit.drifts.shared, *audit.drifts.attachments])
        partly = grouped((mask_text(drift.why), drift.target) for drift in audit.drifts.attachments if drift.why)
        for why, targets in partly.items():
            others = f" and {len(targets) - 1} more" if len(targets) > 1 else ""
            self.warn("partly_compared", f"{targets[0]}{others} could be compared only partly: {why}")

    def apply(self, workers: int = 1) -> None:
        dead = self._audit.dead()
        self.leave_out([step for step in self.steps if step.target in dead])
        self._steps.put_back()
        super().apply(workers)
        failed = [step.error for step in self.steps if step.error is not None]
        if failed:
            raise HostError("; ".join(error.msg for error in failed), code=failed[0].code)


def plan_audit(
    bin_dirs: Sequence[str], cache_dir: str, judged: Iterable[Drift] = (), find_freed: Optional[FindFreed] = None
) -> AuditPlan:
    """Audit the host, and return the plan of what can be put back. *judged*: see AuditPlan."""
    audit = Audit(bin_dirs, HostStores(cache_dir), find_freed)
    audit.run()
    return AuditPlan(audit, judged)


def _is_of_runtime(entry: CachedAttachment) -> bool:
    return not entry.managed and not entry.problem and entry.attached is not None and not entry.interrupted


def _leads_to(path: str, home: Namespace) -> bool:
    """Tell whether *path* leads to the namespace *home* in this mount namespace."""
    try:
        return bool(os.stat(path).st_ino == home.identity["inode"])
    except (OSError, ValueError):
        return False
