# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest


@pytest.mark.parametrize("generation", ["old", "new"])
@pytest.mark.parametrize("backend", ["iptables-nft"])
def test_what_a_killed_add_leaves_is_found_and_removed_to_the_last_rule(kill_everywhere):
    assert kill_everywhere("ADD") > 20
