# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Audits the attachments that container runtimes made: live ones are compared with the footprints of their rehearsals.

What is lost is put back in place, or reported: an attachment that a runtime owns is never detached.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zlib
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..attachments import kernel_drift
from ..attachments.cache import CacheContents, CachedAttachment, read_cache, read_other_caches
from ..attachments.in_place import InPlaceSteps
from ..attachments.records import Attached
from ..attachments.request import Key
from ..containers.live import LiveSet
from ..containers.namespaces import Namespace
from ..containers.sources import RUNTIMES, find_live
from ..errors import HostError
from ..footprints.note import Footprint, Objects
from ..footprints.object_kinds import HOST, phrases_of, summarize
from ..footprints.repair import Wanted, why_not
from ..footprints.state import Compared, Look, compare, read_look, wanted_keys
from ..kernel.objects import read_objects
from ..kinds import bridge_of
from ..lock import LOCK_PATH
from ..netns import Netns, look, same
from ..paths import replace_unsynced
from ..plan import FOREIGN, Plan, Step, workers_of
from ..secrets import mask_text
from .private_host import work_apart
from .rehearsal import Rehearsal, Rehearsed, order_rules

FULLY, PARTLY = "fully", "partly"
_TARGET = "host"
_ADDED = "others have added it, so it is left"
_TIMEOUT, _TOTAL = 20.0, 60.0
_STORE = os.path.join(os.path.dirname(LOCK_PATH), "rehearsals")
_VERSION = 2
_LARGEST = 4 << 20


class Live(NamedTuple):
    """One live attachment that a runtime made: where its cache entry is, which source has it, and its namespace."""

    entry: CachedAttachment
    attached: Attached
    cache_dir: str
    source: str
    netns: str
    identity: Mapping[str, Any]

    @property
    def key(self) -> Key:
        return self.attached.key


class Audited:
    """What the audit found about one attachment.

    ``compared`` is ``fully`` or ``partly``, ``why`` the reason if it is not fully. ``differences`` are phrases,
    ``footprint`` and ``compared_with`` its comparison, ``obstacle`` why it cannot.
    """

    def __init__(self, live: Live) -> None:
        self.live = live
        self.compared, self.why = FULLY, ""
        self.differences: List[str] = []
        self.reason = ""
        self.obstacle = ""
        self.footprint: Optional[Footprint] = None
        self.compared_with = Compared([], [])

    def partly(self, why: str) -> None:
        self.compared, self.why = PARTLY, mask_text(why)

    def row(self) -> Dict[str, Any]:
        """Return what a module returns of it."""
        key = self.live.key
        return {
            "network": key.network,
            "container_id": key.container_id,
            "ifname": key.ifname,
            "netns": self.live.netns,
            "cache_dir": self.live.cache_dir,
            "source": self.live.source,
            "ips": self.live.attached.ips,
            "compared": self.compared,
            "why": self.why,
            "differences": self.differences,
        }


class Audit:
    """The audit of one host. Reads, asks the runtimes, and runs ADDs in private copies of the host.

    ``attachments``; ``shared``: what networks share and have lost, with its owner, as (owner, footprint, differences);
    ``problems``: (code, sentence) about what could not be read.
    """

    def __init__(self, bin_dirs: Sequence[str], cache_dir: str) -> None:
        self._bin_dirs = list(bin_dirs)
        self._cache_dir = cache_dir
        self._rehearsed: Dict[Key, Rehearsed] = {}
        self._look = Look({})
        self.attachments: List[Audited] = []
        self.shared: List[Tuple[Tuple[str, ...], Footprint, Compared]] = []
        self.problems: List[Tuple[str, str]] = []

    def run(self) -> Dict[str, Any]:
        """Compare everything, and return :meth:`rows`. Who lives is a problem if it cannot be known."""
        try:
            lives = self._live()
        except HostError as error:
            text = f"the attachments that runtimes made were not audited: {error.msg}"
            self.problems.append((error.code, text))
            return self.rows()
        if lives:
            self.attachments = [Audited(live) for live in lives]
            self._rehearse()
            self._compare()
            self._compare_results()
        return self.rows()

    # ---- who lives

    def _live(self) -> List[Live]:
        caches = [read_cache(self._cache_dir), *read_other_caches(self._cache_dir)]
        entries = [(contents, entry) for contents in caches for entry in contents.entries if _is_of_runtime(entry)]
        if not entries:
            return []
        live = find_live(caches, set(_bridges(caches)))
        found: Dict[Key, Live] = {}
        for contents, entry in entries:
            one = self._live_one(contents, entry, live)
            if one is not None:
                found.setdefault(one.key, one)
        paths = {one.netns: (one.key.ifname,) for one in found.values()}
        seen = look(paths)
        return [
            one._replace(identity=seen[one.netns].identity or {})
            for key, one in sorted(found.items())
            if seen[one.netns].identity
        ]

    @staticmethod
    def _live_one(contents: CacheContents, entry: CachedAttachment, live: LiveSet) -> Optional[Live]:
        """Return the attachment if its namespace exists. The path of a process counts only if a runtime has it."""
        attached, home = entry.attached, live.homes.namespace_of(entry)
        if attached is None or home is None or home.own:
            return None
        answers = [answer for answer in live.answers if answer.source in RUNTIMES]
        source = next((one.source for one in answers if attached.key.container_id in one.containers), "")
        leading = [path for path in entry.paths if home in live.namespaces.at(path)]
        if leading and not source and all(path.startswith("/proc/") for path in leading):
            return None
        # A path may lead there only in the mount namespace of its runtime.
        path = next((path for path in leading if _leads_to(path, home)), home.path)
        return Live(entry, attached, contents.cache_dir, source, path, {})

    # ---- footprints

    def _rehearse(self) -> None:
        """Find the footprint of every attachment: remembered, or by a rehearsal."""
        memory = _Memory()
        waiting: List[Tuple[Audited, Rehearsal, str]] = []
        host = read_objects()
        for one in self.attachments:
            rehearsal = Rehearsal(one.live.attached, one.live.entry.written, self._bin_dirs, host=host)
            name = _digest(one.live, [*self._bin_dirs, *rehearsal.bridges])
            known = memory.read(name)
            if rehearsal.partly:
                one.partly(rehearsal.partly)
            if known is not None and not self._understand(one, rehearsal, known):
                continue
            if rehearsal.obstacle:
                one.partly(rehearsal.obstacle)
            else:
                waiting.append((one, rehearsal, name))
        works = [rehearsal.work for _one, rehearsal, _name in waiting]
        answers = work_apart(works, self._bin_dirs, workers_of(), _TIMEOUT, _TOTAL) if works else []
        for (one, rehearsal, name), answer in zip(waiting, answers):
            if isinstance(answer, bytes):
                why = self._understand(one, rehearsal, answer)
                if why:
                    one.partly(why)
                else:
                    memory.write(name, answer)
            elif answer.code == "too_many":
                one.partly(f"there was no time to rehearse it within {_TOTAL:g} s; the next run continues")
            else:
                one.partly(answer.msg)
        memory.forget_others()

    def _understand(self, one: Audited, rehearsal: Rehearsal, answer: bytes) -> str:
        """Keep what a rehearsal has shown; return why it cannot be used, "" if it can."""
        try:
            self._rehearsed[one.live.key] = rehearsal.understand(answer)
        except HostError as error:
            return error.msg
        return ""

    # ---- comparison

    def _compare(self) -> None:
        owned: Dict[Tuple[str, ...], Objects] = {}
        netns = {one.live.key: one.live.netns for one in self.attachments}
        if not self._rehearsed:
            return
        # The newest result knows best what they share, such as the MAC of a bridge.
        for audited in sorted(self.attachments, key=lambda one: -one.live.entry.written):
            newest = self._rehearsed.get(audited.live.key)
            for owner, objects in newest.owned.items() if newest is not None else ():
                known = owned.setdefault(owner, {})
                known.update((key, there) for key, there in objects.items() if key not in known)
        everything = [Footprint(objects) for objects in owned.values()]
        wanted = wanted_keys("", everything)
        for key, rehearsed in self._rehearsed.items():
            for space, keys in wanted_keys(netns[key], [Footprint(None, rehearsed.inside)]).items():
                wanted.setdefault(space, []).extend(keys)
        lives = [one.live for one in self.attachments]
        self._look = read_look(wanted, {live.netns: Netns(live.netns, live.identity) for live in lives}.values())
        unread: List[str] = []
        for one in list(self.attachments):
            rehearsed_ = self._rehearsed.get(one.live.key)
            if rehearsed_ is None:
                continue
            if one.live.netns not in self._look.spaces:
                # It has died meanwhile.
                self.attachments.remove(one)
                continue
            host = rehearsed_.settled(owned.pop(one.live.key, {}), self._look, HOST)
            inside = rehearsed_.settled(rehearsed_.inside, self._look, one.live.netns)
            one.footprint = Footprint(host, inside, one.live.identity)
            one.compared_with = compare(self._look, one.footprint, one.live.netns)
            unread += one.compared_with.unread
            self._judge(one)
        for owner, objects in owned.items():
            first = next(iter(self._rehearsed.values()))
            footprint = Footprint(first.settled(objects, self._look, HOST))
            compared = compare(self._look, footprint, "")
            unread += compared.unread
            if compared.differences and len(owner) < 2:
                self.shared.append((owner, footprint, compared))
        for text in dict.fromkeys(unread):
            self.problems.append(("rules_unreadable", f"{text}; drift of what could not be read goes undetected"))

    @staticmethod
    def _judge(one: Audited) -> None:
        lost = one.compared_with.lost
        if not one.compared_with.differences or one.footprint is None:
            return
        one.differences = phrases_of(one.compared_with.differences, True)
        one.reason = summarize(lost, True)
        # A rehearsal does not tell the index of an interface, by which both ends of a pair know each other.
        objects = {HOST: one.footprint.host, one.live.netns: one.footprint.inside}
        gone = [
            str(d.key[1])
            for d in lost
            if d.key[0] == "link" and d.now is None and d.was["kind"] in _PAIRS and not objects[d.space][d.key].ifindex
        ]
        if gone:
            one.obstacle = f"{gone[0]} is gone, and only its runtime can make it again"
        else:
            one.obstacle = why_not(lost, one.footprint, one.live.netns)

    def _compare_results(self) -> None:
        """Compare attachments without a footprint with the results of their ADDs."""
        left = [one for one in self.attachments if one.footprint is None]
        if not left:
            return
        there = [
            Attached(a.key, a.config, one.live.netns, a.args, a.capability_args, a.result)
            for one in left
            for a in [one.live.attached]
        ]
        kernel = kernel_drift.read_kernel(there, {one.live.netns: one.live.identity for one in left})
        self.problems += [(entry["code"], entry["message"]) for entry in kernel.missing.problems]
        for one, attached in zip(left, there):
            one.differences = kernel.drift(attached, None)
            one.reason = "; ".join(one.differences)
            one.obstacle = f"what its ADD did is only partly known: {one.why}" if one.differences else ""

    def rows(self) -> Dict[str, Any]:
        """Return ``{attachments, shared}`` as data."""
        shared = [
            {"network": owner[0] if owner else "", "differences": phrases_of(compared.differences, False)}
            for owner, _footprint, compared in self.shared
        ]
        return {"attachments": [one.row() for one in self.attachments], "shared": shared}

    def order(self) -> Mapping[Tuple[Any, ...], Sequence[str]]:
        """Return the order of the rules in chains."""
        return order_rules(self._look, [rehearsed.order for rehearsed in self._rehearsed.values()])

    def dead(self) -> Set[str]:
        """Return the targets of attachments whose namespace is no longer the one that was audited."""
        lives = [one.live for one in self.attachments]
        seen = look({live.netns: () for live in lives})
        return {str(live.key) for live in lives if not same(seen[live.netns].identity, live.identity)}


class AuditPlan(Plan):
    """What puts back what attachments of runtimes have lost. ``rows``: see Audit.rows."""

    def __init__(self, audit: Audit, known: Iterable[str] = ()) -> None:
        """*known* are targets that another part of the plan repairs already."""
        super().__init__()
        self._audit = audit
        self.rows = audit.rows()
        for code, text in audit.problems:
            self.warn(code, text)
        self._steps = InPlaceSteps(self, audit.order)
        for owner, footprint, compared in audit.shared:
            target, reason = owner[0] if owner else _TARGET, summarize(compared.lost, False)
            obstacle = why_not(compared.lost, footprint, "")
            if target in known:
                continue
            if compared.additions:
                self._leave(target, summarize(compared.additions, False), _ADDED)
            if obstacle:
                self._leave(target, reason, obstacle)
            elif compared.lost:
                wanted = Wanted(owner, footprint)
                self._steps.add(target, reason, wanted, compared.lost, ("shared", target))
        for one in audit.attachments:
            if one.compared_with.additions:
                self._leave(str(one.live.key), summarize(one.compared_with.additions, True), _ADDED)
            if one.obstacle:
                self._leave(str(one.live.key), one.reason, one.obstacle)
            elif one.footprint is not None and one.compared_with.lost:
                wanted = Wanted(one.live.key, one.footprint, one.live.netns)
                self._steps.add(str(one.live.key), one.reason, wanted, one.compared_with.lost, one.live.key)

        for why, keys in _reasons(audit.attachments).items():
            others = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
            self.warn("partly_compared", f"{keys[0]}{others} could be compared only partly: {why}")

    def _leave(self, target: str, reason: str, obstacle: str) -> None:
        states = {"drift": reason}, {"drift": reason, "left": obstacle}
        self.add(Step("repair", target, FOREIGN, *states, lambda: None, reason=f"{reason}; {obstacle}"))

    def apply(self, workers: int = 1) -> None:
        dead = self._audit.dead()
        self.leave_out([step for step in self.steps if step.target in dead])
        self._steps.put_back()
        super().apply(workers)
        failed = [step.error for step in self.steps if step.error is not None]
        if failed:
            raise HostError("; ".join(error.msg for error in failed), code=failed[0].code)


def plan_audit(bin_dirs: Sequence[str], cache_dir: str, known: Iterable[str] = ()) -> AuditPlan:
    """Audit the host, and return the plan of what can be put back. *known*: targets that other steps repair."""
    audit = Audit(bin_dirs, cache_dir)
    audit.run()
    return AuditPlan(audit, set(known))


def _reasons(found: Iterable[Audited]) -> Dict[str, List[str]]:
    """Return why attachments were compared only partly -> which."""
    reasons: Dict[str, List[str]] = {}
    for one in found:
        if one.compared == PARTLY:
            reasons.setdefault(one.why, []).append(str(one.live.key))
    return reasons


_PAIRS = ("veth", "macvlan", "ipvlan", "vlan")


def _is_of_runtime(entry: CachedAttachment) -> bool:
    return not entry.managed and not entry.problem and entry.attached is not None and not entry.interrupted


def _bridges(caches: Sequence[CacheContents]) -> List[str]:
    names = {bridge_of(plugin) for contents in caches for _network, plugin in contents.networks}
    return sorted(names - {""})


def _digest(live: Live, used: Sequence[str]) -> str:
    """Return the name of what is remembered about an attachment. *used*: directories of plugins, existing bridges.

    It has everything that its ADD was given and returned, and when. Plugins that are replaced later do not change what
    the ADD did.
    """
    attached = live.attached
    config = hashlib.sha256(attached.config.expanded_bytes()).hexdigest()
    given = [attached.key, config, attached.args, attached.capability_args, attached.result]
    text = json.dumps([_VERSION, given, live.entry.written, list(used), dict(live.identity)], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _leads_to(path: str, home: Namespace) -> bool:
    """Tell whether *path* leads to the namespace *home* in this mount namespace."""
    try:
        return bool(os.stat(path).st_ino == home.identity["inode"])
    except (OSError, ValueError):
        return False


class _Memory:
    """What earlier rehearsals have found, in files of root that end with the boot."""

    def __init__(self) -> None:
        self._used: Set[str] = set()

    def read(self, name: str) -> Optional[bytes]:
        self._used.add(name)
        try:
            fd = os.open(os.path.join(_STORE, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        with os.fdopen(fd, "rb") as stream:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_size > _LARGEST:
                return None
            try:
                return zlib.decompressobj().decompress(stream.read(_LARGEST), _LARGEST)
            except zlib.error:
                return None

    def write(self, name: str, answer: bytes) -> None:
        """Remember an answer. If that fails, the next run rehearses again."""
        try:
            for folder in (os.path.dirname(_STORE), _STORE):
                os.makedirs(folder, 0o700, exist_ok=True)
            replace_unsynced(os.path.join(_STORE, name), zlib.compress(answer, 1))
        except OSError:
            return

    def forget_others(self) -> None:
        """Remove what is not about an attachment that lives."""
        try:
            for name in set(os.listdir(_STORE)) - self._used:
                os.unlink(os.path.join(_STORE, name))
        except OSError:
            return
