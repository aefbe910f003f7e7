# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Finds what ADDs changed, from readings before and after them, and writes it down."""

from __future__ import annotations

from collections import Counter
from typing import Any, Collection, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ..firewall.chains import NO_POLICY, FoundChains, read_chains, survives
from ..firewall.order import arranged
from ..kernel.links import STACKED
from ..kernel.objects import BY_KERNEL, OF_INTERFACES, KernelObject, ObjectKey, State, device_of, read_objects
from ..kernel.sysctls import GLOBAL, compared_names, interface_defaults, read_globals
from ..netlink import LOCAL_TABLE
from ..struct import struct
from .attribution import Attribution, Party, is_of_plugins
from .footprint import SHARED, Footprint, Objects, Owner, SharedFootprints
from .object_kinds import HOST, KINDS, LEASE, LINK, is_default_rule, rules_by_chain
from .state import FORWARDING, LeaseStore, Reading, read_stores

SWITCHES = tuple(FORWARDING.values())
Defaults = Mapping[Tuple[str, str], int]


def read_inside(sysctls: Optional[Iterable[str]] = None) -> State:
    """Read the namespace that this thread is in, with these global *sysctls*, or with all. Raises HostError."""
    return {**read_objects(), **read_globals(sysctls)}


def read_host(stores: Iterable[LeaseStore]) -> Reading:
    """Read the host. *stores* are those of host-local, (data dir, network). Raises HostError."""
    return Reading({HOST: {**read_inside(SWITCHES), **read_stores(stores)}}, read_chains())


def lost_connections(before: State, after: State) -> List[str]:
    """Return which addresses and routes of the host are gone, except of interfaces that are gone themselves."""
    was, now = _connections(before), _connections(after)
    return [name for name, device in was.items() if name not in now and (not device or ("link", device) in after)]


def _connections(state: State) -> Dict[str, str]:
    """Return the interfaces of addresses and routes, lasting or not, by their names."""
    return {
        f"the {KINDS[str(key[0])].name(key, present.value)}": device_of(key)
        for key, present in state.items()
        # The kernel makes and removes the routes of addresses itself.
        if key[0] == "addr" or (key[0] == "route" and key[2] != LOCAL_TABLE and present.value["proto"] != BY_KERNEL)
    }


def changes(before: State, after: State, defaults: Defaults, on_host: bool = False) -> Objects:
    """Return what changed in a namespace. *defaults*: what a new interface's sysctls start with."""
    changed: Objects = {}
    _compare_objects(before, after, on_host, changed)
    _compare_sysctls(before, after, defaults, changed)
    return changed


def changes_on_host(before: Reading, after: Reading, defaults: Defaults) -> Objects:
    """Return what changed on the host.

    What the host had before stays its own: of its interfaces, only flags that were set are a change (a link's value
    without other settings), of its chains, only new rules, and of what went, only interfaces, which may have moved into
    a container.
    """
    changed = changes(before.spaces[HOST], after.spaces[HOST], defaults, on_host=True)
    _compare_chains(before.chains, after.chains, changed)
    return changed


def read_unusual(
    before: State, sysctls: Optional[Iterable[str]], usual: Defaults, named: Iterable[Tuple[str, str]]
) -> Tuple[State, Defaults]:
    """Read the namespace that this thread is in after an ADD, and what its new interfaces started with.

    *usual* is that of another namespace. It tells what is worth reading here: sysctls that a new interface does not
    have as there, and those that the ADD may set to any value, *named* as (kind, name). Reading all takes as long as
    everything else.
    """
    after = read_inside(sysctls)
    unusual = set(named)
    for key, present in after.items():
        if key[0] in OF_INTERFACES and key not in before:
            kind = str(key[0])
            pairs = zip(compared_names(kind), present.value)
            unusual.update((kind, name) for name, value in pairs if name and usual.get((kind, name)) != value)
    return after, {**usual, **interface_defaults(unusual)}


def _compare_objects(before: State, after: State, on_host: bool, changed: Objects) -> None:
    for key, now in after.items():
        if key[0] in OF_INTERFACES or now.derived:
            continue
        was = before.get(key)
        if key[0] == GLOBAL and was is None:
            # A file that appeared because a module of the kernel was loaded; nobody has set it.
            continue
        if on_host and was is not None and key[0] == "link":
            flags = now.value["flags"] & ~was.value["flags"]
            if flags:
                changed[key] = KernelObject({"kind": now.value["kind"], "flags": flags}, b"", now.ifindex, now.peer)
        elif was is None or was.value != now.value:
            changed[key] = now
    for key, was in before.items():
        counts = key[0] == LINK if on_host else key[0] not in (*OF_INTERFACES, GLOBAL, LEASE)
        if counts and not was.derived and key not in after:
            changed[key] = KernelObject(None, was.raw, was.ifindex, was.peer)


def _compare_sysctls(before: State, after: State, defaults: Defaults, changed: Objects) -> None:
    for key, now in after.items():
        if key[0] not in OF_INTERFACES:
            continue
        kind, interface = str(key[0]), str(key[1])
        was = before.get(key)
        if was is not None and was.value == now.value:
            continue
        switched = before.get((GLOBAL, FORWARDING[kind])) != after.get((GLOBAL, FORWARDING[kind]))
        starts = was.value if was is not None else [defaults.get((kind, name)) for name in compared_names(kind)]
        for name, start, value in zip(compared_names(kind), starts, now.value):
            if name == "forwarding" and (switched or was is None):
                # The global switch sets that of every interface, and the host routes for a new one that is no port.
                device = after.get((LINK, interface))
                start = 0 if was is None and device is not None and not device.value["master"] else None
            if name and start not in (None, value):
                changed[kind, interface, name] = KernelObject(value)


def _compare_chains(before: FoundChains, after: FoundChains, changed: Objects) -> None:
    for key, chain in after.chains.items():
        if before.why_unread(key):
            continue
        was, body = before.chains.get(key), chain.body
        # Built-in chains of iptables have a policy, and those that drop what no rule accepts.
        has_policy = body != NO_POLICY if isinstance(body, str) else body.get("policy", "accept") != "accept"
        if was is None and (not has_policy or is_of_plugins(key)):
            changed[key] = KernelObject(body)
        old = Counter(was.rules if was is not None else ())
        for rule, count in Counter(chain.rules).items():
            if count > old[rule] and survives(key, rule):
                changed[(*key, rule)] = KernelObject(count)


@struct
class RecordedAdd:
    """One attachment that was added: ``party``, readings of its namespace, its identity, and its conflist's digest.

    ``others`` are interfaces of the namespace that other attachments made at the same time. ``needed`` are sysctls that
    a plugin is told to set, and so needs whatever they were before.
    """

    party: Party
    before: State
    after: State
    defaults: Defaults
    identity: Optional[Mapping[str, Any]]
    config: str
    others: Collection[str] = ()
    needed: Collection[ObjectKey] = ()


def owned_changes(
    before: Reading, after: Reading, parties: Sequence[Party], defaults: Defaults
) -> Dict[Owner, Objects]:
    """Return what changed on the host, by its owner among *parties*, their networks, and all that share it."""
    changed = changes_on_host(before, after, defaults)
    attribution = Attribution(after.spaces[HOST], parties, before.spaces[HOST])
    owned: Dict[Owner, Objects] = {}
    for key, owner in attribution.owners(changed).items():
        owned.setdefault(owner, {})[key] = changed[key]
    return owned


def changes_inside(added: RecordedAdd) -> Objects:
    """Return what an ADD changed in the container's namespace, and what it needs: sysctls and routing rules."""
    changed = changes(added.before, added.after, added.defaults)
    for key, present in added.after.items():
        if is_default_rule(key):
            changed[key] = present
    reading = Reading({HOST: added.after})
    for key in added.needed:
        value = reading.value(HOST, key)
        if value is not None:
            changed[key] = KernelObject(value)
    sets = added.party.sysctls
    return {
        key: present
        for key, present in changed.items()
        if device_of(key) not in added.others and (sets is None or key[0] not in OF_INTERFACES or key[2] in sets)
    }


def _with_lower_devices(inside: Objects, host: State) -> Objects:
    """Return the objects of a container with the names and kinds of their lower devices on the host.

    A lower device that is made again has the name, and is another one if its kind differs.
    """
    devices = {device.ifindex: (str(key[1]), device.value["kind"]) for key, device in host.items() if key[0] == "link"}
    completed = dict(inside)
    for key, upper in inside.items():
        if key[0] == "link" and upper.value is not None and upper.value["kind"] in STACKED and upper.peer[0] in devices:
            name, kind = devices[upper.peer[0]]
            if upper.peer[1]:
                completed[key] = upper._replace(value=dict(upper.value, lower={"name": name, "kind": kind}))
    return completed


def record_footprints(
    shared: SharedFootprints, before: Reading, after: Reading, added: Sequence[RecordedAdd], in_use: Collection[Owner]
) -> Dict[Owner, Footprint]:
    """Return the footprints of attachments by key, and note in *shared* what they share.

    *before*, *after*: readings of the host. *in_use*: owners of what earlier attachments share.
    """
    parties, host = [add.party for add in added], after.spaces[HOST]
    changed = owned_changes(before, after, parties, interface_defaults())
    # Whether they were so before or not.
    switches = sorted({(GLOBAL, name) for party in parties for name in party.switches}.intersection(host))
    of_all: Objects = {key: host[key] for key in switches if host[key].value == "1"}
    changed[SHARED] = {**of_all, **changed.get(SHARED, {})}
    footprints: Dict[Owner, Footprint] = {}
    for add in added:
        inside = _with_lower_devices(changes_inside(add), host)
        footprints[add.party.key] = Footprint(changed.get(add.party.key, {}), inside, add.identity)
    configs: Dict[Owner, str] = {**{add.party.key[:1]: add.config for add in added}, SHARED: ""}
    for owner, config in configs.items():
        recorded = shared.footprints.get(owner, Footprint())
        needed = recorded.config == config and owner in in_use
        objects = _merge(recorded.host, needed, changed.get(owner, {}), after)
        shared.footprints[owner] = Footprint(objects, config=config)
    _note_order(shared, after, [*footprints.values(), *map(shared.footprints.__getitem__, configs)])
    return footprints


def _merge(old: Objects, needed: bool, changed: Objects, reading: Reading) -> Objects:
    """Return what earlier ADDs made, with what the last ones have *changed*.

    While it is *needed*, what has drifted before and no ADD has changed stays as it was recorded, so that it stays
    drift. Else only what is still so is kept. An interface that was made again since, by others, is theirs.
    """
    merged: Objects = {}
    present_links = {key: entry.ifindex for key, entry in reading.spaces[HOST].items() if key[0] == "link"}
    theirs = {key[1] for key, entry in old.items() if present_links.get(key, 0) not in (0, entry.ifindex)}
    for key, entry in old.items():
        if device_of(key) not in theirs and (needed or reading.value(HOST, key) == entry.value):
            merged[key] = entry
    merged.update(changed)
    for key, entry in merged.items():
        present = reading.kernel_object(HOST, key)
        if present is not None and present.value == entry.value:
            # It may have been made again since, with another index.
            merged[key] = present
    return merged


def _note_order(shared: SharedFootprints, after: Reading, written: Iterable[Footprint]) -> None:
    """Note the order of the rules in all chains with recorded rules."""
    order = shared.order
    for place, listed in rules_by_chain(footprint.host for footprint in written).items():
        chain = after.chains.chains.get(place)
        if chain is not None:
            # What is out of order stays drift.
            known, rules = order.get(place, []), set(listed)
            order[place] = _with_neighbours(arranged(known, rules, chain.rules), rules.union(known))
    shared.order = {key: rules for key, rules in order.items() if key in after.chains.chains}


def _with_neighbours(rules: Sequence[str], ours: Collection[str]) -> List[str]:
    """Return those of *rules* that are in *ours*, or next to one."""
    known = [rule in ours for rule in rules]
    near = [any(known[max(0, place - 1) : place + 2]) for place in range(len(rules))]
    return [rule for rule, keep in zip(rules, near) if keep]
