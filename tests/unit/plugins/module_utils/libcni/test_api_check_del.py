# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""CHECK and DEL, and the cached result that they pass on (Go: libcni/api_test.go)."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import api
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import (
    CacheError,
    CheckNotSupportedError,
    CNIError,
    PluginError,
    PluginListError,
    PluginNotFoundError,
    ResultError,
    ValidationError,
    VersionError,
)

LEGACY = '{"cniVersion":"%s","ips":[{"version":"4","address":"10.1.2.3/24"}],"dns":{}}'
CACHED = (
    '{"kind":"cniCacheV1","containerId":"some-container-id","ifName":"eth0","networkName":"%s",'
    '"config":"e30=","result":%s}'
)
RESULT_110 = {"cniVersion": "1.1.0", "ips": [{"address": "10.1.2.3/24"}]}


@pytest.fixture
def debug(world):
    return world.debug()


@pytest.fixture
def three(world):
    return [world.debug(f"d{number}") for number in range(3)]


def put(world, result, network="some-list"):
    return world.put_cache(CACHED % (network, result), network=network)


# ---- CHECK, one plugin


@pytest.mark.parametrize("verb", ["check", "del"])
def test_check_and_del_with_a_bare_result(world, debug, verb):
    world.put_cache(LEGACY % "0.4.0", network="apitest")
    net = world.net(debug, "0.4.0")
    getattr(world.cni, f"{verb}_network")(net, world.rt())
    assert debug.command == verb.upper()
    assert debug.stdin == {**net.network, "prevResult": json.loads(LEGACY % "0.4.0")}
    world.put_cache(LEGACY % "0.4.0")
    getattr(world.cni, f"{verb}_network_list")(world.lst([debug], "0.4.0"), world.rt())
    assert debug.stdin["prevResult"] == json.loads(LEGACY % "0.4.0")


@pytest.mark.parametrize("verb", ["check", "del"])
def test_check_and_del_pass_the_result_and_the_arguments_and_nothing_else(world, debug, verb):
    put(world, LEGACY % "1.1.0", "apitest")
    net = world.net(debug, capabilities={"ports": True})
    getattr(world.cni, f"{verb}_network")(net, world.rt(args=[("A", "b")], capability_args={"ports": [1]}))
    assert debug.stdin == {**net.network, "runtimeConfig": {"ports": [1]}, "prevResult": RESULT_110}
    arguments = [debug.args[name] for name in ("CONTAINERID", "NETNS", "IFNAME", "ARGS", "PATH")]
    assert arguments == ["some-container-id", "/some/netns/path", "eth0", "A=b", str(world.bin)]


def test_check_without_a_cached_result(world, debug):
    world.cni.check_network(world.net(debug), world.rt())
    assert "prevResult" not in debug.stdin


def test_prev_result_of_the_configuration_is_replaced(world, debug):
    put(world, LEGACY % "1.1.0", "apitest")
    world.cni.check_network(world.net(debug, prevResult={"cniVersion": "1.1.0"}), world.rt())
    assert debug.stdin["prevResult"] == RESULT_110


@pytest.mark.parametrize("version", ["", "0.1.0", "0.3.1"])
def test_check_needs_0_4_0(world, debug, version):
    with pytest.raises(CheckNotSupportedError) as caught:
        world.cni.check_network(world.net(debug, version), world.rt())
    assert str(caught.value) == f'configuration version "{version}" does not support the CHECK command'
    assert debug.command is None
    with pytest.raises(CheckNotSupportedError):
        world.cni.check_network_list(world.lst([debug], version, disableCheck=True), world.rt())


def test_check_of_a_version_that_is_none(world, debug):
    with pytest.raises(VersionError):
        world.cni.check_network(world.net(debug, "bogus"), world.rt())
    with pytest.raises(VersionError):
        world.cni.check_network_list(world.lst([debug], "bogus"), world.rt())


def test_check_with_garbage_in_the_cache(world, debug):
    world.put_cache("adfadsfasdfasfdsafaf", network="apitest")
    with pytest.raises(CacheError) as caught:
        world.cni.check_network(world.net(debug), world.rt())
    assert str(caught.value).startswith(
        'failed to get network "apitest" cached result: decoding version from network config: '
    )
    assert debug.command is None


def test_check_and_del_convert_the_cached_result(world, debug):
    world.put_cache(LEGACY % "0.3.1", network="apitest")
    for verb in (world.cni.check_network, world.cni.del_network):
        verb(world.net(debug, "1.1.0"), world.rt())
        assert debug.stdin["prevResult"] == RESULT_110


def test_check_with_a_cached_version_that_nobody_knows(world, debug):
    for content in (LEGACY % "0.4567.0", CACHED % ("apitest", LEGACY % "0.4567.0")):
        world.put_cache(content, network="apitest")
        with pytest.raises(CacheError) as caught:
            world.cni.check_network(world.net(debug), world.rt())
        assert str(caught.value) == (
            'failed to get network "apitest" cached result: unsupported CNI result version "0.4567.0"'
        )


def test_check_under_a_version_that_the_result_cannot_have(world, debug):
    put(world, LEGACY % "1.1.0", "apitest")
    with pytest.raises(CacheError) as caught:
        world.cni.check_network(world.net(debug, "1.2.0"), world.rt())
    assert str(caught.value) == (
        'failed to get network "apitest" cached result: failed to convert cached result to config version "1.2.0": '
        "no converter for CNI result version 1.1.0 to 1.2.0"
    )


@pytest.mark.parametrize("verb", ["check", "del"])
def test_check_and_del_that_fail(world, debug, verb):
    debug.set(ReportError="banana")
    with pytest.raises(PluginError, match=r"^banana$"):
        getattr(world.cni, f"{verb}_network")(world.net(debug), world.rt())


def test_check_never_uses_another_attachments_result(world, debug):
    put(world, LEGACY % "1.1.0", "a-b")
    world.put_cache(CACHED % ("other", LEGACY % "1.1.0"), network="apitest")
    with pytest.raises(CacheError, match=r'cache file .* belongs to another attachment: network "other"'):
        world.cni.check_network(world.net(debug), world.rt())
    assert debug.command is None


# ---- CHECK, networks


def test_check_network_list(world, three):
    put(world, LEGACY % "1.1.0")
    world.cni.check_network_list(world.lst(three), world.rt())
    assert [debug.command for debug in three] == ["CHECK"] * 3
    assert [debug.stdin["prevResult"] for debug in three] == [RESULT_110] * 3
    assert world.cache_file().exists()


def test_check_stops_at_the_first_failure(world, three):
    three[1].set(ReportError="banana", ReportErrorCode=101)
    with pytest.raises(PluginError) as caught:
        world.cni.check_network_list(world.lst(three), world.rt())
    # Not wrapped, unlike ADD and DEL.
    assert str(caught.value) == "banana"
    assert caught.value.code == 101
    assert [debug.command for debug in three] == ["CHECK", "CHECK", None]


def test_disable_check(world, three):
    world.put_cache("garbage")
    for value in (True, "true"):
        assert world.cni.check_network_list(world.lst(three, disableCheck=value), world.rt()) is None
    assert not world.commands()


# ---- DEL


def test_del_network(world, debug):
    path = put(world, LEGACY % "1.1.0", "apitest")
    net = world.net(debug)
    rt = world.rt()
    world.cni.del_network(net, rt)
    assert not path.exists()
    assert world.cni.get_network_cached_result(net, rt) is None
    assert world.cni.get_network_cached_config(net, rt) == (None, None)
    assert world.cni.get_cached_attachments() == []
    world.cni.del_network(net, rt)
    assert "prevResult" not in debug.stdin


def test_del_before_0_4_0_has_no_result_but_removes_the_entry(world, debug):
    for version in ("", "0.2.0", "0.3.1"):
        path = put(world, LEGACY % "0.3.1", "apitest")
        world.cni.del_network(world.net(debug, version), world.rt())
        assert "prevResult" not in debug.stdin
        assert not path.exists()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "garbage",
        LEGACY % "0.4567.0",
        '{"kind":"cniCacheV1","result":{"cniVersion":"1.0.0","ips":"x"}}',
        '{"kind":"x"',
    ],
)
def test_del_tolerates_a_broken_cache(world, debug, content):
    path = world.put_cache(content, network="apitest")
    world.cni.del_network(world.net(debug), world.rt())
    assert "prevResult" not in debug.stdin
    assert not path.exists()
    path = world.put_cache(content)
    world.cni.del_network_list(world.lst([debug]), world.rt())
    assert "prevResult" not in debug.stdin
    assert not path.exists()


def test_del_removes_a_broken_entry_even_if_it_fails(world, debug):
    path = world.put_cache("garbage")
    debug.set(ReportError="banana")
    with pytest.raises(PluginListError):
        world.cni.del_network_list(world.lst([debug]), world.rt())
    assert not path.exists()


def test_del_network_list(world, three):
    put(world, LEGACY % "1.1.0")
    world.cni.del_network_list(world.lst(three, plugin_keys=[{"n": 0}, {"n": 1}, {"n": 2}]), world.rt())
    calls = [(entry["Command"], json.loads(entry["StdinData"])) for entry in world.commands()]
    assert [(command, stdin["n"], stdin["prevResult"]) for command, stdin in calls] == [
        ("DEL", 2, RESULT_110),
        ("DEL", 1, RESULT_110),
        ("DEL", 0, RESULT_110),
    ]
    assert not world.cache_file().exists()


def test_del_that_fails_keeps_the_entry(world, three):
    path = put(world, LEGACY % "1.1.0")
    three[1].set(ReportError="banana")
    with pytest.raises(PluginListError) as caught:
        world.cni.del_network_list(world.lst(three), world.rt())
    assert str(caught.value) == 'plugin type="noop" failed (delete): banana'
    assert [debug.command for debug in three] == [None, "DEL", "DEL"]
    assert path.exists()


def test_del_with_a_missing_plugin(world, three):
    with pytest.raises(PluginListError) as caught:
        world.cni.del_network_list(world.lst(three, plugin_keys=[{}, {"type": "nope"}, {}]), world.rt())
    assert isinstance(caught.value.cause, PluginNotFoundError)
    assert str(caught.value).startswith('plugin type="nope" failed (delete): failed to find plugin "nope"')
    assert [debug.command for debug in three] == [None, None, "DEL"]


def test_del_of_a_version_that_is_none(world, debug):
    put(world, LEGACY % "1.1.0")
    with pytest.raises(VersionError):
        world.cni.del_network_list(world.lst([debug], "bogus"), world.rt())
    assert debug.command is None
    assert world.cache_file().exists()


def test_del_leaves_another_attachments_entry(world, debug):
    path = world.put_cache(CACHED % ("other", LEGACY % "1.1.0"))
    world.cni.del_network_list(world.lst([debug]), world.rt())
    assert debug.command == "DEL"
    assert "prevResult" not in debug.stdin
    assert path.exists()


# ---- names are validated on every verb


BAD_RTS = [{"container_id": "../../x"}, {"container_id": ""}, {"if_name": "../x"}, {"if_name": ""}, {"if_name": "a\n"}]


@pytest.mark.parametrize("changed", BAD_RTS)
@pytest.mark.parametrize("verb", ["check_network_list", "del_network_list"])
def test_bad_ids(world, debug, verb, changed):
    outside = world.path / "x-some-container-id-eth0"
    outside.write_text("")
    with pytest.raises(ValidationError):
        getattr(world.cni, verb)(world.lst([debug]), world.rt(**changed))
    with pytest.raises(ValidationError):
        getattr(world.cni, verb.replace("_list", ""))(world.net(debug), world.rt(**changed))
    assert debug.command is None
    assert outside.exists()


@pytest.mark.parametrize("name", ["../x", "", "a/b", "n\n"])
def test_bad_network_names(world, debug, name):
    lst = world.lst([debug], name=name)
    calls = [
        lambda: world.cni.check_network_list(lst, world.rt()),
        lambda: world.cni.del_network_list(lst, world.rt()),
        lambda: world.cni.gc_network_list(lst, []),
        lambda: world.cni.get_status_network_list(lst),
        lambda: world.cni.validate_network_list(lst),
    ]
    for call in calls:
        with pytest.raises(ValidationError):
            call()
    with pytest.raises(CNIError):
        world.cni.get_network_list_cached_result(lst, world.rt())
    with pytest.raises(CNIError):
        world.cni.get_network_list_cached_config(lst, world.rt())
    assert debug.command is None


# ---- what is cached


def test_cached_result_is_converted(world, debug):
    put(world, LEGACY % "0.4.0")
    lst = world.lst([debug], "1.0.0")
    result = world.cni.get_network_list_cached_result(lst, world.rt())
    assert result.to_dict() == {"cniVersion": "1.0.0", "ips": [{"address": "10.1.2.3/24"}]}
    with pytest.raises(ResultError, match=r'^failed to convert cached result to config version "1.2.3": '):
        world.cni.get_network_list_cached_result(world.lst([debug], "1.2.3"), world.rt())


def test_entry_without_a_result_is_an_empty_result(world, debug):
    world.put_cache('{"kind":"cniCacheV1"}')
    result = world.cni.get_network_list_cached_result(world.lst([debug], "0.1.0"), world.rt())
    assert result.to_dict() == {"cniVersion": "0.1.0", "dns": {}}


@pytest.mark.parametrize(
    ("changed", "names"),
    [({"container_id": ""}, ("some-list", "", "eth0")), ({"if_name": ""}, ("some-list", "some-container-id", ""))],
)
def test_cached_things_need_all_names(world, debug, changed, names):
    text = 'cache file path requires network name ("{}"), container ID ("{}"), and interface name ("{}")'.format(*names)
    for function in (world.cni.get_network_list_cached_result, world.cni.get_network_list_cached_config):
        with pytest.raises(CacheError) as caught:
            function(world.lst([debug]), world.rt(**changed))
        assert str(caught.value) == text


def test_cached_config_that_cannot_be_used(world, debug):
    lst = world.lst([debug], name="cachetest")
    world.put_cache("adfadsfasdfasfdsafaf", network="cachetest")
    with pytest.raises(CacheError, match=r'^failed to unmarshal cached network "cachetest" config: '):
        world.cni.get_network_list_cached_config(lst, world.rt())
    world.put_cache('{"kind":"other"}', network="cachetest")
    with pytest.raises(CacheError, match=r'^read cached network "cachetest" config has wrong kind: other$'):
        world.cni.get_network_list_cached_config(lst, world.rt())
    world.put_cache(CACHED % ("other", "{}"), network="cachetest")
    with pytest.raises(CacheError, match=r"belongs to another attachment"):
        world.cni.get_network_list_cached_config(lst, world.rt())
    assert world.cni.get_network_list_cached_config(lst, world.rt(container_id="none")) == (None, None)


def test_cached_arguments_replace_the_callers(world, debug):
    lst = world.lst([debug])
    put(world, "{}")
    rt = world.rt(args=[("A", "b")], capability_args={"c": 1})
    _config, found = world.cni.get_network_list_cached_config(lst, rt)
    # Arguments that were not cached stay; capability arguments never do.
    assert (found.args, found.capability_args) == ([("A", "b")], {})
    world.put_cache('{"kind":"cniCacheV1","cniArgs":[],"capabilityArgs":{"d":2}}')
    _config, found = world.cni.get_network_list_cached_config(lst, rt)
    assert (found.args, found.capability_args) == ([], {"d": 2})
    assert (rt.args, rt.capability_args) == ([("A", "b")], {"c": 1})


def test_verbs_on_a_path_that_does_not_answer(world, debug):
    debug.set(Sleep=600)
    cni = api.CNIConfig([str(world.bin)], str(world.cache), timeout=0.3)
    net, lst, rt = world.net(debug), world.lst([debug]), world.rt()
    calls = [
        lambda: cni.check_network(net, rt),
        lambda: cni.del_network(net, rt),
        lambda: cni.add_network_list(lst, rt),
        lambda: cni.check_network_list(lst, rt),
        lambda: cni.del_network_list(lst, rt),
        lambda: cni.gc_network_list(lst, []),
        lambda: cni.get_status_network_list(lst),
    ]
    for call in calls:
        with pytest.raises(CNIError, match=r"netplugin failed with no error message: signal: killed"):
            call()
    world.script("noop", "exec sleep 600")
    for call in (
        lambda: cni.validate_network(net),
        lambda: cni.validate_network_list(lst),
        lambda: cni.get_version_info("noop"),
    ):
        with pytest.raises(CNIError, match=r"netplugin failed with no error message: signal: killed"):
            call()
