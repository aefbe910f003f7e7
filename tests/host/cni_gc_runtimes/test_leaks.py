# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import re

import pytest


def test_a_source_that_is_not_on_the_host(host):
    assert host.fail("cni_gc", keep_from=["nomad"])["code"] == "missing_source"


CHOICES = [{}, {"keep_from": ["cache"], "allow_empty": True}, {"keep_from": ["containerd"]}, {"keep_from": ["podman"]}]


@pytest.mark.parametrize("options", CHOICES, ids=json.dumps)
def test_exactly_the_dead_are_collected_with_the_cache_directory_of_the_runtimes(collect_the_dead, options):
    """The runtimes' entries do not say where a container lives. The collection's own are in another directory."""
    collect_the_dead(cache_dir="/var/lib/cni", **options)


def test_what_ctr_leaves_is_collected_once_every_source_is_asked(host, runtimes, state, without_new_links):
    """Ctr detaches nothing when it removes a container."""
    with without_new_links():
        runtimes("container", "pwg-leak")
        runtimes("remove-container", "pwg-leak")
    before = state()

    def found(reason, **options):
        left = host.run("cni_gc", **options)
        assert not left["changed"]
        entries = [entry for entry in left["collected"] if entry["container_id"] == "default-pwg-leak"]
        assert {entry["kind"] for entry in entries} == {"lease", "rule"}
        assert {entry["reason"] for entry in entries} == {reason}

    # Fewer sources than the host has.
    found("not_ours", keep_from=["cache", "netns", "podman"], min_age=0)
    # Nothing that is younger than ten minutes.
    found("young")
    assert state() == before

    ran = host.run("cni_gc", min_age=0)
    deleted = [entry for entry in ran["collected"] if entry["action"] == "deleted"]
    assert {entry["container_id"] for entry in deleted} == {"default-pwg-leak"}
    assert {entry["kind"] for entry in deleted} == {"lease", "rule"}
    (lease,) = (entry for entry in deleted if entry["kind"] == "lease")
    sources = re.compile(r" containerd .5., podman .4., cache /var/lib/cni .[0-9]+., cache .1.$")
    assert len([text for text in lease["evidence"] if sources.search(text)]) == 1
    after = state()
    assert [line for line in after if line not in before] == []
    gone = [line for line in before if line not in after]
    assert [line for line in gone if "CNI-" in line] != []
    assert sorted(re.sub("^[0-9a-f]{64} +", "", line) for line in gone if "CNI-" not in line) == [
        f"{lease['id']} is silent",
        f"networks/pwgshared/{lease['id']}",
    ]


def test_while_containerd_is_stopped_only_what_another_source_knows_is_collected(host, runtimes, state, die):
    die()
    runtimes("stop")
    try:
        # Its pods go on, but nobody knows whether they do.
        refused = host.refuse("cni_gc", state, "source_unusable", ["/run/containerd/containerd.sock"], min_age=0)
        assert refused["source"] == "containerd"

        before = state()
        ran = host.run("cni_gc", keep_from=["cache"], min_age=0)
        assert ran["changed"]
        deleted = {entry["container_id"] for entry in ran["collected"] if entry["action"] == "deleted"}
        assert deleted == {"pwg-dead", "pwg-dead-too"}
        after = state()
        assert [line for line in after if line not in before] == []
        assert [line for line in before if line not in after and line.endswith(" answers")] == []
    finally:
        runtimes("start")
