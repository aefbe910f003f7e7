# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Verbs of networks: what is not in test_api_*.py (Go: libcni/api_test.go, "Invoking a plugin list")."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import (
    CacheError,
    PluginListError,
    PluginNotFoundError,
    ValidationError,
)

OLD = {"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "10.1.2.3/24"}], "dns": {}}


@pytest.fixture
def three(world):
    return [world.debug(f"d{number}", ReportResult=json.dumps(OLD)) for number in range(3)]


INVALID = "interface name contains / or : or whitespace characters"


@pytest.mark.parametrize(
    ("if_name", "msg", "details"),
    [
        ("", "interface name is empty", ""),
        ("1234567890123456", "interface name is too long", "interface name should be less than 16 characters"),
        (".", "interface name is . or ..", ""),
        ("..", "interface name is . or ..", ""),
        ("test/test", INVALID, ""),
        ("test:test", INVALID, ""),
        ("test test", INVALID, ""),
    ],
)
def test_add_with_a_bad_interface_name(world, three, if_name, msg, details):
    with pytest.raises(PluginListError) as caught:
        world.cni.add_network_list(world.lst(three), world.rt(if_name=if_name))
    cause = caught.value.cause
    assert isinstance(cause, ValidationError)
    assert (cause.code, cause.msg, cause.details) == (4, msg, details)
    assert str(caught.value).startswith('plugin type="noop" failed (add): ')


@pytest.mark.parametrize("verb", ["check", "del"])
def test_cached_result_of_0_4_0(world, three, verb):
    world.put_cache(json.dumps(OLD))
    getattr(world.cni, f"{verb}_network_list")(world.lst(three, "0.4.0"), world.rt())
    assert [debug.command for debug in three] == [verb.upper()] * 3
    assert three[0].stdin["prevResult"] == OLD


def test_del_before_0_4_0_has_no_cached_result(world, three):
    world.put_cache(json.dumps({**OLD, "cniVersion": "0.3.1"}))
    world.cni.del_network_list(world.lst(three, "0.3.1"), world.rt())
    assert "prevResult" not in three[0].stdin
    assert not world.cache_file().exists()


def test_check_of_a_plugin_that_is_not_there(world, three):
    lst = world.lst(three)
    lst.plugins[1].type = "does-not-exist"
    with pytest.raises(PluginNotFoundError, match=r'failed to find plugin "does-not-exist"'):
        world.cni.check_network_list(lst, world.rt())


def test_check_with_garbage_in_the_cache(world, three):
    world.put_cache("adfadsfasdfasfdsafaf")
    with pytest.raises(CacheError) as caught:
        world.cni.check_network_list(world.lst(three), world.rt())
    # What follows is the JSON error, whose text is the library's own in Go, too.
    assert str(caught.value).startswith(
        'failed to get network "some-list" cached result: decoding version from network config: '
    )


def test_del_twice_ends_with_nothing_cached(world, three):
    lst, rt = world.lst(three), world.rt()
    world.put_cache(json.dumps(OLD))
    for _turn in range(2):
        world.cni.del_network_list(lst, rt)
        assert world.cni.get_network_list_cached_result(lst, rt) is None
        assert world.cni.get_network_list_cached_config(lst, rt) == (None, None)
