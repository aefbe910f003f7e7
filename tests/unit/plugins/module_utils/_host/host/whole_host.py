# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A host with files in a directory, and with namespaces and plugins in memory, for the tests of cni_host's planning."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os

from ansible_collections.podwire.cni.plugins.module_utils._host import hostview, named_netns, netns, processes
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import (
    drift,
    planner as attach_planner,
    verbs,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries import batch, packages, usable
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.store import WantedPlugins
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.host import planner
from ansible_collections.podwire.cni.plugins.module_utils._host.host.plan import errors_of_sections
from ansible_collections.podwire.cni.plugins.module_utils._host.host.request import SECTIONS_ARGUMENTS, HostRequest
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments import attach_host

ELF = b"\x7fELF\x02\x01\x01" + b"\0" * 11 + b"\x3e\x00"
PLUGINS = ("ipam", "main", "meta")


def _defaults(spec, given):
    """Return the options that Ansible makes of *given*."""
    filled = {name: given.get(name, option.get("default")) for name, option in spec.items()}
    for name, option in spec.items():
        value = filled[name]
        if "options" in option and isinstance(value, list):
            filled[name] = [_defaults(option["options"], entry) for entry in value]
        elif "options" in option and isinstance(value, dict):
            filled[name] = _defaults(option["options"], value)
    return filled


def options(sections, conf_dir="/etc/cni/net.d", bin_dir="/opt/cni/bin", cache_dir="/var/lib/podwire/cni"):
    """Return the arguments of HostRequest for *sections* as a user writes them."""
    given = {name: _defaults(SECTIONS_ARGUMENTS[name]["options"], section) for name, section in sections.items()}
    return given, {"conf_dir": conf_dir, "bin_dirs": [bin_dir], "cache_dir": cache_dir}


def network(name, state="present", subnet="10.1.0.0/24", **more):
    """Return an entry of the section networks."""
    if state != "present":
        return {"name": name, "state": state}
    main = {"type": "main", "ipam": {"type": "ipam", "subnet": subnet}, **more}
    conflist = {"cniVersion": "1.0.0", "name": name, "plugins": [main, {"type": "meta"}]}
    return {"name": name, "content": json.dumps(conflist, indent=2) + "\n"}


def attachment(network, netns, state="present", ifname="eth0"):
    return {"network": network, "container_id": netns, "netns": netns, "ifname": ifname, "state": state}


class WholeHost(attach_host.Host):
    """``release`` is the version of the plugins that the section plugins installs, an error if they cannot be read."""

    def __init__(self, root, monkeypatch):
        super().__init__(root)
        for name in os.listdir(self.bin_dir):
            os.unlink(os.path.join(self.bin_dir, name))
        os.rmdir(self.bin_dir)
        os.rmdir(self.conf_dir)
        self.release = "new"
        self.state = str(root / "state")
        self.inodes = iter(range(100, 10**6))
        self._patch(monkeypatch)

    def _patch(self, monkeypatch):
        for module in (verbs, netns, named_netns):
            monkeypatch.setattr(module, "inspect_paths", self.inspect_paths)
        for module in (verbs, attach_planner):
            monkeypatch.setattr(module, "Netns", self.netns)
        monkeypatch.setattr(drift, "read_spaces", self.read_spaces)
        monkeypatch.setattr(verbs, "Verbs", functools.partial(verbs.Verbs, executor=self))
        monkeypatch.setattr(named_netns, "_create", lambda name, there: self.namespace(name, next(self.inodes)))
        monkeypatch.setattr(named_netns, "_remove", lambda name, there: self.namespaces.pop(f"/run/netns/{name}"))
        monkeypatch.setattr(planner, "HostView", lambda: hostview.HostView(Manifest(self.state)))
        for module in (batch, usable):
            monkeypatch.setattr(module, "ask_version", self.version)
        monkeypatch.setattr(usable.Binaries, "_asked", lambda _self, path: {"cni_versions": self.version(path)})
        monkeypatch.setattr(batch, "check_plugin", lambda path: path)
        monkeypatch.setattr(batch, "host_machine", lambda: "x86_64")
        monkeypatch.setattr(processes, "processes", lambda *_names, **_options: [])
        monkeypatch.setattr(packages, "packages_of", lambda paths: {})
        monkeypatch.setattr(packages, "release_of", lambda path: "")

    @staticmethod
    def version(path, argv0=None):
        with open(path, "rb") as stream:
            if not stream.read().startswith(ELF):
                raise HostError(f"{argv0 or path} does not answer VERSION", code="plugin_failed")
        return ["0.4.0", "1.0.0"]

    def exec_plugin(self, path, stdin, env, timeout=None):
        # A container has the addresses of all its interfaces.
        before = self.addresses.get(env["CNI_NETNS"], [])
        said = super().exec_plugin(path, stdin, env, timeout)
        if (env["CNI_COMMAND"], os.path.basename(path)) == ("ADD", "main"):
            self.addresses[env["CNI_NETNS"]] = before + self.addresses[env["CNI_NETNS"]]
        return said

    def wanted(self, names):
        if isinstance(self.release, HostError):
            return self.release
        content = {name: ELF + f"{self.release} {name}".encode() for name in names}
        digests = {name: hashlib.sha256(text).hexdigest() for name, text in content.items()}
        return WantedPlugins(digests, None, lambda some: ((n, io.BytesIO(content[n])) for n in some), content)

    # ---- the module

    def planner(self, check_mode=False, classes=("safe", "disruptive"), **sections):
        given, common = options(sections, self.conf_dir, self.bin_dir, self.cache_dir)
        request = HostRequest(given, common)
        installs = "plugins" in sections and request.state_of("plugins") == "present"
        wanted = self.wanted(sections["plugins"].get("plugins") or PLUGINS) if installs else None
        return planner.HostPlanner(request, wanted, classes, check_mode)

    def plan(self, **sections):
        return self.planner(**sections).make()

    def apply(self, **sections):
        plan = self.plan(**sections)
        if plan.pending:
            plan.apply()
        return plan

    def run_all(self, **sections):
        """Run what must not fail; afterwards there is nothing to do, and check mode has said so."""
        check = self.plan(check_mode=True, **sections)
        plan = self.apply(**sections)
        assert errors(plan) == []
        assert steps(check) == steps(plan)
        assert {step.state for step in plan.steps} <= {"done"}
        for check_mode in (False, True):
            again = self.plan(check_mode=check_mode, **sections)
            assert steps(again) == [] and errors(again) == []
        return plan


def steps(plan):
    """Return section, kind and the last part of the target of each step; the whole target of attachments."""
    return [
        (part.section, step.kind, step.target if part.section == "attachments" else os.path.basename(step.target))
        for part in plan.parts
        for step in part.steps
    ]


def states(plan):
    return [(section, step["state"]) for section, step in ((step["section"], step) for step in plan.progress())]


def errors(plan):
    return [(section, error.code) for section, error in errors_of_sections(plan)]
