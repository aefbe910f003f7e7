# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Fixtures: a directory of fake plugins, and what a runtime has around one attachment."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import api, conf

_listdir = os.listdir
NOOP = Path(__file__).with_name("noop_plugin.py")


class Debug:
    """One noop plugin's orders and what it recorded."""

    def __init__(self, path, **orders):
        self.path = path
        self.set(**orders)

    def set(self, **orders):
        self.path.write_text(json.dumps(orders))

    def read(self):
        return json.loads(self.path.read_text())

    @property
    def command(self):
        return self.read().get("Command")

    @property
    def args(self):
        return self.read()["CmdArgs"]

    @property
    def stdin(self):
        return json.loads(self.args["StdinData"])


class World:
    """A plugin directory with `noop`, a cache directory, and the means to make configurations."""

    def __init__(self, path):
        self.path = path
        self.bin = path / "bin"
        self.bin.mkdir()
        self.cache = path / "cache"
        self.log = path / "commands"
        self.script("noop", f'exec "{sys.executable}" -B -I -S "{NOOP}"')
        self.cni = api.CNIConfig([str(self.bin)], str(self.cache), timeout=60)

    def script(self, name, body):
        """Make a plugin of a shell script."""
        target = self.bin / name
        target.write_text(f"#!/bin/sh\n{body}\n")
        target.chmod(0o755)
        return str(target)

    def debug(self, name="debug", **orders):
        return Debug(self.path / name, **orders)

    def rt(self, **changed):
        values = {
            "container_id": "some-container-id",
            "net_ns": "/some/netns/path",
            "if_name": "eth0",
            "args": [],
            "capability_args": {},
        }
        values.update(changed)
        return api.RuntimeConf(**values)

    def net(self, debug, cni_version="1.1.0", name="apitest", **keys):
        """One plugin's configuration."""
        raw = {"name": name, "type": "noop", "cniVersion": cni_version, "debugFile": str(debug.path), **keys}
        return conf.network_plugin_conf_from_bytes(json.dumps(raw).encode())

    def lst(self, debugs, cni_version="1.1.0", name="some-list", plugin_keys=({}, {}, {}), **keys):
        """A network list with one noop for each of `debugs`."""
        plugins = [
            {"type": "noop", "debugFile": str(debug.path), "commandLog": str(self.log), **more}
            for debug, more in zip(debugs, plugin_keys)
        ]
        raw = {"name": name, "cniVersion": cni_version, "plugins": plugins, **keys}
        return conf.network_conf_from_bytes(json.dumps(raw).encode())

    def commands(self):
        """What all calls logged, oldest first."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def cache_file(self, network="some-list", container_id="some-container-id", if_name="eth0"):
        return self.cache / "results" / f"{network}-{container_id}-{if_name}"

    def put_cache(self, content, **names):
        path = self.cache_file(**names)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    """Keep what a developer's shell may have set out of the tests, and check that no file descriptor is left."""
    for name in [name for name in os.environ if name.startswith("CNI_") or name in ("CAP_ARGS", "NETCONFPATH")]:
        monkeypatch.delenv(name)
    before = _listdir("/proc/self/fd")
    yield
    # What earlier tests left to the garbage collector may go meanwhile.
    assert len(_listdir("/proc/self/fd")) <= len(before), "a file descriptor leaked"
