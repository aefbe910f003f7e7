# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import commands
from ansible_collections.podwire.cni.plugins.module_utils._host.containers import client
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError


@pytest.mark.parametrize("output", [b"", b"web\n", b"a1\nb_2.c-3\n", b"no-newline-at-the-end"])
def test_ids_are_read(output):
    assert client.ids("podman", output, ["podman"], "mend it") == output.decode().split()


@pytest.mark.parametrize(
    "output",
    [b"\n", b"a\n\nb\n", b"a b\n", b"--all\n", b"../x\n", b"a\0\n", b"\xff\n", b"a\r\n", b"x" * 256, b" a\n", b"a/b\n"],
)
def test_a_line_that_is_no_id_is_not_left_out_in_silence(output):
    with pytest.raises(HostError) as caught:
        client.ids("podman", output, ["/usr/bin/podman", "ps"], "mend it")
    assert caught.value.code == "source_unusable"
    assert caught.value.facts == {"source": "podman"}
    assert "/usr/bin/podman ps" in caught.value.msg
    assert "mend it" in caught.value.msg


def test_a_command_that_fails_is_quoted(monkeypatch):
    failed = commands.Done(125, b"", "Error: no space left\n")
    monkeypatch.setattr(commands, "run_command", lambda argv, timeout: failed)
    with pytest.raises(HostError) as caught:
        client.run_client("podman", ["/usr/bin/podman", "ps"], "free some space")
    assert caught.value.code == "source_unusable"
    for text in ("podman ps failed: exit status 125: Error: no space left", "free some space", "keep_from"):
        assert text in caught.value.msg


def test_a_command_that_does_not_end_is_a_source_that_cannot_be_asked(monkeypatch):
    def run(argv, timeout):
        raise HostError("podman ps failed: signal: killed", code="command_failed")

    monkeypatch.setattr(commands, "run_command", run)
    with pytest.raises(HostError) as caught:
        client.run_client("podman", ["/usr/bin/podman", "ps"], "look why")
    assert caught.value.code == "source_unusable"


@pytest.mark.parametrize("refused", [False, True])
def test_a_command_that_is_missing_or_unsafe_is_said(monkeypatch, refused):
    def find(name):
        if refused:
            raise HostError("the file /usr/bin/ctr belongs to user 1000", code="unsafe_permissions")

    monkeypatch.setattr(commands, "find_command", find)
    with pytest.raises(HostError) as caught:
        client.find_client("containerd", "ctr", "the socket /run/containerd/containerd.sock", "install it")
    assert caught.value.code == "source_unusable"
    assert ("belongs to user 1000" if refused else "no ctr in /usr/local/sbin") in caught.value.msg
