# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import subprocess
import threading

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import netns
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils.libcni import kernel
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with, raising

OWN = "/proc/self/ns/net"


@pytest.fixture
def _stay(monkeypatch):
    """Entering the own namespace changes nothing, but needs root."""
    monkeypatch.setattr(netns, "setns", lambda fd: None)


@pytest.mark.usefixtures("_stay")
def test_the_own_namespace_is_seen_with_its_interfaces():
    seen = netns.inspect_path(OWN, "lo")
    assert seen.identity["inode"] == os.stat(OWN).st_ino
    assert seen.identity["boot_id"]
    assert seen.links == {"lo"}
    assert netns.inspect_paths({OWN: ["lo", "nosuchif0"]})[OWN].links == {"lo"}


def test_what_is_no_namespace_has_no_identity_and_is_not_opened(tmp_path, monkeypatch):
    plain = tmp_path / "leftover"
    plain.write_text("")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(netns, "setns", lambda fd: pytest.fail("entered"))
    paths = [str(plain), str(tmp_path / "pipe"), str(tmp_path / "nothing"), str(tmp_path)]
    for seen in netns.inspect_paths(dict.fromkeys(paths, ("lo",))).values():
        assert seen.identity is None
        assert not seen.links


def test_a_namespace_of_another_kind_is_none(monkeypatch):
    monkeypatch.setattr(netns, "setns", raising(OSError(22, "Invalid argument")))
    assert netns.inspect_path("/proc/self/ns/mnt", "lo").identity is None


def test_not_being_allowed_is_said(monkeypatch):
    monkeypatch.setattr(netns, "setns", raising(OSError(1, "Operation not permitted")))
    with fails_with("netns_unusable") as caught:
        netns.inspect_path(OWN, "lo")
    assert OWN in caught.value.msg


def identity(**changed):
    return dict({"boot_id": "b", "dev": 4, "inode": 7, "cookie": 9}, **changed)


def test_a_namespace_is_the_same_only_in_the_same_boot_with_the_same_inode_and_cookie():
    assert netns.same(identity(), identity())
    assert netns.same(identity(cookie=None), identity())
    for changed in ({"boot_id": "c"}, {"inode": 8}, {"dev": 5}, {"cookie": 10}):
        assert not netns.same(identity(), identity(**changed))
    assert not netns.same(identity(cookie=0), identity())
    for nothing in (None, {}):
        assert not netns.same(nothing, nothing)
        assert not netns.same(nothing, identity())
        assert not netns.same(identity(), nothing)


def test_names_are_tested():
    netns.check_name("web.1_a-b@c", "names[0]")
    netns.check_name("x" * 255, "names[0]")
    for name in ("", ".", "..", "a/b", "-a", "a b", "a\n", "a\x7f", "x" * 256):
        with pytest.raises(HostError):
            netns.check_name(name, "names[0]")


def test_what_is_done_apart_leaves_no_thread_and_hands_over_what_came_of_it():
    threads = []

    def work():
        threads.append(threading.current_thread())
        return 7

    assert netns.apart(work) == 7
    assert threads[0] is not threading.current_thread()
    assert not threads[0].is_alive()


@pytest.mark.parametrize("kind", [HostError, KeyboardInterrupt])
def test_what_fails_apart_fails_here(kind):
    with pytest.raises(kind, match="so"):
        netns.apart(raising(kind("so")))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root enters namespaces")
def test_only_the_thread_leaves_its_namespace():
    def work():
        kernel.unshare()
        return os.stat("/proc/thread-self/ns/net").st_ino

    here = os.stat("/proc/thread-self/ns/net").st_ino
    assert netns.apart(work) != here
    assert os.stat("/proc/thread-self/ns/net").st_ino == here


@pytest.mark.parametrize("text", ["/run/netns/a\0b", "\0", "/run/netns/\ud800"])
def test_paths_and_names_with_nul_or_without_utf8_lead_nowhere(text):
    seen = netns.inspect_paths({text: (text,), "/proc/self/ns/net": ("lo", text)})
    assert seen[text].identity is None
    assert seen["/proc/self/ns/net"].links == {"lo"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root enters namespaces")
def test_a_namespace_is_entered_only_if_it_is_still_the_known_one():
    status = os.stat(OWN)
    other = os.stat("/proc/self/ns/mnt")
    assert netns.apart(lambda: netns.enter_known(OWN, status)) is True
    assert netns.apart(lambda: netns.enter_known(OWN, other)) is False
    assert netns.apart(lambda: netns.enter_known("/nowhere", status)) is False


@pytest.fixture
def containers():
    """Paths of two namespaces."""
    paths = ["/run/netns/unit-one", "/run/netns/unit-two"]
    for path in paths:
        subprocess.run(["ip", "netns", "add", os.path.basename(path)], check=True)
    yield paths
    for path in paths:
        subprocess.run(["ip", "netns", "delete", os.path.basename(path)], check=False, stderr=subprocess.DEVNULL)


def here():
    return os.stat("/proc/thread-self/ns/net").st_ino


def test_what_is_read_in_each_namespace(containers):
    paths = [*containers, "/nowhere", ""]
    assert netns.visit(map(netns.Netns, paths), here) == {path: os.stat(path).st_ino for path in containers}
    assert netns.inspect_paths({}) == {}


@pytest.mark.parametrize("path", [OWN, "/proc/1/ns/net", "link"])
def test_the_own_namespace_of_the_host_is_never_entered(path, tmp_path):
    if path == "link":
        path = str(tmp_path / "link")
        os.symlink("/proc/1/ns/net", path)
    assert netns.inspect_path(path, "lo").host
    for known in (None, netns.inspect_path(path, "lo").identity):
        with netns.Netns(path, known) as own:
            assert own.fd == -1
            assert not own.at_its_path
            assert netns.visit([own], here) == {}
            assert own.inspect(("lo",)).identity is None


def move(path, target):
    subprocess.run(["umount", "--lazy", path], check=True)
    subprocess.run(["mount", "--bind", target, path], check=True)


@pytest.mark.parametrize("target", ["/run/netns/unit-two", OWN])
def test_a_namespace_that_is_kept_open_stays_the_same_whatever_its_path_leads_to(containers, target):
    path = containers[0]
    inode = os.stat(path).st_ino
    seen = netns.inspect_path(path, "lo")
    with netns.Netns(path) as kept:
        assert kept.inspect(("lo", "nosuchif0")).links == {"lo"}
        assert netns.same(kept.identity, seen.identity)
        assert kept.at_its_path
        move(path, target)
        assert not kept.at_its_path
        assert netns.visit([kept], here) == {path: inode}
        with fails_with("netns_replaced", f"cannot do it: {path} "):
            kept.require("cannot do it")
    # It is not opened again by its path.
    assert netns.visit([kept, netns.Netns(path, seen.identity)], here) == {}
    with netns.Netns(path, seen.identity) as gone:
        assert gone.fd == -1


def test_a_namespace_with_the_inode_of_a_dead_one_is_another(containers):
    path = containers[0]
    identity = netns.inspect_path(path, "lo").identity
    assert netns.visit([netns.Netns(path, dict(identity, cookie=None))], here)
    assert not netns.visit([netns.Netns(path, dict(identity, cookie=identity["cookie"] + 1))], here)
    assert not netns.visit([netns.Netns(path, {})], here)


def test_too_many_open_files_do_not_make_a_namespace_look_gone(containers, monkeypatch):
    with monkeypatch.context() as full:
        full.setattr(os, "open", raising(OSError(24, "Too many open files")))
        with pytest.raises(HostError, match="Too many open files") as caught:
            netns.inspect_path(containers[0], "lo")
    assert caught.value.code == "netns_unusable"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root enters namespaces")
def test_a_python_without_these_calls_uses_the_c_library(monkeypatch):
    """As before 3.12."""
    for name in ("setns", "unshare"):
        monkeypatch.delattr(os, name, raising=False)

    def work():
        first = here()
        kernel.unshare()
        second = here()
        netns.enter_host()
        return first, second, here()

    first, second, back = netns.apart(work)
    assert back == first != second
    with pytest.raises(OSError, match="Invalid argument") as caught:
        kernel._call_libc("unshare", 0x1)
    assert caught.value.errno == 22


def test_what_the_kernel_does_not_tell(monkeypatch, tmp_path):
    def fail(*_arguments, **_keywords):
        raise OSError(2, "No such file or directory")

    assert netns.pid_namespace() == os.stat("/proc/1/ns/pid").st_ino
    assert len(netns.boot_id()) == 36
    with monkeypatch.context() as without:
        without.setattr("builtins.open", fail)
        assert netns.boot_id.__wrapped__() == ""
    with monkeypatch.context() as without:
        without.setattr(os, "stat", fail)
        assert netns.pid_namespace() == 0
    # A kernel before 5.14.
    monkeypatch.setattr(netns, "_SO_NETNS_COOKIE", 9999)
    assert netns._cookie() is None


def test_the_identity_has_all_that_tells_namespaces_apart():
    status = os.stat(OWN)
    found = netns.identity_here(status, "boot")
    assert set(found) == {"boot_id", "dev", "inode", "cookie", "processes"}
    assert (found["boot_id"], found["dev"], found["inode"]) == ("boot", status.st_dev, status.st_ino)
    assert found["processes"] == netns.pid_namespace()
