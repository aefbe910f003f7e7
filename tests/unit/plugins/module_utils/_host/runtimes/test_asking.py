# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

"""What Nomad, podman and CRI-O say: a server that records questions, and programs that answer as the real ones."""

from __future__ import annotations

import json
import os
import socket

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import commands
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import cri, reading
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.cri import CriStatus
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.discover import class_of
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.nomad_agent import SELF, Agent
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

NODE = "f7476465-4d6e-c0de-26d0-e383c49be941"
STATS = {"config": {}, "stats": {"client": {"node_id": NODE}}}


def node(*modes):
    networks = [{"Mode": "host", "Device": "lo"}, *({"Mode": mode} for mode in modes)]
    return {"ID": NODE, "NodeResources": {"Networks": networks, "NodeNetworks": None}}


class Asked(Agent):
    """Nomad's agent, as its runtime asks it."""

    def __init__(self, *place):
        super().__init__(None, *place)
        self.answers = {SELF: STATS, f"/v1/node/{NODE}": node("cni/fleet", "cni/edge")}
        self.runtime = class_of("nomad")("nomad")
        self.runtime.pid, self.runtime.port = os.getpid(), self.port

    def ask(self, timeout=5.0):
        return self.runtime.ask(["fleet"], timeout)


@pytest.fixture
def agent():
    with Asked() as made:
        yield made


def test_nomads_fingerprint_names_its_networks(agent):
    assert agent.ask() == CriStatus(True, "", ["edge", "fleet"])
    assert [path for path, _token in agent.requests] == [SELF, f"/v1/node/{NODE}"]
    agent.answers[f"/v1/node/{NODE}"] = node()
    assert agent.ask() == CriStatus(False, "its node has no CNI network", [])


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::1")])
def test_nomad_is_asked_where_its_process_listens(family, host):
    with Asked(family, host) as agent:
        assert agent.ask().networks == ["edge", "fleet"]


@pytest.mark.parametrize(
    ("path", "answer", "words"),
    [
        (SELF, (403, b"Permission denied"), "status 403 (it has ACLs; set NOMAD_TOKEN"),
        (SELF, (400, b"Client sent an HTTP request to an HTTPS server."), "status 400"),
        (SELF, (200, b"{"), "does not tell"),
        (SELF, (200, b"[" * 100_000), "does not tell"),
        (SELF, (200, b"[]"), "is not an object"),
        (SELF, {"stats": {}}, "not in its answer"),
        (SELF, {"stats": None}, "not in its answer"),
        (SELF, {"stats": {"client": {"node_id": "../../x"}}}, "names no node"),
        (f"/v1/node/{NODE}", (404, b"node not found"), "404"),
        (f"/v1/node/{NODE}", {"NodeResources": {"Networks": ["x"]}}, "not in its answer"),
        (f"/v1/node/{NODE}", {"NodeResources": {}}, "not in its answer"),
    ],
)
def test_an_answer_of_nomad_that_is_none_is_not_known(agent, path, answer, words):
    agent.answers[path] = answer
    with fails_with("not_answered", "API of Nomad's agent") as caught:
        agent.ask()
    assert words in caught.value.msg


def test_a_nomad_that_hangs_is_not_known_within_its_time(agent):
    agent.delay = 30
    with pytest.raises(HostError, match="no complete answer in time"):
        agent.ask(0.2)


def test_an_agent_with_tls_is_asked_over_tls(agent, monkeypatch):
    monkeypatch.setenv("NOMAD_ADDR", "https://127.0.0.1:4646")
    with pytest.raises(HostError, match="SSL"):
        agent.ask()
    assert agent.requests == []


def test_another_process_on_the_port_is_not_asked(agent):
    agent.runtime.pid = 1
    with pytest.raises(HostError, match="does not listen on TCP port"):
        agent.ask()
    agent.runtime.pid = 2**22 + 1
    with pytest.raises(HostError, match="does not tell"):
        agent.ask()
    assert agent.requests == []


# --- programs


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that makes a program of a script; what it was called with is in its folder."""

    def make(name, script):
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\n{script}\n')
        path.chmod(0o755)
        monkeypatch.setattr(commands, "check_executable", lambda _path: None)
        return str(path)

    return make


def podman(program, script):
    runtime = class_of("podman")("podman", "4.3.1", program("podman", script))
    runtime.program, runtime.databases = runtime.evidence, "/var"
    return runtime


def test_podman_inspects_the_networks_that_are_expected(program, tmp_path):
    runtime = podman(program, """echo '[{"name": "b", "driver": "bridge"}, {"name": "a"}]'""")
    assert runtime.ask(["a", "b"], 5) == CriStatus(True, "", ["a", "b"])
    assert (tmp_path / "asked").read_text() == "network inspect a b\n"


def test_a_network_that_podman_does_not_find_is_missing(program):
    runtime = podman(program, """echo '[{"name": "a"}]'; echo 'Error: network b: network not found' >&2; exit 125""")
    assert runtime.ask(["a", "b"], 5) == CriStatus(False, "Error: network b: network not found", ["a"])


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("echo nonsense", "not_answered"),
        ("echo '[1]'", "not_answered"),
        ("echo '[]'", "not_answered"),
        ("echo 'Error: database is locked' >&2; exit 125", "command_failed"),
        ("kill -9 $$", "command_failed"),
        ("sleep 60", "command_failed"),
    ],
)
def test_a_podman_that_answers_otherwise_is_not_known(program, script, code):
    with fails_with(code):
        podman(program, script).ask(["a"], 0.5)


def test_containers_of_podman_that_do_not_run(program):
    states = ["running", "exited", "created", "configured", "stopped", "paused", "initialized", "removing", "unknown"]
    rows = [{"Id": f"c{number}", "State": state, "Names": [f"n{number}"]} for number, state in enumerate(states)]
    rows += [{"Id": "--all", "State": "exited", "Names": ["n"]}, {"Id": "c", "State": "exited", "Names": ["a\x1b[0m"]}]
    assert podman(program, f"echo '{json.dumps(rows)}'").stopped(5) == {"c1": "n1", "c2": "n2", "c3": "n3", "c4": "n4"}
    assert podman(program, "exit 0").stopped(5) == podman(program, "echo null").stopped(5) == {}


@pytest.mark.parametrize("text", ["{", '{"a": 1}', "[1]", '[{"State": "exited", "Id": "c", "Names": []}]', "true"])
def test_containers_of_podman_that_are_not_understood(program, text):
    with fails_with("not_answered"):
        podman(program, f"echo '{text}'").stopped(5)
    with pytest.raises(HostError):
        podman(program, "exit 125").stopped(5)


def test_a_podman_that_has_never_run_is_not_asked(program, tmp_path):
    runtime = podman(program, "exit 1")
    assert runtime.can_be_asked
    runtime.databases = str(tmp_path / "libpod")
    assert not runtime.can_be_asked
    runtime.databases, runtime.reads = "/var", False
    assert not runtime.can_be_asked


CONFIG = '[crio]\n[crio.network]\nnetwork_dir = "/etc/cni/net.d/"\nplugin_dirs = [\n  "/opt/cni/bin/",\n]\n'


@pytest.fixture
def crio(program, monkeypatch):
    """CRI-O, whose CRI says that it is ready; ``installed`` are its programs, and ``script`` is what they do."""

    def make(script, name="crio", version="1.30.4"):
        runtime = class_of("crio")("crio", version, "a running crio")
        runtime.pid, runtime.address = 7, "/run/crio/crio.sock"
        paths = {name: program(name, script)}
        monkeypatch.setattr(reading, "installed", lambda wanted: paths.get(wanted, ""))
        monkeypatch.setattr(cri, "cri_status", lambda _address, _timeout: CriStatus(True, "", None))
        return runtime

    return make


@pytest.mark.parametrize(
    ("name", "version", "asked"),
    [
        ("crio", "1.30.4", "status --socket /run/crio/crio.sock config\n"),
        ("crio", "", "status --socket /run/crio/crio.sock config\n"),
        ("crio-status", "1.27.0", "--socket /run/crio/crio.sock config\n"),
    ],
)
def test_crio_is_asked_what_it_runs_with(crio, tmp_path, name, version, asked):
    runtime = crio(f"cat <<'X'\n{CONFIG}\nX", name, version)
    assert runtime.ask([], 5) == CriStatus(True, "", None)
    assert (tmp_path / "asked").read_text() == asked


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("/etc/cni/net.d/", "/srv/net.d", "network_dir /srv/net.d, but its configuration says /etc/cni/net.d"),
        ("/opt/cni/bin/", "/usr/lib/cni", "plugin_dirs /usr/lib/cni, but its configuration says /opt/cni/bin"),
        (
            "plugin_dirs",
            'cni_default_network = "a"\nplugin_dirs',
            "cni_default_network a, but its configuration says none",
        ),
    ],
)
def test_a_crio_that_was_not_restarted_is_not_ready(crio, old, new, words):
    runtime = crio("cat <<'X'\n" + CONFIG.replace(old, new) + "\nX")
    status = runtime.ask([], 5)
    assert status.ready is False
    assert words in status.message


def test_a_crio_that_prints_no_directory_of_plugins_has_that_of_its_files(crio):
    runtime = crio("cat <<'X'\n[crio.network]\nnetwork_dir = \"/etc/cni/net.d\"\nplugin_dirs = []\nX")
    runtime.bin_dirs = ["/usr/lib/cni"]
    assert runtime.ask([], 5) == CriStatus(True, "", None)


@pytest.mark.parametrize("script", ["echo '[crio'", "echo 'a = 1'", "exit 1", "sleep 60", "echo 'network_dir = 1'"])
def test_a_crio_status_that_answers_otherwise_is_not_known(crio, script):
    with pytest.raises(HostError):
        crio(script).ask([], 0.5)


def test_a_crio_without_a_program_counts_as_its_files_say(crio):
    assert crio("exit 1", "other").ask([], 5) == CriStatus(True, "", None)


def test_only_a_runtime_that_runs_is_asked():
    runtime = class_of("crio")("crio")
    runtime.address = "/run/crio/crio.sock"
    assert not runtime.can_be_asked
    runtime.pid = 7
    assert runtime.can_be_asked
    nomad = class_of("nomad")("nomad")
    nomad.pid = 7
    assert not nomad.can_be_asked
    nomad.port = 4646
    assert nomad.can_be_asked
