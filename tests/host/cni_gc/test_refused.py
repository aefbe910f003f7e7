# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import socketserver
import threading

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh, wait_until

LIVE = {"network": "pwgone", "container_id": "pwg-live"}
DEAD = {"network": "pwgone", "container_id": "pwg-dead"}
DISABLED = {"network": "pwgoff", "container_id": "pwg-off"}


@pytest.fixture
def foreign(gc, leases):
    """A container that somebody else made has an address."""
    (leases / "pwgone").mkdir(parents=True)
    (leases / "pwgone" / "10.81.0.77").write_text("foreign\r\neth0")


@pytest.fixture
def dead(gc, attach, foreign):
    """A container that lives, and two that are dead, one of them on a network with disableGC."""
    attach([LIVE, DEAD, DISABLED])
    sh("ip netns delete pwg-dead; ip netns delete pwg-off")


@pytest.fixture
def silent_containerd(work):
    """A containerd that is there and does not answer."""
    with socketserver.UnixStreamServer(str(work / "containerd.sock"), socketserver.BaseRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield
        server.shutdown()
        thread.join()


def of(result, **wanted):
    """Return what was found and has the *wanted* values."""
    return [one for one in result["collected"] if all(one[key] == value for key, value in wanted.items())]


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("bad_min_age", {"min_age": "soon"}),
        ("bad_timeout", {"timeout": 0}),
        ("bad_parallel", {"parallel": 0}),
        ("bad_id", {"keep": [{"container_id": ""}]}),
    ],
)
def test_wrong_options_are_refused(gc, foreign, look, code, options):
    gc.refuse("cni_gc", look, code, **options)


def test_a_source_that_is_missing_is_an_error_and_in_check_mode_a_warning(gc, foreign, look):
    before = look()
    assert gc.fail("cni_gc", keep_from=["nomad"])["code"] == "missing_source"
    assert look() == before
    warned = gc.run("cni_gc", keep_from=["nomad", "cache", "netns"], check_mode=True)
    assert len([warning for warning in warned["warnings"] if "missing_source" in str(warning)]) == 1


def test_what_is_young_and_everything_of_a_network_with_disable_gc_is_left(gc, dead, look):
    before = look()
    young = gc.run("cni_gc")
    assert not young["changed"]
    assert look() == before
    disabled = of(young, network="pwgoff")
    assert [(one["action"], one["reason"]) for one in disabled] == [("left", "disable_gc")] * 2
    assert {one["reason"] for one in young["collected"] if one not in disabled} == {"young"}


def test_with_a_runtime_that_does_not_answer_only_what_is_ours_is_collected(gc, dead, silent_containerd, look):
    gc.refuse("cni_gc", look, "source_unusable", min_age="0")

    narrowed = gc.run("cni_gc", keep_from=["cache", "netns"], min_age="0", check_mode=True)
    assert not narrowed["live"]["complete"]
    assert "keep_from leaves out containerd, found on this host" in narrowed["live"]["why"]
    assert [one["reason"] for one in of(narrowed, container_id="foreign")] == ["not_ours"]
    assert {one["action"] for one in of(narrowed, container_id="pwg-dead")} == {"deleted"}
    assert {verb["action"] for verb in narrowed["gc"]} == {"left"}

    # keep alone narrows it, too.
    keep = [{"container_id": "pwg-dead", "ifname": "eth0"}]
    alone = gc.run("cni_gc", keep_from=[], keep=keep, min_age="0", check_mode=True)
    assert not alone["changed"]
    assert {one["reason"] for one in of(alone, container_id="pwg-dead")} == {"live"}
    assert {one["reason"] for one in of(alone, container_id="pwg-live")} <= {"address_live"}


def test_who_attaches_has_the_lock(gc, dead, work):
    (work / "be-slow").write_text("")
    attachment = {"network": "pwgverb", "container_id": "pwg-live", "netns": "pwg-live", "ifname": "eth1"}
    slow = gc.start("cni_attach", {**gc.defaults, "attachments": [attachment]})
    try:
        wait_until((work / "slow.pid").exists)
        locked = gc.fail("cni_gc", min_age="0", lock_timeout=1)
        assert locked["code"] == "lock_timeout"
        assert "cni_attach" in locked["msg"]
        sh(f"kill $(cat {work}/slow.pid)")
        assert gc.result(slow)["failed"]
    finally:
        sh(f"kill $(cat {work}/slow.pid)", check=False)
        slow.kill()
        slow.communicate()


def test_that_nobody_lives_is_confirmed_before_anything_is_collected(gc, dead, look, collect, detach):
    sh("ip netns delete pwg-live")
    empty = gc.fail("cni_gc", min_age="0")
    assert empty["code"] == "empty_live_set"
    assert not empty.get("changed")
    assert {one["action"] for one in empty["collected"]} == {"left"}
    assert {one["reason"] for one in empty["collected"]} == {"disable_gc", "empty_live_set"}

    # All but the network with disableGC is gone.
    ran = collect(allow_empty=True)
    assert {one["action"] for one in of(ran, network="pwgone")} == {"deleted"}
    assert [one["action"] for one in of(ran, container_id="foreign")] == ["deleted"]
    assert {one["action"] for one in of(ran, network="pwgoff")} == {"left"}
    detach([LIVE, DEAD, DISABLED])
