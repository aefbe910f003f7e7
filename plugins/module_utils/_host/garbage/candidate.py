# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""One object that may be garbage, and the decision on it; and the settings of ``cni_gc``."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ...libcni.files import read_file
from ..containers.live import LiveSet
from ..errors import HostError
from ..firewall.owners import RuleSet
from ..json_text import parse_json
from ..struct import field, struct

PATH = "/run/podwire-cni/gc-seen"
_MAX_SIZE = 4 << 20
ATTACHMENT, LEASE, RULE, CACHE, LINK = "attachment", "lease", "rule", "cache", "link"
SCOPES = {"attachments": ATTACHMENT, "leases": LEASE, "rules": RULE, "cache": CACHE, "links": LINK}
DELETED, LEFT, FAILED = "deleted", "left", "failed"

_CAUSES = {
    "interrupted": "its ADD was interrupted",
    "empty": "is empty, as after a crash",
    "damaged": "is damaged",
    "leftover": "was being written when its writer died",
    "stray": "is the record of an attachment that the cache does not have",
    "before_boot": "is older than this boot",
}


class GcSettings(NamedTuple):
    """The options of cni_gc. ``keep_from`` None: every source that is found. ``min_age`` in seconds.

    ``keep``: container ID -> names of interfaces (None: all); ``networks`` None: all; ``scope``: names in SCOPES.
    """

    conf_dir: str
    bin_dirs: Sequence[str]
    cache_dir: str
    keep_from: Optional[Sequence[str]] = None
    keep: Optional[Mapping[str, Optional[FrozenSet[str]]]] = None
    networks: Optional[Sequence[str]] = None
    scope: Sequence[str] = ("attachments", "leases", "rules", "cache")
    min_age: float = 600
    allow_empty: bool = False
    check_mode: bool = False
    timeout: float = 60

    def wants(self, network: str) -> bool:
        """Tell whether a network ("" if it is not known) is among those to work on."""
        return self.networks is None or network in self.networks


@struct
class Candidate:
    """One object that may be garbage.

    ``kind``: see above; ``ident``: its name among its kind; ``network``, ``container_id``: "" if not known;
    ``addresses`` must not be in use anywhere; ``since``: when it was made (seconds since the epoch, None: not known);
    ``managed``: whether cache_dir shows that this collection made it; ``cause``: what is wrong with it itself ("": only
    its owner's death would make it garbage); ``target``: its name in the plan, if that is not ``ident``; ``before``:
    its state for the diff; ``reused``: its container's ID is that of another, live container, too. ``drop`` removes it:
    a call, or rules, which are removed together.
    """

    kind: str
    network: str
    ident: str
    drop: Union[Callable[[], None], RuleSet]
    evidence: List[str] = field(default_factory=list)
    target: str = ""
    container_id: str = ""
    ifname: str = ""
    addresses: Sequence[str] = ()
    since: Optional[float] = None
    managed: bool = False
    cause: str = ""
    before: Any = None
    reused: bool = False
    action: str = LEFT
    reason: str = ""
    error: Optional[Dict[str, Any]] = None

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
        return self.kind, self.network, self.step_target

    @property
    def step_target(self) -> str:
        """Its name in the plan."""
        return self.target or self.ident

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


def when(moment: float) -> str:
    """Return a human-readable time."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(moment))


class FirstSeen:
    """When each key was first seen, in seconds since boot."""

    def __init__(self, path: str = PATH) -> None:
        self._path = path
        self.now = time.clock_gettime(time.CLOCK_BOOTTIME)
        self._known = _read(path, self.now)

    def age(self, key: str) -> float:
        """Return for how many seconds *key* has been known, 0 if it was not seen before."""
        return self.now - self._known.get(key, self.now)

    def note(self, keys: Iterable[str]) -> None:
        """Remember *keys*, and forget all others. Raises HostError ``seen_not_written``."""
        known = {key: self._known.get(key, self.now) for key in keys}
        if known == self._known:
            return
        temp = f"{self._path}.{os.getpid()}"
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8") as stream:
                json.dump(known, stream)
            os.rename(temp, self._path)
        except OSError as error:
            raise HostError(f"cannot write {self._path}: {error.strerror}", code="seen_not_written") from error
        self._known = known


def _read(path: str, now: float) -> Dict[str, float]:
    try:
        moments = parse_json(read_file(path, _MAX_SIZE, follow=False))
        # A time in the future was not written since this boot.
        return {str(key): float(moment) for key, moment in moments.items() if 0 <= float(moment) <= now}
    except (OSError, ValueError, TypeError, AttributeError):
        # Only time is lost: everything counts as seen for the first time.
        return {}


class Judge:
    """Decides on candidates. Every test must show that the owner is dead; otherwise the candidate is left.

    ``disabled``: networks that set disableGC. ``dates``: (network, container ID) -> when the newest dated object of it
    was made. ``seen``: when objects without a date were first seen.
    """

    def __init__(
        self,
        settings: GcSettings,
        live: LiveSet,
        disabled: FrozenSet[str],
        dates: Mapping[Tuple[str, str], float],
        seen: FirstSeen,
    ) -> None:
        self._settings, self._live, self._disabled, self._dates = settings, live, disabled, dates
        self._seen = seen
        self._now = time.time()
        self.undated: List[str] = []
        # As evidence that a container is not in the live set.
        parts = [f"{answer.source} ({answer.size})" for answer in live.answers if answer.source != "netns"]
        self._asked = ", ".join(parts) or "nothing"

    def decide(self, candidate: Candidate) -> None:
        """Set ``action`` and ``reason``, and complete the evidence."""
        live, settings = self._live, self._settings
        if candidate.network in self._disabled:
            candidate.leave("disable_gc", f"the network {candidate.network} sets disableGC")
            return
        owner = live.owner(candidate.container_id) if candidate.container_id and not candidate.reused else ""
        if owner:
            candidate.leave("live", f"container {candidate.container_id} is alive according to {owner}")
            return
        for address in candidate.addresses:
            holder = live.namespaces.holder(address)
            if holder is not None:
                candidate.leave("address_live", f"{address.partition('/')[0]} is in use in {holder.name}")
                return
            assigned = live.homes.assigned(address)
            if assigned is not None:
                text = f"{address.partition('/')[0]} is assigned to the attachment {assigned}, which is alive"
                candidate.leave("address_live", text)
                return
        if candidate.container_id and not candidate.reused:
            candidate.evidence.append(f"no source names container {candidate.container_id}; asked: {self._asked}")
        if candidate.addresses:
            texts = ", ".join(address.partition("/")[0] for address in candidate.addresses)
            candidate.evidence.append(f"{texts} is in none of the {len(live.namespaces.all)} network namespaces")
        if not live.complete and not candidate.managed:
            candidate.leave("not_ours", f"{live.why}, and nothing in {settings.cache_dir} shows that it is managed")
            return
        if self._is_young(candidate):
            return
        candidate.collect(candidate.cause or "owner_dead")

    def _is_young(self, candidate: Candidate) -> bool:
        since = candidate.since
        if since is None:
            # The ADD that made it also made something that has a date.
            since = self._dates.get((candidate.network, candidate.container_id))
        if since is not None:
            candidate.evidence.append(f"made {when(since)}")
            if self._now - since < self._settings.min_age:
                candidate.leave("young", f"that is less than min_age ({self._settings.min_age:g} s) ago")
                return True
            return False
        key = "/".join(candidate.key)
        self.undated.append(key)
        age = self._seen.age(key)
        if age < self._settings.min_age:
            candidate.leave(
                "young",
                "its age is not known, and no run of cni_gc saw it more than min_age "
                f"({self._settings.min_age:g} s) ago; each run records what it sees",
            )
            return True
        if self._settings.min_age:
            candidate.evidence.append("it has no date, but earlier runs of cni_gc saw it without an owner")
        return False
