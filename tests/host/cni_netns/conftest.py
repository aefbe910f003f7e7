# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh


@pytest.fixture(autouse=True)
def _no_leftovers():
    yield
    sh(
        """
        shopt -s nullglob
        for path in /run/netns/pwn-*; do
          umount --lazy $path 2>/dev/null || true
          rm -rf $path
        done
        """
    )


@pytest.fixture
def state():
    """Return a function that lists /run/netns with file systems and inodes, and shows whether anybody held the lock."""

    def look(prefix=""):
        lines = sh(
            r"""{
              find /run/netns -mindepth 1 -printf '%f %F %y %m %U %i %l\n' || true
              find /run/podwire-cni -printf '%p %m %T@\n' || true
            } 2>/dev/null | sort"""
        ).splitlines()
        return [line for line in lines if line.startswith(prefix)]

    return look


@pytest.fixture
def change(host, state):
    """Return a function that makes one change of state, whose steps and actions are given, and returns its results."""

    def make(names, wanted, kinds, classes, actions):
        results = host.change("cni_netns", state, names=names, state=wanted)
        assert [step["kind"] for step in results.run["actions"]] == kinds
        assert [step["class"] for step in results.run["actions"]] == classes
        assert results.check["netns"] == results.run["netns"]
        assert [entry["name"] for entry in results.run["netns"]] == names
        assert [entry["path"] for entry in results.run["netns"]] == [f"/run/netns/{name}" for name in names]
        assert [entry["action"] for entry in results.run["netns"]] == actions
        assert {entry["action"] for entry in results.again["netns"]} == {"none"}
        return results

    return make


@pytest.fixture
def refuse(host, state):
    """Return a function that expects a refusal, in a run and in a check, and returns the result."""

    def ask(code, words, names, wanted="present", **options):
        return host.refuse("cni_netns", state, code, words, names=names, state=wanted, **options)

    return ask
