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
    with pytest.raises(ConfigError, match=r"^error reading /tmp/nope/not-here: open /tmp/nope/not-here"):
        conf.network_conf_from_file("/tmp/nope/not-here")


def test_conf_from_what_is_no_file(tmp_path):
    with pytest.raises(ConfigError, match=f"^error reading {tmp_path}: read {tmp_path}: is a directory$"):
        conf.network_plugin_conf_from_file(str(tmp_path))
    with pytest.raises(ConfigError, match=r"^error reading"):
        conf.network_plugin_conf_from_file("a\0b")
