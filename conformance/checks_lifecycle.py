# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Checks of ADD, CHECK and DEL, and of what is left after DEL in all the ways in which a runtime calls it."""

from __future__ import annotations

import functools
import typing as t

from . import sandbox
from .calls import Call
from .judge import Attachment, Judge, is_from, valid_result
from .state import Change, State, changes, read_state, undo, words_for
from .subjects import CHAINED, IPAM, Conf, NotRun, mac_of

_UNKNOWN_KEY = "podwire.example/unknown"
_MISSING = {
    "del.interface_gone": "the loss of the interface",
    "del.netns_gone": "the loss of the namespace",
    "del.netns_empty": "the loss of CNI_NETNS",
    "del.no_prev_result": "the loss of prevResult",
}


def check_lifecycle(judge: Judge, version: str) -> None:
    """ADD, CHECK, ADD again, DEL, DEL again, and everything that the result says."""
    with judge.attach(version) as attachment:
        call = attachment.add()
        attachment.delete()
    if not judge.judge("add.success", version, call.ok, call.outcome(), call):
        raise NotRun(call.outcome())
    judge.warm_up(version)
    with judge.attach(version) as attachment:
        before, host = attachment.state(), read_state()
        call = attachment.add()
        if not call.ok:
            judge.judge("add.success", version, False, f"the second container: {call.outcome()}", call)
            attachment.delete()
            raise NotRun(call.outcome())
        _judge_result(judge, attachment, call)
        if is_from("0.4.0", version):
            checked = attachment.check()
            judge.judge("check.after_add", version, checked.ok, checked.outcome(), checked)
        if judge.subject.makes_interface:
            _add_again(judge, attachment)
        _delete(judge, attachment, before, host)


def _delete(judge: Judge, attachment: Attachment, before: State, host: State) -> None:
    version = attachment.version
    call = attachment.delete()
    judge.judge("del.success", version, call.ok, call.outcome(), call)
    left = judge.settled(before, attachment.container.netns)
    judge.judge("del.undone", version, not left, f"in the namespace, after DEL: {words_for(left)}", call)
    left = judge.settled(host)
    judge.judge("del.host", version, not left, f"on the host, after DEL: {words_for(left)}", call)
    inside, outside = attachment.state(), read_state()
    again = attachment.delete()
    judge.judge("del.twice", version, again.ok, f"the second time, {again.outcome()}", again)
    left = [*judge.settled(inside, attachment.container.netns), *judge.settled(outside)]
    judge.judge("del.twice", version, not left, f"the second DEL changed something: {words_for(left)}", again)


def _add_again(judge: Judge, attachment: Attachment) -> None:
    before = attachment.state()
    call = judge.call(attachment.env("ADD"), attachment.stdin("ADD"), attachment.version)
    what = f"{attachment.if_name} exists, and ADD was accepted: {call.outcome()}"
    judge.judge("add.exists", attachment.version, not call.ok, what, call)
    changed = changes(before, attachment.state())
    judge.judge("add.exists", attachment.version, not changed, f"the second ADD changed: {words_for(changed)}", call)


# ---- the result


def _judge_result(judge: Judge, attachment: Attachment, call: Call) -> None:
    version, result = attachment.version, attachment.result or {}
    reason = valid_result(call.embedded(), version)
    judge.judge("add.result", version, not reason, f"{reason}: {call.outcome()}", call)
    given = result.get("cniVersion")
    judge.judge("add.version", version, given == version, f"the cniVersion is {given!r}", call)
    if reason:
        return
    if judge.subject.kind == IPAM:
        entries = [entry for entry in result.get("ips", []) if "interface" in entry]
        holds = not result.get("interfaces") and not entries
        judge.judge("add.abbreviated", version, holds, f"it has interfaces: {call.outcome()}", call)
        return
    interfaces: t.List[Conf] = result.get("interfaces", [])
    if judge.subject.kind == CHAINED:
        _judge_previous(judge, attachment, call)
    else:
        _judge_interface(judge, attachment, call, interfaces)
    _judge_interfaces(judge, attachment, call, interfaces)
    if is_from("0.3.0", version):
        _judge_addresses(judge, attachment, call, interfaces)


def _judge_previous(judge: Judge, attachment: Attachment, call: Call) -> None:
    """A chained plugin may add to prevResult and change it, but not lose interfaces and addresses."""
    base, result = attachment.base or {}, attachment.result or {}
    lost = []
    for key in ("interfaces", "ips", "routes"):
        word = {"interfaces": "name", "ips": "address", "routes": "dst"}[key]
        kept = {entry.get(word) for entry in result.get(key, [])}
        lost += [f"{key[:-1]} {entry[word]}" for entry in base.get(key, []) if entry[word] not in kept]
    lost += [key for key in ("ip4", "ip6") if key in base and base[key].get("ip") != result.get(key, {}).get("ip")]
    judge.judge("add.prev_result", attachment.version, not lost, f"lost from prevResult: {', '.join(lost)}", call)


def _judge_interface(judge: Judge, attachment: Attachment, call: Call, interfaces: t.Sequence[Conf]) -> None:
    exists = ("link", attachment.if_name) in attachment.state()
    judge.judge("add.interface", attachment.version, exists, f"there is no {attachment.if_name} in the namespace", call)
    if is_from("0.3.0", attachment.version):
        name, netns = attachment.if_name, attachment.container.netns
        listed = any(entry.get("name") == name and entry.get("sandbox") == netns for entry in interfaces)
        text = f"the result lists no {name} with the sandbox {netns}: {call.outcome()}"
        judge.judge("add.interface", attachment.version, listed, text, call)


def _judge_interfaces(judge: Judge, attachment: Attachment, call: Call, interfaces: t.Sequence[Conf]) -> None:
    links = {attachment.container.netns: attachment.state(), "": read_state()}
    for entry in interfaces:
        name, place = str(entry.get("name")), str(entry.get("sandbox", ""))
        shown = "the namespace" if place else "the host"
        link: t.Optional[Conf] = links.get(place, {}).get(("link", name))
        judge.judge("add.interfaces", attachment.version, link is not None, f"there is no {name} on {shown}", call)
        if link is None:
            continue
        mac = str(link.get("mac") or sandbox.inside(place, functools.partial(mac_of, name)))
        wanted = str(entry.get("mac", "")).lower()
        text = f"{name} on {shown} has the MAC {mac}, not {wanted}"
        judge.judge("add.interfaces", attachment.version, wanted in ("", mac), text, call)
        mtu = entry.get("mtu", 0)
        text = f"{name} on {shown} has the MTU {link.get('mtu')}, not {mtu}"
        judge.judge("add.interfaces", attachment.version, not mtu or link.get("mtu", mtu) == mtu, text, call)


def _judge_addresses(judge: Judge, attachment: Attachment, call: Call, interfaces: t.Sequence[Conf]) -> None:
    result, version = attachment.result or {}, attachment.version
    states = {attachment.container.netns: attachment.state(), "": read_state()}
    for entry in result.get("ips", []):
        at = entry.get("interface")
        if at is None:
            continue
        if not judge.judge("add.addresses", version, 0 <= at < len(interfaces), f"there is no interface {at}", call):
            continue
        owner = interfaces[at]
        cidrs = {key[2] for key in states.get(owner.get("sandbox", ""), {}) if key[:2] == ("address", owner["name"])}
        address = entry["address"]
        # ptp and others set a host address and route the network.
        holds = any(cidr.partition("/")[0] == address.partition("/")[0] for cidr in cidrs)
        judge.judge("add.addresses", version, holds, f"{address} is not on {owner['name']}", call)
    routes = {key[2] for key in states[attachment.container.netns] if key[0] == "route"}
    for route in result.get("routes", []):
        target = str(route["dst"])
        holds = bool(routes & {target, target.partition("/")[0]}) or (target.endswith("/0") and "default" in routes)
        judge.judge("add.routes", version, holds, f"there is no route to {target} in the namespace", call)


def check_unknown_keys(judge: Judge, version: str) -> None:
    """A key of prevResult that no version has."""
    if judge.subject.kind != CHAINED:
        raise NotRun("only chained plugins get a prevResult")
    judge.warm_up(version)
    with judge.attach(version) as attachment:
        attachment.base = {**(attachment.base or {}), _UNKNOWN_KEY: {"kept": True}}
        call = attachment.add()
        holds = call.ok and (attachment.result or {}).get(_UNKNOWN_KEY) == {"kept": True}
        judge.judge("add.unknown_keys", version, holds, f"{_UNKNOWN_KEY} of prevResult is lost: {call.outcome()}", call)
        attachment.delete()


# ---- DEL, as runtimes call it when something is missing


def check_deletes(judge: Judge, version: str) -> None:
    """DEL without the interface, without the namespace, without CNI_NETNS, without prevResult."""
    judge.warm_up(version)
    if judge.subject.makes_interface:
        _delete_after(judge, version, "del.interface_gone", _lose_interface)
    _delete_after(judge, version, "del.netns_gone", lambda attachment: attachment.container.close())
    _delete_after(judge, version, "del.netns_empty", lambda _attachment: None, CNI_NETNS="")
    if is_from("0.4.0", version):
        _delete_after(judge, version, "del.no_prev_result", _forget_result)


def _lose_interface(attachment: Attachment) -> None:
    sandbox.inside(attachment.container.netns, lambda: sandbox.command("ip", "link", "delete", attachment.if_name))


def _forget_result(attachment: Attachment) -> None:
    attachment.result = None


def _delete_after(
    judge: Judge, version: str, clause: str, lose: t.Callable[[Attachment], None], **changed: t.Optional[str]
) -> None:
    host = read_state()
    with judge.attach(version) as attachment:
        added = attachment.add()
        if not added.ok:
            attachment.delete()
            judge.not_run((clause,), version, added.outcome())
            return
        lose(attachment)
        call = attachment.delete(**changed)
    judge.judge(clause, version, call.ok, call.outcome(), call)
    left = judge.settled(host)
    text = f"after {_MISSING[clause]}, DEL and the end of the namespace, on the host: {words_for(left)}"
    judge.judge("del.remains", version, not left, text, call)


# ---- CHECK


def check_damage(judge: Judge, version: str) -> None:
    """CHECK after each kind of thing that ADD made was removed behind the plugin's back."""
    if not is_from("0.4.0", version):
        raise NotRun("CHECK exists since 0.4.0")
    judge.warm_up(version)
    tried: t.Set[t.Tuple[str, str]] = set()
    while True:
        with judge.attach(version) as attachment:
            # What the container has before ADD is no work of the plugin.
            before, host_before = attachment.state(), read_state()
            if not attachment.add().ok:
                attachment.delete()
                break
            made = [(change, attachment.container.netns) for change in changes(before, attachment.state())]
            made += [(change, "") for change in changes(host_before, read_state())]
            target = next((damage for damage in made if _counts(judge, *damage) and _kind(*damage) not in tried), None)
            if target is not None:
                tried.add(_kind(*target))
                change, path = target
                if undo(change, path):
                    call = attachment.check()
                    where = "in the namespace" if path else "on the host"
                    text = f"CHECK succeeded after this was undone {where}: {change.words()}"
                    judge.judge("check.damage", version, not call.ok, text, call)
            attachment.delete()
        if target is None:
            break
    if not tried:
        raise NotRun("ADD makes nothing that this suite can damage")


def _kind(change: Change, path: str) -> t.Tuple[str, str]:
    return change.key[0], path and "container"


def _counts(judge: Judge, change: Change, path: str) -> bool:
    """Tell whether CHECK must miss it: no side effects of the kernel, no notes that a plugin keeps for itself."""
    kind = change.key[0]
    if kind == "file":
        return judge.subject.kind == IPAM and change.before is None and change.now == "file"
    if kind == "route":
        return isinstance(change.now, dict) and change.now.get("protocol") != "kernel"
    if kind in ("mount", "neighbour"):
        return False
    return bool(path) or kind != "link"
