# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""ADD of networks and single plugins (Go: libcni/api_test.go)."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import api, conf
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import (
    CacheError,
    ConfigError,
    JSONError,
    PluginError,
    PluginListError,
    PluginNotFoundError,
    ResultError,
    ValidationError,
)

RESULT = '{"cniVersion":"1.1.0","ips":[{"address":"10.1.2.3/24"}],"dns":{}}'
CANONICAL = b'{"cniVersion":"1.1.0","ips":[{"address":"10.1.2.3/24"}]}'


# ---- one plugin


def test_add_network(world):
    debug = world.debug(ReportResult=RESULT)
    net = world.net(debug, keys="kept", number=1500.0, big=9007199254740993)
    rt = world.rt(args=[("FOO", "BAR"), ("X", "y")])
    result = world.cni.add_network(net, rt)
    assert result.to_json() == CANONICAL
    assert debug.command == "ADD"
    args = debug.args
    assert {name: args[name] for name in ("CONTAINERID", "NETNS", "IFNAME", "ARGS", "PATH")} == {
        "CONTAINERID": "some-container-id",
        "NETNS": "/some/netns/path",
        "IFNAME": "eth0",
        "ARGS": "FOO=BAR;X=y",
        "PATH": str(world.bin),
    }
    assert args["StdinData"] == (
        f'{{"big":9007199254740993,"cniVersion":"1.1.0","debugFile":"{debug.path}","keys":"kept","name":"apitest",'
        '"number":1500,"type":"noop"}'
    )
    assert world.cni.get_network_cached_result(net, rt) == result
    config, cached_rt = world.cni.get_network_cached_config(net, world.rt())
    assert config == net.bytes
    assert cached_rt.args == [("FOO", "BAR"), ("X", "y")]
    for container_id in ("", "some-container-id"):
        [found] = world.cni.get_cached_attachments(container_id)
        assert (found.network, found.container_id, found.if_name, found.net_ns, found.config) == (
            "apitest",
            "some-container-id",
            "eth0",
            "/some/netns/path",
            net.bytes,
        )
        assert (found.cni_args, found.capability_args) == ([["FOO", "BAR"], ["X", "y"]], {})
    assert world.cni.get_cached_attachments("other") == []


def test_cache_file_is_exactly_gos(world):
    debug = world.debug(ReportResult='{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.1.2.3/24"}]}')
    data = b'{"name":"n","type":"noop","cniVersion":"0.4.0","debugFile":"%s"}' % os.fsencode(debug.path)
    rt = world.rt(capability_args={"b": {"z": 1, "a": 2}})
    world.cni.add_network(conf.network_plugin_conf_from_bytes(data), rt)
    path = world.cache_file("n")
    content = json.loads(path.read_bytes())
    config = content["config"]
    assert (
        path.read_bytes()
        == (
            '{"kind":"cniCacheV1","containerId":"some-container-id","config":"%s","ifName":"eth0","networkName":"n",'
            '"netns":"/some/netns/path","capabilityArgs":{"b":{"a":2,"z":1}},"result":{"cniVersion":"0.4.0","dns":{},'
            '"ips":[{"address":"10.1.2.3/24","version":"4"}]}}' % config
        ).encode()
    )
    assert os.listdir(world.cache) == ["results"]
    assert [path.stat().st_mode & 0o7777, path.parent.stat().st_mode & 0o7777] == [0o600, 0o700]


def test_capabilities(world):
    debug = world.debug(ReportResult=RESULT)
    net = world.net(debug, capabilities={"portMappings": True, "somethingElse": True, "noCapability": False})
    wanted = {"portMappings": [{"hostPort": 8080}], "somethingElse": ["foo"], "noCapability": 1, "notAdded": [1]}
    world.cni.add_network(net, world.rt(capability_args=wanted))
    assert debug.stdin["runtimeConfig"] == {"portMappings": [{"hostPort": 8080}], "somethingElse": ["foo"]}
    # capabilities themselves are passed on, as Go does.
    assert debug.stdin["capabilities"]["noCapability"] is False
    assert world.cni.get_cached_attachments()[0].capability_args == wanted
    assert world.cni.validate_network(net) == ["portMappings", "somethingElse"]


def test_no_common_capability(world):
    debug = world.debug(ReportResult=RESULT)
    world.cni.add_network(world.net(debug, capabilities={"a": True}), world.rt(capability_args={"b": 1}))
    assert "runtimeConfig" not in debug.stdin


def test_runtime_config_of_the_user(world):
    debug = world.debug(ReportResult=RESULT)
    net = world.net(debug, runtimeConfig={"user": 1}, capabilities={"a": True})
    world.cni.add_network(net, world.rt())
    assert debug.stdin["runtimeConfig"] == {"user": 1}
    world.cni.add_network(net, world.rt(capability_args={"a": 2}))
    assert debug.stdin["runtimeConfig"] == {"a": 2}


@pytest.mark.parametrize("verb", ["add_network", "check_network", "del_network"])
def test_unknown_plugin(world, verb):
    net = conf.network_plugin_conf_from_bytes(b'{"name":"n","type":"does-not-exist","cniVersion":"1.1.0"}')
    with pytest.raises(PluginNotFoundError, match=r'failed to find plugin "does-not-exist"'):
        getattr(world.cni, verb)(net, world.rt())


def test_legacy_plugin(world):
    """Go: libcni/backwards_compatibility_test.go. Such a plugin answers in the shape of 0.1.0 and names no version."""
    world.script("old", 'cat >/dev/null; [ "$CNI_COMMAND" != ADD ] || echo \'{"ip4":{"ip":"10.1.2.3/24"}}\'')
    old = conf.network_plugin_conf_from_bytes(b'{ "name": "old-thing", "type": "old" }')
    result = world.cni.add_network(old, world.rt())
    assert result.to_dict() == {"cniVersion": "0.1.0", "ip4": {"ip": "10.1.2.3/24"}, "dns": {}}
    world.cni.del_network(old, world.rt())
    assert world.cni.get_cached_attachments() == []


def test_add_that_fails(world):
    debug = world.debug(ReportError="plugin error: banana")
    with pytest.raises(PluginError) as caught:
        world.cni.add_network(world.net(debug), world.rt())
    assert str(caught.value) == "plugin error: banana"
    assert (caught.value.code, caught.value.plugin) == (999, "noop")
    assert world.cni.get_cached_attachments() == []


def test_add_where_the_cache_cannot_be_written(world):
    debug = world.debug(ReportResult=RESULT)
    world.cache.mkdir()
    (world.cache / "results").write_text("")
    with pytest.raises(CacheError, match=r'^failed to set network "apitest" cached result: .*not a directory'):
        world.cni.add_network(world.net(debug), world.rt())
    # Known before the plugin ran: nothing is attached that nobody can delete.
    assert debug.command is None
    with pytest.raises(CacheError, match=r'^failed to set network "some-list" cached result: .*not a directory'):
        world.cni.add_network_list(world.lst([debug]), world.rt())
    assert debug.command is None


@pytest.mark.parametrize(
    "changed", [{"container_id": "c" * 250}, {"capability_args": {"a": object()}}, {"capability_args": {"a": 1e999}}]
)
def test_add_of_what_cannot_be_cached(world, changed):
    debug = world.debug(ReportResult=RESULT)
    with pytest.raises(CacheError, match=r'^failed to set network "apitest" cached result: '):
        world.cni.add_network(world.net(debug), world.rt(**changed))
    assert debug.command is None


def test_add_does_not_touch_another_attachments_entry(world):
    debug = world.debug(ReportResult=RESULT)
    world.cni.add_network(world.net(debug, name="a-b"), world.rt(container_id="c"))
    debug.set(ReportResult=RESULT)
    with pytest.raises(CacheError, match=r"belongs to another attachment"):
        world.cni.add_network(world.net(debug, name="a"), world.rt(container_id="b-c"))
    assert debug.command is None


@pytest.mark.parametrize(
    ("stdout", "text"),
    [
        ("", "failed to unmarshal raw result: unexpected end of JSON input"),
        ("nonsense", "failed to unmarshal raw result: invalid JSON"),
        ("[]", "failed to unmarshal raw result: json: cannot unmarshal array"),
        ('{"cniVersion":"9.9.9"}', 'unsupported CNI result version "9.9.9"'),
        ('{"cniVersion":"1.0.0","ips":[{"address":"x"}]}', "ips/0/address: invalid CIDR address: x"),
        ("[" * 100000, "failed to unmarshal raw result: the value is nested too deeply"),
    ],
    ids=range(6),
)
def test_garbage_with_exit_status_0(world, stdout, text):
    debug = world.debug(RawStdout=stdout, ReportStderr="trace")
    with pytest.raises(PluginError) as caught:
        world.cni.add_network(world.net(debug), world.rt())
    assert text in str(caught.value)
    assert (caught.value.plugin, caught.value.stderr) == ("noop", "trace")
    assert isinstance(caught.value.cause, (JSONError, ResultError))
    assert not world.cache_file("apitest").exists()


@pytest.mark.parametrize(("version", "effective"), [("0.3.1", "0.3.1"), ("", "0.1.0"), ("1.1.0", "1.1.0")])
def test_result_without_version_has_the_configurations(world, version, effective):
    debug = world.debug(ReportResult="{}")
    assert world.cni.add_network(world.net(debug, version), world.rt()).version == effective


def test_result_of_another_version_is_accepted(world):
    debug = world.debug(ReportResult='{"cniVersion":"0.4.0"}')
    assert world.cni.add_network(world.net(debug, "1.0.0"), world.rt()).version == "0.4.0"


# ---- networks


@pytest.fixture
def three(world):
    """Debug files of a chain: a result, the same again, the same with DNS."""
    return [
        world.debug("d0", ReportResult=RESULT),
        world.debug("d1", ReportResult="PASSTHROUGH"),
        world.debug("d2", ReportResult="INJECT-DNS"),
    ]


def test_add_network_list(world, three):
    keys = [
        {"capabilities": {"portMappings": True}},
        {"name": "overridden"},
        {"capabilities": {"otherCapability": True}},
    ]
    lst = world.lst(three, plugin_keys=keys)
    wanted = {"portMappings": [1], "otherCapability": 33, "unused": 1}
    rt = world.rt(args=[("FOO", "BAR")], capability_args=wanted)
    result = world.cni.add_network_list(lst, rt)
    expected = {"cniVersion": "1.1.0", "dns": {"nameservers": ["1.2.3.4"]}, "ips": [{"address": "10.1.2.3/24"}]}
    assert result.to_dict() == expected

    stdins = [debug.stdin for debug in three]
    assert [stdin["name"] for stdin in stdins] == ["some-list"] * 3
    assert [stdin["cniVersion"] for stdin in stdins] == ["1.1.0"] * 3
    assert "prevResult" not in stdins[0]
    assert stdins[1]["prevResult"] == stdins[2]["prevResult"] == json.loads(CANONICAL)
    assert [stdin.get("runtimeConfig") for stdin in stdins] == [{"portMappings": [1]}, None, {"otherCapability": 33}]
    assert [debug.args["ARGS"] for debug in three] == ["FOO=BAR"] * 3
    assert [entry["Command"] for entry in world.commands()] == ["ADD"] * 3

    assert world.cni.get_network_list_cached_result(lst, rt) == result
    config, cached_rt = world.cni.get_network_list_cached_config(lst, world.rt(net_ns="/now"))
    assert config == lst.bytes
    assert (cached_rt.args, cached_rt.capability_args) == ([("FOO", "BAR")], wanted)
    # As in Go, the netns is the caller's and not the cached one.
    assert (cached_rt.net_ns, cached_rt.container_id, cached_rt.if_name) == ("/now", "some-container-id", "eth0")


def test_prev_result_is_written_as_go_writes_it(world):
    debugs = [
        world.debug("d0", ReportResult='{"ips":[{"version":"4","address":"10.1.2.3/24","interface":0}]}'),
        world.debug("d1", ReportResult="PASSTHROUGH"),
        world.debug("d2", ReportResult="PASSTHROUGH"),
    ]
    keys = [{}, {}, {"capabilities": {"c": True}}]
    world.cni.add_network_list(world.lst(debugs, "0.4.0", plugin_keys=keys), world.rt(capability_args={"c": 1}))
    ip = '{"version":"4","interface":0,"address":"10.1.2.3/24"}'
    assert f'"prevResult":{{"cniVersion":"0.4.0","ips":[{ip}],"dns":{{}}}}' in debugs[1].args["StdinData"]
    # The runtimeConfig is put in by a second pass, which sorts what the first one wrote as a struct.
    sorted_ip = '{"address":"10.1.2.3/24","interface":0,"version":"4"}'
    assert f'"prevResult":{{"cniVersion":"0.4.0","dns":{{}},"ips":[{sorted_ip}]}}' in debugs[2].args["StdinData"]


def test_unknown_keys_of_a_result_go_no_further(world, three):
    three[0].set(ReportResult='{"cniVersion":"1.1.0","custom":1,"interfaces":[{"name":"a","extra":2}]}')
    lst = world.lst(three)
    world.cni.add_network_list(lst, world.rt())
    assert three[1].stdin["prevResult"] == {"cniVersion": "1.1.0", "interfaces": [{"name": "a"}]}
    assert "custom" not in world.cache_file().read_text()
    assert "extra" not in world.cache_file().read_text()


def test_failing_plugin_stops_the_chain(world, three):
    three[1].set(ReportError="plugin error: banana", ReportErrorCode=123, ReportErrorDetails="split", ReportStderr="tr")
    with pytest.raises(PluginListError) as caught:
        world.cni.add_network_list(world.lst(three), world.rt())
    error = caught.value
    assert str(error) == 'plugin type="noop" failed (add): plugin error: banana; split'
    assert (error.code, error.msg, error.details, error.plugin) == (123, "plugin error: banana", "split", "noop")
    assert (error.stderr, error.verb) == ("tr", "add")
    assert isinstance(error.cause, PluginError)
    assert three[2].command is None
    assert not world.cache_file().exists()


def test_error_names_the_plugins_own_name(world, three):
    three[0].set(ReportError="banana")
    with pytest.raises(PluginError, match=r'^plugin type="noop" name="first" failed'):
        world.cni.add_network_list(world.lst(three, plugin_keys=[{"name": "first"}, {}, {}]), world.rt())


def test_missing_plugin_of_a_chain(world, three):
    lst = world.lst(three, plugin_keys=[{}, {"type": "nope"}, {}])
    with pytest.raises(PluginListError) as caught:
        world.cni.add_network_list(lst, world.rt())
    assert str(caught.value) == (f'plugin type="nope" failed (add): failed to find plugin "nope" in path [{world.bin}]')
    assert isinstance(caught.value.cause, PluginNotFoundError)
    assert three[2].command is None


@pytest.mark.parametrize(
    ("changed", "name", "code", "text"),
    [
        ({"container_id": ""}, "n", 3, "missing containerID"),
        ({"container_id": "some-%%container-id"}, "n", 4, "invalid characters in containerID; some-%%container-id"),
        ({}, "invalid-%%-name", 7, "invalid characters found in network name; invalid-%%-name"),
        ({"if_name": ""}, "n", 4, "interface name is empty"),
        ({"if_name": "test/test"}, "n", 4, "interface name contains / or : or whitespace characters"),
    ],
)
def test_add_validates(world, three, changed, name, code, text):
    with pytest.raises(PluginListError) as caught:
        world.cni.add_network_list(world.lst(three, name=name), world.rt(**changed))
    assert str(caught.value) == f'plugin type="noop" failed (add): {text}'
    assert caught.value.code == code
    assert isinstance(caught.value.cause, ValidationError)
    assert not world.commands()


def test_add_network_validates(world):
    debug = world.debug()
    with pytest.raises(ValidationError):
        world.cni.add_network(world.net(debug), world.rt(container_id="../x"))
    assert debug.command is None


def test_network_without_plugins(world):
    with pytest.raises(ConfigError, match=r'^network "n" has no plugins$'):
        world.cni.add_network_list(conf.network_conf_from_bytes(b'{"name":"n"}'), world.rt())


def test_drop_ins_are_cached(world):
    debugs = [world.debug("d0", ReportResult=RESULT), world.debug("d1", ReportResult="PASSTHROUGH")]
    net_d = world.path / "net.d"
    (net_d / "net").mkdir(parents=True)
    (net_d / "10.conflist").write_text(
        json.dumps(
            {"name": "net", "cniVersion": "1.1.0", "plugins": [{"type": "noop", "debugFile": str(debugs[0].path)}]}
        )
    )
    (net_d / "net" / "10.conf").write_text(json.dumps({"type": "noop", "debugFile": str(debugs[1].path)}))
    lst = conf.load_network_conf(str(net_d), "net")
    world.cni.add_network_list(lst, world.rt())
    config, _rt = world.cni.get_network_list_cached_config(lst, world.rt())
    cached = conf.network_conf_from_bytes(config)
    # With the drop-in gone from the disk, a DEL by the cache still reaches its plugin.
    world.cni.del_network_list(cached, world.rt())
    assert [debug.command for debug in debugs] == ["DEL", "DEL"]


def test_two_interfaces_of_one_container(world, three):
    lst = world.lst(three)
    for if_name, address in (("eth0", "10.1.2.3/24"), ("eth1", "10.1.2.5/24")):
        three[0].set(ReportResult=RESULT.replace("10.1.2.3/24", address))
        three[1].set(ReportResult="PASSTHROUGH")
        three[2].set(ReportResult="PASSTHROUGH")
        world.cni.add_network_list(lst, world.rt(if_name=if_name))
    files = [json.loads(world.cache_file(if_name=name).read_text()) for name in ("eth0", "eth1")]
    assert [(file["kind"], file["ifName"]) for file in files] == [("cniCacheV1", "eth0"), ("cniCacheV1", "eth1")]
    assert [file["result"]["ips"][0]["address"] for file in files] == ["10.1.2.3/24", "10.1.2.5/24"]
    assert len(world.cni.get_cached_attachments("some-container-id")) == 2


def test_timeout_is_one_plugin_calls(world):
    world.cni.timeout = 0.5
    debug = world.debug(Sleep=600)
    with pytest.raises(PluginError, match=r"^netplugin failed with no error message: signal: killed"):
        world.cni.add_network(world.net(debug), world.rt())


def test_executor_can_be_replaced(world):
    class Fake(api.Executor):
        def __init__(self):
            super().__init__()
            self.calls = []

        def find_in_path(self, plugin, paths):
            return f"/fake/{plugin}"

        def exec_plugin(self, path, stdin, env, timeout=None):
            self.calls.append((path, env["CNI_COMMAND"], timeout))
            return CANONICAL

    fake = Fake()
    cni = api.CNIConfig([], str(world.cache), timeout=7, executor=fake)
    net = world.net(world.debug())
    assert cni.add_network(net, world.rt()).addresses == ["10.1.2.3/24"]
    cni.check_network(net, world.rt())
    cni.del_network(net, world.rt())
    assert fake.calls == [("/fake/noop", command, 7) for command in ("ADD", "CHECK", "DEL")]


def test_default_cache_directory():
    assert api.CNIConfig(["/x"]).cache_dir == "/var/lib/cni"
