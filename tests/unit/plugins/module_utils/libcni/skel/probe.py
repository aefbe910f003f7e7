# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""A plugin on libcni.skel whose callbacks do as they are told, and what runs it: probe.py < calls > outcomes (JSON).

The call: `env`, `stdin`, `plugin` as in cases.json, with paths for its tokens. The outcome: `exit`, `stdout`, `stderr`
(hexadecimal) and `calls`. Each call runs in a fork of this process, with files of its own. tests/real/peer/skel has the
same plugin in Go.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[6] / "plugins" / "module_utils"))

import libcni


class ProbeArgs(libcni.CommonArgs):
    IP = libcni.IPAddress()
    K8S_POD_NAME = ""
    K8S_POD_INFRA_CONTAINER_ID = ""
    Flag = False


def shown(args, into, names):
    loaded = args.load_args(into)
    values = {name: getattr(loaded, name) for name in names}
    sys.stdout.write(json.dumps(values, separators=(",", ":"), ensure_ascii=False))


def behave(order, args):
    do, text = order["do"], order.get("text", "")
    if do in ("print", "print_and_error", "exit"):
        sys.stdout.write(text)
    if do == "stderr":
        sys.stderr.write(text)
    elif do == "exit":
        sys.exit(order["exit"])
    elif do == "panic":
        raise AssertionError(text)
    elif do == "plain_error":
        raise RuntimeError(text)
    elif do == "os_error":
        open(text)  # noqa: SIM115  # it fails
    elif do in ("cni_error", "print_and_error", "wrapped_cni_error", "joined_errors"):
        error = libcni.PluginError(order.get("code", 999), order.get("msg", ""), order.get("details", ""))
        if do == "wrapped_cni_error":
            raise RuntimeError(text) from error
        if do == "joined_errors":
            raise libcni.MultiError("both", [libcni.CNIError(text), error])
        raise error
    elif do == "print_result":
        libcni.create_from_bytes(json.dumps(order["result"]).encode()).print(order["version"])
    elif do == "return_result":
        return libcni.create_from_bytes(json.dumps(order["result"]).encode())
    elif do == "prev_result":
        result = args.prev_result
        if result is None:
            sys.stdout.write("no prevResult")
        else:
            result.print(args.cni_version)
    elif do == "load_args":
        shown(args, ProbeArgs, ("Flag", "IP", "IgnoreUnknown", "K8S_POD_INFRA_CONTAINER_ID", "K8S_POD_NAME"))
    elif do == "load_args_common":
        shown(args, libcni.CommonArgs, ("IgnoreUnknown",))
    return None


def plugin(spec, record):
    """Be the plugin; *record* takes what its callbacks get."""

    def callback(name, order):
        def run(args):
            given = {
                key: os.fsencode(getattr(args, key)).decode("utf-8", "replace")
                for key in ("args", "container_id", "ifname", "netns", "netns_override", "path")
            }
            record({"callback": name, "stdin": args.stdin_data.hex(), **given})
            return behave(order, args)

        return run

    names = {"del": "delete"}
    callbacks = {names.get(name, name): callback(name, order) for name, order in spec.get("callbacks", {}).items()}
    more = {key: spec[key] for key in ("versions", "error_version") if key in spec}
    libcni.plugin_main(about=spec.get("about", ""), **callbacks, **more)


def become(call, stdin, stdout, stderr, calls):
    """Run the plugin in this process, which ends with it."""
    status = 70
    try:
        os.environb.clear()
        os.environb.update({os.fsencode(key): os.fsencode(value) for key, value in call["env"].items()})
        for number, file in enumerate((stdin, stdout, stderr)):
            if file is None:
                os.close(number)
            else:
                os.dup2(file, number)
        sys.stdin = None
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        try:
            plugin(call["plugin"], lambda one: calls.write(json.dumps(one) + "\n"))
            status = 0
        except SystemExit as exc:
            status = exc.code or 0
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
            status = 1
        for stream in (calls, sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(status)


def open_stdin(stdin):
    """Return a descriptor to read, None for a closed one."""
    if isinstance(stdin, dict) and stdin["kind"] == "open":
        # The other end stays open in this process.
        return os.pipe()[0]
    if isinstance(stdin, dict) and stdin["kind"] in ("null", "directory"):
        return os.open("/dev/null" if stdin["kind"] == "null" else "/", os.O_RDONLY)
    if isinstance(stdin, dict) and stdin["kind"] == "closed":
        return None
    with tempfile.TemporaryFile() as file:
        file.write(stdin_bytes(stdin))
        file.seek(0)
        return os.dup(file.fileno())


def stdin_bytes(stdin):
    if isinstance(stdin, str):
        return stdin.encode("utf-8", "surrogatepass")
    if stdin["kind"] == "hex":
        return bytes.fromhex(stdin["hex"])
    if stdin["kind"] == "padded":
        return stdin["text"].encode().ljust(stdin["size"])
    return b""


def outcome(call):
    stdin = open_stdin(call["stdin"])
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr, tempfile.TemporaryFile("w+") as calls:
        pid = os.fork()
        if pid == 0:
            become(call, stdin, stdout.fileno(), stderr.fileno(), calls)
        if stdin is not None:
            os.close(stdin)
        _pid, status = os.waitpid(pid, 0)
        for file in (stdout, stderr, calls):
            file.seek(0)
        return {
            "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status),
            "stdout": stdout.read().hex(),
            "stderr": stderr.read().hex(),
            "calls": [json.loads(line) for line in calls],
        }


def main():
    json.dump([outcome(call) for call in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
