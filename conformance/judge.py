# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The context of the checks: calls the plugin, judges what holds for every call, and collects the verdicts."""

from __future__ import annotations

import os
import time
import typing as t

from libcni import gojson, types
from libcni.errors import JSONError, ResultError
from libcni.version import decode_plugin_info, greater_than_or_equal_to

from .calls import Call, left_processes
from .clauses import CLAUSES
from .state import Change, State, changes, read_state
from .subjects import CHAINED, INTERFACE, IPAM, NETWORK, Conf, Container, NotRun, Subject

ALL_VERSIONS = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
# After so many calls that did not end, the others are left out: each would take as long.
_MOST_HANGS = 3
# The kernel ends a namespace, and the interfaces of it, some time after its last user.
_SETTLE = 5.0


class Verdict:
    """One clause in one version: passed, failed (with a text and a call) or not run (with a reason)."""

    def __init__(self, clause: str, version: str) -> None:
        self.clause = clause
        self.version = version
        self.passed = 0
        self.failures: t.List[t.Tuple[str, t.Optional[Call]]] = []
        self.reason = ""

    @property
    def status(self) -> str:
        if self.failures:
            return "failed"
        return "passed" if self.passed else "not run"

    def as_data(self) -> t.Dict[str, t.Any]:
        """Return the verdict for the report, with the first failure."""
        text, call = self.failures[0] if self.failures else ("", None)
        return {
            "clause": self.clause,
            "version": self.version,
            "status": self.status,
            "message": text or ("" if self.passed else self.reason),
            "failures": len(self.failures),
            "call": call.as_data() if call else None,
        }


class Judge:
    """Judges one plugin. *versions*: those to run, None for all that the plugin supports."""

    def __init__(self, subject: Subject, versions: t.Optional[t.Sequence[str]], timeout: float, parallel: int) -> None:
        self.subject = subject
        self.timeout = timeout
        self.parallel = parallel
        self.supported: t.List[str] = []
        self.wanted = versions
        self.verdicts: t.Dict[t.Tuple[str, str], Verdict] = {}
        self._number = 0
        self._hangs = 0
        self._warm: t.Set[str] = set()

    # ---- verdicts

    def judge(self, clause: str, version: str, holds: bool, text: str = "", call: t.Optional[Call] = None) -> bool:
        """Record whether *clause* holds in *version*, with what was seen if it does not; returns *holds*."""
        verdict = self._verdict(clause, version)
        if holds:
            verdict.passed += 1
        else:
            verdict.failures.append((text, call))
        return holds

    def not_run(self, clauses: t.Iterable[str], version: str, reason: str) -> None:
        """Record why clauses could not be judged; what was judged before stays."""
        for clause in clauses:
            verdict = self._verdict(clause, version)
            verdict.reason = verdict.reason or reason

    def has_failed(self, clause: str) -> bool:
        """Tell whether a failure of *clause* is recorded, in any version."""
        return any(verdict.failures for verdict in self.verdicts.values() if verdict.clause == clause)

    def _verdict(self, clause: str, version: str) -> Verdict:
        if clause not in CLAUSES:
            raise KeyError(clause)
        return self.verdicts.setdefault((clause, version), Verdict(clause, version))

    # ---- calls

    def call(self, env: t.Mapping[str, str], stdin: bytes, version: str, watched: bool = True) -> Call:
        """Call the plugin. *watched* is False while others run side by side: then no process is taken for a leak."""
        if self._hangs >= _MOST_HANGS:
            raise NotRun(f"{self._hangs} calls did not end before")
        call = Call(self.subject.path, env, stdin, self.timeout)
        ended = call.ended
        if not call.started:
            raise NotRun(f"the plugin cannot be started: {ended.failure}")
        self._hangs += ended.killed
        text = f"{call.verb} did not end within {self.timeout:g} s" if ended.killed else ""
        self.judge("run.deadline", version, not ended.killed, text, call)
        if watched:
            left = left_processes(self.subject.helpers)
            self.judge("run.processes", version, not left, f"{call.verb} left {', '.join(left)} running", call)
        if not ended.killed:
            self._judge_output(call, version)
        return call

    def _judge_output(self, call: Call, version: str) -> None:
        whole, embedded = call.document(), call.embedded()
        if call.ok:
            silent = call.verb in ("DEL", "CHECK", "GC", "STATUS")
            clean = not call.ended.stdout.strip() if silent else whole is not None or embedded is None
            self.judge("output.only", version, clean, f"other output than the result: {call.outcome()}", call)
            return
        if embedded is not None:
            clean = whole is not None
            self.judge("output.only", version, clean, f"other output than the error: {call.outcome()}", call)
        code, msg = call.error_code, (embedded or {}).get("msg")
        holds = code is not None and code > 0 and isinstance(msg, str)
        self.judge("error.object", version, holds, f"no error object with code and msg: {call.outcome()}", call)
        if holds:
            given = (embedded or {}).get("cniVersion")
            text = f"the error has no cniVersion: {call.outcome()}" if given is None else f"the error has {given!r}"
            self.judge("error.version", version, bool(given), text, call)

    def refused(self, clause: str, version: str, call: Call, what: str, codes: t.Sequence[int] = ()) -> None:
        """Judge a call that the plugin must refuse, with one of *codes*."""
        self.judge(clause, version, not call.ok, f"{what} was accepted: {call.outcome()}", call)
        if not call.ok and codes and call.error_code is not None:
            wanted = " or ".join(map(str, codes))
            text = f"{what}: the code is {call.error_code} instead of {wanted}"
            self.judge("error.code", version, call.error_code in codes, text, call)

    # ---- versions

    def find_versions(self) -> t.List[str]:
        """Ask the plugin for its versions, and return those to run, the oldest first. Raises `NotRun`."""
        newest = ALL_VERSIONS[-1]
        stdin = gojson.dumps({"cniVersion": newest})
        call = self.call({"CNI_COMMAND": "VERSION"}, stdin, newest)
        answer = call.document() or {}
        try:
            self.supported = decode_plugin_info(call.ended.stdout)
            holds = call.ok and isinstance(answer.get("supportedVersions"), list)
        except JSONError:
            holds = False
        self.judge("version.answer", newest, holds, f"no answer to VERSION: {call.outcome()}", call)
        if not holds:
            # Go's runtimes take such a plugin for one of the first version; here it is judged by what is asked for.
            self.supported = list(self.wanted or [newest])
        else:
            old = self.call({"CNI_COMMAND": "VERSION"}, gojson.dumps({"cniVersion": "0.4.0"}), newest)
            given = (old.document() or {}).get("cniVersion")
            self.judge("version.echo", newest, given == "0.4.0", f"asked with 0.4.0, it answers {given!r}", old)
        wanted = self.wanted or ALL_VERSIONS
        versions = [version for version in ALL_VERSIONS if version in self.supported and version in wanted]
        if not versions:
            raise NotRun(f"the plugin supports {', '.join(self.supported)}, none of {', '.join(wanted)}")
        return versions

    # ---- attachments

    def attach(self, version: str) -> Attachment:
        """Make a container and what the plugin gets for it; nothing is called yet."""
        self._number += 1
        container = Container(self.subject, self._number)
        return Attachment(self, container, self.subject.conf(self._number), version)

    def warm_up(self, version: str) -> None:
        """Attach and detach once, so that what attachments share is there and is not taken for a leak.

        Raises `NotRun` if ADD fails.
        """
        if version in self._warm:
            return
        with self.attach(version) as attachment:
            call = attachment.add()
            failed = "" if call.ok else call.outcome()
            attachment.delete()
        if failed:
            raise NotRun(failed)
        self._warm.add(version)

    def settled(self, before: State, path: str = "") -> t.List[Change]:
        """Return the differences to *before*, after the kernel has ended what it is ending."""
        end = time.monotonic() + _SETTLE
        while True:
            differences = changes(before, read_state(path))
            if not differences or time.monotonic() > end:
                return differences
            # Files and rules do not go by themselves.
            if all(change.key[0] not in ("link", "address", "route", "qdisc", "neighbour") for change in differences):
                return differences
            time.sleep(0.1)


class Attachment:
    """One container, what the plugin gets for it, and the verbs. Leaving it removes the container."""

    def __init__(self, judge: Judge, container: Container, conf: Conf, version: str) -> None:
        self.judge = judge
        self.container = container
        self.version = version
        self.if_name = judge.subject.if_name
        self.args = ""
        self.result: t.Optional[Conf] = None
        self.conf: Conf = {**conf, "cniVersion": version, "name": NETWORK}
        self.base = container.previous(version)
        self.watched = True

    def __enter__(self) -> Attachment:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.container.close()

    def env(self, verb: str, **changed: t.Optional[str]) -> t.Dict[str, str]:
        """Return the variables of a call; None removes one."""
        variables: t.Dict[str, t.Optional[str]] = {
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": self.container.id,
            "CNI_NETNS": self.container.netns,
            "CNI_IFNAME": self.if_name,
            "CNI_ARGS": self.args,
            "CNI_PATH": self.judge.subject.cni_path,
            **changed,
        }
        return {name: value for name, value in variables.items() if value is not None}

    def stdin(self, verb: str, **changed: t.Any) -> bytes:
        """Return the configuration of a call; None removes a key."""
        conf = dict(self.conf)
        if self.base is not None and verb == "ADD":
            conf["prevResult"] = self.base
        elif self.result is not None and verb in ("DEL", "CHECK") and is_from("0.4.0", self.version):
            conf["prevResult"] = self.result
        conf.update(changed)
        return gojson.dumps({key: value for key, value in conf.items() if value is not None})

    def run(self, verb: str, **changed: t.Optional[str]) -> Call:
        return self.judge.call(self.env(verb, **changed), self.stdin(verb), self.version, self.watched)

    def add(self) -> Call:
        call = self.run("ADD")
        if call.ok:
            self.result = call.embedded()
        return call

    def delete(self, **changed: t.Optional[str]) -> Call:
        return self.run("DEL", **changed)

    def check(self) -> Call:
        return self.run("CHECK")

    def state(self) -> State:
        return read_state(self.container.netns)


def is_from(first: str, version: str) -> bool:
    """Tell whether *version* is *first* or a later one."""
    return greater_than_or_equal_to(version, first)


def recognise(judge: Judge, version: str) -> str:
    """Return the kind of the plugin, which is found by what ADD makes."""
    subject = judge.subject
    subject.kind = INTERFACE
    with judge.attach(version) as attachment:
        before = attachment.state()
        call = attachment.add()
        made = changes(before, attachment.state()) if os.path.exists(attachment.container.netns) else []
        attachment.delete()
    result = call.embedded() or {}
    if call.ok and (result.get("interfaces") or any(change.key[0] == "link" for change in made)):
        return INTERFACE
    if call.ok and any(result.get(key) for key in ("ips", "ip4", "ip6")):
        return IPAM
    subject.kind = CHAINED
    with judge.attach(version) as attachment:
        call = attachment.add()
        attachment.delete()
    return CHAINED if call.ok else INTERFACE


def valid_result(document: t.Optional[Conf], version: str) -> str:
    """Return why a document is no result of that version, "" if it is one."""
    if document is None:
        return "stdout is not one JSON object"
    try:
        types.create(version, gojson.dumps({**document, "cniVersion": version}))
    except (JSONError, ResultError) as error:
        return str(error)
    shape = ("ip4", "ip6") if is_from("0.3.0", version) else ("ips", "interfaces", "routes")
    strange = [key for key in shape if key in document]
    return f"{', '.join(strange)} belong to another version" if strange else ""
