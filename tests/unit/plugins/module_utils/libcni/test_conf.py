# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
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

LIST = b"""{
  "name": "some-list",
  "cniVersion": "0.2.0",
  "disableCheck": true,
  "plugins": [
    { "type": "host-local", "subnet": "10.0.0.1/24" },
    { "type": "bridge", "mtu": 1400.0 },
    { "type": "port-forwarding", "ports": {"20.0.0.1:8080": "80"} }
  ]
}"""


def write(directory, name, content):
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return str(path)


def types(network):
    return [plugin.type for plugin in network.plugins]


# ---- directories


def test_conf_files(tmp_path):
    for name in (
        "b.conf",
        "a.conf",
        "B.conf",
        ".conf",
        ".hidden.conf",
        "c.CONF",
        "d.conflist",
        "e.json",
        "f",
        "g.conf.bak",
    ):
        write(tmp_path, name, b"{}")
    (tmp_path / "dir.conf").mkdir()
    write(tmp_path, "sub/nested.conf", b"{}")
    (tmp_path / "link.conf").symlink_to(tmp_path / "dir.conf")
    (tmp_path / "dangling.conf").symlink_to("nowhere")
    found = [os.path.basename(path) for path in conf.conf_files(str(tmp_path), [".conf"])]
    assert found == [".conf", ".hidden.conf", "B.conf", "a.conf", "b.conf", "dangling.conf", "link.conf"]
    assert conf.conf_files(str(tmp_path), [".json", ".conflist"]) == [
        str(tmp_path / "d.conflist"),
        str(tmp_path / "e.json"),
    ]


def test_conf_files_orders_by_bytes(tmp_path):
    names = [b"\xff.conf", "\u00e9.conf".encode(), "\uffee.conf".encode(), "\U0001f600.conf".encode(), b"z.conf"]
    for name in names:
        with open(os.path.join(os.fsencode(tmp_path), name), "wb"):
            pass
    found = [os.fsencode(os.path.basename(path)) for path in conf.conf_files(str(tmp_path), [".conf"])]
    assert found == sorted(names)


def test_conf_files_cleans_paths(tmp_path):
    write(tmp_path, "a.conf", b"{}")
    assert conf.conf_files(f"/{tmp_path}//.//", [".conf"]) == [str(tmp_path / "a.conf")]


def test_conf_files_of_no_directory(tmp_path):
    assert conf.conf_files(str(tmp_path / "nope"), [".conf"]) == []
    path = write(tmp_path, "file", b"")
    with pytest.raises(ConfigError, match=f"^open {path}: not a directory$"):
        conf.conf_files(path, [".conf"])
    with pytest.raises(ConfigError):
        conf.conf_files("a\0b", [".conf"])


# ---- single configurations


def test_load_conf(tmp_path):
    path = write(tmp_path, "50-whatever.conf", {"name": "some-plugin", "type": "foobar", "some-key": "some-value"})
    found = conf.load_conf(str(tmp_path), "some-plugin")
    assert (found.name, found.type, found.network["some-key"]) == ("some-plugin", "foobar", "some-value")
    with open(path, "rb") as file:
        assert found.bytes == file.read()


def test_load_conf_takes_json_files_and_the_first_match(tmp_path):
    write(tmp_path, "30.json", {"name": "n", "type": "second"})
    write(tmp_path, "20.conf", {"name": "n", "type": "first"})
    write(tmp_path, "10.json", {"name": "other", "type": "other"})
    write(tmp_path, "sub/nested.conf", {"name": "nested", "type": "x"})
    assert conf.load_conf(str(tmp_path), "n").type == "first"
    assert conf.load_conf(str(tmp_path), "other").type == "other"
    with pytest.raises(NotFoundError) as caught:
        conf.load_conf(str(tmp_path), "nested")
    assert str(caught.value) == f'no net configuration with name "nested" in {tmp_path}'
    assert (caught.value.dir, caught.value.name) == (str(tmp_path), "nested")


def test_load_conf_without_files(tmp_path):
    for directory in (tmp_path, tmp_path / "nope"):
        with pytest.raises(NoConfigsFoundError) as caught:
            conf.load_conf(str(directory), "some-plugin")
        assert str(caught.value) == f"no net configurations found in {directory}"


def test_load_conf_stops_at_a_broken_file_before_the_match(tmp_path):
    write(tmp_path, "50.conf", {"name": "n", "type": "t"})
    path = write(tmp_path, "00-bad.conf", b'{"name": "n",\n x}')
    with pytest.raises(ConfigError, match=r"^error parsing configuration: ") as caught:
        conf.load_conf(str(tmp_path), "n")
    assert (caught.value.path, caught.value.line, caught.value.column) == (path, 2, 2)
    os.unlink(path)
    write(tmp_path, "99-bad.conf", b"{")
    assert conf.load_conf(str(tmp_path), "n").type == "t"


def test_a_list_saved_as_conf_is_refused(tmp_path):
    write(tmp_path, "10.conf", LIST)
    with pytest.raises(ConfigError, match=r"missing 'type'"):
        conf.load_conf(str(tmp_path), "some-list")


@pytest.mark.parametrize("raw", [b"null", b"{}", b'{"type":""}', b'{"type":null}'])
def test_plugin_without_type(raw):
    with pytest.raises(ConfigError, match=r"^error parsing configuration: missing 'type'$"):
        conf.network_plugin_conf_from_bytes(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"[]",
        b'"x"',
        b"1",
        b"{",
        b'{"type":1}',
        b'{"type":"t","name":1}',
        b'{"type":"t","cniVersion":1.0}',
        b'{"type":"t","capabilities":[]}',
        b'{"type":"t","capabilities":{"a":"yes"}}',
        b'{"type":"t","capabilities":{"a":1}}',
        b'{"type":"t","ipam":"host-local"}',
        b'{"type":"t","ipam":[]}',
        b'{"type":"t","ipam":{"type":1}}',
        b'{"type":"t","dns":[]}',
        b'{"type":"t","dns":{"nameservers":"1.1.1.1"}}',
        b'{"type":"t","dns":{"search":[1]}}',
        b'{"type":"t","dns":{"domain":[]}}',
        b'{"type":"t","prevResult":[]}',
        b'{"type":"t","cni.dev/valid-attachments":{}}',
        b'{"type":"t","cni.dev/valid-attachments":[1]}',
        b'{"type":"t","cni.dev/valid-attachments":[{"containerID":1}]}',
    ],
)
def test_known_keys_must_have_their_types(raw):
    with pytest.raises(ConfigError, match=r"^error parsing configuration: "):
        conf.network_plugin_conf_from_bytes(raw)


def test_what_libcni_uses_of_a_plugin():
    raw = (
        b'{"Type":"bridge","TYPE":null,"NAME":"n","cniversion":"1.0.0","Capabilities":{"a":true,"b":false,"c":null},'
        b'"ipam":{"TYPE":"host-local"},"dns":null,"prevResult":null,"cni.dev/valid-attachments":[null]}'
    )
    found = conf.network_plugin_conf_from_bytes(raw)
    assert (found.type, found.name, found.cni_version, found.ipam_type) == ("bridge", "n", "1.0.0", "host-local")
    assert found.capabilities == {"a": True, "b": False, "c": False}
    assert found.bytes is raw
    assert conf.network_plugin_conf_from_bytes(b'{"type":"t","ipam":null}').ipam_type == ""


def test_the_later_key_wins_whatever_its_case():
    assert conf.network_plugin_conf_from_bytes(b'{"type":"a","TYPE":"b"}').type == "b"
    assert conf.network_plugin_conf_from_bytes(b'{"TYPE":"b","type":"a"}').type == "a"
    assert conf.network_plugin_conf_from_bytes(b'{"type":"x","TYPE":"b","type":"a"}').type == "a"
    # A list's plugins are written anew with sorted keys, so there the lower case wins.
    network = conf.network_conf_from_bytes(b'{"name":"n","plugins":[{"type":"a","TYPE":"b"}]}')
    assert types(network) == ["a"]


@pytest.mark.parametrize("key", ["name", "type", "cniVersion"])
def test_a_wrong_type_is_refused_even_where_a_later_key_overrides(key):
    raw = f'{{"{key}":1,"type":"t","{key}":"t"}}'.encode()
    with pytest.raises(ConfigError, match=f"cannot unmarshal number 1 into field {key}"):
        conf.network_plugin_conf_from_bytes(raw)
    # A list's plugins are written anew first, with the last of the keys only.
    assert conf.network_conf_from_bytes(b'{"name":"n","plugins":[' + raw + b"]}").plugins[0].type == "t"


def test_conf_from_missing_file():
    with pytest.raises(ConfigError) as caught:
        conf.network_plugin_conf_from_file("/tmp/nope/not-here")
    assert str(caught.value) == "error reading /tmp/nope/not-here: open /tmp/nope/not-here: no such file or directory"
    assert caught.value.path == "/tmp/nope/not-here"


def test_conf_from_what_is_no_file(tmp_path):
    with pytest.raises(ConfigError, match=f"^error reading {tmp_path}: read {tmp_path}: is a directory$"):
        conf.network_plugin_conf_from_file(str(tmp_path))
    with pytest.raises(ConfigError, match=r"^error reading"):
        conf.network_plugin_conf_from_file("a\0b")


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
    drop_ins(tmp_path)
    path = write(tmp_path, "10.conflist", {"name": "net", "cniVersion": "1.0.0", "plugins": [{"type": "inline"}]})
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
