# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import json
import os
from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.usable import Binaries
from ansible_collections.podwire.cni.plugins.module_utils._host.checks import causes, plugins, state
from ansible_collections.podwire.cni.plugins.module_utils._host.checks.directory import conflicts
from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import scan_conf_dir
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel import sysctls
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.problems import obstacle
from ansible_collections.podwire.cni.plugins.module_utils._host.processes import Process
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import cri, discover
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.cri import CriStatus
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.effective import Effective
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.runtime import Runtime
from ansible_collections.podwire.cni.plugins.module_utils._host.trials import experiment, readiness
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.readiness import Readiness

ALL = ["0.3.1", "0.4.0", "1.0.0", "1.1.0"]
BRIDGE = {"type": "bridge", "isGateway": True, "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"}}


class Host:
    """A host on which every plugin is sound."""

    def __init__(self, root):
        self.root = root
        self.conf_dir = root / "net.d"
        self.conf_dir.mkdir()
        self.kubelet = False
        self.tried, self.kept = [], []
        self.answer = CriStatus(True, "", ["pods"])
        place = str(self.conf_dir), ["/opt/cni/bin"]
        self.containerd = Runtime("containerd-2.1", "2.1.9", "a running containerd", *place)
        self.containerd.pid, self.containerd.address = 7, "/run/containerd.sock"
        self.runtimes = [self.containerd]
        self.write(BRIDGE)
        self.observation = experiment.Observation()

    def write(self, *plugins, version="1.0.0"):
        text = json.dumps({"cniVersion": version, "name": "pods", "plugins": list(plugins)})
        (self.conf_dir / "10-pods.conflist").write_text(text)

    def try_networks(self, subjects):
        self.tried.append(subjects)
        return [self.observation for _subject in subjects]

    def explain(self):
        files = scan_conf_dir(str(self.conf_dir))
        view = HostView(Manifest(str(self.root / "state")))
        effective = Effective(None, str(self.conf_dir), [], files, view)
        return Readiness(effective, effective.runtimes, []).rows()

    def levels(self):
        return [(one["level"], one["code"]) for one in self.explain()["obstacles"]]


@pytest.fixture
def ready_host(tmp_path, monkeypatch):
    made = Host(tmp_path)
    monkeypatch.setattr(discover, "runtimes_on_host", lambda conf_dir, view: list(made.runtimes))
    kubelet = Process(1, ["kubelet"], "kubelet")
    monkeypatch.setattr(readiness, "processes", lambda *names: [kubelet] if made.kubelet else [])
    monkeypatch.setattr(cri, "cri_status", lambda _address, _timeout: made.answer)
    # Experiments are made on real hosts.
    monkeypatch.setattr(readiness, "try_networks", made.try_networks)
    monkeypatch.setattr(readiness, "forget_others", made.kept.append)
    monkeypatch.setattr(readiness, "two_firewalls", list)
    monkeypatch.setattr(causes.OtherPrograms, "obstacles_of", lambda _programs, _plugins: [])
    monkeypatch.setattr(Binaries, "ask", lambda _binaries, name: (f"/opt/cni/bin/{name}", ALL))
    monkeypatch.setattr(plugins, "found_plugin", lambda name, bin_dirs: f"/opt/cni/bin/{name}")
    monkeypatch.setattr(plugins, "why_not_executed", lambda path: None)
    monkeypatch.setattr(causes, "conflicts", lambda view: [])
    monkeypatch.setattr(state, "_why_unwritable", lambda path: ("", ""))
    # A tree of /proc/sys/net of its own.
    proc = tmp_path / "proc"
    (proc / "ipv4").mkdir(parents=True)
    (proc / "ipv4" / "ip_forward").write_text("1\n")
    monkeypatch.setattr(sysctls, "_ROOT", str(proc))
    return made


@pytest.mark.parametrize(
    ("plugin", "level"),
    [
        (BRIDGE, "warning"),
        ({**BRIDGE, "IPMasq": False}, "info"),
        ({"type": "ptp"}, "warning"),
        ({"type": "ipvlan", "mode": "l3"}, "info"),
    ],
)
def test_who_writes_ipmasq_knows_that_others_route(ready_host, plugin, level):
    lost = [
        experiment.Lost("outside", family, experiment.KEPT, "a container keeps its own address")
        for family in ("IPv4", "IPv6")
    ]
    ready_host.observation = experiment.Observation(lost=lost)
    ready_host.write(plugin)
    # One cause, so one finding for both families.
    assert ready_host.levels().count((level, "not_masqueraded")) == 1


def test_the_networks_of_all_runtimes_are_tried_at_once_and_each_once(ready_host):
    other = Runtime("nomad", "1.9.0", "a running nomad", str(ready_host.conf_dir), ["/other/bin"])
    same = Runtime("crio", "1.30.0", "a running crio", str(ready_host.conf_dir), ["/opt/cni/bin"])
    ready_host.runtimes += [other, same]
    ready_host.explain()
    [subjects] = ready_host.tried
    assert [(subject.name, subject.bin_dirs) for subject in subjects] == [
        ("pods", ("/opt/cni/bin",)),
        ("pods", ("/other/bin",)),
    ]
    [kept] = ready_host.kept
    assert set(map(repr, kept)) == set(map(repr, subjects))


def test_a_network_that_could_not_be_tried_is_not_known_to_be_ready(ready_host):
    ready_host.observation = experiment.Observation("no private namespaces: No space left on device")
    found = ready_host.explain()
    [row], [obstacle] = found["runtimes"], found["obstacles"]
    assert (found["ready"], row["ready"]) == (None, None)
    assert (obstacle["level"], obstacle["code"], obstacle["network"]) == ("info", "not_tried", "pods")
    assert "No space left on device" in row["unknown"]
    assert "No space left on device" in obstacle["message"]
    # What is known to fail is no less so.
    ready_host.write({**BRIDGE, "ipam": {"type": "dhcp", "daemonSocketPath": "/nowhere"}})
    assert ready_host.explain()["ready"] is False


def test_a_declared_network_without_a_user_is_tried_last(ready_host):
    path, manifest = ready_host.conf_dir / "20-spare.conflist", Manifest(str(ready_host.root / "state"))
    path.write_text(json.dumps({"cniVersion": "1.0.0", "name": "spare", "plugins": [BRIDGE]}))
    manifest.networks[str(path)] = {"network": "spare", "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    manifest.save()
    ready_host.observation = experiment.Observation(failed=experiment.Failure("ADD", "no"))
    for runtimes, tried in ((ready_host.runtimes, ["pods", "spare"]), ([], ["spare"])):
        ready_host.runtimes = runtimes
        found = ready_host.explain()
        assert [subject.name for subject in ready_host.tried[-1]] == tried
        failing = [(row["network"], row["level"]) for row in found["obstacles"] if row["code"] == "add_fails"]
        assert failing == [("pods", "error"), ("spare", "warning")][-len(tried) :]
    assert (found["ready"], found["obstacles"][-1]["code"]) == (None, "missing_runtime")


def test_a_runtime_that_starts_no_container_is_an_error(ready_host):
    ready_host.containerd.reads, ready_host.containerd.notes = False, ["podman 5 has no CNI"]
    ready_host.containerd.refuses = "podman 5 has no CNI"
    assert ready_host.levels() == [("error", "no_cni")]


@pytest.mark.parametrize(
    ("argv", "contains"),
    [
        (["/usr/bin/kubelet"], True),
        (["/snap/microk8s/1/kubelite"], True),
        (["/usr/local/bin/k3s server"], True),
        (["/usr/local/bin/rke2", "agent"], True),
        (["/usr/local/bin/k3s", "kubectl", "get", "server"], False),
        (["/usr/local/bin/rke2"], False),
    ],
)
def test_a_kubelet_may_be_part_of_another_program(ready_host, monkeypatch, argv, contains):
    name = os.path.basename(argv[0].partition(" ")[0])
    monkeypatch.setattr(readiness, "processes", lambda *names: [Process(1, argv, name)] if name in names else [])
    ready_host.containerd.reads, ready_host.containerd.notes = False, ["its CRI plugin is disabled"]
    assert ready_host.levels() == [("error", "cri_disabled") if contains else ("info", "not_cni")]


def test_a_second_runtime_that_does_not_run_is_a_warning(ready_host):
    ready_host.runtimes.append(Runtime("nomad", "1.9.0", "/usr/bin/nomad", str(ready_host.conf_dir), ["/opt/cni/bin"]))
    assert ready_host.levels() == [("warning", "not_running")]
    ready_host.runtimes = ready_host.runtimes[1:]
    assert ready_host.levels() == [("error", "not_running")]


def test_an_older_state_is_a_warning_and_another_network_an_error(ready_host):
    ready_host.answer = CriStatus(True, "", ["pods"], [[{"type": "bridge"}]])
    assert ready_host.levels() == [("warning", "not_loaded")]
    ready_host.answer = CriStatus(True, "", ["other"])
    assert ready_host.levels() == [("error", "not_loaded")]


def test_a_runtime_that_is_not_ready_is_an_error_unless_another_error_explains_it(ready_host):
    ready_host.answer = CriStatus(False, "the sandbox server is gone", ["pods"])
    (row,) = ready_host.explain()["obstacles"]
    assert (row["code"], row["evidence"]) == ("network_not_ready", "the sandbox server is gone")
    ready_host.write({**BRIDGE, "ipam": {"type": "dhcp", "daemonSocketPath": "/nowhere"}})
    assert [code for _level, code in ready_host.levels()] == ["no_dhcp_daemon"]


def test_forwarding_is_a_cause_only_where_it_cannot_be_switched_on(ready_host, monkeypatch):
    (ready_host.root / "proc" / "ipv4" / "ip_forward").write_text("0\n")
    assert ready_host.levels() == []
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert ready_host.levels() == [("error", "ip_forward")]
    ready_host.write({**BRIDGE, "isGateway": False, "isDefaultGateway": True})
    assert ready_host.levels() == [("error", "ip_forward")]
    # bridge switches nothing on without addresses.
    ready_host.write({"type": "bridge", "isGateway": True})
    assert ready_host.levels() == [("error", "no_addresses")]


def test_the_package_of_a_missing_command_is_named(ready_host, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    ready_host.write({**BRIDGE, "macspoofchk": True})
    (found,) = ready_host.explain()["obstacles"]
    assert (found["code"], found["remedy"]) == ("missing_tool", "install it (package nftables)")


def test_bridge_netfilter_is_missed_by_a_kubelet_only(ready_host):
    ready_host.kubelet = True
    assert ready_host.levels() == [("warning", "bridge_netfilter")]
    (ready_host.root / "proc" / "bridge").mkdir()
    (ready_host.root / "proc" / "bridge" / "bridge-nf-call-iptables").write_text("1\n")
    assert ready_host.levels() == []


def test_the_worst_comes_first_and_then_the_order_of_an_add(ready_host):
    ready_host.kubelet = True
    ready_host.write({"type": "tuning"}, {**BRIDGE, "ipam": {"type": "dhcp", "daemonSocketPath": "/nowhere"}})
    ready_host.answer = CriStatus(True, "", ["other"])
    levels = ready_host.levels()
    assert levels == [("error", "no_dhcp_daemon"), ("error", "not_loaded"), ("warning", "bridge_netfilter")]


def test_plugins_that_rkt_brings_along_are_not_missed(ready_host, monkeypatch):
    ready_host.runtimes = [Runtime("rkt", "", "/usr/bin/rkt", str(ready_host.conf_dir))]
    monkeypatch.setattr(plugins, "found_plugin", lambda kind, bin_dirs: "")
    for kind in ("bridge", "calico"):
        (ready_host.conf_dir / f"{kind}.conf").write_text(
            json.dumps({"name": kind, "type": kind, "cniVersion": "0.3.1"})
        )
    missing = [one["network"] for one in ready_host.explain()["obstacles"] if one["code"] == "missing_plugin"]
    assert missing == ["calico"]


@pytest.mark.parametrize("named", [True, False])
def test_the_directory_is_examined_once_for_all_networks_and_each_has_its_conflicts(ready_host, monkeypatch, named):
    calls = []

    def examined(view):
        calls.append(len(view.files))
        return conflicts(view)

    monkeypatch.setattr(causes, "conflicts", examined)
    for number in range(1, 12):
        # The last one has the addresses of the first one.
        ipam = {"type": "host-local", "ranges": [[{"subnet": f"10.1.{number % 11}.0/24"}]]}
        text = json.dumps({"cniVersion": "1.0.0", "name": f"n{number}", "plugins": [{"type": "ptp", "ipam": ipam}]})
        (ready_host.conf_dir / f"{10 + number}-n.conflist").write_text(text)
    if named:
        ready_host.runtimes = [Runtime("nomad", "1.9.0", "a running nomad", str(ready_host.conf_dir), ["/opt/cni/bin"])]
        ready_host.runtimes[0].pid = 7
    overlaps = {one["network"] for one in ready_host.explain()["obstacles"] if one["code"] == "subnet_overlap"}
    assert overlaps == ({"pods", "n11"} if named else {"pods"})
    assert calls == [12]


# ---- whether the runtimes have loaded what was written

NETWORK = '{"cniVersion": "1.0.0", "name": "fleet", "plugins": [{"type": "loopback"}]}'
CHAIN = [[{"type": "loopback"}]]


class Asked:
    """A host with ``obstacles`` and one running runtime, whose answers are given in turn; the last one is repeated."""

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
        return answer

    def confirm(self, restarting=()):
        files = scan_conf_dir(str(self.conf_dir))
        effective = Effective(None, str(self.conf_dir), ["/opt/cni/bin"], files, HostView(Manifest(str(self.state))))
        plan = SimpleNamespace(judged=effective, restarting=restarting, warn=lambda code, text: told.append(text))
        told: list[str] = []
        return readiness.confirm_plan(plan, [], 0.2), told


@pytest.fixture
def asked_host(tmp_path, monkeypatch):
    (tmp_path / "net.d").mkdir()
    (tmp_path / "net.d" / "10-fleet.conflist").write_text(NETWORK)
    made = Asked(tmp_path / "net.d", tmp_path / "state")
    monkeypatch.setattr(cri, "cri_status", made.status)
    # Experiments are made on real hosts.
    monkeypatch.setattr(readiness, "try_networks", lambda subjects: [experiment.Observation() for _subject in subjects])
    monkeypatch.setattr(discover, "runtimes_on_host", lambda conf_dir, view: [made.runtime])
    # The obstacles themselves have tests of their own.
    monkeypatch.setattr(readiness.Causes, "of", lambda *_arguments: list(made.obstacles))
    monkeypatch.setattr(readiness, "plugin_obstacles", lambda *_arguments: [])
    return made


def test_each_question_gets_some_time(asked_host):
    """A busy host may take longer than the rest of the deadline."""
    starting, started = CriStatus(False, "cni plugin not initialized", []), CriStatus(True, "", ["fleet"], CHAIN)
    asked_host.answers = [starting, starting, starting, started]
    assert asked_host.confirm() == (True, [])
    assert len(asked_host.timeouts) > 3
    assert min(asked_host.timeouts) >= 5


def test_what_is_not_loaded_is_told(asked_host):
    asked_host.answers = [CriStatus(True, "", ["other"])]
    told = "containers of containerd-1.7 would not get their network: containerd-1.7 has loaded"
    remedy = f"; {asked_host.runtime.how_to_load}"
    assert asked_host.confirm() == (False, [f"{told} other instead of fleet{remedy}"])
    asked_host.answers = [CriStatus(False, "no network config found", [])]
    assert asked_host.confirm() == (False, [f"{told} none (no network config found) instead of fleet{remedy}"])


def test_an_older_state_of_the_file_is_not_the_network(asked_host):
    asked_host.answers = [CriStatus(True, "", ["fleet"], [[{"type": "loopback", "mtu": 1400}]])]
    answer, [told] = asked_host.confirm()
    assert answer is False
    assert f": containerd-1.7 has loaded an older state of {asked_host.conf_dir}/10-fleet.conflist" in told


def test_a_runtime_that_has_loaded_its_network_and_is_not_ready_is_not_confirmed(asked_host):
    asked_host.answers = [CriStatus(False, "the datastore is gone", ["fleet"])]
    answer, [told] = asked_host.confirm()
    assert answer is False
    assert "reports that its network is not ready (the datastore is gone)" in told


def test_what_keeps_a_container_from_its_network_is_not_confirmed(asked_host):
    asked_host.answers = [CriStatus(True, "", ["fleet"])]
    asked_host.obstacles = [obstacle("missing_plugin", "there is no bridge", "no file", "install it")]
    told = "containers of containerd-1.7 would not get their network: "
    assert asked_host.confirm() == (False, [told + "there is no bridge (no file); install it"])
    asked_host.obstacles = [asked_host.obstacles[0]._replace(level="warning")]
    assert asked_host.confirm() == (True, [])


def test_what_cannot_be_told_is_not_confirmed(asked_host):
    asked_host.answers = [CriStatus(True, "", ["fleet"])]
    asked_host.obstacles = [
        obstacle("unsafe_permissions", "bridge was not asked", "it is a user's", "chown", "warning")._replace(
            decides=False
        )
    ]
    answer, [told] = asked_host.confirm()
    assert answer is None
    assert told == "it is not known whether containers of containerd-1.7 get their network: bridge was not asked"


def test_an_empty_directory_is_no_network_to_confirm(asked_host):
    (asked_host.conf_dir / "10-fleet.conflist").unlink()
    asked_host.answers = [CriStatus(False, "no network config found", [])]
    assert asked_host.confirm() == (None, [])
    asked_host.answers = [CriStatus(True, "", ["fleet"])]
    assert asked_host.confirm()[0] is False


def test_who_names_no_networks_is_asked_whether_it_has_any(asked_host):
    asked_host.answers = [CriStatus(True, "", None)]
    assert asked_host.confirm() == (True, [])
    asked_host.answers = [CriStatus(False, "no CNI configuration", None)]
    assert asked_host.confirm()[0] is False


def test_the_directory_of_a_handler_has_a_load_of_its_own(asked_host):
    asked_host.runtime.handler = "kata"
    asked_host.answers = [CriStatus(False, "none", ["other"], None, {"default": "none", "kata": ""})]
    assert asked_host.confirm() == (True, [])
    asked_host.answers = [CriStatus(True, "", ["other"], None, {"default": "", "kata": "no network config found"})]
    answer, [told] = asked_host.confirm()
    assert answer is False
    assert "for the runtime handler kata (no network config found)" in told


def test_nobody_to_ask(asked_host):
    assert asked_host.confirm(restarting=["containerd-1.7"]) == (None, [])
    asked_host.runtime.address = ""
    assert asked_host.confirm() == (None, [])
    asked_host.runtime.address, asked_host.runtime.pid = "/run/containerd.sock", 0
    assert asked_host.confirm() == (None, [])
    asked_host.runtime.pid = 7
    asked_host.runtime.set_conf("/elsewhere")
    assert asked_host.confirm() == (None, [])
    asked_host.runtime.set_conf(str(asked_host.conf_dir))
    asked_host.runtime.reads = False
    assert asked_host.confirm() == (None, [])
    assert asked_host.asked == 0


def test_the_host_is_examined_once_for_all_runtimes(asked_host, monkeypatch):
    asked_host.answers = [CriStatus(True, "", ["fleet"])]
    runtimes = [asked_host.runtime]
    for number in (8, 9):
        another = Runtime("containerd-1.7", "1.7.24", "a running containerd", str(asked_host.conf_dir))
        another.pid, another.address = number, "/run/containerd.sock"
        runtimes.append(another)
    monkeypatch.setattr(discover, "runtimes_on_host", lambda conf_dir, view: runtimes)
    tried = []
    monkeypatch.setattr(
        readiness, "try_networks", lambda subjects: tried.append(subjects) or [experiment.Observation("unknown")]
    )
    answer, told = asked_host.confirm()
    assert (answer, len(told)) == (None, 3)
    assert [subject.name for [subject] in tried] == ["fleet"]


@pytest.mark.parametrize("name", ["nomad", "podman"])
def test_who_has_networks_by_name_has_to_have_those_of_the_files(asked_host, monkeypatch, name):
    told = [CriStatus(True, "", ["fleet", "gone"])]
    asked = []

    def ask(networks, _timeout):
        asked.append(networks)
        if isinstance(told[0], Exception):
            raise told[0]  # pylint: disable=raising-non-exception
        return told[0]

    monkeypatch.setattr(Binaries, "ask", lambda _binaries, kind: (kind, ["1.0.0"]))
    found = {"nomad": "a running nomad", "podman": "/usr/bin/podman"}[name]
    asked_host.runtime = discover.class_of(name)(name, "4.3.1", found, str(asked_host.conf_dir), ["/opt/cni/bin"])
    vars(asked_host.runtime).update(pid=7, port=4646, databases="/var", settles=0.0, ask=ask, program=found)
    asked_host.runtime.default_network = "fleet"
    assert asked_host.confirm() == (True, [])
    assert asked == [["fleet"]]
    told[0] = CriStatus(False, "network not found", ["other"])
    answer, [text] = asked_host.confirm()
    assert (answer, f": {name} has not loaded fleet (network not found); " in text) == (False, True)
    told[0] = HostError("it has ACLs", code="not_answered")
    unknown = f"it is not known whether containers of {name} get their network: it has ACLs"
    assert asked_host.confirm() == (None, [unknown])
