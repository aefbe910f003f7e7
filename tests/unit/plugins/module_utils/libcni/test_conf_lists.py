# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Loading configurations (Go: libcni/conf_test.go; libcni.md 1.2)."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import conf
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import (
    ConfigError,
    NoConfigsFoundError,
    NotFoundError,
    ValidationError,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils.libcni.test_conf import LIST, types, write

# ---- lists


def test_load_network_conf(tmp_path):
    write(tmp_path, "50-whatever.conflist", LIST)
    found = conf.load_network_conf(str(tmp_path), "some-list")
    assert (found.name, found.cni_version, found.disable_check, found.disable_gc) == ("some-list", "0.2.0", True, False)
    assert found.bytes == LIST
    assert [plugin.bytes for plugin in found.plugins] == [
        b'{"subnet":"10.0.0.1/24","type":"host-local"}',
        b'{"mtu":1400,"type":"bridge"}',
        b'{"ports":{"20.0.0.1:8080":"80"},"type":"port-forwarding"}',
    ]
    assert found.expanded_bytes() is found.bytes


def test_load_network_conf_prefers_lists(tmp_path):
    write(tmp_path, "49-whatever.conf", {"name": "some-list", "type": "bridge", "cniVersion": "1.0.0"})
    path = write(tmp_path, "50-whatever.conflist", LIST)
    assert len(conf.load_network_conf(str(tmp_path), "some-list").plugins) == 3
    os.unlink(path)
    found = conf.load_network_conf(str(tmp_path), "some-list")
    assert types(found) == ["bridge"]
    assert found.bytes == (
        b'{"cniVersion":"1.0.0","name":"some-list","plugins":[{"cniVersion":"1.0.0","name":"some-list","type":"bridge"}]}'
    )


def test_load_network_conf_reads_no_further_than_the_match(tmp_path):
    write(tmp_path, "50.conflist", LIST)
    write(tmp_path, "60.conflist", b"{")
    write(tmp_path, "00.conf", b"{")
    assert conf.load_network_conf(str(tmp_path), "some-list").name == "some-list"
    path = write(tmp_path, "40.conflist", b"{")
    with pytest.raises(ConfigError, match=r"^error parsing configuration list: ") as caught:
        conf.load_network_conf(str(tmp_path), "some-list")
    assert caught.value.path == path


def test_load_network_conf_that_is_not_there(tmp_path):
    with pytest.raises(NoConfigsFoundError):
        conf.load_network_conf(str(tmp_path / "nope"), "x")
    with pytest.raises(NoConfigsFoundError):
        conf.load_network_conf(str(tmp_path), "x")
    path = write(tmp_path, "50.conflist", LIST)
    with pytest.raises(NotFoundError):
        conf.load_network_conf(str(tmp_path), "x")
    os.unlink(path)
    write(tmp_path, "50.conf", {"name": "y", "type": "t"})
    with pytest.raises(NotFoundError):
        conf.load_network_conf(str(tmp_path), "x")


PLUGINS = b'"plugins":[{"type":"t"}]'
PREFIX = "error parsing configuration list: "


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"null", PREFIX + "no name"),
        (b"{}", PREFIX + "no name"),
        (b'{"Name":"n",%s}', PREFIX + "no name"),
        (b'{"name":null,%s}', PREFIX + "invalid name type <nil>"),
        (b'{"name":1,%s}', PREFIX + "invalid name type float64"),
        (b'{"name":"n","cniVersion":null,%s}', PREFIX + "invalid cniVersion type <nil>"),
        (b'{"name":"n","cniVersion":1.0,%s}', PREFIX + "invalid cniVersion type float64"),
        (b'{"name":"n","cniVersions":"1.0.0",%s}', PREFIX + "invalid type for cniVersions: []interface {}"),
        (b'{"name":"n","cniVersions":null,%s}', PREFIX + "invalid type for cniVersions: []interface {}"),
        (b'{"name":"n","cniVersions":["1.0.0",2],%s}', PREFIX + "invalid type for cniVersions index 1: float64"),
        (
            b'{"name":"n","cniVersions":["1.0.f"],%s}',
            PREFIX + "invalid cniVersions entry 1.0.f at index 0: failed to convert micro version part "
            '"f": strconv.Atoi: parsing "f": invalid syntax',
        ),
        (
            b'{"name":"n","cniVersion":"bogus","cniVersions":[],%s}',
            PREFIX + 'invalid cniVersion bogus: failed to convert major version part "bogus": '
            'strconv.Atoi: parsing "bogus": invalid syntax',
        ),
        (b'{"name":"n","disableCheck":null,%s}', PREFIX + "invalid type <nil> for disableCheck"),
        (b'{"name":"n","disableGC":1,%s}', PREFIX + "invalid type float64 for disableGC"),
        (b'{"name":"n","disableCheck":"ADSF",%s}', PREFIX + 'invalid value "adsf" for disableCheck'),
        (b'{"name":"n","loadOnlyInlinedPlugins":"yes",%s}', PREFIX + 'invalid value "yes" for loadOnlyInlinedPlugins'),
        (b'{"name":"n","plugins":null}', PREFIX + "invalid 'plugins' type <nil>"),
        (b'{"name":"n","plugins":{}}', PREFIX + "invalid 'plugins' type map[string]interface {}"),
        (b'{"name":"n","plugins":[]}', PREFIX + "no plugins in list"),
        (
            b'{"name":"n","loadOnlyInlinedPlugins":true}',
            PREFIX + "`loadOnlyInlinedPlugins` is true, and no 'plugins' key",
        ),
        *(
            (raw, "failed to parse plugin config 0: error parsing configuration: missing 'type'")
            for raw in (
                b'{"name":"n","plugins":[null]}',
                b'{"name":"n","plugins":[{}]}',
                b'{"name":"n","plugins":[{"type":""}]}',
            )
        ),
    ],
)
def test_lists_that_do_not_load(raw, text):
    with pytest.raises(ConfigError) as caught:
        conf.network_conf_from_bytes(raw.replace(b"%s", PLUGINS))
    assert str(caught.value) == text


@pytest.mark.parametrize(
    "raw", [b"[]", b'"x"', b"", b"{", b'{"name":"n"} x', b"\xef\xbb\xbf{}", b'{"a":NaN}', b'{"a":1e999}']
)
def test_lists_that_are_no_json_object(raw):
    with pytest.raises(ConfigError, match=r"^error parsing configuration list: "):
        conf.network_conf_from_bytes(raw)


def test_plugin_of_a_list_that_is_no_object():
    with pytest.raises(ConfigError, match=r"^failed to parse plugin config 1: error parsing configuration: json: "):
        conf.network_conf_from_bytes(b'{"name":"n","plugins":[{"type":"t"},"x"]}')


@pytest.mark.parametrize(
    ("keys", "version"),
    [
        ("", ""),
        ('"cniVersion":"",', ""),
        ('"cniVersion":"bogus",', "bogus"),
        ('"cniVersion":"1.2.3",', "1.2.3"),
        ('"cniVersions":["1.1.0","0.4.0","1.0.0"],', "1.1.0"),
        ('"cniVersions":["0.4.0","99.0.0","1.0.0"],', "1.0.0"),
        ('"cniVersion":"1.1.0","cniVersions":["0.4.0","1.0.0"],', "1.1.0"),
        ('"cniVersion":"0.4.0","cniVersions":["0.3.1","1.0.0"],', "1.0.0"),
        ('"cniVersion":"9.0.0","cniVersions":["1.0.0"],', "1.0.0"),
        ('"cniVersion":"9.0.0","cniVersions":["9.1.0"],', "9.0.0"),
        ('"cniVersions":["9.0.0"],', ""),
        ('"cniVersions":[],', ""),
        ('"cniVersions":["1.0","1.0.0"],', "1.0"),
        ('"cniVersions":["0.10.0","0.9.0"],', "0.10.0"),
    ],
)
def test_version_negotiation(keys, version):
    raw = f'{{"name":"n",{keys}"plugins":[{{"type":"t"}}]}}'
    assert conf.network_conf_from_bytes(raw.encode()).cni_version == version


@pytest.mark.parametrize("key", ["disableCheck", "disableGC", "loadOnlyInlinedPlugins"])
@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("false", False), ('"true"', True), ('"FALSE"', False), ('"True"', True)]
)
def test_booleans(key, value, expected):
    found = conf.network_conf_from_bytes(f'{{"name":"n","{key}":{value},"plugins":[{{"type":"t"}}]}}'.encode())
    attribute = {
        "disableCheck": "disable_check",
        "disableGC": "disable_gc",
        "loadOnlyInlinedPlugins": "load_only_inlined_plugins",
    }[key]
    assert getattr(found, attribute) is expected
    others = {"disable_check", "disable_gc", "load_only_inlined_plugins"} - {attribute}
    assert not any(getattr(found, name) for name in others)


def test_list_without_plugins_key():
    assert conf.network_conf_from_bytes(b'{"name":"n"}').plugins == []


# ---- drop-in folders


def drop_ins(tmp_path, name="net"):
    write(tmp_path, f"{name}/20-b.conf", {"type": "b", "z": 1.0, "a": 2})
    write(tmp_path, f"{name}/10-a.conf", {"type": "a"})
    write(tmp_path, f"{name}/30.conflist", LIST)
    write(tmp_path, f"{name}/40.json", {"type": "json"})
    write(tmp_path, f"{name}/sub/50.conf", {"type": "sub"})


def test_drop_ins_come_last(tmp_path):
    path = write(tmp_path, "10.conflist", {"name": "net", "cniVersion": "1.0.0", "plugins": [{"type": "inline"}]})
    (tmp_path / "net").mkdir()
    assert types(conf.network_conf_from_file(path)) == ["inline"]
    drop_ins(tmp_path)
    found = conf.network_conf_from_file(path)
    assert types(found) == ["inline", "a", "b"]
    assert found.drop_ins == 2
    # Plugins of the folder keep their text, the list keeps its own.
    assert found.plugins[2].bytes == json.dumps({"type": "b", "z": 1.0, "a": 2}).encode()
    with open(path, "rb") as file:
        assert found.bytes == file.read()


def test_expanded_bytes_stand_for_the_whole_list(tmp_path):
    drop_ins(tmp_path)
    raw = {"name": "net", "cniVersions": ["0.4.0", "1.0.0"], "extra": {"k": 1}, "plugins": [{"type": "inline"}]}
    found = conf.network_conf_from_file(write(tmp_path, "10.conflist", raw))
    assert found.expanded_bytes() == (
        b'{"cniVersions":["0.4.0","1.0.0"],"extra":{"k":1},"name":"net","plugins":'
        b'[{"type":"inline"},{"type":"a"},{"a":2,"type":"b","z":1}]}'
    )
    again = conf.network_conf_from_bytes(found.expanded_bytes())
    assert types(again) == types(found)
    assert again.cni_version == found.cni_version


def test_only_drop_ins(tmp_path):
    path = write(tmp_path, "10.conflist", {"name": "net", "cniVersion": "1.0.0"})
    with pytest.raises(ConfigError, match=r"^no plugin configs found$") as caught:
        conf.network_conf_from_file(path)
    assert caught.value.path == path
    drop_ins(tmp_path)
    found = conf.network_conf_from_file(path)
    assert types(found) == ["a", "b"]
    assert json.loads(found.expanded_bytes())["plugins"][0] == {"type": "a"}


def test_load_only_inlined_plugins(tmp_path):
    drop_ins(tmp_path)
    raw = {"name": "net", "loadOnlyInlinedPlugins": "true", "plugins": [{"type": "inline"}]}
    assert types(conf.network_conf_from_file(write(tmp_path, "10.conflist", raw))) == ["inline"]


def test_bad_drop_in_fails_the_network(tmp_path):
    write(tmp_path, "10.conflist", {"name": "net", "plugins": [{"type": "inline"}]})
    path = write(tmp_path, "net/10.conf", {"no": "type"})
    with pytest.raises(ConfigError, match=r"missing 'type'") as caught:
        conf.load_network_conf(str(tmp_path), "net")
    assert caught.value.path == path


def test_drop_in_folder_that_is_no_folder(tmp_path):
    write(tmp_path, "10.conflist", {"name": "net", "plugins": [{"type": "inline"}]})
    path = write(tmp_path, "net", b"")
    with pytest.raises(ConfigError, match=f"^failed to read plugin config files in {path}: open {path}: not a dir"):
        conf.load_network_conf(str(tmp_path), "net")


@pytest.mark.parametrize("name", ["", "..", "../x", "/abs", "a/b", "n\n"])
def test_bad_names_never_become_a_folder(tmp_path, name):
    for directory in (tmp_path, tmp_path / "d", tmp_path / "x", tmp_path / "d" / "a" / "b"):
        write(directory, "evil.conf", {"type": "evil"})
    with pytest.raises(ValidationError):
        conf.network_plugin_confs_from_files(str(tmp_path / "d"), name)
    path = write(tmp_path, "d/10.conflist", {"name": name, "plugins": [{"type": "inline"}]})
    assert types(conf.network_conf_from_file(path)) == ["inline"]


# ---- injection


def plugin():
    return conf.network_plugin_conf_from_bytes(b'{"type":"bridge","name":"n","big":9007199254740993,"f":1e3}')


def test_inject_conf():
    found = conf.inject_conf(plugin(), {"b": {"y": 1, "x": 2}, "name": "other"})
    assert found.bytes == b'{"b":{"x":2,"y":1},"big":9007199254740993,"f":1000,"name":"other","type":"bridge"}'
    assert found.name == "other"
    assert conf.inject_conf(found, {"name": "other"}).bytes == found.bytes
    assert conf.inject_conf(found, {"empty": []}).bytes.count(b'"empty":[]') == 1


@pytest.mark.parametrize(
    ("values", "text"), [({"": "x"}, "keys cannot be empty"), ({"k": None}, "key 'k' value must not be nil")]
)
def test_inject_conf_refuses(values, text):
    with pytest.raises(ConfigError) as caught:
        conf.inject_conf(plugin(), values)
    assert str(caught.value) == text


def test_inject_conf_into_broken_bytes():
    broken = plugin()
    broken.bytes = b"\xcc"
    with pytest.raises(ConfigError, match=r"^unmarshal existing network bytes: "):
        conf.inject_conf(broken, {"a": 1})


def test_conf_list_from_conf():
    single = conf.network_plugin_conf_from_bytes(
        b'{"type":"bridge","name":"n","disableCheck":true,"cniVersions":["1.0.0"],"z":1,"a":2}'
    )
    found = conf.conf_list_from_conf(single)
    assert found.bytes == (
        b'{"cniVersion":"","name":"n","plugins":[{"a":2,"cniVersions":["1.0.0"],"disableCheck":true,"name":"n",'
        b'"type":"bridge","z":1}]}'
    )
    assert (found.cni_version, found.disable_check) == ("", False)
    again = conf.network_conf_from_bytes(found.bytes)
    assert [item.bytes for item in again.plugins] == [item.bytes for item in found.plugins]
