# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks and roles on a host that is this machine: what they test is Ansible with this collection."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.host.conftest import (  # noqa: F401 - fixtures  # pylint: disable=unused-import
    _as_before,
    _private,
    generations,
    host,
    newer,
    runtimes,
    settings,
)
from ansible_collections.podwire.cni.tests.host.host import interpreter, sh
from ansible_collections.podwire.cni.tests.play.controller import Controller

RESET = """
ip -all netns delete
for link in $(ip -oneline link show type bridge | cut -d: -f2); do ip link delete "$link"; done
nft flush ruleset
rm -rf /etc/cni /opt/cni /var/lib/cni /var/lib/podwire /run/podwire-cni
"""


@pytest.fixture(scope="session", autouse=True)
def _interpreter(_private):  # noqa: F811
    """Start what tests/tools/python asks."""
    interpreter()


@pytest.fixture(scope="module", autouse=True)
def _reset(_as_before):  # noqa: F811
    """Remove what the tests of a file have made of the host."""
    yield
    sh(RESET)


@pytest.fixture
def empty_host():
    """A host that has never seen CNI, whatever the tests before have made of it."""
    sh(RESET)


@pytest.fixture
def controller(tmp_path):
    """Return a function that makes a Controller with an inventory, in the test's own directory."""
    return lambda inventory: Controller(tmp_path, inventory)
