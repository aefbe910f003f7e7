# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import threading

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import netns
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError

OWN = "/proc/self/ns/net"


@pytest.fixture
def _stay(monkeypatch):
    """Entering the own namespace changes nothing, but needs root."""
    monkeypatch.setattr(netns, "_setns", lambda fd: None)


@pytest.mark.usefixtures("_stay")
def test_the_own_namespace_is_seen_with_its_interfaces():
    seen = netns.look_at(OWN, "lo")
    assert seen.identity["inode"] == os.stat(OWN).st_ino
    assert seen.identity["boot_id"]
    assert seen.links == {"lo"}
    assert netns.look({OWN: ["lo", "nosuchif0"]})[OWN].links == {"lo"}


def test_what_is_no_namespace_has_no_identity_and_is_not_opened(tmp_path, monkeypatch):
    plain = tmp_path / "leftover"
    plain.write_text("")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(netns, "_setns", lambda fd: pytest.fail("entered"))
    paths = [str(plain), str(tmp_path / "pipe"), str(tmp_path / "nothing"), str(tmp_path)]
    for seen in netns.look(dict.fromkeys(paths, ("lo",))).values():
        assert seen.identity is None
        assert not seen.links


def test_a_namespace_of_another_kind_is_none(monkeypatch):
    def invalid(fd):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(netns, "_setns", invalid)
    assert netns.look_at("/proc/self/ns/mnt", "lo").identity is None


def test_not_being_allowed_is_said(monkeypatch):
    def forbidden(fd):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(netns, "_setns", forbidden)
    with pytest.raises(HostError) as caught:
        netns.look_at(OWN, "lo")
    assert caught.value.code == "netns_unusable"
    assert OWN in caught.value.msg


def identity(**changed):
    return dict({"boot_id": "b", "dev": 4, "inode": 7, "cookie": 9}, **changed)


def test_a_namespace_is_the_same_only_in_the_same_boot_with_the_same_inode_and_cookie():
    assert netns.same(identity(), identity())
    assert netns.same(identity(cookie=None), identity())
    for changed in ({"boot_id": "c"}, {"inode": 8}, {"dev": 5}, {"cookie": 10}):
        assert not netns.same(identity(), identity(**changed))
    assert not netns.same(None, None)


def test_names_are_tested():
    netns.check_name("web.1_a-b@c", "names[0]")
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
    def work():
        raise kind("so")

    with pytest.raises(kind, match="so"):
        netns.apart(work)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root enters namespaces")
def test_only_the_thread_leaves_its_namespace():
    def work():
        netns.unshare()
        return os.stat("/proc/thread-self/ns/net").st_ino

    here = os.stat("/proc/thread-self/ns/net").st_ino
    assert netns.apart(work) != here
    assert os.stat("/proc/thread-self/ns/net").st_ino == here


@pytest.mark.parametrize("text", ["/run/netns/a\0b", "\0", "/run/netns/\ud800"])
def test_paths_and_names_with_nul_or_without_utf8_lead_nowhere(text):
    seen = netns.look({text: (text,), "/proc/self/ns/net": ("lo", text)})
    assert seen[text].identity is None
    assert seen["/proc/self/ns/net"].links == {"lo"}
