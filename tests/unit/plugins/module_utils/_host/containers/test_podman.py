# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import commands
from ansible_collections.podwire.cni.plugins.module_utils._host.containers import podman
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with, raising

# Printed by Debian 12's podman 4.3.1.
ONE = "6c0b2b23f4369800be353ab4348f8a133c8321f3ed0033ce98cd7a7bbd6a4abd"
TWO = "d9f404983cfba99f1bf912103b364d9652661a334215afab30a7322b80036e85"
BAD_TEMPLATE = (
    'Error: template: ps:1:13: executing "ps" at <.Foo>: can\'t evaluate field Foo in type containers.psReporter'
)


@pytest.fixture
def _used(monkeypatch, tmp_path):
    """A host on which podman was used."""
    monkeypatch.setattr(podman, "TRACES", (str(tmp_path / "none"), str(tmp_path)))
    monkeypatch.setattr(commands, "find_command", lambda name: "/usr/bin/" + name)
    return monkeypatch


def answers(monkeypatch, done):
    calls = []

    def run(argv, timeout):
        calls.append(argv)
        return done

    monkeypatch.setattr(commands, "run_command", run)
    return calls


def refused():
    with fails_with("source_unusable") as caught:
        podman.find_podman().ask()
    assert caught.value.facts == {"source": "podman"}
    return caught.value.msg


def test_a_podman_that_was_never_used_is_not_there_and_is_not_run(monkeypatch, tmp_path):
    monkeypatch.setattr(podman, "TRACES", (str(tmp_path / "none"),))
    monkeypatch.setattr(commands, "run_command", lambda argv, timeout: pytest.fail("run"))
    assert podman.find_podman() is None


def test_its_state_shows_that_it_was_used(_used, tmp_path):
    assert podman.find_podman().evidence == f"podman's state {tmp_path}"


def test_all_containers_are_asked_for(_used):
    calls = answers(_used, commands.Done(0, f"{ONE}\n{TWO}\n".encode(), ""))
    answer = podman.find_podman().ask()
    assert answer.containers == {ONE: None, TWO: None}
    assert (answer.source, answer.size, answer.namespaces) == ("podman", 2, ())
    assert answer.asked == "podman ps --all --external: 2 containers"
    # Another host's podman, which containers.conf may name, is not asked.
    [argv] = calls
    assert argv[:2] == ["/usr/bin/podman", "--remote=false"]
    assert {"--all", "--external", "--no-trunc"} <= set(argv)


def test_no_containers_is_an_answer(_used):
    answers(_used, commands.Done(0, b"", "some warning"))
    assert podman.find_podman().ask().size == 0


@pytest.mark.parametrize("output", [b"web\n", b"a1\nb_2.c-3\n", b"no-newline-at-the-end"])
def test_ids_are_read(_used, output):
    answers(_used, commands.Done(0, output, ""))
    assert list(podman.find_podman().ask().containers) == output.decode().split()


@pytest.mark.parametrize(
    "output",
    [
        *(b"CONTAINER ID  IMAGE\n", b"\n", b"a\n\nb\n", b"a b\n", b" a\n", b"--all\n", b"../x\n", b"a/b\n"),
        *(b"a\0\n", b"\xff\n", b"a\r\n", b"x" * 256),
    ],
)
def test_a_line_that_is_no_id_is_not_left_out_in_silence(_used, output):
    answers(_used, commands.Done(0, output, ""))
    message = refused()
    assert "/usr/bin/podman --remote=false ps" in message and "make sure that 'podman ps --all' works" in message


@pytest.mark.parametrize("output", [b"", f"{ONE}\n".encode()])
def test_a_command_that_fails_is_quoted(_used, output):
    answers(_used, commands.Done(125, output, BAD_TEMPLATE))
    message = refused()
    assert f"failed: exit status 125: {BAD_TEMPLATE}" in message
    assert "make sure that 'podman ps --all' works" in message and "keep_from" in message


def test_a_command_that_does_not_end_is_a_source_that_cannot_be_asked(_used):
    _used.setattr(commands, "run_command", raising(HostError("signal: killed", code="command_failed")))
    assert "signal: killed" in refused()


def test_without_podman_it_cannot_be_asked(_used, tmp_path):
    _used.setattr(commands, "find_command", lambda name: None)
    assert f"found podman's state {tmp_path}, but no podman in /usr/local/sbin" in refused()
    unsafe = HostError("the file /usr/bin/podman belongs to user 1000", code="unsafe_permissions")
    _used.setattr(commands, "find_command", raising(unsafe))
    assert "belongs to user 1000" in refused()
