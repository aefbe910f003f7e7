# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""A CNI plugin that does nothing but record and report, as Go's plugins/test/noop, with what pkg/skel puts around it.

It is told what to do by a JSON file, named by `DEBUG=<file>` in CNI_ARGS or by the key `debugFile` of its
configuration, and writes back into it how it was called (`Command`, `CmdArgs`, `Pids`). Reports: `ReportResult` (text,
or PASSTHROUGH: the prevResult, or INJECT-DNS: the prevResult with a nameserver), `ReportError` and `ReportErrorCode`,
`ReportStderr`, `ExitWithCode`, `ReportVersionSupport`. The key `commandLog` of the configuration names a file to which
each call appends a line of JSON.

Beyond Go's: `ReportErrorDetails`, `RawStdout` (printed as it is), `Sleep` (seconds before the answer).

Standard library only, and nothing of the code under test.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time

VERSIONS = ["0.-42.0", "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]
# What each command requires, after CNI_COMMAND, and since which version there is the command.
REQUIRED = {
    "ADD": ("CONTAINERID", "NETNS", "IFNAME", "PATH"),
    "CHECK": ("CONTAINERID", "NETNS", "IFNAME", "PATH"),
    "DEL": ("CONTAINERID", "IFNAME", "PATH"),
    "GC": ("PATH",),
    "STATUS": ("PATH",),
    "VERSION": (),
}
SINCE = {"CHECK": "0.4.0", "GC": "1.1.0", "STATUS": "1.1.0"}
NAMES = ("CONTAINERID", "NETNS", "IFNAME", "ARGS", "PATH")


class PluginError(Exception):
    """What is printed as the protocol's error."""

    def __init__(self, code, msg, details=""):
        super().__init__(msg)
        self.error = {"code": code, "msg": msg, **({"details": details} if details else {})}


class Panic(Exception):
    """Where the Go plugin panics, which ends it with 2."""


def numbers(version):
    return tuple(int(part) for part in version.split("."))


# ---- pkg/skel


def call(command, stdin, conf):
    """Test what pkg/skel tests before it calls a plugin."""
    missing = [f"CNI_{name}" for name in REQUIRED[command] if not os.environ.get(f"CNI_{name}")]
    if missing:
        raise PluginError(4, f"required env variables [{','.join(missing)}] missing")
    if not conf.get("name"):
        raise PluginError(7, "missing network name")
    if not re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9_.\-]*", conf["name"]):
        raise PluginError(7, "invalid characters found in network name", conf["name"])
    version = conf.get("cniVersion") or "0.1.0"
    if command in SINCE and numbers(version) < numbers(SINCE[command]):
        raise PluginError(1, f"config version does not allow {command}")
    supported = supported_versions(conf)
    if version not in supported:
        quoted = " ".join(f'"{item}"' for item in supported)
        raise PluginError(1, "incompatible CNI versions", f'config is "{version}", plugin supports [{quoted}]')
    return behave(command, stdin, conf)


# ---- plugins/test/noop


def debug_file(conf):
    for pair in filter(None, os.environ.get("CNI_ARGS", "").split(";")):
        if pair.count("=") != 1:
            raise PluginError(999, f"CNI_ARGS invalid key/value pair: {pair}")
        if pair.startswith("DEBUG="):
            return pair[len("DEBUG=") :]
    return conf.get("debugFile", "")


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def supported_versions(conf):
    if not os.environ.get("CNI_ARGS"):
        return VERSIONS
    try:
        return read(debug_file(conf)).get("ReportVersionSupport") or VERSIONS
    except OSError as exc:
        raise Panic("test setup error: unable to read debug file") from exc


def record(path, debug, command, stdin):
    debug["Command"] = command
    debug["CmdArgs"] = {**{name: os.environ.get(f"CNI_{name}") for name in NAMES}, "StdinData": stdin}
    debug["Pids"] = [os.getpid(), os.getpgid(0), os.getsid(0)]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(debug, file)


def answer(report, conf):
    if report not in ("PASSTHROUGH", "INJECT-DNS"):
        return report
    if not conf.get("prevResult"):
        raise Panic("there is no prevResult")
    result = {"cniVersion": conf["cniVersion"], "dns": {}, **conf["prevResult"]}
    if report == "INJECT-DNS":
        result["dns"] = {**result["dns"], "nameservers": ["1.2.3.4"]}
    elif not result["dns"] and numbers(conf["cniVersion"]) >= (1, 0, 0):
        del result["dns"]
    return json.dumps(result)


def behave(command, stdin, conf):
    path = debug_file(conf)
    if not path:
        sys.stderr.write("CNI_ARGS or config empty, no debug behavior\n")
        sys.stdout.write("{}")
        return 0
    debug = read(path)
    record(path, debug, command, stdin)
    if "commandLog" in conf:
        with open(conf["commandLog"], "a", encoding="utf-8") as file:
            file.write(json.dumps({"Command": command, "CmdArgs": debug["CmdArgs"], "StdinData": stdin}) + "\n")
    time.sleep(debug.get("Sleep", 0))
    sys.stderr.write(debug.get("ReportStderr", ""))
    if "RawStdout" in debug:
        sys.stdout.write(debug["RawStdout"])
    elif debug.get("ReportError"):
        raise PluginError(debug.get("ReportErrorCode", 999), debug["ReportError"], debug.get("ReportErrorDetails", ""))
    else:
        sys.stdout.write(answer(debug.get("ReportResult", ""), conf))
    return debug.get("ExitWithCode", 0)


def main():
    command = os.environ["CNI_COMMAND"]
    stdin = sys.stdin.buffer.read().decode("utf-8")
    conf = json.loads(stdin)
    try:
        if command == "VERSION":
            sys.stdout.write(json.dumps({"cniVersion": "1.1.0", "supportedVersions": supported_versions(conf)}))
            return 0
        return call(command, stdin, conf)
    except PluginError as exc:
        sys.stdout.write(json.dumps(exc.error))
        return 1
    except Panic as exc:
        sys.stderr.write(f"panic: {exc}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
