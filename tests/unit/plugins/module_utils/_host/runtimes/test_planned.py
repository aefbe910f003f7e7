# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What cni_conf's plan says of runtimes, and does: the planned directory, a refusal, and a signal to Nomad's agents."""

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
from ansible_collections.podwire.cni.plugins.module_utils._host.networks import planner
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.entries import ConfPlan
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.planner import plan_networks
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.request import ConfRequest, WantedNetwork
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import discover
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.nomad import note_reload, reload_step
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.runtime import Runtime
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with


@pytest.fixture
def conf_dir(tmp_path, monkeypatch):
    monkeypatch.setattr(planner, "HostView", lambda: HostView(Manifest(str(tmp_path / "state"))))
    found = "containerd-1.7", "1.7.24", "here"
    monkeypatch.setattr(discover, "runtimes_on_host", lambda conf_dir, view: [Runtime(*found, conf_dir)])
    return str(tmp_path / "net.d")


def text(name, **keys):
    data = dict({"cniVersion": "1.0.0", "name": name, "plugins": [{"type": "bridge"}]}, **keys)
    return (json.dumps(data, indent=2) + "\n").encode()


def want(name, priority=None, **keys):
    return WantedNetwork(name, True, text(name, **keys), None, priority)


def plan(conf_dir, *wanted, runtimes=None, levels=("directory",), **options):
    attributes = Attributes(0o644, os.getuid(), os.getgid())
    request = ConfRequest(wanted, conf_dir, ["/nowhere"], conf_dir + "/cache", attributes, levels, **options)
    request.runtimes = runtimes
    return plan_networks(request)


def chosen(found):
    return [(row["network"], os.path.basename(row["file"] or "")) for row in found.effective]


def test_the_plan_speaks_of_the_directory_as_it_will_be(conf_dir):
    found = plan(conf_dir, want("a"))
    assert chosen(found) == [("a", "10-a.conflist")]
    found.apply()
    assert chosen(plan(conf_dir, want("b", 5))) == [("b", "05-b.conflist")]
    # A rename, and a removal.
    assert chosen(plan(conf_dir, want("a", 30), want("c", 20))) == [("c", "20-c.conflist")]
    assert chosen(plan(conf_dir, WantedNetwork("a", False))) == [(None, "")]


def test_what_stands_in_the_way_is_refused_before_anything_is_written(conf_dir):
    os.mkdir(conf_dir)
    with open(os.path.join(conf_dir, "00-broken.conflist"), "w") as stream:
        stream.write("{")
    with fails_with("not_effective") as error:
        plan(conf_dir, want("a"), ensure_effective="a")
    assert "00-broken.conflist" in error.value.msg
    assert os.listdir(conf_dir) == ["00-broken.conflist"]
    assert plan(conf_dir, want("a")).effective[0]["network"] is None


def test_secrets_are_masked(conf_dir):
    os.mkdir(conf_dir)
    with open(os.path.join(conf_dir, "10-a.conflist"), "wb") as stream:
        stream.write(text("a", token="s3cr3t-token"))
    assert "s3cr3t" not in json.dumps(plan(conf_dir, WantedNetwork("b", False)).effective)


def test_nobody_looks_for_runtimes_if_none_are_named_and_nothing_changes(conf_dir, monkeypatch):
    assert plan(conf_dir, want("a"), runtimes=[]).effective == []
    monkeypatch.setattr(discover, "runtimes_on_host", lambda conf_dir, view: 1 / 0)
    assert plan(conf_dir, runtimes=[]).effective == []


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
def nomad(conf_dir, agent, monkeypatch):
    runtime = Runtime("nomad", "1.9.0", "a running nomad", conf_dir)
    runtime.pid = agent.pid
    monkeypatch.setattr(discover, "runtimes_on_host", lambda conf_dir, view: [runtime])
    return runtime


@pytest.mark.usefixtures("nomad")
def test_the_signal_is_the_last_step_of_a_plan_that_changes_the_directory(agent, conf_dir):
    found = plan(conf_dir, want("jobs", mtu=1400))
    assert [step.kind for step in found.steps] == ["make_directory", "create", "reload"]
    found.apply()
    assert agent.stdout.readline() == "1\n"
    assert plan(conf_dir, want("jobs", mtu=1400)).steps == []
    again = plan(conf_dir, want("jobs", mtu=1300))
    assert [step.kind for step in again.steps] == ["write", "reload"]
    again.apply()
    assert agent.stdout.readline() == "2\n"


def test_an_agent_is_told_once_of_a_change(agent):
    step = reload_step(agent.pid, True)
    note_reload(step)
    assert (step.kind, step.step_class, step.target) == ("reload", "safe", "nomad")
    step.action()
    assert agent.stdout.readline() == "1\n"
    assert reload_step(agent.pid, False) is None


def test_an_interrupted_run_is_made_good_for(agent):
    note_reload(reload_step(agent.pid, True))
    reload_step(agent.pid, False).action()
    assert agent.stdout.readline() == "1\n"


def test_an_agent_that_has_started_since_is_not_told(agent):
    # Nothing was noted for this process, as after a restart.
    reload_step(agent.pid, True).action()
    os.kill(agent.pid, signal.SIGHUP)
    assert agent.stdout.readline() == "1\n"


def test_nobody_to_tell(nomad, conf_dir, monkeypatch):
    monkeypatch.setattr(ConfPlan, "restarting", ["nomad"])
    assert [step.kind for step in plan(conf_dir, want("jobs")).steps] == ["make_directory", "create"]
    monkeypatch.setattr(ConfPlan, "restarting", [])
    nomad.pid = 0
    assert [step.kind for step in plan(conf_dir, want("jobs")).steps] == ["make_directory", "create"]
