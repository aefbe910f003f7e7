# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import socket
import struct
import threading

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import cri
from ansible_collections.podwire.cni.tests.tools.protocol_buffers import field
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

SETTINGS, PING, DATA, HEADERS = 4, 6, 0, 1


def frame(kind, flags, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, 1) + payload


def message(data):
    return b"\0" + struct.pack(">I", len(data)) + data


def answer(ready, text="", info=None):
    condition = field(1, "NetworkReady") + (field(2, 1) if ready else b"") + field(4, text)
    reply = field(1, field(1, field(1, "RuntimeReady") + field(2, 1)) + field(1, condition))
    for key, value in (info or {}).items():
        reply += field(2, field(1, key) + field(2, value))
    return reply


def networks(*names):
    config = [{"IFName": f"eth{index}", "Config": {"Name": name}} for index, name in enumerate(names)]
    return json.dumps({"Networks": [{"IFName": "lo", "Config": {"Name": "cni-loopback"}}, *config]})


@pytest.fixture
def serve(tmp_path):
    """Return a function that lets a server send frames to one client, and returns its address."""
    threads = []

    def start(*frames):
        address = str(tmp_path / "socket")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen(1)

        def run():
            connection, _peer = listener.accept()
            with connection, listener:
                connection.recv(65536)
                connection.sendall(b"".join(frames))
                connection.settimeout(10)
                while connection.recv(65536):
                    pass

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        return address

    yield start
    for thread in threads:
        thread.join()


def ask(address, timeout=10.0):
    return cri.cri_status(address, timeout)


def test_the_networks_that_are_loaded_are_told_in_order(serve):
    reply = answer(True, info={"config": "x" * 100000, "cniconfig": networks("b", "a"), "lastCNILoadStatus": "OK"})
    whole = message(reply)
    address = serve(
        frame(SETTINGS, 0), frame(PING, 0, b"12345678"), frame(DATA, 0, whole[:9]), frame(DATA, 0, whole[9:]),
        frame(HEADERS, 1),
    )  # fmt: skip
    assert ask(address) == cri.CriStatus(True, "", ["b", "a"], [[], []], {"default": ""})


def test_why_nothing_is_loaded_is_told_in_its_own_words(serve):
    reply = answer(False, "not ready", {"cniconfig": "null", "lastCNILoadStatus": "cni config load failed: x"})
    failed = "cni config load failed: x"
    status = ask(serve(frame(DATA, 1, message(reply))))
    assert status == cri.CriStatus(False, failed, [], [], {"default": failed})


def test_the_words_of_a_plugin_that_is_not_ready_are_not_replaced_by_a_load_without_an_error(serve):
    told = "Network plugin returns error: the datastore is gone"
    reply = answer(False, told, {"cniconfig": networks("a"), "lastCNILoadStatus": "OK"})
    assert ask(serve(frame(DATA, 1, message(reply))))[:3] == (False, told, ["a"])


def test_each_handler_has_a_load_of_its_own(serve):
    info = {"lastCNILoadStatus": "OK", "lastCNILoadStatus.default": "OK", "lastCNILoadStatus.kata": "no network config"}
    status = ask(serve(frame(DATA, 1, message(answer(True, info=info)))))
    assert status.loads == {"default": "", "kata": "no network config"}


def test_the_plugins_of_a_network_are_told_as_they_were_loaded(serve):
    config = {"Name": "a", "Plugins": [{"Source": '{"type": "bridge", "mtu": 1400}'}, {"Source": '{"type": "tuning"}'}]}
    loaded = json.dumps({"Networks": [{"IFName": "eth0", "Config": config}]})
    status = ask(serve(frame(DATA, 1, message(answer(True, info={"cniconfig": loaded})))))
    assert status.chains == [[{"type": "bridge", "mtu": 1400}, {"type": "tuning"}]]


def test_a_runtime_that_sends_little_by_little_does_not_delay_the_answer(serve):
    # The head of a frame without its payload.
    with fails_with("not_answered", r"no complete answer within 0[.]2 s"):
        ask(serve(frame(DATA, 0, b"x" * 50)[:20]), 0.2)


def test_a_runtime_that_tells_only_whether_it_is_ready(serve):
    status = ask(serve(frame(DATA, 1, message(answer(False, "no file")))))
    assert status == cri.CriStatus(False, "no file", None)


@pytest.mark.parametrize(
    "frames",
    [
        [frame(HEADERS, 1)],
        [frame(DATA, 1, message(b"\x0a\xff\x01x"))],
        [frame(DATA, 1, message(b"\x0b"))],
        [frame(DATA, 1, message(answer(True, info={"cniconfig": "{"})))],
        [frame(DATA, 1, message(answer(True, info={"cniconfig": '{"Networks": [{}]}'})))],
        [frame(DATA, 1, message(b""))],
    ],
)
def test_an_answer_that_is_none_is_said(serve, frames):
    with fails_with("not_answered"):
        ask(serve(*frames))


def test_a_runtime_that_does_not_listen_is_said(tmp_path):
    with pytest.raises(HostError, match="does not report its networks"):
        ask(str(tmp_path / "socket"))
