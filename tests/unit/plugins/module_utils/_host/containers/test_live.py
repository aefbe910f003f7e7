# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import socket

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.caches import CacheContents
from ansible_collections.podwire.cni.plugins.module_utils._host.containers import live, sources
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.live import Answer, LiveSet, Namespaces
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with


def test_a_live_set_knows_who_said_what():
    answers = [
        Answer("cache", {"web": frozenset(["eth0"])}),
        Answer("podman", {"db": None}, number=3, asked="podman ps"),
    ]
    evidence, nowhere = {"cache": "x", "podman": "y", "nomad": "z"}, Namespaces([])
    found = LiveSet(answers, evidence, nowhere, live.Homes([], nowhere), "nomad was not asked")
    assert (found.owner("web"), found.owner("db"), found.owner("other")) == ("cache", "podman", "")
    assert found.has("web", "eth0") and not found.has("web", "eth1") and found.has("db", "eth9")
    assert list(found.pairs()) == [("web", "eth0")]
    assert not found.complete and not found.empty
    assert [(row["source"], row["containers"]) for row in found.rows()] == [
        ("cache", 1),
        ("nomad", None),
        ("podman", 3),
    ]


@pytest.fixture
def runtimes(monkeypatch):
    """Sources by name: evidence and answer; nothing else is on the host."""
    found = {}

    def runtime(name):
        def ask():
            if isinstance(found[name], HostError):
                raise found[name]
            return found[name]

        return lambda: live.RuntimeSource("a socket", ask) if name in found else None

    monkeypatch.setattr(sources, "RUNTIMES", {name: runtime(name) for name in ("containerd", "podman", "nomad")})
    monkeypatch.setattr(sources, "_OTHERS", {})
    monkeypatch.setattr(sources, "read_namespaces", lambda paths: Namespaces([]))
    return found


def find(**options):
    return sources.find_live([CacheContents([])], set(), **options)


def test_every_source_that_is_found_is_asked(runtimes):
    runtimes["podman"] = Answer("podman", {"db": None})
    found = find()
    assert found.complete and found.owner("db") == "podman"
    assert sorted(found.evidence) == ["netns", "podman"]


def test_a_source_that_cannot_be_asked_is_an_error(runtimes):
    runtimes["podman"] = HostError("no", code="source_unusable")
    with fails_with("source_unusable"):
        find()


def test_fewer_sources_than_found_are_not_complete(runtimes):
    runtimes["podman"] = HostError("no", code="source_unusable")
    found = find(keep_from=["netns"])
    assert not found.complete and "podman" in found.why
    assert not find(keep_from=[], keep={"web": None}).complete
    assert find(keep_from=["netns", "cache"], keep={"web": None}).why.startswith("keep_from leaves out podman")


def test_a_runtime_that_is_no_source_makes_the_set_incomplete(runtimes, monkeypatch, tmp_path):
    path = str(tmp_path / "crio.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        monkeypatch.setattr(sources, "_OTHERS", {"CRI-O": (path,)})
        found = find()
        assert not found.complete and "CRI-O" in found.why
        assert "CRI-O" in sources.other_runtime(found)


def test_a_runtime_that_keep_from_leaves_out_protects_what_it_names(runtimes):
    runtimes["podman"] = Answer("podman", {"db": None})
    for keep_from in ([], ["netns"], ["cache"]):
        found = find(keep_from=keep_from)
        assert found.owner("db") == "podman" and not found.complete


def test_a_stopped_runtime_that_has_left_its_state_makes_the_set_incomplete(runtimes, monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "_OTHERS", {"CRI-O": (str(tmp_path),), "podman": (str(tmp_path),)})
    assert "CRI-O" in find().why
    monkeypatch.setattr(sources, "_OTHERS", {"podman": (str(tmp_path),)})
    assert "podman" in find().why
    # One that answers is not stopped.
    runtimes["podman"] = Answer("podman", {"db": None})
    assert find().complete
