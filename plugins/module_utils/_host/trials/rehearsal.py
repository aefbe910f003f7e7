# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The footprint of an attachment that somebody else made: its ADD again, in a private copy of the host.

Binaries, configuration, container ID, interface name and arguments are those of the real ADD, so chains and interfaces
whose names are hashes get the same names. Names and MACs made at random are replaced by those in the cached result.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ...libcni import gojson
from ...libcni.api import CNIConfig, RuntimeConf
from ...libcni.conf import NetworkConfigList, network_conf_from_bytes
from ...libcni.errors import CNIError
from ...libcni.invoke import find_in_path
from ...libcni.kernel import attributes_in
from ..addresses import objects_in, result_addresses
from ..attachments.drift import Present
from ..attachments.recording import interface_sysctls_set_by, party_of, sysctls_of_tuning, sysctls_set_by
from ..attachments.request import Key
from ..attachments.store import Attached
from ..binaries.types import types_of
from ..errors import HostError
from ..executor import SafeExecutor
from ..firewall.chains import FoundChains
from ..firewall.kinds import is_in_firewalld
from ..footprints.footprint import Objects, key_of, objects_of, rows_of
from ..footprints.object_kinds import HOST, LEASE, destination_of, rules_by_chain
from ..footprints.recorder import (
    SWITCHES,
    Defaults,
    RecordedAdd,
    changes_inside,
    owned_changes,
    read_host,
    read_inside,
    read_unusual,
)
from ..footprints.rehearsed import Rehearsed
from ..footprints.state import Reading, read_stores
from ..json_text import parse_json
from ..kernel.links import pack_kept
from ..kernel.objects import (
    ADDRESS,
    LINK,
    NEIGHBOUR,
    ON_INTERFACES,
    KernelObject,
    ObjectKey,
    State,
    device_of,
    read_objects,
)
from ..kernel.sysctls import interface_defaults, write_global
from ..kinds import HOST_LOCAL, REFERENCE, object_of, put_member, text_of
from ..netns import Netns, visit
from ..secrets import one_line, scrub, secrets_of
from .memory import Memory, forget
from .private_host import STORE, confine, new_netns, private_store, put_files, read_store, why_not_apart, work_apart
from .surroundings import FAKE_PEER, Surroundings

# Which backend iptables has.
_ALTERNATIVES = ("/etc/alternatives/iptables", "/etc/alternatives/ip6tables")
# Seconds for a plugin, and for all rehearsals of a run.
_TIMEOUT, _TOTAL = 10.0, 60.0
_KIND = "rehearsals"
_HEADS = {"link": LINK.size, "addr": ADDRESS.size, "neigh": NEIGHBOUR.size}
_NO_MAC = "0" * 12
# IFLA_ADDRESS
_MAC_ADDRESS = 1


class Rehearsal:
    """The rehearsal of one attachment. ``obstacle``: why there is none; ``partly``: what is left out of it, or "".

    *written* is when the real ADD ended, in seconds since the epoch. None: it comes yet, so host-local chooses an
    address, and bridges have their addresses. *replaced* are the paths of binaries that take the place of those in
    *bin_dirs*, by name. *host*: the state of the host's interfaces.
    """

    def __init__(
        self,
        attached: Attached,
        written: Optional[float],
        bin_dirs: Sequence[str],
        host: State,
        replaced: Optional[Mapping[str, str]] = None,
    ) -> None:
        self._surroundings = Surroundings(host)
        self.bridges = self._surroundings.bridges
        self._attached = attached
        self._bin_dirs = list(bin_dirs)
        self._replaced = dict(replaced or {})
        self._is_new = written is None
        self._files: Dict[str, Optional[bytes]] = {}
        self._stores: List[Tuple[str, str]] = []
        self.partly = ""
        self._config: Optional[NetworkConfigList] = None
        self.obstacle = self._why_never()
        if not self.obstacle:
            self._prepare()
            # What an earlier rehearsal has shown is understood nevertheless.
            self.obstacle = self.obstacle or self._why_not_now(written)

    # ---- whether

    def _why_never(self) -> str:
        for plugin in self._attached.config.plugins:
            why = f"it is not known what the plugin {plugin.type} needs and changes"
            why = why_not_apart(plugin.network) if plugin.type in REFERENCE else why
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
        # Unknown IPAM plugins are replaced.
        names = types_of([plugin.network for plugin in self._attached.config.plugins])
        for name in sorted({name if name in REFERENCE else "static" for name in names}):
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
            if is_in_firewalld(plugin):
                self.partly = "the rules that firewalld keeps for it are not compared"
                continue
            self._fix_addresses(plugin)
            self._surroundings.find(plugin)
            kept.append(plugin)
        if not kept:
            self.obstacle = self.partly
            return
        raw["plugins"] = kept
        self._config = network_conf_from_bytes(gojson.dumps(raw))

    def _fix_addresses(self, plugin: Dict[str, Any]) -> None:
        kind, result = text_of(object_of(plugin, "ipam"), "type"), self._attached.result or {}
        real = confine(plugin, len(self._stores))
        if real:
            self._stores.append((real, self._attached.key.network))
        if real and not self._is_new:
            given = [address.partition("/")[0] for address in self._attached.ips]
            arguments = object_of(plugin, "args")
            of_plugin = object_of(arguments, "cni")
            put_member(of_plugin, "ips", given)
            put_member(arguments, "cni", of_plugin)
            put_member(plugin, "args", arguments)
        elif kind not in ("", "static", HOST_LOCAL):
            names = ("address", "gateway")
            addresses = [{name: entry[name] for name in names if name in entry} for entry in result.get("ips") or ()]
            put_member(plugin, "ipam", {"type": "static", "addresses": addresses, "routes": result.get("routes") or []})

    def leave_addresses(self, earlier: Sequence[Rehearsed]) -> None:
        """Have host-local choose as on the host, after the rehearsals that were *earlier*."""
        folders = {store: os.path.join(private_store(number), store[1]) for number, store in enumerate(self._stores)}
        for store, folder in folders.items():
            self._files.update(read_store(os.path.join(*store), folder))
        for key, lease in (entry for add in earlier for objects in add.owned.values() for entry in objects.items()):
            if key[0] == LEASE and key[1:3] in folders:
                self._files[os.path.join(folders[str(key[1]), str(key[2])], str(key[3]))] = lease.value.encode()

    # ---- in the private host

    def work(self) -> bytes:
        """ADD, and return what it changed, as :meth:`understand` expects it. Runs in a private host."""
        attached, config = self._attached, self._config
        if config is None:
            raise HostError(self.obstacle, code="not_rehearsed")
        for name in SWITCHES:
            if os.path.exists(f"/proc/sys/net/{name}"):
                write_global(name, "0")
        self._surroundings.make(self._is_new)
        netns = new_netns("container")
        container = Netns(netns)
        stores = [(private_store(number), network) for number, (_real, network) in enumerate(self._stores)]
        put_files(self._files)
        # A new namespace has no rules.
        sysctls = sysctls_set_by(config, attached.key.ifname)
        before = Reading({HOST: {**read_inside(SWITCHES), **read_stores(stores)}}, FoundChains())
        inner = visit([container], lambda: read_inside(sysctls))[netns]
        key = attached.key
        cni = CNIConfig(self._put_binaries(), cache_dir=f"{STORE}/cache", timeout=_TIMEOUT, executor=SafeExecutor())
        runtime = RuntimeConf(key.container_id, netns, key.ifname, attached.args, attached.capability_args)
        try:
            result = cni.add_network_list(config, runtime).to_dict()
        except CNIError as error:
            known = secrets_of([gojson.loads(config.bytes), attached.capability_args, dict(attached.args)])
            return json.dumps({"error": one_line(scrub(f"its ADD fails in a rehearsal: {error}", known))}).encode()
        usual = interface_defaults()

        def read() -> Tuple[State, Defaults]:
            return read_unusual(inner, sysctls, usual, interface_sysctls_set_by(config, key.ifname))

        inner_after, defaults = visit([container], read)[netns]
        after = read_host(stores)
        added = Attached(key, config, netns, attached.args, attached.capability_args, result)
        party = party_of(added, inner_after)
        owned = owned_changes(before, after, [party], usual)
        needed = sysctls_of_tuning(config, key.ifname)
        inside = changes_inside(RecordedAdd(party, inner, inner_after, defaults, None, "", (), needed))
        chains, ours = after.chains.chains, rules_by_chain(owned.values())
        answer = {
            "owned": [[list(owner), rows_of(objects)] for owner, objects in owned.items()],
            "inside": rows_of(inside),
            "order": [[list(place), chain.rules] for place, chain in chains.items() if place in ours],
            "result": result,
        }
        return json.dumps(answer, separators=(",", ":")).encode()

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
        """Return what the ADD changed, in the names of the host. Raises HostError as :func:`rehearse` returns them."""
        try:
            data = parse_json(answer)
            if "error" in data:
                raise HostError(data["error"], code="add_failed")
            result = data["result"]
            owned = {tuple(owner): objects_of(rows) for owner, rows in data["owned"]}
            inside = objects_of(data["inside"])
            order = {key_of(key): [str(rule) for rule in rules] for key, rules in data["order"]}
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise HostError(f"the rehearsal cannot be read: {error}", code="not_rehearsed") from error
        cached = result if self._is_new else self._attached.result or {}
        if sorted(result_addresses(result)) != sorted(result_addresses(cached)):
            raise HostError("in a rehearsal, its ADD gives other addresses", code="not_rehearsed")
        real = RealNames(result, cached, self._stores, self._surroundings.parents)
        real_owned = {owner: real.objects(objects) for owner, objects in owned.items()}
        real_order = {real.key(place): [real.text(rule) for rule in rules] for place, rules in order.items()}
        real_inside = real.objects(_without_moved(inside, result, cached))
        is_device = any(plugin.type == "host-device" for plugin in self._attached.config.plugins)
        device = self._attached.key.ifname if is_device else ""
        return Rehearsed(real_owned, real_inside, real_order, real.macs, device, self.partly)


def _without_moved(inside: Objects, made: Mapping[str, Any], cached: Mapping[str, Any]) -> Objects:
    """Leave out routes that are no longer in the cached result: Multus gives the default to another network."""
    now, then = ({route.get("dst") for route in objects_in(result.get("routes"))} for result in (cached, made))
    return {key: entry for key, entry in inside.items() if key[0] != "route" or destination_of(key) not in then - now}


# ---- the names of the host


class RealNames:
    """Translates names, MACs and stores of a rehearsal to those of the host."""

    def __init__(
        self,
        rehearsed: Mapping[str, Any],
        cached: Mapping[str, Any],
        stores: Sequence[Tuple[str, str]],
        parents: Mapping[str, int],
    ) -> None:
        self.macs: List[str] = []
        self._parents = parents
        self._folders = {private_store(number): real for number, (real, _network) in enumerate(stores)}
        self._texts: Dict[str, str] = {}
        self._raws: Dict[bytes, bytes] = {}
        self._macs_of: Dict[str, bytes] = {}
        ours, theirs = rehearsed.get("interfaces") or [], cached.get("interfaces") or []
        if [bool(entry.get("sandbox")) for entry in ours] != [bool(entry.get("sandbox")) for entry in theirs]:
            raise HostError("in a rehearsal, its ADD makes other interfaces", code="not_rehearsed")
        for interface, other in zip(ours, theirs):
            self._pair(interface, other)
        names = sorted((re.escape(name) for name in self._texts), key=len, reverse=True)
        self._pattern = re.compile("|".join(names) or "(?!)")

    def _pair(self, interface: Mapping[str, Any], other: Mapping[str, Any]) -> None:
        name, real = str(interface.get("name")), str(other.get("name"))
        if name != real:
            self._texts[name] = real
            self._raws[os.fsencode(name) + b"\0"] = os.fsencode(real) + b"\0"
        mac, now = (str(entry.get("mac") or "").lower() for entry in (interface, other))
        plain, plain_now = mac.replace(":", ""), now.replace(":", "")
        if len(plain) == len(plain_now) == 12 and _NO_MAC not in (plain, plain_now):
            self.macs.append(plain_now)
            self._texts[plain], self._texts[mac] = plain_now, now
            try:
                self._macs_of[real] = self._raws[bytes.fromhex(plain)] = bytes.fromhex(plain_now)
            except ValueError as error:
                raise HostError(f"its result has the MAC {now!r}", code="not_rehearsed") from error

    def text(self, value: str) -> str:
        return self._pattern.sub(lambda hit: self._texts[hit.group()], value)

    def key(self, key: ObjectKey) -> ObjectKey:
        if key[0] == LEASE:
            return (LEASE, self._folders.get(str(key[1]), key[1]), *key[2:])
        return (key[0], *(self.text(part) if isinstance(part, str) else part for part in key[1:]))

    def objects(self, objects: Objects) -> Objects:
        renamed: Objects = {}
        for key, rehearsed in objects.items():
            if not self._is_fake(key, rehearsed):
                real = self.key(key)
                # A bridge whose MAC has followed its ports since comes back with the one that containers know.
                mac = self._macs_of.get(str(real[1])) if real[0] == "link" else None
                renamed[real] = KernelObject(self._value(rehearsed.value), self._raw(str(key[0]), rehearsed.raw, mac))
        return renamed

    def _is_fake(self, key: ObjectKey, rehearsed: KernelObject) -> bool:
        """Tell whether an object is one that only a private host has."""
        device = device_of(key)
        if key[0] == "fdb" or device.startswith(FAKE_PEER):
            return True
        return device in self._parents and key[0] in ON_INTERFACES and rehearsed.value is not None

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(entry) for entry in value]
        return {name: self._value(entry) for name, entry in value.items()} if isinstance(value, dict) else value

    def _raw(self, kind: str, raw: bytes, mac: Optional[bytes]) -> bytes:
        size = _HEADS.get(kind)
        if size is None or not raw:
            return raw
        replaced = {number: self._raws[text] for number, text in attributes_in(raw, size).items() if text in self._raws}
        replaced.update({_MAC_ADDRESS: mac} if mac is not None else {})
        return raw[:size] + pack_kept(raw, size, (), replaced) if replaced else raw


# ---- several


def rehearse(
    attachments: Sequence[Present],
    bin_dirs: Sequence[str],
    replaced: Optional[Mapping[str, str]] = None,
    earlier: Optional[Sequence[Rehearsed]] = None,
) -> Dict[Key, Union[Rehearsed, HostError]]:
    """Rehearse ADDs, several at a time, and return what each changes, or the error why that is not known.

    That is ``not_rehearsed`` where none was tried, ``add_failed`` if a plugin failed, else ``rehearsal_failed``.
    *replaced*: see Rehearsal. *earlier*: those whose addresses are taken, as the host's are; None if all are free. What
    was shown of an attachment that exists is remembered.
    """
    outcomes: Dict[Key, Union[Rehearsed, HostError]] = {}
    waiting: List[Tuple[Key, Rehearsal, Optional[Memory]]] = []
    host = read_objects()
    for present in attachments:
        key, rehearsal = present.attached.key, Rehearsal(present.attached, present.written, bin_dirs, host, replaced)
        if earlier is not None:
            rehearsal.leave_addresses(earlier)
        # Of an ADD that comes yet, nothing lasts.
        memory = _memory(present, [*bin_dirs, *rehearsal.bridges]) if present.written is not None else None
        answer = memory.read() if memory is not None else None
        obstacle = HostError(rehearsal.obstacle, code="not_rehearsed")
        outcomes[key] = obstacle if answer is None else _understand(rehearsal, answer)
        if isinstance(outcomes[key], HostError) and not rehearsal.obstacle:
            waiting.append((key, rehearsal, memory))
    works = [rehearsal.work for _key, rehearsal, _memory in waiting]
    answers = work_apart(works, bin_dirs, _TOTAL) if works else []
    for (key, rehearsal, memory), given in zip(waiting, answers):
        if isinstance(given, bytes):
            outcomes[key] = _understand(rehearsal, given)
            if memory is not None and not isinstance(outcomes[key], HostError):
                memory.write(given)
        elif given.code == "too_many":
            text = f"there was no time to rehearse it within {_TOTAL:g} s; the next run continues"
            outcomes[key] = HostError(text, code="not_rehearsed")
        else:
            outcomes[key] = HostError(given.msg, code="rehearsal_failed")
    return outcomes


def _understand(rehearsal: Rehearsal, answer: bytes) -> Union[Rehearsed, HostError]:
    try:
        return rehearsal.understand(answer)
    except HostError as error:
        return error


def _memory(present: Present, used: Sequence[str]) -> Memory:
    """Return what the rehearsal of an attachment has shown. *used*: directories of plugins, and existing bridges.

    What is remembered counts as long as they, and everything that the ADD was given and returned, are the same. Plugins
    that are replaced later do not change what the ADD did.
    """
    attached = present.attached
    config = hashlib.sha256(attached.config.expanded_bytes()).hexdigest()
    given = [attached.key, config, attached.args, attached.capability_args, attached.result]
    text = json.dumps([given, present.written, list(used), dict(present.identity)], sort_keys=True)
    return Memory(_KIND, "/".join(attached.key), text)


def forget_rehearsals(kept: Iterable[Key]) -> None:
    """Forget what rehearsals have shown of attachments that are not *kept*."""
    forget(_KIND, map("/".join, kept))
