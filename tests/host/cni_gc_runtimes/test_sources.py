# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

CHOICES = [
    # Every source that is found.
    {},
    {"keep_from": ["cache"]},
    # Namespaces are live, but name no containers.
    {"keep_from": ["netns"], "allow_empty": True},
    {"keep_from": ["containerd"]},
    {"keep_from": ["podman"]},
    {"keep_from": ["cache", "netns"]},
    {"keep_from": ["containerd", "podman"]},
    {"keep_from": ["cache", "containerd", "netns", "podman"]},
    {"keep_from": [], "keep": [{"container_id": "pwg-live"}]},
    # Claims that nothing lives.
    {"keep_from": [], "allow_empty": True},
]


@pytest.mark.parametrize("options", CHOICES, ids=json.dumps)
def test_exactly_the_dead_are_collected_whichever_sources_are_asked(collect_the_dead, options):
    collect_the_dead(**options)
