# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import confdir, netns
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import drift, planner, recording, verbs
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Networks
from ansible_collections.podwire.cni.plugins.module_utils._host.checks.view import ConfView
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.state import Reading
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import Host


class Directory:
    """A directory of network configurations that is not on any disk, for the rules of the level ``directory``.

    Networks are given as plugin objects by keyword: the name of the file is ``10-NETWORK.conflist`` unless it is told.
    """

    path = "/net.d"

    def __init__(self):
        self.files = []

    def add(self, network, *plugins, name=None):
        """Add a list, or with a name that does not end in .conflist a single plugin."""
        name = name or "10-%s.conflist" % network
        data = {"cniVersion": "1.0.0", "name": network}
        data.update({"plugins": list(plugins)} if name.endswith(".conflist") else plugins[0])
        return self.put(name, json.dumps(data).encode())

    def put(self, name, text):
        self.files.append(confdir.ConfFile(name, self.path + "/" + name, text))
        return self.files[-1]

    def view(self, wanted=None, managed=(), before=()):
        """Return the view in which all files are asked for, or those named *wanted*."""
        names = {file.name for file in self.files}
        files = sorted(self.files, key=lambda file: confdir.sort_key(file.name))
        return ConfView(self.path, list(before), files, set(managed), names if wanted is None else set(wanted))


@pytest.fixture
def directory():
    return Directory()


def _codes(problems):
    return [(entry.level, entry.code, entry.file, entry.pointer) for entry in problems]


@pytest.fixture
def codes():
    """Return level, code, file and pointer of each problem."""
    return _codes


@pytest.fixture
def attach_host(tmp_path, monkeypatch):
    made = Host(tmp_path)
    for module in (verbs, netns):
        monkeypatch.setattr(module, "inspect_paths", made.inspect_paths)
    for module in (verbs, planner):
        monkeypatch.setattr(module, "Netns", made.netns)
    monkeypatch.setattr(drift, "read_spaces", made.read_spaces)
    # The footprints of its containers are empty; the integration tests have real ones.
    monkeypatch.setattr(recording, "read_host", lambda stores: Reading({"": {}}))
    monkeypatch.setattr(recording, "visit", lambda paths, read: {})
    # It needs plugins that belong to root; the integration tests have them.
    monkeypatch.setattr(Networks, "test_plugins", lambda self, config: None)
    made.network()
    made.namespace("web")
    return made
