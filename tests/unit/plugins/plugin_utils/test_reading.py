# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Reading definitions of a cluster with the lookup plugin of kubernetes.core, which a plugin of these tests plays."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.plugin_utils import reading


class Lookup:
    """The lookup plugin. ``answer`` is what it returns or raises, ``asked`` what it was called with."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def run(self, terms, variables=None, **options):
        self.asked.append((terms, options))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class ReadingOnly(reading.ReadingAction):
    def prepare(self, task_vars):
        raise AssertionError("nothing runs here")


@pytest.fixture
def read(monkeypatch):
    """Return a function that reads a namespace with a lookup plugin, None for none."""
    action = ReadingOnly.__new__(ReadingOnly)
    action._loader = action._templar = None

    def run(lookup, context="", namespace="shop"):
        monkeypatch.setattr(reading.lookup_loader, "get", lambda name, **_more: lookup)
        return action.sources().api("/k", context, namespace)

    return run


KIND = {"api_version": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "kubeconfig": "/k"}


@pytest.mark.parametrize(("answer", "found"), [([{"a": 1}], [{"a": 1}]), ({"a": 1}, [{"a": 1}]), ([], []), (None, [])])
def test_definitions_of_a_namespace(read, answer, found):
    lookup = Lookup(answer)
    assert read(lookup) == found
    assert lookup.asked == [(None, {**KIND, "namespace": "shop"})]


def test_definitions_of_all_namespaces_in_a_context(read):
    lookup = Lookup([])
    read(lookup, "lab", "")
    assert lookup.asked == [(None, {**KIND, "context": "lab"})]


def test_a_cluster_that_cannot_be_read(read):
    with pytest.raises(HostError, match="networks of shop with /k on the controller: refused") as caught:
        read(Lookup(OSError("refused")))
    assert caught.value.code == "cluster_unreachable"


def test_a_controller_without_the_collection(read):
    with pytest.raises(HostError, match="ansible-galaxy collection install") as caught:
        read(None)
    assert caught.value.code == "missing_required_lib"
