# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import coded


@pytest.mark.parametrize(
    ("msg", "code", "expected"),
    [
        ("it failed", "no_room", "it failed [no_room]"),
        ("it failed", "", "it failed"),
        ("it failed [no_room]", "no_room", "it failed [no_room]"),
        ("2 errors:\n- a [one]\n- b [two]", "one", "2 errors:\n- a [one]\n- b [two]"),
        ("a [one] (and 1 more; see 'attachments')", "one", "a [one] (and 1 more; see 'attachments')"),
        ("a [two]", "one", "a [two] [one]"),
    ],
)
def test_a_message_has_its_code_once(msg, code, expected):
    assert coded(msg, code) == expected
