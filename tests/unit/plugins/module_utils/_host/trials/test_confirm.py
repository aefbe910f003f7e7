# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.usable import Binaries
from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import scan_conf_dir
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.problems import obstacle
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import cri, discover
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.cri import CriStatus
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.effective import Effective
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.runtime import Runtime
from ansible_collections.podwire.cni.plugins.module_utils._host.trials import readiness
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.confirm import confirm_plan
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.experiment import Observation

NETWORK = '{"cniVersion": "1.0.0", "name": "fleet", "plugins": [{"type": "loopback"}]}'
CHAIN = [[{"type": "loopback"}]]


class Host:
    """A host with one running runtime, whose answers are given one after another; the last one is repeated.

    ``obstacles`` is what stands between a container and its network, beside what the runtime reports.
    """

    def __init__(self, conf_dir, state):
        self.conf_dir = conf_dir
        self.state = state
        self.runtime = Runtime("containerd-1.7", "1.7.24", "a running containerd", str(conf_dir), ["/opt/cni/bin"])
        self.runtime.pid, self.runtime.address = 7, "/run/containerd.sock"
        self.answers = []
        self.obstacles = []
        self.asked = 0
        self.timeouts = []

    def status(self, address, timeout):
        assert address == "/run/containerd.sock"
        self.timeouts.append(timeout)
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, Exception):
            raise answer
        return answer

    def confirm(self, restarting=()):
        files = scan_conf_dir(str(self.conf_dir))
        effective = Effective(None, str(self.conf_dir), ["/opt/cni/bin"], files, HostView(Manifest(str(self.state))))
        plan = SimpleNamespace(judged=effective, restarting=restarting, warn=lambda code, text: told.append(text))
        told: list[str] = []
        return confirm_plan(plan, [], 0.2), told


@pytest.fixture
def ready_host(tmp_path, monkeypatch):
    (tmp_path / "net.d").mkdir()
    (tmp_path / "net.d" / "10-fleet.conflist").write_text(NETWORK)
    made = Host(tmp_path / "net.d", tmp_path / "state")
    monkeypatch.setattr(cri, "cri_status", made.status)
    # Experiments are made on real hosts.
    monkeypatch.setattr(readiness, "try_networks", lambda subjects: [Observation() for _subject in subjects])
    monkeypatch.setattr(discover, "runtimes_on_host", lambda conf_dir, view: [made.runtime])
    # The obstacles themselves have tests of their own.
    monkeypatch.setattr(readiness.NetworkCauses, "find", lambda _causes: list(made.obstacles))
    monkeypatch.setattr(readiness, "plugin_obstacles", lambda *_arguments: [])
    return made


def test_each_question_gets_some_time(ready_host):
    """A busy host may take longer than the rest of the deadline."""
    starting, started = CriStatus(False, "cni plugin not initialized", []), CriStatus(True, "", ["fleet"], CHAIN)
    ready_host.answers = [starting, starting, starting, started]
    assert ready_host.confirm() == (True, [])
    assert len(ready_host.timeouts) > 3
    assert min(ready_host.timeouts) >= 5


def test_what_is_not_loaded_is_told(ready_host):
    ready_host.answers = [CriStatus(True, "", ["other"])]
    told = "containers of containerd-1.7 would not get their network: containerd-1.7 has loaded"
    remedy = f"; {ready_host.runtime.how_to_load}"
    assert ready_host.confirm() == (False, [f"{told} other instead of fleet{remedy}"])
    ready_host.answers = [CriStatus(False, "no network config found", [])]
    assert ready_host.confirm() == (False, [f"{told} none (no network config found) instead of fleet{remedy}"])


def test_an_older_state_of_the_file_is_not_the_network(ready_host):
    ready_host.answers = [CriStatus(True, "", ["fleet"], [[{"type": "loopback", "mtu": 1400}]])]
    answer, [told] = ready_host.confirm()
    assert answer is False
    assert f": containerd-1.7 has loaded an older state of {ready_host.conf_dir}/10-fleet.conflist" in told


def test_a_runtime_that_has_loaded_its_network_and_is_not_ready_is_not_confirmed(ready_host):
    ready_host.answers = [CriStatus(False, "the datastore is gone", ["fleet"])]
    answer, [told] = ready_host.confirm()
    assert answer is False
    assert "reports that its network is not ready (the datastore is gone)" in told


def test_what_keeps_a_container_from_its_network_is_not_confirmed(ready_host):
    ready_host.answers = [CriStatus(True, "", ["fleet"])]
    ready_host.obstacles = [obstacle("missing_plugin", "there is no bridge", "no file", "install it")]
    told = "containers of containerd-1.7 would not get their network: "
    assert ready_host.confirm() == (False, [told + "there is no bridge (no file); install it"])
    ready_host.obstacles = [ready_host.obstacles[0]._replace(level="warning")]
    assert ready_host.confirm() == (True, [])


def test_what_cannot_be_told_is_not_confirmed(ready_host):
    ready_host.answers = [CriStatus(True, "", ["fleet"])]
    ready_host.obstacles = [
        obstacle("unsafe_permissions", "bridge was not asked", "it is a user's", "chown", "warning")._replace(
            decides=False
        )
    ]
    answer, [told] = ready_host.confirm()
    assert answer is None
    assert told == "it is not known whether containers of containerd-1.7 get their network: bridge was not asked"


def test_an_empty_directory_is_no_network_to_confirm(ready_host):
    (ready_host.conf_dir / "10-fleet.conflist").unlink()
    ready_host.answers = [CriStatus(False, "no network config found", [])]
    assert ready_host.confirm() == (None, [])
    ready_host.answers = [CriStatus(True, "", ["fleet"])]
    assert ready_host.confirm()[0] is False


def test_who_names_no_networks_is_asked_whether_it_has_any(ready_host):
    ready_host.answers = [CriStatus(True, "", None)]
    assert ready_host.confirm() == (True, [])
    ready_host.answers = [CriStatus(False, "no CNI configuration", None)]
    assert ready_host.confirm()[0] is False


def test_the_directory_of_a_handler_has_a_load_of_its_own(ready_host):
    ready_host.runtime.handler = "kata"
    ready_host.answers = [CriStatus(False, "none", ["other"], None, {"default": "none", "kata": ""})]
    assert ready_host.confirm() == (True, [])
    ready_host.answers = [CriStatus(True, "", ["other"], None, {"default": "", "kata": "no network config found"})]
    answer, [told] = ready_host.confirm()
    assert answer is False
    assert "for the runtime handler kata (no network config found)" in told


def test_nobody_to_ask(ready_host):
    assert ready_host.confirm(restarting=["containerd-1.7"]) == (None, [])
    ready_host.runtime.address = ""
    assert ready_host.confirm() == (None, [])
    ready_host.runtime.address, ready_host.runtime.pid = "/run/containerd.sock", 0
    assert ready_host.confirm() == (None, [])
    ready_host.runtime.pid = 7
    ready_host.runtime.set_conf("/elsewhere")
    assert ready_host.confirm() == (None, [])
    ready_host.runtime.set_conf(str(ready_host.conf_dir))
    ready_host.runtime.reads = False
    assert ready_host.confirm() == (None, [])
    assert ready_host.asked == 0


def test_the_host_is_examined_once_for_all_runtimes(ready_host, monkeypatch):
    ready_host.answers = [CriStatus(True, "", ["fleet"])]
    runtimes = [ready_host.runtime]
    for number in (8, 9):
        another = Runtime("containerd-1.7", "1.7.24", "a running containerd", str(ready_host.conf_dir))
        another.pid, another.address = number, "/run/containerd.sock"
        runtimes.append(another)
    monkeypatch.setattr(discover, "runtimes_on_host", lambda conf_dir, view: runtimes)
    tried = []
    monkeypatch.setattr(readiness, "try_networks", lambda subjects: tried.append(subjects) or [Observation("unknown")])
    answer, told = ready_host.confirm()
    assert (answer, len(told)) == (None, 3)
    assert [subject.name for [subject] in tried] == ["fleet"]


@pytest.mark.parametrize("name", ["nomad", "podman"])
def test_who_has_networks_by_name_has_to_have_those_of_the_files(ready_host, monkeypatch, name):
    told = [CriStatus(True, "", ["fleet", "gone"])]
    asked = []

    def ask(networks, _timeout):
        asked.append(networks)
        if isinstance(told[0], Exception):
            raise told[0]  # pylint: disable=raising-non-exception
        return told[0]

    monkeypatch.setattr(Binaries, "ask", lambda _binaries, kind: (kind, ["1.0.0"]))
    found = {"nomad": "a running nomad", "podman": "/usr/bin/podman"}[name]
    ready_host.runtime = discover.class_of(name)(name, "4.3.1", found, str(ready_host.conf_dir), ["/opt/cni/bin"])
    vars(ready_host.runtime).update(pid=7, port=4646, databases="/var", settles=0.0, ask=ask, program=found)
    ready_host.runtime.default_network = "fleet"
    assert ready_host.confirm() == (True, [])
    assert asked == [["fleet"]]
    told[0] = CriStatus(False, "network not found", ["other"])
    answer, [text] = ready_host.confirm()
    assert (answer, f": {name} has not loaded fleet (network not found); " in text) == (False, True)
    told[0] = HostError("it has ACLs", code="not_answered")
    unknown = f"it is not known whether containers of {name} get their network: it has ACLs"
    assert ready_host.confirm() == (None, [unknown])
