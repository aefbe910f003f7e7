# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""`python3 -m conformance PLUGIN`: judges one plugin in a sandbox, and prints the report.

Exit status: 0 if the plugin keeps every `must` (with --strict every `should`, too), 1 if it violates one, 2 for wrong
arguments or a configuration that cannot be read, 3 if it keeps what could be judged, but parts of it could not.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import stat
import sys
import typing as t

from libcni.errors import CNIError, os_error_text

from . import ROOT, checks_calls, checks_lifecycle, checks_protocol, report as reports, sandbox, subjects
from .clauses import CLAUSES, EVERY_CALL
from .judge import ALL_VERSIONS, Judge, recognise

Check = t.Callable[[Judge, str], None]

DEFAULT_TIMEOUT = 30.0
DEFAULT_PARALLEL = 50

# Each check, and whether it runs for every version, or for the newest only.
_CHECKS: t.Tuple[t.Tuple[Check, bool], ...] = (
    (checks_protocol.check_variables, False),
    (checks_protocol.check_stdin, False),
    (checks_lifecycle.check_lifecycle, True),
    (checks_protocol.check_args, False),
    (checks_protocol.check_no_namespace, False),
    (checks_lifecycle.check_unknown_keys, False),
    (checks_lifecycle.check_deletes, True),
    (checks_lifecycle.check_damage, False),
    (checks_calls.check_status, False),
    (checks_calls.check_gc, False),
    (checks_calls.check_delegation, False),
    (checks_calls.check_parallel, False),
)


class _UsageError(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> t.NoReturn:
        raise _UsageError(f"{message}\n{self.format_usage().rstrip()}")


def main(argv: t.Sequence[str]) -> int:
    """Judge one plugin and return the exit status."""
    try:
        args = _parser().parse_args(argv)
        _check_arguments(args)
        name = os.path.basename(args.plugin)
        conf = subjects.read_conf(args.config, name) if args.config else None
        subject = subjects.Subject(args.plugin, conf, args.kind or "", args.cni_path)
    except (_UsageError, CNIError) as error:
        return _complain(str(error), reports.USAGE)
    try:
        report = json.loads(sandbox.run_apart(lambda: _in_sandbox(subject, args), [os.path.dirname(args.plugin), ROOT]))
        _write(report, args)
    except sandbox.SandboxError as error:
        return _complain(str(error), reports.NOT_JUDGED)
    except OSError as error:
        return _complain(os_error_text("write", str(error.filename or "/dev/stdout"), error), reports.USAGE)
    return reports.exit_status(report, args.strict)


def _complain(text: str, status: int) -> int:
    sys.stderr.write(f"conformance: {text}\n")
    return status


def _parser() -> _Parser:
    parser = _Parser(
        prog="conformance",
        description="Test in private namespaces whether a CNI plugin keeps the specification. Needs root and iproute2.",
        epilog="exit status: 0 keeps it; 1 violates a must; 2 wrong arguments; 3 parts could not be judged",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("plugin", metavar="PLUGIN", nargs="?", help="the path of the plugin's executable")
    add("--config", metavar="FILE", help="its configuration, or a conflist that has it; reference plugins need none")
    add("--kind", choices=subjects.KINDS, help="what it is; by default, it is found out")
    add("--versions", nargs="+", metavar="VERSION", help="versions of the specification; default all that it supports")
    add(
        "--cni-path", nargs="+", default=[], metavar="DIRECTORY", help="where else the plugins are that it delegates to"
    )
    add("--only", nargs="+", metavar="CLAUSE", help="judge these clauses only")
    add("--timeout", type=float, default=DEFAULT_TIMEOUT, metavar="SECONDS", help="deadline of each call (default 30)")
    add("--parallel", type=int, default=DEFAULT_PARALLEL, metavar="NUMBER", help="calls side by side (default 50)")
    add("--strict", action="store_true", help="a violated should is an exit status of 1, too")
    add("--json", metavar="FILE", help="write the report as JSON there, with each call of a failure")
    add("--list", action="store_true", help="print the clauses, and test nothing")
    return parser


def _check_arguments(args: argparse.Namespace) -> None:
    if args.list:
        lines = (f"{clause.level:6} {clause.name:23} {clause.text} [{clause.section}]\n" for clause in CLAUSES.values())
        _print("".join(lines))
        raise SystemExit(reports.KEPT)
    if not args.plugin:
        raise _UsageError("PLUGIN is missing")
    args.plugin = os.path.abspath(args.plugin)
    args.cni_path = [os.path.abspath(path) for path in args.cni_path]
    try:
        status = os.stat(args.plugin)
    except (OSError, ValueError) as error:
        raise _UsageError(f"{args.plugin}: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISREG(status.st_mode) or not os.access(args.plugin, os.X_OK):
        raise _UsageError(f"{args.plugin}: not an executable file")
    for word, known in (("versions", ALL_VERSIONS), ("only", CLAUSES)):
        strange = [name for name in getattr(args, word) or () if name not in known]
        if strange:
            raise _UsageError(f"--{word}: unknown: {', '.join(strange)}; known: {', '.join(known)}")
    if args.timeout <= 0 or args.parallel < 1:
        raise _UsageError("--timeout and --parallel must be greater than 0")


# ---- in the sandbox


def _in_sandbox(subject: subjects.Subject, args: argparse.Namespace) -> bytes:
    judge = Judge(subject, args.versions, args.timeout, args.parallel)
    versions: t.List[str] = []
    problem = ""
    try:
        subjects.prepare_host()
        subject.prepare()
        versions = judge.find_versions()
        problem = _run(judge, versions, args.only or ())
    except subjects.NotRun as reason:
        problem = str(reason)
    verdicts = []
    for verdict in judge.verdicts.values():
        if not args.only or verdict.clause in args.only:
            clause = CLAUSES[verdict.clause]
            data = {"level": clause.level, "section": clause.section, "text": clause.text}
            verdicts.append({**verdict.as_data(), **data, "repeat": _repeat(args, verdict.clause, verdict.version)})
    verdicts.sort(key=lambda entry: (list(CLAUSES).index(entry["clause"]), ALL_VERSIONS.index(entry["version"])))
    report = {
        "plugin": subject.path,
        "kind": subject.kind,
        "supported": judge.supported,
        "versions": versions,
        "problem": problem,
        "verdicts": verdicts,
    }
    return json.dumps(report).encode()


def _run(judge: Judge, versions: t.Sequence[str], only: t.Sequence[str]) -> str:
    """Run the checks, and return why some of them could not run, "" if all could."""
    missing, problem = judge.subject.missing(), ""
    if missing:
        problem = f"{judge.subject.name} needs {missing}"
    elif not judge.subject.kind:
        judge.subject.kind = recognise(judge, versions[-1])
    for check, each in _CHECKS:
        names = [clause.name for clause in CLAUSES.values() if f"check_{clause.check}" == check.__name__]
        if only and all(judge.has_failed(name) for name in only):
            # What was to be repeated has been.
            break
        # What every call is judged by needs all checks.
        if only and not any(name in names or CLAUSES[name].check == EVERY_CALL for name in only):
            continue
        for version in versions if each else versions[-1:]:
            attaches = check not in (checks_protocol.check_variables, checks_protocol.check_stdin)
            try:
                if missing and (attaches or judge.subject.name == "host-device"):
                    raise subjects.NotRun(problem)
                check(judge, version)
            except subjects.NotRun as reason:
                judge.not_run(names, version, str(reason))
                failed = judge.verdicts.get(("add.success", version))
                if attaches and failed and failed.failures:
                    problem = problem or f"ADD fails with this configuration: {reason}"
            except sandbox.SandboxError as error:
                judge.not_run(names, version, str(error))
                problem = problem or str(error)
    return problem


def _repeat(args: argparse.Namespace, clause: str, version: str) -> str:
    words = ["python3", "-m", "conformance", args.plugin]
    words += ["--config", args.config] if args.config else []
    words += ["--kind", args.kind] if args.kind else []
    words += ["--cni-path", *args.cni_path] if args.cni_path else []
    words += ["--timeout", f"{args.timeout:g}"] if args.timeout != DEFAULT_TIMEOUT else []
    words += ["--parallel", str(args.parallel)] if args.parallel != DEFAULT_PARALLEL else []
    return shlex.join([*words, "--versions", version, "--only", clause])


# ---- output


def _write(report: reports.Report, args: argparse.Namespace) -> None:
    if args.json:
        with open(args.json, "w", encoding="utf-8") as stream:
            json.dump(report, stream, indent=2)
    _print(reports.as_text(report))


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
