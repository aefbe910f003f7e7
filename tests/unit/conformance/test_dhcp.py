# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The DHCP server of the conformance suite; tests/real/conformance has the plugin dhcp talk to it."""

from __future__ import annotations

import contextlib
import random
import socket
import struct

import pytest

from conformance import dhcp

DISCOVER, REQUEST, RELEASE = 1, 3, 7


def message(kind, mac=b"\x02\x00\x00\x00\x00\x01", client=b"", xid=b"abcd"):
    head = struct.pack("!BBBB4sHH16x16s192x", 1, 1, 6, 0, xid, 0, 0x8000, mac)
    options = b"\0" + bytes((53, 1, kind)) + (bytes((61, len(client))) + client if client else b"")
    return head + b"c\x82Sc" + options + b"\xff"


def parsed(answer):
    head = struct.unpack("!BBBB4sHH4s4s4s4s16s64s128s", answer[:236])
    options, at = {}, 240
    while answer[at] != 255:
        options[answer[at]] = answer[at + 2 : at + 2 + answer[at + 1]]
        at += 2 + answer[at + 1]
    return head, options


@pytest.mark.parametrize(("kind", "answer"), [(DISCOVER, b"\x02"), (REQUEST, b"\x05")])
def test_a_client_is_offered_an_address_and_gets_it(kind, answer):
    head, options = parsed(dhcp.reply(message(kind), {}))
    # The client finds its own by the transaction and its hardware address.
    assert (head[0], head[4], head[11][:6]) == (2, b"abcd", b"\x02\x00\x00\x00\x00\x01")
    assert socket.inet_ntoa(head[8]) == "10.79.1.1"
    assert options[53] == answer
    assert {key: socket.inet_ntoa(options[key]) for key in (1, 3, 54)} == {
        1: "255.255.0.0",
        3: "10.79.0.1",
        54: "10.79.0.1",
    }
    assert struct.unpack("!I", options[51])[0] >= 3600


def test_each_client_has_one_address_of_its_own():
    leases = {}

    def address(**client):
        return parsed(dhcp.reply(message(REQUEST, **client), leases))[0][8]

    clients = [{"mac": bytes((2, 0, 0, 0, 1, number))} for number in range(200)]
    clients += [{"client": b"one"}, {"client": b"two"}]
    first = [address(**client) for client in clients]
    assert len(set(first)) == len(clients)
    assert [address(**client) for client in clients] == first


def test_nothing_else_is_answered():
    assert dhcp.reply(message(RELEASE), {}) == b""
    assert dhcp.reply(message(DISCOVER)[:240] + b"\xff", {}) == b""


def test_garbage_raises_only_what_the_server_ignores():
    rng = random.Random(1)
    for _try in range(2000):
        data = bytearray(message(DISCOVER, client=b"x" * 9))
        for _flip in range(rng.randrange(1, 9)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with contextlib.suppress(struct.error, IndexError):
            dhcp.reply(bytes(data[: rng.randrange(len(data) + 1)]), {})
