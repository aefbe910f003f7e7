# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""GC, STATUS and validation of networks (Go: libcni/api_test.go; libcni.md 1.8)."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import conf
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import (
    CacheError,
    CNIError,
    MultiError,
    PluginError,
    PluginNotFoundError,
)

RESULT = '{"cniVersion":"1.1.0","ips":[{"address":"10.1.2.3/24"}]}'


@pytest.fixture
def debug(world):
    return world.debug(ReportResult=RESULT)


@pytest.fixture
def three(world):
    return [world.debug(f"d{number}") for number in range(3)]


def commands(world):
    return [entry["Command"] for entry in world.commands()]


# ---- GC


def test_gc(world, debug):
    lst = world.lst([debug])
    world.cni.add_network_list(lst, world.rt(args=[("A", "b")]))
    lst.disable_gc = True
    world.cni.gc_network_list(lst, [])
    assert commands(world) == ["ADD"]

    lst.disable_gc = False
    world.cni.gc_network_list(lst, [("some-container-id", "eth0"), ("other", "eth1")])
    assert commands(world) == ["ADD", "GC"]
    stdin = debug.stdin
    pairs = [{"containerID": "some-container-id", "ifname": "eth0"}, {"containerID": "other", "ifname": "eth1"}]
    assert stdin["cni.dev/valid-attachments"] == stdin["cni.dev/attachments"] == pairs
    assert (stdin["name"], stdin["cniVersion"]) == ("some-list", "1.1.0")
    names = ("CONTAINERID", "NETNS", "IFNAME", "ARGS")
    assert [debug.args[name] for name in names] == [""] * 4
    assert debug.args["PATH"] == str(world.bin)
    assert len(world.cni.get_cached_attachments()) == 1

    world.cni.gc_network_list(lst, [("some-container-id", "eth1")])
    assert commands(world) == ["ADD", "GC", "DEL", "GC"]
    assert world.cni.get_cached_attachments() == []


def test_gc_of_all(world, debug):
    lst = world.lst([debug])
    world.cni.add_network_list(lst, world.rt())
    world.cni.gc_network_list(lst, [])
    assert commands(world) == ["ADD", "DEL", "GC"]
    assert '"cni.dev/valid-attachments":[]' in debug.args["StdinData"]
    assert '"cni.dev/attachments":[]' in debug.args["StdinData"]


def test_gc_deletes_with_what_was_cached(world, debug):
    lst = world.lst([debug], plugin_keys=[{"capabilities": {"c": True}}])
    world.cni.add_network_list(lst, world.rt(args=[("A", "b")], capability_args={"c": 5}))
    debug.set()
    world.cni.gc_network_list(lst, [])
    entry = [json.loads(entry["StdinData"]) for entry in world.commands() if entry["Command"] == "DEL"]
    assert [stdin["runtimeConfig"] for stdin in entry] == [{"c": 5}]


def test_gc_before_1_1_0_deletes_only(world, debug):
    debug.set(ReportResult=RESULT.replace("1.1.0", "1.0.0"))
    lst = world.lst([debug], "1.0.0")
    world.cni.add_network_list(lst, world.rt())
    world.cni.gc_network_list(lst, [])
    assert commands(world) == ["ADD", "DEL"]


def test_gc_leaves_other_networks(world, debug):
    world.cni.add_network_list(world.lst([debug], name="other"), world.rt())
    world.cni.gc_network_list(world.lst([debug]), [])
    assert [found.network for found in world.cni.get_cached_attachments()] == ["other"]
    assert commands(world) == ["ADD", "GC"]


def test_gc_without_a_list_is_refused(world, debug):
    lst = world.lst([debug])
    world.cni.add_network_list(lst, world.rt())
    for disable in (False, True):
        lst.disable_gc = disable
        with pytest.raises(CNIError, match=r"GC needs the list of valid attachments"):
            world.cni.gc_network_list(lst, None)
    assert len(world.cni.get_cached_attachments()) == 1


@pytest.mark.parametrize(
    ("container_id", "if_name"),
    [("", "eth0"), (None, "eth0"), ("../x", "eth0"), ("a b", "eth0"), ("a", "a/b"), ("a", "x" * 16), ("a\n", "eth0")],
)
def test_gc_leaves_an_entry_that_no_attachment_can_have(world, debug, container_id, if_name):
    """No DEL can be sent for it; it must not fail each GC from then on, nor keep it from the others."""
    lst = world.lst([debug])
    world.cni.add_network_list(lst, world.rt())
    entry = json.loads(world.cache_file().read_bytes())
    entry.update(containerId=container_id, ifName=if_name)
    path = world.put_cache(json.dumps(entry), container_id="odd")
    for _turn in range(2):
        world.cni.gc_network_list(lst, [])
        assert os.listdir(world.cache / "results") == [path.name]
    assert commands(world) == ["ADD", "DEL", "GC", "GC"]
    assert len(world.cni.get_cached_attachments()) == 1


@pytest.mark.parametrize("valid", [["cid/eth0"], "cid/eth0", [("cid",)], [("cid", "eth0", "x")], [["c", "e"], "text"]])
def test_gc_with_what_are_no_pairs_deletes_nothing(world, debug, valid):
    lst = world.lst([debug])
    world.cni.add_network_list(lst, world.rt())
    with pytest.raises(ValueError, match=r"values to unpack"):
        world.cni.gc_network_list(lst, valid)
    assert commands(world) == ["ADD"]


def test_gc_goes_on_after_errors(world, three):
    lst = world.lst(three)
    three[0].set(ReportResult=RESULT)
    three[1].set(ReportResult="PASSTHROUGH")
    three[2].set(ReportResult="PASSTHROUGH")
    for if_name in ("eth0", "eth1"):
        world.cni.add_network_list(lst, world.rt(if_name=if_name))
    three[1].set()
    three[2].set(ReportError="banana")
    with pytest.raises(MultiError) as caught:
        world.cni.gc_network_list(lst, [])
    assert str(caught.value).splitlines() == [
        'failed to delete stale attachment some-container-id eth0: plugin type="noop" failed (delete): banana',
        'failed to delete stale attachment some-container-id eth1: plugin type="noop" failed (delete): banana',
        "failed to GC plugin noop: banana",
    ]
    assert len(caught.value.errors) == 3
    assert isinstance(caught.value.errors[0].__cause__, PluginError)
    assert commands(world)[-3:] == ["GC"] * 3


def test_gc_with_an_unreadable_cache(world, debug):
    world.cache.mkdir()
    (world.cache / "results").write_text("")
    with pytest.raises(CacheError):
        world.cni.gc_network_list(world.lst([debug]), [])
    assert debug.command is None


def test_gc_and_status_with_a_broken_configuration(world, three):
    lst = world.lst(three)
    lst.plugins[0].bytes = b"{"
    with pytest.raises(MultiError) as caught:
        world.cni.gc_network_list(lst, [])
    assert str(caught.value).startswith(
        "failed to generate configuration to GC plugin noop: unmarshal existing network bytes: "
    )
    assert [debug.command for debug in three] == [None, "GC", "GC"]
    with pytest.raises(CNIError, match=r"^failed to generate configuration to get plugin STATUS noop: unmarshal exist"):
        world.cni.get_status_network_list(lst)
    assert three[1].command == "GC"


# ---- STATUS


def test_status(world, three):
    lst = world.lst(three, plugin_keys=[{"capabilities": {"c": True}}, {}, {}])
    assert world.cni.get_status_network_list(lst) is None
    assert [debug.command for debug in three] == ["STATUS"] * 3
    assert "runtimeConfig" not in three[0].stdin
    assert (three[0].stdin["name"], three[0].stdin["cniVersion"]) == ("some-list", "1.1.0")


def test_status_stops_at_the_first_that_is_not_ready(world, three):
    three[1].set(ReportError="not ready", ReportErrorCode=50)
    with pytest.raises(PluginError) as caught:
        world.cni.get_status_network_list(world.lst(three))
    assert (caught.value.code, str(caught.value)) == (50, "not ready")
    assert [debug.command for debug in three] == ["STATUS", "STATUS", None]


@pytest.mark.parametrize("version", ["1.0.0", "0.4.0", "", "bogus"])
def test_status_before_1_1_0(world, three, version):
    three[0].set(ReportError="not ready")
    assert world.cni.get_status_network_list(world.lst(three, version)) is None
    assert three[0].command is None


# ---- VERSION and validation


def test_get_version_info(world):
    assert world.cni.get_version_info("noop")[-1] == "1.1.0"
    with pytest.raises(PluginNotFoundError):
        world.cni.get_version_info("nope")


def test_validate_network(world, debug):
    assert world.cni.validate_network(world.net(debug, "")) == []
    with pytest.raises(CNIError) as caught:
        world.cni.validate_network(world.net(debug, "broken"))
    assert str(caught.value) == 'plugin noop does not support config version "broken"'
    nope = conf.network_plugin_conf_from_bytes(b'{"type":"nope"}')
    with pytest.raises(PluginNotFoundError) as caught:
        world.cni.validate_network(nope)
    assert str(caught.value) == f'failed to find plugin "nope" in path [{world.bin}]'


def test_validate_network_list(world, three):
    keys = [{"capabilities": {"portMappings": True, "off": False}}, {}, {"capabilities": {"otherCapability": True}}]
    assert world.cni.validate_network_list(world.lst(three, plugin_keys=keys)) == ["otherCapability", "portMappings"]
    with pytest.raises(MultiError) as caught:
        world.cni.validate_network_list(world.lst(three, plugin_keys=[{}, {"type": "nope"}, {}]))
    assert str(caught.value) == f'[failed to find plugin "nope" in path [{world.bin}]]'
    with pytest.raises(MultiError) as caught:
        world.cni.validate_network_list(world.lst(three, "broken"))
    text = 'plugin noop does not support config version "broken"'
    assert str(caught.value) == f"[{text} {text} {text}]"
    assert len(caught.value.errors) == 3
