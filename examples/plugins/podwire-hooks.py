# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""podwire-hooks: runs executables of root when a container is attached or detached; README.md has its keys."""

from __future__ import annotations

import os
import sys

import libcni
from libcni import gojson, process

INVALID_CONFIG, NOT_AVAILABLE, HOOK_FAILED = 7, 50, 100
LONGEST_TIMEOUT = 300
SHOWN = 1000


def setting(config, key, default):
    value = config.get(key, default)
    if type(value) is not type(default):
        raise libcni.PluginError(INVALID_CONFIG, f"{key}: expected {type(default).__name__}, found {value!r}")
    return value


class Hook:
    def __init__(self, entry, where, required):
        self.where = where
        if not isinstance(entry, dict):
            raise libcni.PluginError(INVALID_CONFIG, f"{where}: expected an object with command, found {entry!r}")
        self.command = setting(entry, "command", [])
        self.timeout = setting(entry, "timeout", 10)
        self.required = setting(entry, "required", required)
        texts = all(isinstance(word, str) for word in self.command)
        if not (self.command and texts and os.path.isabs(self.command[0])):
            text = f"{where}/command: expected a list of texts, the first an absolute path, found {self.command!r}"
            raise libcni.PluginError(INVALID_CONFIG, text)
        if not 1 <= self.timeout <= LONGEST_TIMEOUT:
            text = f"{where}/timeout: expected seconds from 1 to {LONGEST_TIMEOUT}, found {self.timeout}"
            raise libcni.PluginError(INVALID_CONFIG, text)

    def check(self):
        """Raise unless it is an executable that only root can change: a plugin runs as root."""
        path = os.path.realpath(self.command[0])
        if not (os.path.isfile(path) and os.access(path, os.X_OK)):
            raise libcni.PluginError(HOOK_FAILED, f"{self.where}: {self.command[0]} is not an executable file")
        # The directories count that lead to a link, and to where it leads.
        for place in (path, *parents(path), *parents(self.command[0])):
            status = os.stat(place)
            if status.st_uid != 0 or status.st_mode & 0o022:
                text = f"users other than root can write to {place}; chown root, chmod go-w"
                raise libcni.PluginError(HOOK_FAILED, f"{self.where}: {self.command[0]} is not run", text)

    def run(self, stdin):
        self.check()
        ended = process.run_program(self.command[0], self.command, stdin, dict(os.environ), float(self.timeout))
        if ended.failure:
            output = (ended.stderr or ended.stdout).decode("utf-8", "replace").strip()[-SHOWN:]
            reason = f"did not end within {self.timeout} s" if ended.killed else ended.failure
            raise libcni.PluginError(HOOK_FAILED, f"{self.where}: {self.command[0]}: {reason}", output)


def parents(path):
    while path != "/":
        path = os.path.dirname(path)
        yield path


def hooks_of(config, key):
    return [Hook(entry, f"{key}/{at}", key == "add") for at, entry in enumerate(setting(config, key, []))]


def run_all(hooks, stdin, stop):
    """Run the hooks. The first error of a required one is raised: at once (*stop*), or after all have run."""
    failed = None
    for hook in hooks:
        try:
            hook.run(stdin)
        except libcni.PluginError as error:
            if not hook.required:
                sys.stderr.write(f"podwire-hooks: {error}\n")
            elif stop:
                raise
            else:
                failed = failed or error
    if failed:
        raise failed


def previous(args):
    """Return the result of the plugins before this one, with the keys that libcni does not know."""
    if not isinstance(args.config.get("prevResult"), dict):
        raise libcni.PluginError(INVALID_CONFIG, "there is no prevResult; put podwire-hooks after an interface plugin")
    return {"cniVersion": args.cni_version, **args.config["prevResult"]}


def add(args):
    result = previous(args)
    hooks = hooks_of(args.config, "add")
    # A mistake in `delete` is better found now than when the container goes.
    hooks_of(args.config, "delete")
    run_all(hooks, gojson.dumps(result), stop=True)
    # Printed instead of returned: a returned Result loses the keys that libcni does not know.
    sys.stdout.write(gojson.dumps(result, 4).decode())


def check(args):
    for hook in (*hooks_of(args.config, "add"), *hooks_of(args.config, "delete")):
        hook.check()


def delete(args):
    try:
        hooks = hooks_of(args.config, "delete")
    except libcni.PluginError as error:
        # A container must be able to go.
        sys.stderr.write(f"podwire-hooks: {error}\n")
        return
    run_all(hooks, gojson.dumps(args.config.get("prevResult") or {}), stop=False)


def status(args):
    for hook in hooks_of(args.config, "add"):
        try:
            hook.check()
        except libcni.PluginError as error:
            if hook.required:
                raise libcni.PluginError(NOT_AVAILABLE, error.msg, error.details) from None


libcni.plugin_main(
    add=add,
    check=check,
    delete=delete,
    status=status,
    about="podwire-hooks: runs executables when a container is attached or detached",
    error_version=True,
)
