# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

"""A plugin directory and its plugins for the tests of cni_plugins."""

from __future__ import annotations

import hashlib
import io
import os
import re
from pathlib import Path

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries import batch, outcome, packages, usable
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.outcome import Where
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.planner import plan_present
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.removal import plan_absent, plan_restored
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.store import WantedPlugins
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.files import Attributes
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.explained import explained

MINE = Attributes(0o755, os.geteuid(), os.getegid())
ELF = b"\x7fELF\x02\x01\x01" + b"\0" * 11 + b"\x3e\x00"
OLD = {"bridge": ELF + b"old bridge", "ptp": ELF + b"old ptp"}
NEW = {"bridge": ELF + b"new bridge", "ptp": ELF + b"new ptp", "tap": ELF + b"new tap"}
BROKEN = b"broken"


def sha(content):
    return hashlib.sha256(content).hexdigest()


class Host:
    """A plugin directory and the state beside it; plugins "run" unless they contain the word broken."""

    def __init__(self, folder):
        self.bin_dir = str(folder / "opt" / "bin")
        self.bin_dirs = [self.bin_dir]
        self.state = str(folder / "state")
        self.conf_dir = str(folder / "net.d")
        self.cache_dir = str(folder / "cache")
        self.lock = str(folder / "run" / "lock")
        self.asked = []

    @staticmethod
    def release(path):
        """Return what a plugin prints about itself: the release in its content."""
        found = re.search(rb"v(\d+\.\d+\.\d+)", Path(path).read_bytes())
        return found.group(1).decode() if found else ""

    def version(self, path, argv0=None):
        self.asked.append(argv0 or path)
        content = Path(path).read_bytes()
        if BROKEN in content:
            raise HostError("%s does not answer VERSION" % path, code="plugin_failed")
        return ["1.0.0"] if b"old" in content else ["1.0.0", "1.1.0"]

    def manifest(self):
        return Manifest(self.state)

    def present(
        self, files, check=False, shipped=None, attributes=MINE, archive=None, force=False, release="", by="", folder=""
    ):
        wanted = WantedPlugins(
            {name: sha(content) for name, content in files.items()},
            archive,
            lambda names: ((name, io.BytesIO(files[name])) for name in names),
            files if shipped is None else shipped,
            release,
            installed_by=by,
            folder=folder,
        )
        view = HostView(self.manifest())
        return explained(plan_present(self.bin_dir, wanted, attributes, view, check, self.where(force)))

    def where(self, force=False):
        return Where(self.conf_dir, self.bin_dirs, self.cache_dir, force)

    def absent(self, *names, **keywords):
        return explained(plan_absent(self.bin_dir, names, HostView(self.manifest()), self.where(**keywords)))

    def restored(self, *names, **keywords):
        return explained(plan_restored(self.bin_dir, names or None, HostView(self.manifest()), self.where(**keywords)))

    def apply(self, plan):
        plan.apply()
        return {entry["name"]: entry["action"] for entry in plan.report()}

    def files(self):
        if not os.path.isdir(self.bin_dir):
            return {}
        return {name: self.read(name) for name in sorted(os.listdir(self.bin_dir))}

    def read(self, name):
        path = os.path.join(self.bin_dir, name)
        if os.path.islink(path):
            return os.readlink(path)
        return Path(path).read_bytes()

    def put(self, name, content, mode=0o755):
        os.makedirs(self.bin_dir, exist_ok=True)
        path = os.path.join(self.bin_dir, name)
        Path(path).write_bytes(content)
        os.chmod(path, mode)
        return path

    def entry(self, name):
        return self.manifest().binaries.get(os.path.join(self.bin_dir, name))

    def patch(self, monkeypatch):
        monkeypatch.setattr(batch, "ask_version", self.version)
        monkeypatch.setattr(usable, "ask_version", self.version)
        monkeypatch.setattr(batch, "check_plugin", lambda path: path)
        monkeypatch.setattr(batch, "host_machine", lambda: "x86_64")
        monkeypatch.setattr(outcome, "check_directory", lambda path, refuse, check_mode: None)
        monkeypatch.setattr(packages, "release_of", self.release)
