# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import os
import subprocess
import sys

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.files import Attributes
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.entries import ConfPlan
from ansible_collections.podwire.cni.plugins.module_utils._host.processes import Process
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import cri, discover, settings, setup
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.settings import RuntimeSettings
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.setup import Setup
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

WANTED = RuntimeSettings("/n", ["/b"])


def runtime_named(name, *values, **settings):
    return discover.class_of(name)(name, *values, **settings)


@pytest.fixture(autouse=True)
def notes(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "_DIRECTORY", str(tmp_path / "restarts"))


@pytest.fixture
def crio(tmp_path):
    """Return a CRI-O whose drop-ins are in the test's own directory; it runs as this test."""
    runtime = runtime_named("crio", evidence="a test", conf_dir="/etc/cni/net.d")
    runtime.config, runtime.pid, runtime.address = str(tmp_path), os.getpid(), str(tmp_path / "socket")
    return runtime


def plan(tmp_path, runtimes, wanted=WANTED, check=False):
    made = ConfPlan("/n", Manifest(str(tmp_path / "state")), Attributes(0o644))
    planned = Setup(made, made.configured, wanted, check, HostView())
    planned.prepare(runtimes)
    return planned


def answers(monkeypatch, *statuses):
    left = list(statuses)
    monkeypatch.setattr(cri, "cri_status", lambda address, timeout: left.pop(0) if len(left) > 1 else left[0])


def host_has(monkeypatch, *runtimes):
    monkeypatch.setattr(discover, "find_runtimes", lambda: list(runtimes))


def read_again(monkeypatch, crio, conf_dir):
    """Let a second look at the host find CRI-O with a directory."""
    again = runtime_named("crio", evidence="a test", conf_dir=conf_dir, bin_dirs=["/b"])
    again.config, again.pid, again.address = crio.config, crio.pid, crio.address
    host_has(monkeypatch, again)
    return again


def test_a_daemon_has_to_be_restarted_until_it_is_another_one(tmp_path, monkeypatch, crio):
    again = read_again(monkeypatch, crio, "/n")
    made = plan(tmp_path, [crio]).plan
    assert [step.step_class for step in made.steps] == ["disruptive"]
    assert made.steps[0].reason == "conf_dir /etc/cni/net.d, want /n; bin_dirs /opt/cni/bin, want /b"
    assert made.configured[0]["restart"] and made.configured[0]["action"] == "configured"
    assert crio.conf_dir == "/n"
    made.apply()
    made = plan(tmp_path, [again]).plan
    assert (made.steps, made.configured[0]["restart"], made.configured[0]["action"]) == ([], True, "none")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        again.pid = other.pid
        answers(monkeypatch, cri.CriStatus(True, "", None))
        row = plan(tmp_path, [again]).plan.configured[0]
        other.communicate(b"\n")
    assert (row["restart"], row["ready"]) == (False, True)


def test_a_process_that_got_the_number_of_another_one_is_not_taken_for_it(monkeypatch):
    settings.note_restart("crio", os.getpid())
    assert settings.restart_pending("crio", os.getpid())
    monkeypatch.setattr(settings, "started", lambda pid: "1")
    assert not settings.restart_pending("crio", os.getpid())
    settings.forget_restart("crio")
    assert not os.listdir(settings._DIRECTORY)


@pytest.mark.parametrize("due", [False, True])
def test_a_change_that_does_not_help_is_undone_and_a_restart_that_was_due_stays_due(tmp_path, monkeypatch, crio, due):
    if due:
        settings.note_restart("crio", os.getpid())
    read_again(monkeypatch, crio, "/other")
    made = plan(tmp_path, [crio]).plan
    with fails_with("overridden", "crio would still read /other"):
        made.apply()
    assert not os.path.exists(made.steps[0].target)
    assert settings.restart_pending("crio", os.getpid()) is due


def test_another_setting_that_would_be_lost_is_an_error(tmp_path, monkeypatch):
    def containerd(conf_dir, tables):
        runtime = runtime_named("containerd-2.1", evidence="a test", conf_dir=conf_dir, bin_dirs=["/b"])
        runtime.config, runtime.tables = str(tmp_path / "config.toml"), tables
        return runtime

    cri_tables = {"cni": {"conf_dir": "/x"}, "registry": {"config_path": "/r"}}
    before = {"version": 2, "imports": [], "plugins": {"io.containerd.grpc.v1.cri": cri_tables}}
    after = {"version": 3, "imports": ["x"], "plugins": {"io.containerd.grpc.v1.cri": {"cni": {"conf_dir": "/n"}}}}
    host_has(monkeypatch, containerd("/n", after))
    with fails_with("settings_lost") as caught:
        plan(tmp_path, [containerd("/x", before)]).plan.apply()
    assert "plugins.io.containerd.grpc.v1.cri.registry" in caught.value.msg
    assert not os.path.exists(str(tmp_path / "config.toml"))
    after["plugins"]["io.containerd.grpc.v1.cri"]["registry"] = {"config_path": "/r"}
    plan(tmp_path, [containerd("/x", before)]).plan.apply()


@pytest.mark.parametrize(
    ("name", "here", "code"),
    [
        ("crio", [], "missing_runtime"),
        ("crio", ["openshift"], "managed_elsewhere"),
        ("containerd-2.1", ["k3s"], "managed_elsewhere"),
        ("containerd-2.1", ["openshift"], "missing_runtime"),
        ("rke2", [], "managed_elsewhere"),
        ("cri-dockerd", [], "cannot_configure"),
    ],
)
def test_a_runtime_that_is_not_to_be_configured_is_an_error(tmp_path, monkeypatch, name, here, code):
    host_has(monkeypatch, *(runtime_named(other, evidence="a test") for other in here))
    with fails_with(code):
        plan(tmp_path, [runtime_named(name)])


def test_check_mode_plans_for_a_runtime_that_is_not_there_yet(tmp_path, monkeypatch):
    host_has(monkeypatch)
    made = plan(tmp_path, [runtime_named("nomad", conf_dir="/n", bin_dirs=["/b"])], check=True).plan
    assert [code for code, _text in made.warnings] == ["missing_runtime"]
    assert [step.target for step in made.steps] == ["/etc/nomad.d/99-podwire-cni.hcl"]
    assert not made.configured[0]["restart"]


def test_podman_without_any_directory_of_plugins_would_refuse_every_command(tmp_path):
    def podman():
        runtime = runtime_named("podman", version="4.3.1", evidence="a test")
        runtime.config = str(tmp_path)
        return runtime

    wanted = WANTED._replace(bin_dirs=[str(tmp_path / "none"), str(tmp_path / "bin")])
    with fails_with("missing_bin_dir"):
        plan(tmp_path, [podman()], wanted)
    assert [code for code, _text in plan(tmp_path, [podman()], wanted, check=True).plan.warnings] == ["missing_bin_dir"]
    (tmp_path / "bin").mkdir()
    assert plan(tmp_path, [podman()], wanted).plan.steps


def test_a_containerd_without_cri_is_an_error_and_a_nomad_server_is_left_alone(tmp_path):
    containerd, nomad = runtime_named("containerd-1.7", evidence="a test"), runtime_named("nomad", evidence="a test")
    containerd.config, containerd.reads, nomad.reads = "/c", False, False
    with fails_with("cri_disabled"):
        plan(tmp_path, [containerd])
    made = plan(tmp_path, [nomad]).plan
    assert (made.steps, [code for code, _text in made.warnings]) == ([], ["no_client"])


def test_of_several_daemons_the_systems_own_is_configured(monkeypatch):
    docker, handler, own = (runtime_named("containerd-1.7", evidence="a test") for _number in range(3))
    docker.config, own.config, docker.reads = "/run/docker/containerd.toml", "/etc/containerd/config.toml", False
    assert setup._choose([docker, handler, own]) is own
    assert setup._choose([handler, docker]) is docker


@pytest.mark.parametrize(
    ("now", "wanted", "reason"),
    [
        ({}, {}, "conf_dir /etc/cni/net.d, want /n"),
        ({"bin_dirs": ["/a", "/b"]}, {}, "conf_dir /etc/cni/net.d, want /n; bin_dirs /a:/b, want /b"),
        ({"conf_dir": "/n", "max_networks": 1}, {"max_conf_num": 2}, "max_conf_num 1, want 2"),
        ({"conf_dir": "/n"}, {}, "its settings are not as this collection writes them"),
        ({"evidence": ""}, {}, "does not have the settings yet"),
        ({"reads": False}, {}, "does not have the settings yet"),
        ({}, {"present": False}, "state is absent"),
    ],
)
def test_the_reason_names_the_settings_that_differ(now, wanted, reason):
    runtime = runtime_named("crio", evidence="a test", conf_dir="/etc/cni/net.d", bin_dirs=["/b"])
    for name, value in now.items():
        setattr(runtime, name, value)
    assert setup._reason(runtime, WANTED._replace(**wanted)) == reason


def test_a_diff_shows_lines_of_ours_only():
    text = 'password = "x"\nimports = ["/d"]  # podwire.cni, before: imports = []\n'
    assert setup._shown(text) == 'imports = ["/d"]  # podwire.cni, before: imports = []\n'


# --- what is loaded


def test_it_waits_until_the_network_is_loaded(tmp_path, monkeypatch, crio):
    again = read_again(monkeypatch, crio, "/n")
    states = [
        cri.CriStatus(True, "", ["old"]),
        cri.CriStatus(False, "loading", []),
        cri.CriStatus(True, "", ["old", "new"]),
    ]
    answers(monkeypatch, *states)
    planned = plan(tmp_path, [again], WANTED._replace(wait=20))
    # To search for a runtime runs its program, so only its answer is asked for again.
    monkeypatch.setattr(discover, "find_runtimes", lambda: 1 / 0)
    assert planned.not_loaded("new") == []
    assert planned.plan.configured[0]["networks"] == ["old", "new"]


def test_it_waits_until_the_runtime_runs_and_searches_for_it_when_a_process_has_started(tmp_path, monkeypatch, crio):
    again = read_again(monkeypatch, crio, "/n")
    running, stopped = copy.copy(again), again
    stopped.pid = 0
    looks = iter([[], [], [Process(1, name="crio")], [Process(1, name="crio")], [Process(2, name="crio")]])
    searches = iter([[stopped], [running]])
    monkeypatch.setattr(setup, "processes", lambda name: next(looks))
    planned = plan(tmp_path, [stopped], WANTED._replace(wait=20))
    monkeypatch.setattr(discover, "find_runtimes", lambda: next(searches))
    answers(monkeypatch, cri.CriStatus(True, "", ["new"]))
    assert planned.not_loaded("new") == []
    assert list(looks) == list(searches) == []


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (cri.CriStatus(True, "", ["old"]), "it has loaded old"),
        (cri.CriStatus(True, "", []), "it has loaded none"),
        (cri.CriStatus(False, "cni plugin not initialized", []), "cni plugin not initialized"),
    ],
)
def test_a_network_that_is_not_loaded_in_time_is_an_error(tmp_path, monkeypatch, crio, status, words):
    again = read_again(monkeypatch, crio, "/n")
    answers(monkeypatch, status)
    [found] = plan(tmp_path, [again], WANTED._replace(wait=0.3)).not_loaded("new")
    assert found.code == "not_loaded" and found.message.endswith(words)


def test_a_daemon_that_does_not_run_has_loaded_nothing(tmp_path, monkeypatch, crio):
    again = read_again(monkeypatch, crio, "/n")
    again.pid = 0
    planned = plan(tmp_path, [again], WANTED._replace(wait=0.1))
    assert planned.plan.configured[0]["ready"] is None
    assert planned.not_loaded("new")[0].message.endswith("it is not running")


def test_nobody_is_asked_who_is_to_be_changed_or_restarted(tmp_path, monkeypatch, crio):
    read_again(monkeypatch, crio, "/n")
    assert plan(tmp_path, [crio], WANTED._replace(wait=0.1)).not_loaded("new") == []


def nomad_or_podman(name, tmp_path):
    runtime = runtime_named(name, "1.9.0" if name == "nomad" else "4.3.1", "/usr/bin/" + name, "/n", ["/b"])
    runtime.config = str(tmp_path)
    if name == "nomad":
        runtime.pid, runtime.port = os.getpid(), 4646
    else:
        runtime.program, runtime.databases = runtime.evidence, str(tmp_path)
    return runtime


@pytest.mark.parametrize("name", ["nomad", "podman"])
def test_nomad_and_podman_are_waited_for_as_they_can_be_asked(tmp_path, monkeypatch, name):
    runtime = nomad_or_podman(name, tmp_path)
    host_has(monkeypatch, runtime)
    (tmp_path / "b").mkdir()
    wanted = WANTED._replace(wait=0.3, bin_dirs=[str(tmp_path / "b")])
    runtime.bin_dirs = list(wanted.bin_dirs)
    monkeypatch.setattr(HostView, "has_directory", lambda _view, path: True)
    asked = []

    def ask(networks, timeout):
        asked.append(list(networks))
        return cri.CriStatus(len(asked) > 1, "", ["new"] if len(asked) > 1 else [])

    runtime.ask = ask
    assert plan(tmp_path, [runtime], wanted).not_loaded("new") == []
    assert asked == [["new"]] * 2
    runtime.ask = lambda *_arguments: cri.CriStatus(False, "it has none", [])
    [found] = plan(tmp_path, [runtime], wanted).not_loaded("new")
    assert (found.level, found.code) == ("error", "not_loaded")
    assert found.message.endswith(f"{name} has not loaded the network 'new' within 0.3 s: it has none")


def test_a_nomad_that_does_not_run_is_not_known_and_a_podman_that_was_never_used_reads_later(tmp_path, monkeypatch):
    monkeypatch.setattr(HostView, "has_directory", lambda _view, path: True)
    nomad, podman = (nomad_or_podman(name, tmp_path) for name in ("nomad", "podman"))
    nomad.pid, podman.databases = 0, str(tmp_path / "none")
    host_has(monkeypatch, nomad, podman)
    [found] = plan(tmp_path, [nomad, podman], WANTED._replace(wait=0.1)).not_loaded("new")
    assert (found.level, found.code) == ("warning", "not_loaded")
    assert "nomad does not run" in found.message
