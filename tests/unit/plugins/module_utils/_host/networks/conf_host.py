# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

"""A host with a directory of network configurations, for tests that plan and apply."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import processes
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.files import Attributes
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.networks import aside as removals, planner
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.planner import plan_networks
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.request import ConfRequest, WantedNetwork
from ansible_collections.podwire.cni.plugins.module_utils._host.processes import Process
from ansible_collections.podwire.cni.plugins.module_utils.libcni.cache import Entry, write_entry
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.explained import explained


def text(name, **keys):
    plugin = dict({"type": "bridge", "bridge": "b0"}, **keys)
    return (json.dumps({"cniVersion": "1.0.0", "name": name, "plugins": [plugin]}, indent=2) + "\n").encode()


def want(name, file=None, priority=None, replace=False, **keys):
    return WantedNetwork(name, True, text(name, **keys), file, priority, replace=replace)


def unwant(name):
    return WantedNetwork(name, False)


def unset(name="", file=None):
    return WantedNetwork(name, False, file=file, restored=True)


class Host:
    """``processes`` are the daemons that run: name of the process -> its id; ``runtimes`` those that are found."""

    def __init__(self, root, monkeypatch):
        self.conf_dir = root / "net.d"
        self.processes = {}
        self.state = str(root / "state")
        self.cache = str(root / "cache")
        self.runtimes = []
        monkeypatch.setattr(planner, "HostView", self.view)
        monkeypatch.setattr(processes, "processes", self._processes)
        monkeypatch.setattr(removals, "packages_of", lambda paths: {})

    def view(self):
        view = HostView(Manifest(self.state))
        view.runtimes = list(self.runtimes)
        return view

    def _processes(self, *names, seeing):
        assert seeing == str(self.conf_dir), "owners run in containers that have the directory"
        return [Process(pid, [], name) for name, pid in self.processes.items() if name in names]

    def plan(self, *wanted, mode=0o644, levels=("directory",), **options):
        attributes = Attributes(mode, os.getuid(), os.getgid())
        request = ConfRequest(wanted, str(self.conf_dir), ["/nowhere"], self.cache, attributes, levels, **options)
        return explained(plan_networks(request))

    def run(self, *wanted, **options):
        plan = self.plan(*wanted, **options)
        if plan.changed:
            plan.apply()
            assert not self.plan(*wanted, **options).changed, "a second run plans something"
        return plan

    def refused(self, *wanted, **options):
        with pytest.raises(HostError) as error:
            plan = self.plan(*wanted, **options)
            # Check mode shows the rest, too.
            if plan.error is not None:
                raise plan.error
        errors = [entry for entry in error.value.facts["problems"] if entry["level"] == "error"]
        return [(entry["code"], os.path.basename(entry["file"])) for entry in errors]

    def put(self, name, data):
        self.conf_dir.mkdir(exist_ok=True)
        (self.conf_dir / name).write_bytes(data)

    def files(self):
        return sorted(os.listdir(self.conf_dir))

    def read(self, name):
        return (self.conf_dir / name).read_bytes()

    def manifest(self):
        return Manifest(self.state)

    def attach(self, network, config=b"{}", container_id="c1"):
        write_entry(self.cache, Entry(container_id, config, "eth0", network))


def steps(plan):
    return [(step.kind, os.path.basename(step.target), step.step_class) for step in plan.steps]


def actions(plan):
    return [entry["action"] for entry in plan.networks]


class Died(BaseException):
    pass


def dies_at(moment, monkeypatch, work):
    """Tell whether *work* was ended at its change number *moment* to the disk; nothing is changed after that."""
    count = [0]

    def dying(real):
        def call(*args, **keywords):
            if count[0] == moment:
                raise Died
            count[0] += 1
            return real(*args, **keywords)

        return call

    with monkeypatch.context() as patch:
        for name in ("rename", "link", "fsync", "unlink"):
            patch.setattr(os, name, dying(getattr(os, name)))
        try:
            work()
        except Died:
            return True
    return False


def dying_hosts(tmp_path, monkeypatch, least):
    """Yield a host and a function that ends work at its first change, then at its second one, until it is done."""
    ended = [True]
    while ended[-1]:
        moment = len(ended) - 1
        root = tmp_path / str(moment)
        root.mkdir()
        yield Host(root, monkeypatch), lambda work, moment=moment: ended.append(dies_at(moment, monkeypatch, work))
    assert len(ended) - 1 > least
