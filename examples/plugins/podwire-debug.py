# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""podwire-debug: writes down each call of a chain of CNI plugins, and hands the result on; README.md has its keys."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import sys
import time

import libcni
from libcni import gojson

LOG = "/var/log/podwire-cni/debug.log"
SECRET = re.compile(r"passw|secret|token|credential|private.?key|api.?key", re.IGNORECASE)
MASK = "********"
INVALID_CONFIG = 7


def setting(config, key, default):
    value = config.get(key, default)
    if type(value) is not type(default):
        raise libcni.PluginError(INVALID_CONFIG, f"{key}: expected {type(default).__name__}, found {value!r}")
    return value


class Log:
    def __init__(self, config):
        self.path = setting(config, "file", LOG)
        self.most = setting(config, "maxSize", 1024 * 1024)
        if not os.path.isabs(self.path) or os.path.normpath(self.path) != self.path:
            raise libcni.PluginError(INVALID_CONFIG, f"file: expected an absolute path without .., found {self.path!r}")
        if self.most < 4096:
            raise libcni.PluginError(INVALID_CONFIG, f"maxSize: expected at least 4096, found {self.most}")

    def append(self, line):
        folder = os.path.dirname(self.path)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        status = os.stat(folder)
        if status.st_uid != 0 or status.st_mode & 0o022:
            raise PermissionError(f"users other than root can write to {folder}; chown root, chmod go-w")
        while not self._appended(line):
            pass

    def _appended(self, line):
        """Append a line; False if the file was full, or another call renamed it meanwhile."""
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not (os.path.exists(self.path) and os.path.samestat(os.fstat(file), os.stat(self.path))):
                return False
            size = os.fstat(file).st_size
            if size and size + len(line) > self.most:
                os.replace(self.path, f"{self.path}.1")
                return False
            os.write(file, line)
            return True
        finally:
            os.close(file)


def masked(value, key=""):
    """Return a copy without secrets: the name of a key decides, in CNI_ARGS, too."""
    if SECRET.search(key):
        return MASK
    if isinstance(value, dict):
        return {name: masked(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [masked(inner) for inner in value]
    if key == "CNI_ARGS":
        pairs = (pair.partition("=") for pair in value.split(";"))
        return ";".join(f"{name}{equals}{masked(text, name)}" for name, equals, text in pairs)
    return value


def write_down(log, command, args, outcome):
    """Append one line. A call never fails because of it."""
    now = time.time()
    seen = {
        "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z",
        "command": command,
        "network": args.config.get("name"),
        "containerID": args.container_id,
        "ifname": args.ifname,
        "netns": args.netns,
        "environment": dict(os.environ),
        "config": args.config,
        **outcome,
    }
    try:
        log.append(gojson.dumps(masked(seen)) + b"\n")
    except OSError as error:
        sys.stderr.write(f"podwire-debug: cannot write {log.path}: {error}\n")


def previous(args):
    """Return the result of the plugins before this one, with the keys that libcni does not know."""
    if not isinstance(args.config.get("prevResult"), dict):
        raise libcni.PluginError(INVALID_CONFIG, "there is no prevResult; put podwire-debug after an interface plugin")
    return {"cniVersion": args.cni_version, **args.config["prevResult"]}


def add(args):
    log = Log(args.config)
    try:
        result = previous(args)
    except libcni.PluginError as error:
        write_down(log, "ADD", args, {"error": str(error)})
        raise
    write_down(log, "ADD", args, {"result": result})
    # Printed instead of returned: a returned Result loses the keys that libcni does not know.
    sys.stdout.write(gojson.dumps(result, 4).decode())


def delete(args):
    try:
        write_down(Log(args.config), "DEL", args, {})
    except libcni.PluginError as error:
        # A container must be able to go.
        sys.stderr.write(f"podwire-debug: {error}\n")


def only_writing(command):
    return lambda args: write_down(Log(args.config), command, args, {})


libcni.plugin_main(
    add=add,
    check=only_writing("CHECK"),
    delete=delete,
    gc=only_writing("GC"),
    status=only_writing("STATUS"),
    about="podwire-debug: writes down each call of a chain of CNI plugins",
    error_version=True,
)
