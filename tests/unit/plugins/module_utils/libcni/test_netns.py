# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Namespaces, links, addresses and routes, as pyroute2 sees them."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest

from ansible_collections.podwire.cni.plugins.module_utils import libcni
from ansible_collections.podwire.cni.plugins.module_utils.libcni import netns

pyroute2 = pytest.importorskip("pyroute2")


def own():
    return os.stat("/proc/thread-self/ns/net").st_ino


@pytest.fixture
def blue(tmp_path, request):
    """The path of a network namespace."""
    path = tmp_path / request.fixturename
    path.touch()
    subprocess.run(["unshare", f"--net={path}", "true"], check=True)
    yield str(path)
    subprocess.run(["umount", path], check=True)


# Another one, which stands for the host's.
host = blue


@pytest.fixture
def here(blue):
    """The test is in the namespace."""
    with netns.inside(blue):
        netns.set_up("lo")
        yield blue


def seen():
    """What pyroute2 sees in this namespace: links, addresses, routes."""
    with pyroute2.IPRoute() as kernel:
        names = {item["index"]: item.get_attr("IFLA_IFNAME") for item in kernel.get_links()}
        links = {
            item.get_attr("IFLA_IFNAME"): (item.get_attr("IFLA_ADDRESS"), item.get_attr("IFLA_MTU"), item["state"])
            for item in kernel.get_links()
        }
        addresses = {
            (names[item["index"]], f"{item.get_attr('IFA_ADDRESS')}/{item['prefixlen']}") for item in kernel.get_addr()
        }
        routes = {
            (
                names.get(item.get_attr("RTA_OIF")),
                f"{item.get_attr('RTA_DST') or 'default'}/{item['dst_len']}",
                item.get_attr("RTA_GATEWAY"),
                item.get_attr("RTA_PRIORITY"),
                item.get_attr("RTA_TABLE"),
            )
            for item in kernel.get_routes(family=2)
            if item.get_attr("RTA_TABLE") != 255
        }
    return links, addresses, routes


def test_a_thread_goes_in_and_comes_back(blue):
    before = own()
    with netns.inside(blue):
        assert own() == os.stat(blue).st_ino != before
        others = []
        thread = threading.Thread(target=lambda: others.append(own()))
        thread.start()
        thread.join()
        assert others == [own()]
    assert own() == before
    with pytest.raises(ZeroDivisionError), netns.inside(blue):
        _value = 1 / 0
    assert own() == before
    descriptor = os.open(blue, os.O_RDONLY)
    try:
        with netns.inside(descriptor):
            assert own() == os.stat(blue).st_ino
    finally:
        os.close(descriptor)
    assert own() == before


def test_what_cannot_be_entered(tmp_path):
    before = own()
    missing, file = tmp_path / "missing", tmp_path / "file"
    file.touch()
    cases = [
        (
            str(missing),
            True,
            f'failed to open netns "{missing}": failed to Statfs "{missing}": no such file or directory',
        ),
        (str(file), True, f'failed to open netns "{file}": "{file}" is not a network namespace'),
        ("/proc/self/ns/mnt", False, "error switching to ns /proc/self/ns/mnt: invalid argument"),
        ("a\0b", False, "embedded null"),
    ]
    for path, gone, message in cases:
        with pytest.raises(libcni.NamespaceError) as caught, netns.inside(path):
            pytest.fail("entered")
        assert (caught.value.gone, message in str(caught.value)) == (gone, True), str(caught.value)
    assert own() == before


def test_who_cannot_go_back_ends(blue, tmp_path):
    code = f"""
import sys; sys.path.insert(0, {os.path.dirname(os.path.dirname(libcni.__file__))!r})
from libcni import kernel, netns
with netns.inside({blue!r}):
    def refuse(fd):
        raise OSError(1, "Operation not permitted")
    netns.setns = refuse
open({str(tmp_path / "went on")!r}, "w")
"""
    done = subprocess.run(["python3", "-I", "-S", "-B", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, (tmp_path / "went on").exists()) == (1, False)
    assert done.stderr == f"cannot leave the network namespace {blue}: Operation not permitted\n"


def test_a_veth_pair(blue, host):
    with netns.inside(blue):
        link, other = netns.make_veth("eth0", host, mtu=1400, mac="02:00:00:00:00:07")
        assert (link.name, link.kind, link.mtu, link.mac, link.up) == ("eth0", "veth", 1400, "02:00:00:00:00:07", True)
        assert seen()[0]["eth0"] == ("02:00:00:00:00:07", 1400, "up")
        with pytest.raises(libcni.LinkError, match=r"container veth name provided \(eth0\) already exists"):
            netns.make_veth("eth0", host)
        with pytest.raises(libcni.LinkError, match=r"peer provided .* already exists"):
            netns.make_veth("eth1", host, host_name=other)
        assert "eth1" not in seen()[0]
    with netns.inside(host):
        assert other.startswith("veth")
        assert (seen()[0][other][1:], netns.link(other).peer) == ((1400, "up"), link.index)
        assert netns.delete_link(other) is True
        assert netns.delete_link(other) is False
    with netns.inside(blue):
        assert "eth0" not in seen()[0]


def test_a_free_name_is_found(blue, host, monkeypatch):
    names = iter([b"\0\0\0\1"] * 4 + [b"\0\0\0\2"])
    monkeypatch.setattr(netns.os, "urandom", lambda size: next(names))
    with netns.inside(blue):
        assert netns.make_veth("eth0", host)[1] == "veth00000001"
        assert netns.make_veth("eth1", host)[1] == "veth00000002"
        monkeypatch.setattr(netns.os, "urandom", lambda size: b"\0\0\0\1")
        with pytest.raises(libcni.LinkError, match="failed to find a unique veth name"):
            netns.make_veth("eth2", host)


def test_a_link_goes_down_and_up(here, host):
    netns.make_veth("eth0", host)
    for up, state in ((False, "down"), (True, "up")):
        netns.set_up("eth0", up)
        assert (seen()[0]["eth0"][2], netns.link("eth0").up) == (state, up)
    with pytest.raises(libcni.LinkError, match='failed to lookup "none": Link not found') as caught:
        netns.set_up("none")
    assert caught.value.gone is True
    with pytest.raises(libcni.LinkError, match="address x: invalid MAC address"):
        netns.make_veth("eth1", host, mac="x")


def test_addresses_and_routes(here, host):
    netns.make_veth("eth0", host)
    for address in ("10.1.0.2/24", "fd00::2/64"):
        netns.add_address("eth0", address)
    assert {("eth0", "10.1.0.2/24"), ("eth0", "fd00::2/64")} <= seen()[1]
    assert set(netns.addresses("eth0")) >= {"10.1.0.2/24", "fd00::2/64"}
    with pytest.raises(libcni.LinkError, match=r'failed to add IP addr 10.1.0.2/24 to "eth0": file exists'):
        netns.add_address("eth0", "10.1.0.2/24")
    with pytest.raises(libcni.CNIError, match=r"invalid CIDR address: x"):
        netns.add_address("eth0", "x")
    wanted = [
        libcni.Route("0.0.0.0/0", "10.1.0.1"),
        libcni.Route("10.2.0.0/16", "10.1.0.1", mtu=1300, advmss=1200, priority=7),
        libcni.Route("10.3.0.9/32"),
        libcni.Route("10.4.0.0/16", "10.1.0.1", table=1000),
        libcni.Route("fd01::/64", "fd00::1", priority=5),
        libcni.Route("::/0", "fd00::1"),
    ]
    for route in wanted:
        assert netns.add_route(route, "eth0") is True
        assert netns.has_route(route, "eth0")
        assert netns.add_route(route, "eth0") is False
    assert seen()[2] >= {
        ("eth0", "default/0", "10.1.0.1", None, 254),
        ("eth0", "10.2.0.0/16", "10.1.0.1", 7, 254),
        ("eth0", "10.3.0.9/32", None, None, 254),
        ("eth0", "10.4.0.0/16", "10.1.0.1", None, 1000),
    }
    assert netns.has_route(libcni.Route("10.2.0.0/16", "10.1.0.1", mtu=1400), "eth0") is False
    assert netns.has_route(libcni.Route("10.2.0.0/16"), "eth0") is False
    text = "failed to add route '10.9.0.0/16 via 10.77.0.1 dev eth0': network is unre"
    with pytest.raises(libcni.CNIError, match=text):
        netns.add_route(libcni.Route("10.9.0.0/16", "10.77.0.1"), "eth0")
    with pytest.raises(libcni.CNIError, match="another route has its place"):
        netns.add_route(libcni.Route("10.2.0.0/16", "10.1.0.3", priority=7), "eth0")
    with pytest.raises(libcni.CNIError, match=r"invalid gateway of the route to 10.9.0.0/16: fd00::1"):
        netns.add_route(libcni.Route("10.9.0.0/16", "fd00::1"), "eth0")
    for route in wanted:
        assert netns.delete_route(route, "eth0") is True
        assert netns.delete_route(route, "eth0") is False
        assert not netns.has_route(route, "eth0")
    assert netns.delete_route(libcni.Route("10.1.0.0/24")) is True
