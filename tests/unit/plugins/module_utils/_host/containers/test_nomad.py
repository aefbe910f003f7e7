# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ssl
import subprocess

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import nomad_api
from ansible_collections.podwire.cni.plugins.module_utils._host.containers import nomad
from ansible_collections.podwire.cni.plugins.module_utils._host.processes import Process
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.nomad_agent import SELF, Agent
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

ONE = "6b235529-8111-4bbe-520b-d639b1d2a94e"
TWO = "0d6e9d6a-1f6d-4b8f-9a55-3c1e5fdc3f10"
VARIABLES = ("ADDR", "TOKEN", "CACERT", "CAPATH", "CLIENT_CERT", "CLIENT_KEY", "TLS_SERVER_NAME")


@pytest.fixture
def _environment(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv("NOMAD_" + name, raising=False)
    return monkeypatch


@pytest.fixture
def _agent(_environment):
    with Agent() as agent:
        _environment.setenv("NOMAD_ADDR", f"http://127.0.0.1:{agent.port}")
        yield agent


@pytest.fixture
def _data(tmp_path):
    for name in (ONE, TWO):
        (tmp_path / "alloc" / name).mkdir(parents=True)
    (tmp_path / "alloc" / "lost+found").mkdir()
    return tmp_path


def refused():
    with fails_with("source_unusable") as caught:
        nomad.ask_nomad()
    assert caught.value.facts == {"source": "nomad"}
    return caught.value.msg


def test_a_process_shows_that_it_is_there(monkeypatch):
    monkeypatch.setattr(nomad, "processes", lambda name: [])
    assert nomad.find_nomad() is None
    agent = Process(812, ["/usr/bin/nomad", "agent", "-config=/etc/nomad.d"])
    monkeypatch.setattr(nomad, "processes", lambda name: [agent] if name == "nomad" else [])
    assert nomad.find_nomad().evidence == "process 812: /usr/bin/nomad agent"


def test_allocations_are_those_in_its_directory(_agent, _data):
    _agent.answer(DataDir=str(_data), Client={"Enabled": True, "AllocDir": ""})
    answer = nomad.ask_nomad()
    assert answer.containers == {ONE: None, TWO: None}
    assert (answer.source, answer.size, answer.namespaces) == ("nomad", 2, ())
    assert answer.asked == f"the agent at http://127.0.0.1:{_agent.port}: 2 allocations in {_data}/alloc"
    assert _agent.requests == [(SELF, None)]


def test_the_directory_may_be_another_one(_agent, _data):
    _agent.answer(DataDir="/nonexistent", Client={"Enabled": True, "AllocDir": f"{_data}/alloc"})
    assert nomad.ask_nomad().size == 2


def test_a_server_has_no_allocations(_agent):
    _agent.answer(DataDir="/nonexistent", Client={"Enabled": False, "AllocDir": ""})
    answer = nomad.ask_nomad()
    assert answer.containers == {}
    assert "which is not a client" in answer.asked


def test_a_token_is_sent_and_the_lack_of_one_is_said(_agent, _environment):
    _agent.answers[SELF] = 403, b"Permission denied"
    assert "NOMAD_TOKEN" in refused()
    _environment.setenv("NOMAD_TOKEN", "e2a5f3c8-0000-1111-2222-333344445555")
    assert "agent:read" in refused()
    assert [token for path, token in _agent.requests] == [None, "e2a5f3c8-0000-1111-2222-333344445555"]


@pytest.mark.parametrize("token", ["a\r\nX-Other: b", "a b", "\udcff"])
def test_a_token_cannot_add_headers(_agent, _environment, token):
    _environment.setenv("NOMAD_TOKEN", token)
    message = refused()
    assert "NOMAD_TOKEN is not a valid token" in message
    assert token not in message
    assert not _agent.requests


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"config": []}',
        b'{"config": {}}',
        b'{"config": {"Client": null}}',
        b'{"config": {"Client": {"Enabled": true}}}',
        b'{"config": {"Client": {"Enabled": true}, "DataDir": ""}}',
        b'{"config": {"Client": {"Enabled": true}, "DataDir": 7}}',
        b'{"config": {"Client": {"Enabled": true}, "DataDir": "relative"}}',
        b'{"config": {"Client": {"Enabled": true}, "DataDir": "/tmp/../etc"}}',
        b'{"config": {"Client": {"Enabled": true}, "DataDir": "/nonexistent"}}',
        b'{"config": {"Client": {"Enabled": true, "AllocDir": "/a\\u0000b"}}}',
        b"\xff\xfe",
        b"[" * 100000,
    ],
)
def test_what_is_no_answer_is_not_taken_for_one(_agent, body):
    _agent.answers[SELF] = 200, body
    refused()


def test_an_answer_without_end_is_cut(_agent, monkeypatch):
    monkeypatch.setattr(nomad_api, "ANSWER_LIMIT", 1000)
    _agent.answers[SELF] = 200, b" " * 100000
    assert "longer than 1000 bytes" in refused()


@pytest.mark.parametrize("status", [301, 404, 500])
def test_another_status_is_said(_agent, status):
    _agent.answers[SELF] = status, b"rpc error: no cluster leader\n"
    assert f"with the status {status}: rpc error: no cluster leader;" in refused()


def test_an_agent_that_does_not_run_is_said(_environment):
    with Agent() as agent:
        pass
    _environment.setenv("NOMAD_ADDR", f"http://127.0.0.1:{agent.port}/")
    message = refused()
    assert f"no answer from the agent at http://127.0.0.1:{agent.port}/" in message
    assert "make sure that the agent runs" in message


def test_what_is_no_http_is_said(_environment):
    with Agent(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)) as agent:
        _environment.setenv("NOMAD_ADDR", f"http://127.0.0.1:{agent.port}")
        assert "no answer from the agent" in refused()


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1:4646",
        "unix:///run/nomad.sock",
        "http://a:0",
        "http://a:70000",
        "http://u@b:1/x",
        "http://a b",
        "http://",
    ],
)
def test_what_is_no_address_is_said(_environment, address):
    _environment.setenv("NOMAD_ADDR", address)
    assert "NOMAD_ADDR is" in refused()


@pytest.fixture(scope="module")
def _certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key -out cert -days 2"
    names = ["-subj", "/CN=client.global.nomad", "-addext", "subjectAltName=DNS:client.global.nomad"]
    subprocess.run(command.split() + names, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("mutual", [False, True])
def test_tls(_environment, _certificate, _data, mutual):
    cert, key = str(_certificate / "cert"), str(_certificate / "key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    if mutual:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cert)
    with Agent(context) as agent:
        agent.answer(DataDir=str(_data), Client={"Enabled": True})
        _environment.setenv("NOMAD_ADDR", f"https://127.0.0.1:{agent.port}")
        assert "certificate verify failed" in refused()
        _environment.setenv("NOMAD_CACERT", cert)
        assert "certificate verify failed" in refused()
        _environment.setenv("NOMAD_TLS_SERVER_NAME", "client.global.nomad")
        if mutual:
            assert "no answer" in refused()
            _environment.setenv("NOMAD_CLIENT_CERT", cert)
            _environment.setenv("NOMAD_CLIENT_KEY", key)
        assert nomad.ask_nomad().size == 2
        _environment.setenv("NOMAD_CACERT", "/nonexistent")
        assert "No such file" in refused()


@pytest.mark.parametrize(
    ("address", "place"),
    [
        (None, ("127.0.0.1", 4646)),
        ("http://127.0.0.2:4646", ("127.0.0.2", 4646)),
        ("https://nomad.example.net", ("nomad.example.net", 4646)),
        ("http://[::1]:8080/", ("::1", 8080)),
    ],
)
def test_where_the_agent_is_asked(_environment, monkeypatch, address, place):
    if address:
        _environment.setenv("NOMAD_ADDR", address)
    asked = []

    def connect(place, timeout):
        asked.append(place)
        raise OSError("Connection refused")

    monkeypatch.setattr(nomad_api.socket, "create_connection", connect)
    refused()
    assert asked == [place]


def test_an_agent_whose_answer_drips_is_left_after_the_time_limit(_agent, monkeypatch):
    _agent.answer(DataDir="/data")
    _agent.drips = True
    monkeypatch.setattr(nomad, "_TIMEOUT", 0.5)
    with fails_with("source_unusable"):
        nomad.ask_nomad()
