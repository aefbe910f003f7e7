# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A host that has what a test says, for the finders of runtimes."""

from __future__ import annotations

import os

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.processes import Process
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import (
    crio,
    discover,
    nomad,
    others,
    podman,
    profiles,
    reading,
)

CONSTANTS = {
    crio: ["_CONFIG"],
    crio.Crio: ["drop_ins"],
    podman: ["_STORAGE", "_GRAPH_ROOT"],
    podman.Podman: ["drop_ins"],
    nomad: ["_CONFIG"],
    profiles: ["CONTAINERD_CONFIG", "APPTAINER_CONFIG", "ECS_CONFIG"],
    others: ["_NERDCTL_CONFIG", "_MESOS_CONFIG", "_BUILDKIT_CONFIG"],
}


class FakeHost:
    """``programs`` are names of installed commands, ``prints`` what a command line prints (an exception: it fails)."""

    def __init__(self, root, monkeypatch):
        self.root = root
        self.programs = []
        self.processes = []
        self.prints = {}
        self.asked = []
        monkeypatch.setattr(reading, "installed", lambda name: f"/usr/bin/{name}" if name in self.programs else "")
        monkeypatch.setattr(reading, "output", self._output)
        monkeypatch.setattr(discover, "processes", lambda *names: list(self.processes))
        for module, names in CONSTANTS.items():
            for name in names:
                monkeypatch.setattr(module, name, self.path(getattr(module, name)))
        monkeypatch.setattr(podman, "_CONFIGS", tuple(self.path(path) for path in podman._CONFIGS))
        monkeypatch.setattr(podman, "_HELPERS", (self.path("/usr/libexec/podman"),))
        for name, profile in profiles.PROFILES.items():
            if profile.config:
                monkeypatch.setitem(profiles.PROFILES, name, profile._replace(config=self.path(profile.config)))
        monkeypatch.setattr(others, "_NERDCTL_BIN_DIRS", (self.path("/opt/a"), self.path("/opt/b")))

    def path(self, path):
        """Return where this host has *path*."""
        return str(self.root) + path

    def put(self, path, text):
        """Write a file of this host; ``{root}`` in it is where its paths begin."""
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with open(self.path(path), "w", encoding="utf-8") as stream:
            stream.write(text.replace("{root}", str(self.root)))
        return self.path(path)

    def run(self, name, *words):
        """Let a daemon run."""
        pid = 800 + len(self.processes)
        program = "/usr/bin/" + name
        argv = [program, *(word.replace("{root}", str(self.root)) for word in words)]
        self.processes.append(Process(pid, argv, name, program))
        return pid

    def _output(self, *argv):
        self.asked.append(argv)
        printed = self.prints.get(" ".join(argv[1:]).replace(str(self.root), "{root}"))
        if printed is None:
            raise HostError("it cannot be run", code="command_failed")
        return printed
