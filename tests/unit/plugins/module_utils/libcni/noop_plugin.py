# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""A CNI plugin that does nothing but record and report (as Go's plugins/test/noop).

It is told what to do by a JSON file, named by `DEBUG=<file>` in CNI_ARGS or by the key `debugFile` of its
configuration, and writes back into it how it was called (`Command`, `CmdArgs`, `Pids`). Reports: `ReportResult` (JSON
text, or PASSTHROUGH: the prevResult, or INJECT-DNS: the prevResult with a nameserver), `ReportError` and
`ReportErrorCode` and `ReportErrorDetails`, `ReportStderr`, `ExitWithCode`. The key `commandLog`
of the configuration names a file to which each call appends a line of JSON.

Beyond Go's: `RawStdout` (printed as it is), `Sleep` (seconds before the answer).

Standard library only, and nothing of the code under test.
"""

from __future__ import annotations

import json
import os
import sys
import time

VERSIONS = ["0.-42.0", "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]


def debug_file(conf):
    for pair in os.environ.get("CNI_ARGS", "").split(";"):
        key, _sep, value = pair.partition("=")
        if key == "DEBUG":
            return value
    return conf.get("debugFile", "")


def answer(debug, conf):
    report = debug.get("ReportResult", "")
    if report == "PASSTHROUGH":
        return json.dumps(conf.get("prevResult"))
    if report == "INJECT-DNS":
        result = dict(conf["prevResult"])
        result["cniVersion"] = conf["cniVersion"]
        result["dns"] = {**result.get("dns", {}), "nameservers": ["1.2.3.4"]}
        return json.dumps(result)
    return report


def record(path, debug, command, stdin):
    names = ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS", "CNI_PATH")
    debug["Command"] = command
    debug["CmdArgs"] = {**{name[4:]: os.environ.get(name) for name in names}, "StdinData": stdin}
    debug["Pids"] = [os.getpid(), os.getpgid(0), os.getsid(0)]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(debug, file)


def misbehave(debug):
    time.sleep(debug.get("Sleep", 0))
    sys.stderr.write(debug.get("ReportStderr", ""))


def main():
    command = os.environ["CNI_COMMAND"]
    stdin = sys.stdin.buffer.read().decode("utf-8")
    conf = json.loads(stdin)
    path = debug_file(conf)
    debug = {}
    if path:
        with open(path, encoding="utf-8") as file:
            debug = json.load(file)
        record(path, debug, command, stdin)
    if "commandLog" in conf:
        with open(conf["commandLog"], "a", encoding="utf-8") as file:
            file.write(json.dumps({"Command": command, "StdinData": stdin}) + "\n")
    misbehave(debug)
    if command == "VERSION":
        print(json.dumps({"cniVersion": "1.1.0", "supportedVersions": VERSIONS}))
        return 0
    if "RawStdout" in debug:
        sys.stdout.write(debug["RawStdout"])
    elif "ReportError" in debug:
        error = {"code": debug.get("ReportErrorCode", 999), "msg": debug["ReportError"]}
        if "ReportErrorDetails" in debug:
            error["details"] = debug["ReportErrorDetails"]
        print(json.dumps(error))
        return debug.get("ExitWithCode", 1)
    elif command == "ADD":
        print(answer(debug, conf))
    return debug.get("ExitWithCode", 0)


if __name__ == "__main__":
    sys.exit(main())
