# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What cni_attach makes of drift that no CHECK sees."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import (
    actions,
    codes,
    kinds,
    web,
)


@pytest.fixture
def drifted(attach_host):
    """Return a host whose container has lost its address."""
    attach_host.run(web())
    attach_host.addresses.clear()
    return attach_host


def test_it_is_reported(drifted):
    for plan in (drifted.check(web()), drifted.run(web())):
        assert actions(plan) == ["drifted"]
        assert plan.outcomes[0].reason == "kernel"
        assert plan.warnings == [("drifted", "demo/web/eth0 has drifted: the address 10.1.0.2/24 on eth0 is gone")]
        assert not plan.changed


def test_it_is_repaired(drifted):
    predicted = drifted.check(web(), on_drift="repair")
    plan = drifted.run(web(), on_drift="repair")
    assert kinds(predicted) == kinds(plan) == [("repair", "demo/web/eth0")]
    assert [step.step_class for step in plan.steps] == ["disruptive"]
    assert actions(drifted.run(web(), on_drift="repair")) == ["none"]
    assert codes(drifted.run(web())) == []


def test_it_is_an_error(drifted):
    plan = drifted.run(web(), on_drift="fail")
    assert plan.outcomes[0].error["code"] == "drifted"
    assert "10.1.0.2/24 on eth0 is gone; set on_drift: repair" in plan.outcomes[0].error["message"]


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
