# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Checks of the protocol: variables and configurations. They attach nothing, or detach it at once."""

from __future__ import annotations

from .judge import Judge
from .state import read_state, words_for
from .subjects import INTERFACE, NotRun

_REQUIRED = {
    "ADD": ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME"),
    "DEL": ("CNI_CONTAINERID", "CNI_IFNAME"),
}


def check_variables(judge: Judge, version: str) -> None:
    """An unknown command, and variables that are missing or invalid."""
    with judge.attach(version) as attachment:
        call = judge.call(attachment.env("NOTHING"), attachment.stdin("ADD"), version)
        judge.refused("command.unknown", version, call, "CNI_COMMAND=NOTHING", (4,))
        for verb, names in _REQUIRED.items():
            for name in names:
                call = judge.call(attachment.env(verb, **{name: None}), attachment.stdin(verb), version)
                judge.refused("variables.missing", version, call, f"{verb} without {name}", (4,))
                if not call.ok:
                    error = call.embedded() or {}
                    holds = call.error_code == 4 and name in f"{error.get('msg')} {error.get('details')}"
                    text = f"{verb} without {name} is not named with code 4: {call.outcome()}"
                    judge.judge("variables.named", version, holds, text, call)
                else:
                    attachment.delete()
        names_given = [("CNI_CONTAINERID", "../x"), ("CNI_IFNAME", "a/b"), ("CNI_IFNAME", "sixteen-bytes-ab")]
        for name, value in names_given:
            call = judge.call(attachment.env("ADD", **{name: value}), attachment.stdin("ADD"), version)
            judge.refused("variables.invalid", version, call, f"{name}={value}", (4,))
            if call.ok:
                attachment.delete(**{name: value})


def check_stdin(judge: Judge, version: str) -> None:
    """Configurations that are none, and one of a version that does not exist."""
    with judge.attach(version) as attachment:
        for clause, stdin in (("stdin.empty", b""), ("stdin.garbage", b'{"cniVersion": ')):
            for verb in ("ADD", "DEL"):
                call = judge.call(attachment.env(verb), stdin, version)
                what = f"{verb} with {'nothing' if not stdin else 'broken JSON'} on stdin"
                judge.refused(clause, version, call, what, (6, 7))
                if call.ok and verb == "ADD":
                    attachment.delete()
        call = judge.call(attachment.env("ADD"), attachment.stdin("ADD", cniVersion="9.9.9", prevResult=None), version)
        judge.refused("config.version", version, call, "ADD with the cniVersion 9.9.9", (1,))
        if call.ok:
            attachment.delete()


def check_args(judge: Judge, version: str) -> None:
    """Runtimes send keys that a plugin does not know, with IgnoreUnknown=1."""
    judge.warm_up(version)
    with judge.attach(version) as attachment:
        attachment.args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=1"
        call = attachment.add()
        text = f"IgnoreUnknown=1 is not enough: {call.outcome()}"
        judge.judge("args.ignore_unknown", version, call.ok, text, call)
        attachment.delete()


def check_no_namespace(judge: Judge, version: str) -> None:
    """ADD with a CNI_NETNS that leads nowhere. A chained plugin may have no need of the namespace."""
    if judge.subject.kind != INTERFACE:
        raise NotRun("only interface plugins must enter the namespace")
    judge.warm_up(version)
    before = read_state()
    with judge.attach(version) as attachment:
        call = attachment.run("ADD", CNI_NETNS="/run/netns/does-not-exist")
        judge.judge("add.netns", version, not call.ok, f"a missing namespace was accepted: {call.outcome()}", call)
        attachment.delete(CNI_NETNS="/run/netns/does-not-exist")
    left = judge.settled(before) if not call.ok else []
    judge.judge("add.netns", version, not left, f"left by an ADD that failed and its DEL: {words_for(left)}", call)
