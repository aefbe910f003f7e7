# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The footprint of an attachment that somebody else made: its ADD again, in a private copy of the host.

Binaries, configuration, container ID, interface name and arguments are those of the real ADD, so chains and interfaces
whose names are hashes get the same names. Names and MACs made at random are replaced by those in the cached result.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ...libcni import gojson
from ...libcni.api import CNIConfig, RuntimeConf
from ...libcni.conf import NetworkConfigList, network_conf_from_bytes
from ...libcni.errors import CNIError
from ...libcni.files import read_file
from ...libcni.invoke import find_in_path
from ...libcni.kernel import attributes_in
from ..addresses import result_addresses
from ..attachments.recording import interface_sysctls_set_by, party_of, sysctls_set_by
from ..attachments.records import Attached
from ..binaries.types import types_of
from ..errors import HostError
from ..executor import SafeExecutor
from ..firewall.chains import CHAIN, FoundChains, read_chains
from ..footprints.attribution import Attribution, Owner
from ..footprints.note import Objects, Recorded, key_of, objects_of, rows_of
from ..footprints.object_kinds import CHAIN_KEY_LENGTH, HOST, LEASE
from ..footprints.recorder import (
    SWITCHES,
    Defaults,
    Reading,
    RecordedAdd,
    changes_inside,
    owned_changes,
    read_inside,
    read_unusual,
)
from ..footprints.state import Look, read_stores
from ..kernel.objects import BY_KERNEL, LINK, KernelObject, ObjectKey, State, read_objects
from ..kernel.sysctls import interface_defaults, read_globals, write_global
from ..kinds import HOST_LOCAL, REFERENCE, lease_dir, member_of, object_of, put_member, text_of
from ..netns import Netns, visit
from ..processes import processes
from ..secrets import one_line, scrub, secrets_of
from .private_host import STORE, new_netns
from .real_names import RealNames, private_store
from .surroundings import Surroundings

# Types that need a daemon, and IPAM plugins that are asked for the known addresses or replaced.
_NOT_REHEARSED = ("dhcp",)
# What a private host cannot tell of an interface. udev and the host's defaults set them.
_OF_THE_HOST = ("alias", "genmode")
# A veth stands for the device that host-device takes.
_OF_THE_DEVICE = ("kind", "lower", "data", "txqlen", "mtu", "group", "port", "master")
# Which backend iptables has.
_ALTERNATIVES = ("/etc/alternatives/iptables", "/etc/alternatives/ip6tables")
_TIMEOUT = 10.0
# A lease is two names.
_LARGEST_LEASE = 4096


class Rehearsed:
    """What an ADD changes: objects of the host by ``owned`` (owner -> objects), ``inside`` the container, and the
    ``order`` of rules. ``device``: the interface inside is one that host-device took."""

    __slots__ = ("device", "inside", "macs", "order", "owned")

    def __init__(self, owned: Dict[Owner, Objects], inside: Objects, order: Dict[ObjectKey, List[str]]) -> None:
        self.owned = owned
        self.inside = inside
        self.order = order
        self.macs: Sequence[str] = ()
        self.device = ""

    def settled(self, objects: Objects, look: Look, space: str) -> Objects:
        """Return *objects* with the present indexes, and with present settings where a rehearsal cannot know them."""
        found: Objects = {}
        for key, one in objects.items():
            if key[0] == "link" and one.value is not None:
                present = look.found(space, key)
                value = dict(one.value)
                if present is not None:
                    names = list(_OF_THE_HOST)
                    if space == HOST or value.get("mac") not in self.macs:
                        names.append("mac")
                    if space != HOST and key[1] == self.device:
                        names += _OF_THE_DEVICE
                    value.update({name: present.value[name] for name in names if name in value})
                    one = Recorded(value, one.raw, present.ifindex, present.peer)
                else:
                    renamed = _renamed(look, space, value["kind"], attributes_in(one.raw, LINK.size).get(1, b""))
                    one = Recorded(value, one.raw, *renamed)
            elif space == HOST and one.value is not None and (key[0] == "addr" or _is_by_kernel(key, one)):
                # Who put the address there has chosen its settings, and the metric of the kernel's routes for it.
                known, present = next(_like(look, key), (key, None))
                key, one = known, one if present is None else Recorded(present.value, present.raw, present.ifindex)
            found[key] = one
        return found


class Rehearsal:
    """The rehearsal of one attachment. ``obstacle``: why there is none; ``partly``: what is left out of it, or "".

    *written* is when the real ADD ended, in seconds since the epoch. None: there was none yet, so host-local chooses an
    address with a copy of its store. *replaced* are the paths of binaries that take the place of those in *bin_dirs*,
    by name. *host*: the state of the host's interfaces, if it was read already.
    """

    def __init__(
        self,
        attached: Attached,
        written: Optional[float],
        bin_dirs: Sequence[str],
        replaced: Optional[Mapping[str, str]] = None,
        host: Optional[State] = None,
    ) -> None:
        self._surroundings = Surroundings(host)
        self._attached = attached
        self._bin_dirs = list(bin_dirs)
        self._replaced = dict(replaced or {})
        self._is_new = written is None
        self._leases: Dict[Tuple[int, str], bytes] = {}
        self._stores: List[Tuple[str, str]] = []
        self.partly = ""
        self._config: Optional[NetworkConfigList] = None
        self.obstacle = self._why_never()
        if not self.obstacle:
            self._prepare()
            # What an earlier rehearsal has shown is understood nevertheless.
            self.obstacle = self.obstacle or self._why_not_now(written)

    @property
    def bridges(self) -> List[str]:
        """Bridges of the host that it builds on."""
        return list(self._surroundings.bridges)

    # ---- whether

    def _why_never(self) -> str:
        for plugin in self._attached.config.plugins:
            why = _why_not_plugin(plugin.network)
            ipam = text_of(object_of(plugin.network, "ipam"), "type")
            if not why and self._is_new and ipam not in ("", "host-local", "static"):
                why = f"only an ADD tells which addresses {ipam} gives"
            if why:
                return why
        if self._is_new:
            return ""
        named = isinstance((self._attached.result or {}).get("interfaces"), list)
        return "" if named else "its result names no interfaces"

    def _why_not_now(self, written: Optional[float]) -> str:
        """Return why the binaries are not those of the ADD, "" if they are."""
        for name in _types([plugin.network for plugin in self._attached.config.plugins]):
            if name in self._replaced:
                continue
            try:
                status = os.stat(find_in_path(name, self._bin_dirs))
            except (CNIError, OSError):
                return f"the plugin {name} is not in {', '.join(self._bin_dirs)}"
            if written is not None and status.st_ctime > written:
                return f"the plugin {name} was replaced after the attachment was made"
        for path in _ALTERNATIVES:
            if written is not None and os.path.lexists(path) and os.lstat(path).st_ctime > written:
                return "the backend of iptables was chosen after the attachment was made"
        return ""

    # ---- what

    def _prepare(self) -> None:
        """Make the configuration that is rehearsed, and find the interfaces that it builds on."""
        attached = self._attached
        raw = gojson.loads(attached.config.expanded_bytes())
        kept = []
        for plugin in raw["plugins"]:
            kind = text_of(plugin, "type")
            if kind == "firewall" and text_of(plugin, "backend") != "iptables" and processes("firewalld"):
                self.partly = "the rules that firewalld keeps for it are not compared"
                continue
            if kind == "tuning":
                put_member(plugin, "dataDir", None)
            self._fix_addresses(plugin)
            self._surroundings.find(plugin)
            kept.append(plugin)
        if not kept:
            self.obstacle = self.partly
            return
        raw["plugins"] = kept
        self._config = network_conf_from_bytes(gojson.dumps(raw))

    def _fix_addresses(self, plugin: Dict[str, Any]) -> None:
        ipam = object_of(plugin, "ipam")
        kind = text_of(ipam, "type")
        if not kind:
            return
        result = self._attached.result or {}
        if kind == HOST_LOCAL:
            real = lease_dir(plugin)
            if not real:
                self.obstacle = "the dataDir of host-local is not an absolute path"
                return
            self._stores.append((real, self._attached.key.network))
            # Instead of all spellings: host-local would take another one that sorts after it.
            put_member(ipam, "dataDir", private_store(len(self._stores) - 1))
            put_member(plugin, "ipam", ipam)
            if self._is_new:
                self._copy_leases(len(self._stores) - 1)
                return
            given = [address.partition("/")[0] for address in self._attached.ips]
            arguments = object_of(plugin, "args")
            of_plugin = object_of(arguments, "cni")
            put_member(of_plugin, "ips", given)
            put_member(arguments, "cni", of_plugin)
            put_member(plugin, "args", arguments)
        elif kind != "static":
            names = ("address", "gateway")
            addresses = [{name: entry[name] for name in names if name in entry} for entry in result.get("ips") or ()]
            routes_given = result.get("routes") or []
            put_member(plugin, "ipam", {"type": "static", "addresses": addresses, "routes": routes_given})

    def _copy_leases(self, number: int) -> None:
        """Read the store of host-local, so that it chooses the address that it would choose on the host."""
        folder = os.path.join(*self._stores[number])
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(folder):
                with contextlib.suppress(OSError):
                    self._leases[number, name] = read_file(os.path.join(folder, name), _LARGEST_LEASE, follow=False)

    def take(self, rehearsed: Rehearsed) -> None:
        """Leave the addresses that another rehearsal was given to it."""
        for objects in rehearsed.owned.values():
            for key, one in objects.items():
                if key[0] == LEASE and key[1:3] in self._stores:
                    self._leases[self._stores.index((str(key[1]), str(key[2]))), str(key[3])] = one.value.encode()

    # ---- in the private host

    def work(self) -> bytes:
        """ADD, and return what it changed, as :meth:`understand` expects it. Runs in a private host."""
        attached, config = self._attached, self._config
        if config is None:
            raise HostError(self.obstacle, code="not_rehearsed")
        for name in SWITCHES:
            if os.path.exists(f"/proc/sys/net/{name}"):
                write_global(name, "0")
        self._surroundings.make()
        netns = new_netns("container")
        container = Netns(netns)
        stores = [(private_store(number), network) for number, (_real, network) in enumerate(self._stores)]
        self._put_leases(stores)
        # A new namespace has no rules.
        sysctls = sysctls_set_by(config)
        before = Reading({**read_objects(), **read_globals(SWITCHES), **read_stores(stores)}, FoundChains())
        inner = visit([container], lambda: read_inside(sysctls))[netns]
        key = attached.key
        cni = CNIConfig(self._put_binaries(), cache_dir=f"{STORE}/cache", timeout=_TIMEOUT, executor=SafeExecutor())
        runtime = RuntimeConf(key.container_id, netns, key.ifname, attached.args, attached.capability_args)
        try:
            result = cni.add_network_list(config, runtime).to_dict()
        except CNIError as error:
            known = secrets_of([gojson.loads(config.bytes), attached.capability_args, dict(attached.args)])
            raise HostError(one_line(scrub(f"its ADD fails in a rehearsal: {error}", known))) from error
        usual = interface_defaults()

        def read() -> Tuple[Reading, Defaults]:
            return read_unusual(inner, sysctls, usual, interface_sysctls_set_by(config))

        inner_after, defaults = visit([container], read)[netns]
        after = Reading({**read_objects(), **read_globals(SWITCHES), **read_stores(stores)}, read_chains())
        added = Attached(key, config, netns, attached.args, attached.capability_args, result)
        party = party_of(added, inner_after.state)
        owned = owned_changes(before, after, Attribution(after.state, [party], before.state), usual)
        inside = changes_inside(RecordedAdd(party, inner, inner_after, defaults, None, ""))
        answer = {
            "owned": [[list(owner), rows_of(objects)] for owner, objects in owned.items()],
            "inside": rows_of(inside),
            "order": [[list(place), rules] for place, rules in _order_of(after, owned)],
            "result": result,
        }
        return json.dumps(answer, separators=(",", ":")).encode()

    def _put_leases(self, stores: Sequence[Tuple[str, str]]) -> None:
        for (number, name), content in self._leases.items():
            folder = os.path.join(*stores[number])
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, name), "wb") as stream:
                stream.write(content)

    def _put_binaries(self) -> List[str]:
        """Return the directories of the plugins: one with those that replace others comes first."""
        if not self._replaced:
            return self._bin_dirs
        folder = f"{STORE}/bin"
        os.makedirs(folder)
        for name, path in self._replaced.items():
            os.symlink(path, os.path.join(folder, name))
        return [folder, *self._bin_dirs]

    # ---- what it means here

    def understand(self, answer: bytes) -> Rehearsed:
        """Return what the ADD changed, in the names of the host. Raises HostError ``not_rehearsed``."""
        try:
            data = json.loads(answer)
            result = data["result"]
            owned = {tuple(owner): objects_of(rows) for owner, rows in data["owned"]}
            inside = objects_of(data["inside"])
            order = {key_of(key): [str(rule) for rule in rules] for key, rules in data["order"]}
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise HostError(f"the rehearsal cannot be read: {error}", code="not_rehearsed") from error
        if not self._is_new and sorted(result_addresses(result)) != sorted(self._attached.ips):
            raise HostError("in a rehearsal, its ADD gives other addresses", code="not_rehearsed")
        real = RealNames(
            result, result if self._is_new else self._attached.result or {}, self._stores, self._surroundings.parents
        )
        found = Rehearsed(
            {owner: real.objects(objects) for owner, objects in owned.items()},
            real.objects(inside),
            {real.key(place): [real.text(rule) for rule in rules] for place, rules in order.items()},
        )
        found.macs = list(real.macs)
        if any(plugin.type == "host-device" for plugin in self._attached.config.plugins):
            found.device = self._attached.key.ifname
        return found


def _is_by_kernel(key: ObjectKey, one: Recorded) -> bool:
    return key[0] == "route" and one.value["proto"] == BY_KERNEL


def _like(look: Look, key: ObjectKey) -> Iterator[Tuple[ObjectKey, KernelObject]]:
    """Yield the host's address or route that serves as well as *key*: a route may have another metric."""
    for other, there in look.spaces[HOST].items():
        if other == key or (key[0] == other[0] == "route" and (other[1:4], other[6:]) == (key[1:4], key[6:])):
            yield other, there


def _renamed(look: Look, space: str, kind: str, mac: bytes) -> Tuple[int, Tuple[int, bool]]:
    """Return index and peer of an interface that has lost its name, which its MAC tells; zeros if there is none."""
    for key, there in look.spaces.get(space, {}).items():
        if key[0] == "link" and mac and (there.value["kind"], there.value["mac"]) == (kind, mac.hex()):
            return there.ifindex, there.peer
    return 0, (0, False)


def _why_not_plugin(plugin: Mapping[str, Any]) -> str:
    """Return why a plugin of a chain cannot be rehearsed, "" if it can."""
    kind, ipam = text_of(plugin, "type"), text_of(object_of(plugin, "ipam"), "type")
    if kind not in REFERENCE:
        return f"it is not known what the plugin {kind} needs and changes"
    if ipam in _NOT_REHEARSED or kind in _NOT_REHEARSED:
        return "addresses of dhcp come from a server"
    if member_of(plugin, "linkincontainer"):
        return f"the parent of {kind} is in the container"
    if kind == "host-device" and not text_of(plugin, "device"):
        return "host-device names its device by hardware"
    return ""


def _types(plugins: Sequence[Dict[str, Any]]) -> List[str]:
    """Return the plugins that a rehearsal runs: unknown IPAM plugins are replaced."""
    found = {name if name in REFERENCE else "static" for name in types_of(list(plugins))}
    return sorted(found)


def _order_of(after: Reading, owned: Mapping[Owner, Objects]) -> Iterator[Tuple[ObjectKey, List[str]]]:
    """Yield the rules of each chain that has recorded ones."""
    places = {
        key[:CHAIN_KEY_LENGTH]
        for objects in owned.values()
        for key in objects
        if key[0] == CHAIN and len(key) > CHAIN_KEY_LENGTH
    }
    for place, chain in (after.chains.chains if after.chains is not None else {}).items():
        if place in places:
            yield place, list(chain.rules)


def order_rules(present: Look, orders: Sequence[Mapping[ObjectKey, List[str]]]) -> Dict[ObjectKey, List[str]]:
    """Return the order of the rules in each chain: as they stand now, and each missing one behind those before it.

    A missing rule without a known one before it comes first in the table filter, where plugins insert, else last.
    """
    found: Dict[ObjectKey, List[str]] = {}
    for order in orders:
        for place, rules in order.items():
            if place not in found:
                there = present.chains.chains.get(place) if present.chains is not None else None
                found[place] = list(there.rules) if there is not None else []
            known = found[place]
            position = 0 if place[3] == "filter" else len(known)
            for rule in rules:
                if rule in known:
                    position = known.index(rule) + 1
                else:
                    known.insert(position, rule)
                    position += 1
    return found
