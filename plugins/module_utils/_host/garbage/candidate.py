# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""One object that may be garbage, and what was decided on it; and the settings of ``cni_gc``."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ..errors import HostError
from ..struct import field, struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..firewall.owners import RuleSet

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
