# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What the rows of readiness quote of a host that is broken."""

from __future__ import annotations

# The fault, or its code -> words that the message has, or `evidence` of the row.
WORDS = {
    "broken_json": ["05-broken.conflist"],
    "list_in_conf": ["05-list.conf"],
    "text_for_a_flag": ["10-pods.conflist"],
    "no_network": ["is empty"],
    "full_pool": ["5 of 5 addresses"],
    "ipv6_off": ["bridge", "conf/default/disable_ipv6 is 1"],
    "no_iptables": ["portmap", "iptables"],
    "full_second_pool": ["2 of 2 addresses"],
    "bad_range": ["10.91.0.0/24"],
    "no_addresses": ['no "ipam" with a type'],
    "chain_order": ["tuning", "/plugins/0"],
    "two_interfaces": ["ptp", "/plugins/1"],
    "unsupported_by_runtime": ["1.6", "1.1.0"],
}


def follow(fault, error):
    """Assert that the row of a fault quotes what is wrong."""
    name, code = fault.__name__, fault.__doc__
    said = f"{error['message']} {error['evidence']}"
    for word in WORDS.get(name, WORDS.get(code, [])):
        assert word in said, said
