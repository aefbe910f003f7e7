# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import socket
import threading

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import live, live_sources, netns, rtnetlink
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.gc_cache import Contents
from ansible_collections.podwire.cni.plugins.module_utils._host.gc_outcome import GcPlan, Settings
from ansible_collections.podwire.cni.plugins.module_utils._host.leases import packed
from ansible_collections.podwire.cni.plugins.module_utils._host.live import Answer, LiveSet, Namespace, Namespaces

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root enters namespaces")


def namespace(inode=1, cookie=7, own=False, ips=(), boot="b"):
    found = Namespace({"boot_id": boot, "dev": 4, "inode": inode, "cookie": cookie}, "/path", "ns%d" % inode, own)
    found.addresses = {packed(ip): (2, 24) for ip in ips}
    return found


def test_an_address_is_found_whatever_its_form():
    found = Namespaces([namespace(1, own=True, ips=["10.1.0.1"]), namespace(2, ips=["10.1.0.2", "fd00::2"])])
    assert found.holder("10.1.0.2/24").name == "ns2"
    assert found.holder("fd00:0::0002").name == "ns2"
    assert found.holder("10.1.0.1").own
    assert found.holder("10.1.0.3") is None
    assert found.holder("no address") is None


def test_a_namespace_lives_if_inode_boot_and_cookie_are_the_same():
    found = Namespaces([namespace(1, cookie=7)])
    same = {"boot_id": "b", "dev": 4, "inode": 1, "cookie": 7}
    assert found.alive(same) is not None
    assert found.alive(dict(same, cookie=None)) is not None
    assert found.alive(dict(same, cookie=8)) is None
    assert found.alive(dict(same, boot_id="other")) is None
    assert found.alive(dict(same, inode=2)) is None
    assert found.alive(None) is None


def test_a_live_set_knows_who_said_what():
    answers = [
        Answer("cache", {"web": frozenset(["eth0"])}),
        Answer("podman", {"db": None}, count=3, asked="podman ps"),
    ]
    found = LiveSet(answers, {"cache": "x", "podman": "y", "nomad": "z"}, Namespaces([]), "nomad was not asked")
    assert (found.owner("web"), found.owner("db"), found.owner("other")) == ("cache", "podman", "")
    assert found.has("web", "eth0") and not found.has("web", "eth1") and found.has("db", "eth9")
    assert list(found.pairs()) == [("web", "eth0")]
    assert not found.complete and not found.empty
    assert [(row["source"], row["containers"]) for row in found.rows()] == [
        ("cache", 1),
        ("nomad", None),
        ("podman", 3),
    ]


@root_only
def test_namespaces_of_processes_and_threads_are_read():
    found = live.read_namespaces(with_links=True)
    assert found.host is not None
    assert found.holder("127.0.0.1") is not None or not found.host.addresses
    assert any(link.name == "lo" for link in found.host.links.values())


@root_only
def test_a_namespace_that_only_a_path_leads_to_is_read():
    ready, done = threading.Event(), threading.Event()
    numbers = []

    def hold():
        netns.unshare()
        numbers.append(threading.get_native_id())
        ready.set()
        done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait()
    try:
        path = "/proc/%d/task/%d/ns/net" % (os.getpid(), numbers[0])
        # A process' own main thread is somewhere else.
        found = live.read_namespaces([path, "/etc/passwd", "/nowhere"])
        here = found.at(path)
        assert here is not None and not here.own and here.name == path
        assert here.addresses == {}
        assert live.read_namespaces().at(path) is None
    finally:
        done.set()
        thread.join()


def test_namespaces_that_a_process_holds_open_are_found():
    before = list(live._held(str(os.getpid())))
    with open("/proc/self/ns/net") as held, open("/proc/self/ns/mnt"), open(os.devnull):
        path = "/proc/%d/fd/%d" % (os.getpid(), held.fileno())
        found = list(live._held(str(os.getpid())))
        assert [entry for entry in found if entry not in before] == [(os.fstat(held.fileno()).st_ino, path)]
    assert list(live._held("0")) == []


@root_only
def test_a_namespace_that_is_only_held_open_is_read():
    fds = []

    def hold():
        netns.unshare()
        fds.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()
    try:
        here = live.read_namespaces().at("/proc/self/fd/%d" % fds[0])
        assert here is not None and not here.own
        assert "holds open" in here.name
    finally:
        os.close(fds[0])


def test_mounts_of_namespaces_are_found(tmp_path, monkeypatch):
    text = (
        "100 90 0:4 net:[4026532281] /run/netns/a\\040b rw shared:1 - nsfs nsfs rw\n"
        "101 90 0:4 mnt:[4026532282] /run/other rw - nsfs nsfs rw\n"
        "102 90 8:1 / / rw - ext4 /dev/sda1 rw\n"
    )
    real_open = open

    def fake(path, *arguments, **more):
        if path == "/proc/7/mountinfo":
            (tmp_path / "mountinfo").write_text(text)
            path = tmp_path / "mountinfo"
        return real_open(path, *arguments, **more)

    monkeypatch.setattr("builtins.open", fake)
    assert list(live._mounted("7")) == [(4026532281, "/run/netns/a b")]
    assert list(live._mounted("0")) == []


def test_messages_of_the_kernel_that_are_cut_are_refused():
    with pytest.raises(HostError) as caught:
        list(rtnetlink._messages(rtnetlink._HEADER.pack(100, 3, 0, 1, 0)))
    assert caught.value.code == "kernel_unreadable"
    assert rtnetlink._attributes(b"\x02\0\x01\0") == {}


def test_own_addresses_are_those_that_a_socket_can_bind():
    for raw in rtnetlink.addresses():
        if raw[:1] == b"4":
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
                probe.bind((socket.inet_ntoa(raw[1:]), 0))


@pytest.fixture
def runtimes(monkeypatch):
    """Sources by name: evidence and answer; nothing else is on the host."""
    found = {}

    def runtime(name):
        def ask():
            if isinstance(found[name], HostError):
                raise found[name]
            return found[name]

        return live_sources.Runtime(lambda: "a socket" if name in found else None, ask)

    monkeypatch.setattr(live_sources, "RUNTIMES", {name: runtime(name) for name in ("containerd", "podman", "nomad")})
    monkeypatch.setattr(live_sources, "_OTHERS", {})
    monkeypatch.setattr(live_sources, "read_namespaces", lambda paths, with_links: Namespaces([]))
    return found


def find(**options):
    return live_sources.find(Settings("/c", ["/b"], "/cache", **options), Contents([]), GcPlan())


def test_every_source_that_is_found_is_asked(runtimes):
    runtimes["podman"] = Answer("podman", {"db": None})
    found = find()
    assert found.complete and found.owner("db") == "podman"
    assert sorted(found.found) == ["netns", "podman"]


def test_a_source_that_cannot_be_asked_is_an_error(runtimes):
    runtimes["podman"] = HostError("no", code="source_unusable")
    with pytest.raises(HostError) as caught:
        find()
    assert caught.value.code == "source_unusable"


def test_fewer_sources_than_found_are_not_complete(runtimes):
    runtimes["podman"] = HostError("no", code="source_unusable")
    found = find(keep_from=["netns"])
    assert not found.complete and "podman" in found.why
    assert not find(keep_from=[], keep={"web": None}).complete
    assert find(keep_from=["netns", "cache"], keep={"web": None}).why.startswith("podman")


def test_a_source_that_is_named_and_not_there_is_missing(runtimes):
    with pytest.raises(HostError) as caught:
        find(keep_from=["nomad"])
    assert caught.value.code == "missing_source"
    plan = GcPlan()
    settings = Settings("/c", ["/b"], "/cache", keep_from=["nomad", "netns"], check_mode=True)
    assert live_sources.find(settings, Contents([]), plan).complete
    assert plan.warnings[0][0] == "missing_source"


def test_a_runtime_that_is_no_source_makes_the_set_incomplete(runtimes, monkeypatch, tmp_path):
    path = str(tmp_path / "crio.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        monkeypatch.setattr(live_sources, "_OTHERS", {"CRI-O": path})
        found = find()
        assert not found.complete and "CRI-O" in found.why
        assert "CRI-O" in live_sources.other_runtime(found)
