# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import subprocess
import threading
import time

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.addresses import packed
from ansible_collections.podwire.cni.plugins.module_utils._host.containers import namespaces
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.namespaces import Namespace, Namespaces
from ansible_collections.podwire.cni.plugins.module_utils.libcni import kernel
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root enters namespaces")
NSFS = os.stat("/proc/self/ns/net").st_dev


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


def wait_until_gone(path):
    """Wait for the kernel, to which a thread belongs for a moment after it has been joined."""
    while os.path.exists(path):
        time.sleep(0.01)


@root_only
def test_namespaces_of_processes_and_threads_are_read():
    found = namespaces.read_namespaces()
    assert found.host is not None
    assert found.holder("127.0.0.1") is not None or not found.host.addresses
    assert any(link.name == "lo" for link in found.host.links.values())


def in_a_namespace_of_its_own(work):
    """Run *work* in a thread that is in a network namespace which nothing else is in."""

    def run():
        kernel.unshare()
        work()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@root_only
def test_a_namespace_that_only_a_thread_is_in_is_read():
    ready, done = threading.Event(), threading.Event()
    numbers = []

    def wait():
        numbers.append(threading.get_native_id())
        ready.set()
        done.wait()

    thread = in_a_namespace_of_its_own(wait)
    ready.wait()
    try:
        path = "/proc/%d/task/%d/ns/net" % (os.getpid(), numbers[0])
        here = namespaces.read_namespaces(["/etc/passwd", "/nowhere"]).at(path)[0]
        assert here is not None and not here.own
        assert here.name.startswith("thread %d of process %d (" % (numbers[0], os.getpid()))
        assert here.addresses == {}
        named = namespaces.read_namespaces([path]).at(path)[0]
        assert named is not None and named.name == path
    finally:
        done.set()
        thread.join()


@root_only
@pytest.mark.parametrize("unmounted", [False, True])
def test_a_namespace_that_is_only_held_open_is_read(tmp_path, unmounted):
    fds, ids = [], []
    name = tmp_path / "name"
    name.touch()

    def hold():
        ids.append(threading.get_native_id())
        if unmounted:
            # As a runtime holds one whose name was taken away meanwhile.
            source = "/proc/%d/task/%d/ns/net" % (os.getpid(), threading.get_native_id())
            subprocess.run(["mount", "--bind", source, name], check=True)
            fds.append(os.open(name, os.O_RDONLY))
            subprocess.run(["umount", "--lazy", name], check=True)
        else:
            fds.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))

    in_a_namespace_of_its_own(hold).join()
    wait_until_gone("/proc/self/task/%d" % ids[0])
    try:
        assert os.readlink("/proc/self/fd/%d" % fds[0]).startswith("/" if unmounted else "net:[")
        here = namespaces.read_namespaces().at("/proc/self/fd/%d" % fds[0])[0]
        assert here is not None and not here.own
        assert "holds open" in here.name
    finally:
        os.close(fds[0])


@root_only
def test_a_namespace_is_read_though_the_first_way_to_it_goes_away_meanwhile(monkeypatch):
    ready, done = threading.Event(), threading.Event()
    fds, numbers, ends = [], [], []

    def wait():
        fds.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))
        numbers.append(threading.get_native_id())
        ready.set()
        done.wait()

    thread = in_a_namespace_of_its_own(wait)
    ready.wait()
    first = "/proc/%d/task/%d/ns/net" % (os.getpid(), numbers[0])
    real = namespaces.enter_known

    def enter_known(path, status):
        if path == first:
            done.set()
            thread.join()
            wait_until_gone(path)
            ends.append(path)
        return real(path, status)

    monkeypatch.setattr(namespaces, "enter_known", enter_known)
    try:
        here = namespaces.read_namespaces().at("/proc/self/fd/%d" % fds[0])[0]
        assert ends == [first]
        assert here is not None and "holds open" in here.name
    finally:
        done.set()
        os.close(fds[0])


@root_only
def test_namespaces_that_change_hands_without_end_are_an_error(monkeypatch):
    monkeypatch.setattr(namespaces, "enter_known", lambda path, status: False)
    with fails_with("netns_unusable") as error:
        namespaces.read_namespaces()
    assert "run again" in error.value.msg


def test_only_network_namespaces_that_are_held_open_count():

    def all_held():
        return list(namespaces._held(namespaces._open_files(str(os.getpid())), NSFS))

    before = all_held()
    with open("/proc/self/ns/net") as held, open("/proc/self/ns/mnt"), open(os.devnull):
        path = "/proc/%d/fd/%d" % (os.getpid(), held.fileno())
        found = all_held()
        assert [entry for entry in found if entry not in before] == [(os.fstat(held.fileno()).st_ino, path)]
    assert namespaces._open_files("0") == {}


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
    assert list(namespaces._mounted("7")) == [(4026532281, "/run/netns/a b")]
    assert list(namespaces._mounted("0")) == []
