# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of the kernel and removed from it, and answers that a kernel seldom gives."""

from __future__ import annotations

import os
import socket
import struct
import subprocess

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import netlink, netns
from ansible_collections.podwire.cni.plugins.module_utils._host.addresses import packed
from ansible_collections.podwire.cni.plugins.module_utils.libcni import kernel
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with, raising

WORLD = """
link add br0 address 0a:00:00:00:00:01 type bridge
link add veth0 mtu 1450 type veth peer name veth1
link set veth0 master br0
link set br0 up
link set veth0 up
link set veth1 up
address add 10.1.0.1/24 dev br0
address add 10.2.0.1 peer 10.2.0.2/32 dev veth1
address add 10.9.0.1/24 dev veth0
address add fd00::1/64 dev br0 nodad
route add 10.3.0.0/16 via 10.1.0.9 metric 7
route add default via 10.1.0.8 src 10.1.0.1
route add 10.4.0.0/16 via 10.1.0.9 table 100
route add blackhole 10.5.0.0/16
route add 10.6.0.0/16 nexthop via 10.1.0.9 nexthop via 10.1.0.8
"""


@pytest.fixture
def world():
    """Return a function that runs another one in a namespace with a bridge, a veth, addresses and routes."""

    def run(read):
        def work():
            kernel.unshare()
            subprocess.run(["ip", "-batch", "-"], input=WORLD, text=True, check=True)
            return read()

        return netns.apart(work)

    return run


def test_links(world):
    links = {link.name: link for link in world(netlink.links).values()}
    assert set(links) == {"lo", "br0", "veth0", "veth1"}
    lo, bridge, veth0, veth1 = (links[name] for name in ("lo", "br0", "veth0", "veth1"))
    assert [link.kind for link in (lo, bridge, veth0, veth1)] == ["", "bridge", "veth", "veth"]
    assert [link.up for link in (lo, bridge, veth0, veth1)] == [False, True, True, True]
    assert (bridge.mac, lo.mac) == ("0a:00:00:00:00:01", "00:00:00:00:00:00")
    assert (veth0.mtu, veth0.master, veth0.link) == (1450, bridge.index, veth1.index)
    assert (veth1.link, veth1.master) == (veth0.index, 0)
    assert {(link.abroad, link.nsid) for link in links.values()} == {(False, -1)}


def test_the_other_end_in_another_namespace():
    def work():
        kernel.unshare()
        subprocess.run(["ip", "link", "add", "veth0", "type", "veth", "peer", "veth1"], check=True)
        with subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec cat"], stdin=-1, stdout=-1) as other:
            other.stdout.readline()
            subprocess.run(["ip", "link", "set", "veth1", "netns", str(other.pid)], check=True)
            links = {link.name: link for link in netlink.links().values()}
            there = netlink.namespace_exists(links["veth0"].nsid)
            other.stdin.close()
        return links, there

    links, there = netns.apart(work)
    assert set(links) == {"lo", "veth0"}
    assert (links["veth0"].abroad, links["veth0"].nsid, there) == (True, 0, True)


def test_a_namespace_without_a_number():
    assert netlink.namespace_exists(4242) is False


def test_addresses(world):
    def read():
        names = {link.index: link.name for link in netlink.links().values()}
        return {(raw, names[index], length) for raw, (index, length) in netlink.host_addresses().items()}

    found = world(read)
    # The address of the other side is not one of this side.
    assert {entry for entry in found if entry[0][:1] == b"4"} == {
        (packed("10.1.0.1"), "br0", 24),
        (packed("10.2.0.1"), "veth1", 32),
        (packed("10.9.0.1"), "veth0", 24),
    }
    assert (packed("fd00::1"), "br0", 64) in found


def test_routes(world):
    def read():
        return netlink.routes(), {link.name: link.index for link in netlink.links().values()}

    routes, index = world(read)
    found = {(route.raw, route.table): route for route in routes}
    assert found[packed("10.3.0.0"), 254] == (packed("10.3.0.0"), 16, index["br0"], True, 254, True, 3)
    assert found[packed("0.0.0.0"), 254] == (packed("0.0.0.0"), 0, index["br0"], True, 254, True, 3)
    assert (packed("10.4.0.0"), 100) in found
    assert found[packed("10.5.0.0"), 254][2:6] == (0, False, 254, False)
    assert found[packed("10.6.0.0"), 254][2:4] == (0, True)
    assert found[packed("10.1.0.0"), 254].remote is False
    assert found[packed("10.1.0.1"), netlink.LOCAL_TABLE].unicast is False
    assert found[packed("fd00::"), 254].length == 64


def test_an_interface_is_removed_by_number_and_name(world):
    def work():
        index = {link.name: link.index for link in netlink.links().values()}
        netlink.delete_link(index["veth0"], "veth1")
        netlink.delete_link(index["veth0"] + 1000, "veth0")
        before = {link.name for link in netlink.links().values()}
        netlink.delete_link(index["veth0"], "veth0")
        return before, {link.name for link in netlink.links().values()}

    assert world(work) == ({"lo", "br0", "veth0", "veth1"}, {"lo", "br0"})


def test_an_interface_that_cannot_be_removed(world):
    def work():
        (index,) = (link.index for link in netlink.links().values() if link.name == "lo")
        netlink.delete_link(index, "lo")

    with fails_with("link_not_removed", "cannot remove the interface lo: "):
        world(work)


# ---- answers of the kernel


def message(kind, payload=b"", flags=0, length=None):
    data = kernel.HEADER.pack(16 + len(payload) if length is None else length, kind, flags, 1, 0) + payload
    return data + bytes(-len(data) % 4)


DONE = message(3, struct.pack("=i", 0))
INTERRUPTED = 0x10


class Socket:
    """A socket that gives these answers, one after the other."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.sent = []

    def send(self, data):
        self.sent.append(data)

    def recv(self, size):
        answer = self.answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    def settimeout(self, seconds):
        self.timeout = seconds

    def close(self):
        pass


@pytest.fixture
def answers(monkeypatch):
    def give(*data):
        made = Socket(*data)
        monkeypatch.setattr(netlink.socket, "socket", lambda *_arguments: made)
        return made

    return give


def unreadable(match):
    with fails_with("kernel_unreadable", match) as caught:
        netlink._dump(1, 2000, b"")
    return caught.value


def test_messages_come_in_several_parts(answers):
    answers(message(2000, b"one") + message(2001, b"of another kind"), message(2000, b"second"), DONE)
    assert netlink._dump(1, 2000, b"") == [b"one", b"second"]


def test_what_changes_meanwhile_is_asked_for_again(answers):
    half = message(2000, b"old", INTERRUPTED) + DONE
    made = answers(half, message(2000, b"new") + DONE)
    assert netlink._dump(1, 2000, b"xyz") == [b"new"]
    assert made.sent == [kernel.HEADER.pack(19, 1, 0x301, 1, 0) + b"xyz"] * 2
    # The last part may be the one that tells.
    answers(message(2000, b"old"), message(3, struct.pack("=i", 0), INTERRUPTED), message(2000, b"new") + DONE)
    assert netlink._dump(1, 2000, b"") == [b"new"]


def test_what_never_stands_still(answers):
    made = answers(*[message(2000, b"old", INTERRUPTED) + DONE] * 5)
    unreadable("change faster than they can be read; run again")
    assert len(made.sent) == 5


@pytest.mark.parametrize("kind", [2, 3])
def test_errors_of_the_kernel(answers, kind):
    answers(message(2000, b"one"), message(kind, struct.pack("=i", -1)))
    error = unreadable("cannot query the kernel: Operation not permitted")
    assert isinstance(error.__cause__, OSError)
    assert error.__cause__.errno == 1


def test_a_kernel_that_does_not_answer(answers):
    answers(socket.timeout("timed out"))
    unreadable("cannot query the kernel: timed out")


def test_no_socket(monkeypatch):
    monkeypatch.setattr(netlink.socket, "socket", raising(OSError(97, "Address family not supported by protocol")))
    unreadable("cannot open a netlink socket: Address family not supported")


def test_a_socket_that_waits_ends():
    with netlink.Dumps() as dumps:
        assert dumps._socket.gettimeout() == 10
        assert os.get_inheritable(dumps._socket.fileno()) is False
    assert dumps._socket.fileno() == -1


def test_a_change_is_acknowledged(answers):
    made = answers(message(2, struct.pack("=i", 0)))
    with netlink.Dumps() as dumps:
        dumps.change(16, b"xyz", 0x400)
    assert made.sent == [kernel.HEADER.pack(19, 16, 0x405, 1, 0) + b"xyz"]
    answers(message(2, struct.pack("=i", -17)))
    with netlink.Dumps() as dumps, pytest.raises(OSError, match="File exists") as caught:
        dumps.change(16, b"")
    assert caught.value.errno == 17


@pytest.mark.parametrize("length", [0, 15, 17, 1000])
def test_an_answer_that_is_cut_short(length):
    with pytest.raises(OSError, match="cut short"):
        list(kernel.messages(message(2000, length=length)))


def test_messages_are_aligned():
    data = message(7, b"abcde", 3) + message(8)
    assert list(kernel.messages(data)) == [(7, 3, b"abcde"), (8, 0, b"")]
    assert list(kernel.messages(data + b"rest")) == [(7, 3, b"abcde"), (8, 0, b"")]


def test_attributes():
    def attribute(kind, value):
        data = struct.pack("=HH", 4 + len(value), kind) + value
        return data + bytes(-len(data) % 4)

    data = b"skip" + attribute(1, b"abc") + attribute(0x8002, b"nested") + attribute(3, b"")
    assert netlink.attributes_in(data, 4) == {1: b"abc", 2: b"nested", 3: b""}
    # One that is too short to be one ends the list.
    assert netlink.attributes_in(attribute(1, b"abcd") + struct.pack("=HH", 3, 9), 0) == {1: b"abcd"}
    assert netlink.attributes_in(b"", 0) == netlink.attributes_in(b"abc", 0) == {}
    assert [kernel.decode_text(raw) for raw in (b"eth0\0", None, b"")] == ["eth0", "", ""]
    assert [kernel.number_in(raw) for raw in (struct.pack("=I", 7), None, b"", b"abc")] == [7, 0, 0, 0]


def answer_of(monkeypatch, *payloads):
    monkeypatch.setattr(netlink, "_dump", lambda *_arguments: list(payloads))


def test_other_families_are_left_out(monkeypatch):
    address = struct.pack("=HH", 8, 2) + socket.inet_aton("10.0.0.1")
    answer_of(
        monkeypatch,
        netlink._ADDRESS.pack(socket.AF_INET, 24, 0, 0, 3) + address,
        netlink._ADDRESS.pack(99, 24, 0, 0, 3) + address,
        netlink._ADDRESS.pack(socket.AF_INET, 24, 0, 0, 3),
    )
    assert netlink.host_addresses() == {packed("10.0.0.1"): (3, 24)}
    destination = struct.pack("=HH", 8, 1) + socket.inet_aton("10.0.0.0")
    answer_of(
        monkeypatch,
        netlink._ROUTE.pack(99, 24, 0, 0, 254, 0, 0, 1, 0) + destination,
        netlink._ROUTE.pack(socket.AF_INET, 24, 0, 0, 254, 0, 0, 1, 0),
        netlink._ROUTE.pack(socket.AF_INET, 24, 0, 0, 254, 0, 0, 1, 0) + destination,
    )
    (route,) = netlink.routes()
    assert (route.raw, route.length) == (packed("10.0.0.0"), 24)
