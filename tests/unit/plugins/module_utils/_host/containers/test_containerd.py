# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import socket

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import commands
from ansible_collections.podwire.cni.plugins.module_utils._host.containers import containerd
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.processes import Process
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

SOCKET = "/run/containerd/containerd.sock"
WEB = "65c78e7145de3884573d8cb6afe509cdb2fa691b874bef17f343acdd8b05a3bc"
DB = "75174f1ee48b4610434049dc4a09f5b4e5d0e9adfe2d23f5ffeedd623a2d1cfb"
SHIM = ["/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", DB, "-address", SOCKET]

# Printed by Debian's containerd 1.6.20, 1.7.24 and 2.1.9, with two pods and, in the namespace default, a container c1.
NAMESPACES = b"default\nk8s.io\n"
PODS = f"{WEB}\n{DB}\n".encode()
TITLES = b"ID CREATED RUNTIME \n"
TABLE = (
    b"ID                                                               CREATED                                 RUNTIME"
    b"               \n"
    b"65c78e7145de3884573d8cb6afe509cdb2fa691b874bef17f343acdd8b05a3bc 2026-11-21 14:29:01.914978698 +0000 UTC "
    b"io.containerd.runc.v2 \n"
    b"75174f1ee48b4610434049dc4a09f5b4e5d0e9adfe2d23f5ffeedd623a2d1cfb 2026-11-21 14:29:01.108294168 +0000 UTC "
    b"io.containerd.runc.v2 \n"
)
REFUSED = (
    f'ctr: failed to dial "{SOCKET}": context deadline exceeded: connection error: desc = "transport: error while '
    f'dialing: dial unix://{SOCKET}: timeout"\n'
)
# The client of 1.6 knows no sandboxes and says so on stdout; a client of 1.7 or 2.1 asked a daemon of 1.6.
NO_SANDBOXES = {
    "ctr 1.6": commands.Done(3, b"No help topic for 'sandboxes'\n", ""),
    "ctr 1.7": commands.Done(
        1, b"", "ctr: failed to list sandboxes: unknown service containerd.services.sandbox.v1.Store: not implemented\n"
    ),
    "ctr 2.1": commands.Done(
        1, b"", "ctr: failed to list sandboxes: unknown service containerd.services.sandbox.v1.Store\n"
    ),
}
# From /proc/net/unix of a host with containerd 1.6 and a running pod.
SOCKETS = f"""Num       RefCount Protocol Flags    Type St Inode Path
00000000c6f050a2: 00000002 00000000 00010000 0001 01 2977408 {SOCKET}.ttrpc
0000000016c5afed: 00000002 00000000 00010000 0001 01 2977409 %s
000000004bc5ec83: 00000002 00000000 00010000 0001 01 2977543 /run/containerd/s/980ee30ac3f5c9ab9fd80548ec409d43d2
000000000305dfea: 00000003 00000000 00000000 0001 03 2977701 {SOCKET}.ttrpc
000000000305dfeb: 00000003 00000000 00000000 0001 03 2977702 %s
0000000036e44846: 00000003 00000000 00000000 0001 03 2977666
0000000036e44847: 00000002 00000000 00010000 0001 01 2977667 @/abstract/containerd.sock
"""


class Ctr:
    """Stands in for ctr: answers by the words behind the namespace."""

    def __init__(self, answers=None):
        self.calls = []
        self.answers = {
            ("namespaces",): commands.Done(0, NAMESPACES, ""),
            ("default", "containers"): commands.Done(0, b"c1\n", ""),
            ("default", "sandboxes"): commands.Done(0, TITLES, ""),
            ("k8s.io", "containers"): commands.Done(0, PODS, ""),
            ("k8s.io", "sandboxes"): commands.Done(0, TABLE, ""),
        }
        self.answers.update(answers or {})

    def run(self, argv, timeout):
        assert argv[:2] == ["/usr/bin/ctr", "--address"]
        self.calls.append(list(argv[2:]))
        key = (argv[6], argv[7]) if "--namespace" in argv else (argv[5],)
        answer = self.answers[key]
        if isinstance(answer, HostError):
            raise answer
        return answer


@pytest.fixture
def _host(monkeypatch, tmp_path):
    """A host with no runtime."""
    sockets = tmp_path / "unix"
    sockets.write_text(SOCKETS.splitlines()[0] + "\n")
    monkeypatch.setattr(containerd, "_SOCKETS", str(sockets))
    monkeypatch.setattr(containerd, "BUILDKIT", str(tmp_path / "cni"))
    monkeypatch.setattr(containerd, "processes", lambda name: [])
    monkeypatch.setattr(containerd.os.path, "exists", lambda path: True)
    monkeypatch.setattr(containerd, "check_socket", lambda path: None)
    monkeypatch.setattr(commands, "find_command", lambda name: "/usr/bin/" + name)
    monkeypatch.setattr(commands, "run_command", Ctr().run)
    return monkeypatch


@pytest.fixture
def _running(_host):
    """A host with a containerd whose pods run."""
    _host.setattr(containerd, "processes", lambda name: [Process(152, SHIM)] if name == "containerd-shim*" else [])
    return _host


def refused():
    with fails_with("source_unusable") as caught:
        containerd.find_containerd().ask()
    assert caught.value.facts == {"source": "containerd"}
    return caught.value.msg


@pytest.mark.usefixtures("_host")
def test_where_there_is_none_there_is_none():
    assert containerd.find_containerd() is None


def test_a_listening_socket_is_a_containerd(_host, tmp_path):
    path = tmp_path / "containerd.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        (tmp_path / "unix").write_text(SOCKETS % (path, path))
        assert containerd.find_containerd().evidence == f"the socket {path} of containerd"
        real = os.stat

        def stat(name, *args, **kwargs):
            status = real(name, *args, **kwargs)
            if name == str(path):
                return os.stat_result((*tuple(status)[:4], 1000, *tuple(status)[5:]))
            return status

        _host.setattr(containerd.os, "stat", stat)
        # A user's own.
        assert containerd.find_containerd() is None
    path.unlink()
    # In another mount namespace.
    assert containerd.find_containerd() is None
    path.write_text("")
    assert containerd.find_containerd() is None


# One that does not say whose it is is the usual daemon's.
@pytest.mark.parametrize("argv", [SHIM, [], SHIM[:-1], [*SHIM[:-1], "relative"], [*SHIM[:-1], "--all"]])
def test_a_running_container_tells_of_a_daemon_that_is_stopped(_host, argv):
    _host.setattr(containerd, "processes", lambda name: [Process(152, argv)] if name == "containerd-shim*" else [])
    assert containerd.find_containerd().evidence == f"the socket {SOCKET} of containerd"


def test_a_socket_that_is_not_there_is_not_waited_for(_running):
    _running.setattr(containerd.os.path, "exists", lambda path: path != SOCKET)
    _running.setattr(commands, "run_command", lambda argv, timeout: pytest.fail("run"))
    assert (
        f"containers run, but the socket {SOCKET} of their containerd does not exist; start the containerd of"
        in refused()
    )


@pytest.mark.usefixtures("_running")
def test_containers_are_known_by_the_ids_that_cni_saw():
    answer = containerd.find_containerd().ask()
    assert answer.source == "containerd"
    assert answer.size == 3
    # The pods' as CRI gives them, the container's as nerdctl and ctr do.
    assert {WEB, DB, "default-c1"} <= set(answer.containers)
    assert set(answer.containers.values()) == {None}
    assert answer.namespaces == []
    assert answer.asked == f"ctr at {SOCKET}: 3 containers in the namespaces default, k8s.io"


@pytest.mark.parametrize("case", sorted(NO_SANDBOXES))
def test_older_versions_have_no_sandboxes(_running, case):
    none = {(name, "sandboxes"): NO_SANDBOXES[case] for name in ("default", "k8s.io")}
    _running.setattr(commands, "run_command", Ctr(none).run)
    assert {WEB, DB, "default-c1"} <= set(containerd.find_containerd().ask().containers)


def test_a_sandbox_that_is_no_container_lives(_running):
    _running.setattr(commands, "run_command", Ctr({("k8s.io", "containers"): commands.Done(0, b"", "")}).run)
    assert {WEB, DB} <= set(containerd.find_containerd().ask().containers)


def test_a_containerd_without_anything_says_so(_running):
    _running.setattr(commands, "run_command", Ctr({("namespaces",): commands.Done(0, b"", "")}).run)
    answer = containerd.find_containerd().ask()
    assert (answer.containers, answer.size) == ({}, 0)
    assert answer.asked == f"ctr at {SOCKET}: 0 containers in the namespaces none"


def test_every_daemon_is_asked(_host):
    k3s = [*SHIM[:-1], "/run/k3s/containerd/containerd.sock"]
    _host.setattr(containerd, "processes", lambda name: [Process(7, k3s), Process(8, SHIM), Process(9, k3s)])
    ctr = Ctr()
    _host.setattr(commands, "run_command", ctr.run)
    assert containerd.find_containerd().ask().size == 6
    assert [call[0] for call in ctr.calls] == [SOCKET] * 5 + ["/run/k3s/containerd/containerd.sock"] * 5


@pytest.mark.parametrize(
    "key", [("namespaces",), ("default", "containers"), ("k8s.io", "containers"), ("k8s.io", "sandboxes")]
)
@pytest.mark.parametrize(
    "answer",
    [
        commands.Done(1, b"", REFUSED),
        commands.Done(1, PODS, REFUSED),
        commands.Done(0, b"one two\n", ""),
        commands.Done(0, b"--address\n", ""),
        commands.Done(0, b"ID CREATED\n\xff\n", ""),
        HostError("ctr failed: signal: killed (it printed more than 33554432 bytes)", code="command_failed"),
    ],
)
def test_what_one_question_does_not_answer_ends_it(_running, key, answer):
    _running.setattr(commands, "run_command", Ctr({key: answer}).run)
    assert f"start the containerd of {SOCKET}" in refused()


def test_a_table_without_titles_is_not_a_table(_running):
    _running.setattr(commands, "run_command", Ctr({("k8s.io", "sandboxes"): commands.Done(0, b"failed: x\n", "")}).run)
    assert "not an ID" in refused()


def test_without_ctr_it_cannot_be_asked(_running):
    _running.setattr(commands, "find_command", lambda name: None)
    message = refused()
    assert f"found the socket {SOCKET} of containerd, but no ctr in" in message
    assert "install it" in message


def test_namespaces_of_buildkit_live_while_they_are_mounted(_host, tmp_path):
    folder = tmp_path / "cni"
    folder.mkdir()
    (folder / "left-by-a-reboot").write_text("")
    assert containerd.find_containerd() is None
    # A link to a namespace looks like one that is mounted.
    (folder / "k9f3q8").symlink_to("/proc/self/ns/net")
    assert containerd.find_containerd().evidence == f"network namespaces of buildkit in {folder}"
    _host.setattr(commands, "find_command", lambda name: pytest.fail("there is no containerd to ask"))
    answer = containerd.find_containerd().ask()
    assert answer.containers == {"k9f3q8": None}
    assert answer.namespaces == [str(folder / "k9f3q8")]
    assert answer.size == 1
    assert answer.asked == f"{folder} holds 1 network namespaces"


def test_a_directory_of_buildkit_that_cannot_be_read_ends_it(_host, tmp_path):
    (tmp_path / "cni").write_text("")
    with fails_with("source_unusable"):
        containerd.find_containerd()
