# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Checks of STATUS and GC, of the calls of an IPAM plugin, and of many calls side by side."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import typing as t

from . import sandbox
from .calls import Call, left_processes
from .judge import Attachment, Judge, is_from
from .state import changes, read_state, words_for
from .subjects import CHAINED, INTERFACE, IPAM_TYPE, NotRun

_VALID = "cni.dev/valid-attachments"
_CALLS = f"{sandbox.HOME}/calls"
_UNKNOWN_KEY = "podwire.example/unknown"
_PASSED_ON = ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS", "CNI_PATH")


def check_status(judge: Judge, version: str) -> None:
    """STATUS of a plugin whose ADD succeeds."""
    _need_1_1(version)
    judge.warm_up(version)
    with judge.attach(version) as attachment:
        stdin = attachment.stdin("STATUS")
        call = judge.call({"CNI_COMMAND": "STATUS", "CNI_PATH": judge.subject.cni_path}, stdin, version)
        judge.judge("status.ready", version, call.ok, call.outcome(), call)


def _need_1_1(version: str) -> None:
    if not is_from("1.1.0", version):
        raise NotRun("STATUS and GC exist since 1.1.0")


def check_gc(judge: Judge, version: str) -> None:
    """GC with an attachment that is valid, and with one that is not."""
    _need_1_1(version)
    judge.warm_up(version)
    with judge.attach(version) as attachment:
        without = read_state()
        if attachment.add().ok:
            inside, host = attachment.state(), read_state()
            own = {change.key for change in changes(without, host)}
            call = _collect(judge, attachment)
            judge.judge("gc.success", version, call.ok, call.outcome(), call)
            # GC may remove what others left.
            changed = changes(inside, attachment.state())
            changed += [change for change in changes(host, read_state()) if change.key in own]
            judge.judge("gc.keeps", version, not changed, f"of a valid attachment: {words_for(changed)}", call)
            _collect_dead(judge, attachment)
        attachment.delete()


def _collect(judge: Judge, attachment: Attachment) -> Call:
    valid = [{"containerID": attachment.container.id, "ifname": attachment.if_name}]
    stdin = attachment.stdin("GC", **{_VALID: valid, "cni.dev/attachments": valid})
    return judge.call({"CNI_COMMAND": "GC", "CNI_PATH": judge.subject.cni_path}, stdin, attachment.version)


def _collect_dead(judge: Judge, valid: Attachment) -> None:
    host = read_state()
    with judge.attach(valid.version) as dead:
        added = dead.add()
    if not added.ok or not judge.settled(host):
        judge.not_run(("gc.collects",), valid.version, "an attachment whose namespace is gone leaves nothing")
    else:
        call = _collect(judge, valid)
        left = judge.settled(host)
        judge.judge("gc.collects", valid.version, not left, f"after GC: {words_for(left)}", call)
    dead.delete()


# ---- delegation


def check_delegation(judge: Judge, version: str) -> None:
    """What the IPAM plugin is called with; that of the configuration is replaced by one that writes it down."""
    with judge.attach(version) as attachment:
        ipam = attachment.conf.get("ipam")
        if judge.subject.kind != INTERFACE or not (isinstance(ipam, dict) and ipam.get("type")):
            raise NotRun("the configuration delegates nothing")
        # What is left of its keys stays: a plugin may read them, too.
        attachment.conf["ipam"] = {**ipam, "type": IPAM_TYPE}
        attachment.conf[_UNKNOWN_KEY] = {"kept": True}
        attachment.args = "IgnoreUnknown=1;K8S_POD_NAME=web"
        _forget_calls()
        made = [("ADD", attachment.add())]
        if made[0][1].ok and is_from("0.4.0", version):
            made.append(("CHECK", attachment.check()))
        made.append(("DEL", attachment.delete()))
        _judge_calls(judge, version, made)
        attachment.conf["ipam"] = {**attachment.conf["ipam"], "fail": True}
        _forget_calls()
        failed = attachment.add()
        verbs = [entry["env"].get("CNI_COMMAND") for entry in _read_calls()]
        holds = not failed.ok and verbs[:1] == ["ADD"] and "DEL" in verbs
        text = f"the IPAM plugin failed, and was called with {', '.join(map(str, verbs)) or 'nothing'}"
        judge.judge("delegate.failure", version, holds, text, failed)
        attachment.delete()


def _judge_calls(judge: Judge, version: str, made: t.Sequence[t.Tuple[str, Call]]) -> None:
    last_calls = {entry["env"].get("CNI_COMMAND"): entry for entry in _read_calls()}
    for verb, call in made:
        entry = last_calls.get(verb)
        text = f"{verb} did not call the IPAM plugin with {verb}: {call.outcome()}"
        if not judge.judge("delegate.verbs", version, entry is not None, text, call) or entry is None:
            continue
        other = [name for name in _PASSED_ON if entry["env"].get(name, "") != call.env.get(name, "")]
        judge.judge("delegate.environment", version, not other, f"{verb} passes on another {', '.join(other)}", call)
        sent, got = json.loads(call.stdin), json.loads(entry["stdin"])
        lost = [key for key in sent if key not in got and key != "prevResult"]
        lost += [key for key in sent if key in got and key != "prevResult" and got[key] != sent[key]]
        text = f"{verb} does not pass on {', '.join(lost)} as it got it"
        judge.judge("delegate.configuration", version, not lost, text, call)


def _forget_calls() -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_CALLS)


def _read_calls() -> t.List[t.Any]:
    try:
        with open(_CALLS, encoding="utf-8") as stream:
            return [json.loads(line) for line in stream]
    except FileNotFoundError:
        return []


# ---- side by side


def check_parallel(judge: Judge, version: str) -> None:
    """ADD for many containers side by side, then DEL."""
    judge.warm_up(version)
    host = read_state()
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(judge.attach(version)) for _number in range(judge.parallel)]
        for attachment in many:
            attachment.watched = False
        is_chained = judge.subject.kind == CHAINED
        bases = {attachment.container.id: attachment.state() for attachment in many if is_chained}
        with concurrent.futures.ThreadPoolExecutor(max(1, judge.parallel)) as pool:
            added = list(pool.map(Attachment.add, many))
            _judge_added(judge, version, many, added)
            deleted = list(pool.map(Attachment.delete, many))
        failed = [call for call in deleted if not call.ok]
        text = f"{len(failed)} of {len(many)} DEL failed, the first: {failed[0].outcome() if failed else ''}"
        judge.judge("run.parallel", version, not failed, text, failed[0] if failed else None)
        for attachment in many if bases else ():
            left = judge.settled(bases[attachment.container.id], attachment.container.netns)
            judge.judge("run.parallel", version, not left, f"in a namespace, after DEL: {words_for(left)}")
    left = judge.settled(host)
    judge.judge("run.parallel", version, not left, f"on the host, after {len(many)} DEL: {words_for(left)}")
    processes = left_processes(judge.subject.helpers)
    judge.judge("run.processes", version, not processes, f"left running: {', '.join(processes)}")


def _judge_added(judge: Judge, version: str, many: t.Sequence[Attachment], added: t.Sequence[Call]) -> None:
    failed = [call for call in added if not call.ok]
    text = f"{len(failed)} of {len(many)} ADD failed, the first: {failed[0].outcome() if failed else ''}"
    judge.judge("run.parallel", version, not failed, text, failed[0] if failed else None)
    if judge.subject.kind == CHAINED:
        return
    owners: t.Dict[str, t.List[str]] = {}
    for attachment in many:
        result = attachment.result or {}
        entries = [*result.get("ips", []), *(result[key] for key in ("ip4", "ip6") if key in result)]
        for entry in entries:
            address = str(entry.get("address", entry.get("ip")))
            if not address.startswith(("127.", "::1/")):
                owners.setdefault(address, []).append(attachment.container.id)
    double = [f"{address} went to {' and '.join(ids)}" for address, ids in owners.items() if len(ids) > 1]
    judge.judge("run.parallel", version, not double, "; ".join(double[:3]))
