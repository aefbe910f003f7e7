# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.files import Attributes
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.planner import plan_networks
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.request import ConfRequest, WantedNetwork
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import discover
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.nomad import note_reload, reload_step
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.runtime import Runtime

# Counts the signals, and says so at its end.
AGENT = """
import os, signal
count = 0
def note(*_):
    global count
    count += 1
    os.write(1, b"%d\\n" % count)
signal.signal(signal.SIGHUP, note)
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""


@pytest.fixture
def agent():
    """A process that prints a number for each SIGHUP."""
    with subprocess.Popen([sys.executable, "-c", AGENT], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


@pytest.fixture
def nomad(tmp_path, agent, monkeypatch):
    runtime = Runtime("nomad", "1.9.0", "a running nomad", str(tmp_path / "net.d"))
    runtime.pid = agent.pid
    monkeypatch.setattr(discover, "runtimes_on_host", lambda conf_dir, view: [runtime])
    return runtime


def plan(tmp_path, *wanted):
    attributes = Attributes(0o644, os.getuid(), os.getgid())
    conf_dir = str(tmp_path / "net.d")
    request = ConfRequest(wanted, conf_dir, ["/nowhere"], conf_dir + "/cache", attributes, [])
    request.runtimes = None
    return plan_networks(request, HostView(Manifest(str(tmp_path / "state"))))


def want(mtu):
    data = {"cniVersion": "1.0.0", "name": "jobs", "plugins": [{"type": "bridge", "mtu": mtu}]}
    return WantedNetwork("jobs", True, json.dumps(data).encode(), None, None)


@pytest.mark.usefixtures("nomad")
def test_the_signal_is_the_last_step_of_a_plan_that_changes_the_directory(agent, tmp_path):
    found = plan(tmp_path, want(1400))
    assert [step.kind for step in found.steps] == ["make_directory", "create", "reload"]
    found.apply()
    assert agent.stdout.readline() == "1\n"
    assert plan(tmp_path, want(1400)).steps == []
    again = plan(tmp_path, want(1300))
    assert [step.kind for step in again.steps] == ["write", "reload"]
    again.apply()
    assert agent.stdout.readline() == "2\n"


def test_an_agent_is_told_once_of_a_change(nomad, agent):
    step = reload_step([nomad], True, [])
    note_reload(step)
    assert (step.kind, step.step_class, step.target) == ("reload", "safe", "nomad")
    step.action()
    assert agent.stdout.readline() == "1\n"
    assert reload_step([nomad], False, []) is None


def test_an_interrupted_run_is_made_good_for(nomad, agent):
    note_reload(reload_step([nomad], True, []))
    reload_step([nomad], False, []).action()
    assert agent.stdout.readline() == "1\n"


def test_an_agent_that_has_started_since_is_not_told(nomad, agent):
    # Nothing was noted for this process, as after a restart.
    reload_step([nomad], True, []).action()
    os.kill(agent.pid, signal.SIGHUP)
    assert agent.stdout.readline() == "1\n"


def test_nobody_to_tell(nomad):
    assert reload_step([], True, []) is None
    assert reload_step([nomad], False, []) is None
    assert reload_step([nomad], True, ["nomad"]) is None
    nomad.pid = 0
    assert reload_step([nomad], True, []) is None
