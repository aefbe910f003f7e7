# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What cni_attach makes of drift that no CHECK sees."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import codes, web


@pytest.fixture
def drifted(attach_host):
    """Return a host whose container has lost its address."""
    attach_host.run(web())
    attach_host.addresses.clear()
    return attach_host


def test_check_is_not_asked_for_what_is_seen(drifted):
    drifted.broken["CHECK", "main"] = "the address is gone"
    plan = drifted.run(web())
    assert (plan.outcomes[0].reason, len(plan.warnings)) == ("kernel", 1)
    assert drifted.verbs("CHECK") == []


def test_it_is_seen_where_a_check_never_works(attach_host):
    attach_host.broken["CHECK", "meta"] = "never"
    attach_host.run(web())
    attach_host.addresses.clear()
    assert codes(attach_host.run(web())) == ["drifted"]
