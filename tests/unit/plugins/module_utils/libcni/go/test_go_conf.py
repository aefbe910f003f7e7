# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Loading and injection: what is not in test_conf.py (Go: libcni/conf_test.go)."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import conf
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import ConfigError, NotFoundError

NO_TYPE = b'{ "name": "some-plugin", "some-key": "some-value" }'


def test_configuration_without_type(tmp_path):
    path = tmp_path / "50-whatever.conf"
    path.write_bytes(NO_TYPE)
    for load in (
        lambda: conf.network_plugin_conf_from_file(str(path)),
        lambda: conf.network_plugin_conf_from_bytes(NO_TYPE),
    ):
        with pytest.raises(ConfigError, match=r"^error parsing configuration: missing 'type'$"):
            load()


def test_network_in_a_nested_directory(tmp_path):
    (tmp_path / "50-whatever.conflist").write_text('{"name":"some-network","plugins":[{"type":"host-local"}]}')
    nested = tmp_path / "subdir1" / "subdir2"
    nested.mkdir(parents=True)
    (nested / "90-deep.conflist").write_text('{"name":"deep","plugins":[{"type":"host-local"},]}')
    with pytest.raises(NotFoundError, match=r"^no net configuration with name"):
        conf.load_network_conf(str(tmp_path), "deep")


def test_network_from_missing_file():
    with pytest.raises(ConfigError, match=r"^error reading /tmp/nope/not-here: open /tmp/nope/not-here"):
        conf.network_conf_from_file("/tmp/nope/not-here")


INLINE = {"plugins": [{"type": "host-local", "subnet": "10.0.0.1/24"}]}
FOLDER = ["funky-second-plugin.conf"]
LIST = "error parsing configuration list: "


@pytest.mark.parametrize(
    ("keys", "folder", "only_inlined", "outcome"),
    [
        ({"loadOnlyInlinedPlugins": True, **INLINE}, FOLDER, True, ["host-local"]),
        (INLINE, None, False, ["host-local"]),
        (
            {"loadOnlyInlinedPlugins": "sphagnum", **INLINE},
            None,
            None,
            LIST + 'invalid value "sphagnum" for loadOnlyInlinedPlugins',
        ),
        (
            {"loadOnlyInlinedPlugins": True},
            None,
            None,
            LIST + "`loadOnlyInlinedPlugins` is true, and no 'plugins' key",
        ),
        ({"loadOnlyInlinedPlugins": False}, FOLDER, False, ["bro-check-out-my-plugin"]),
        ({}, None, None, "no plugin configs found"),
        (INLINE, [], False, ["host-local"]),
        (INLINE, FOLDER, False, ["host-local", "bro-check-out-my-plugin"]),
    ],
)
def test_load_only_inlined_plugins(tmp_path, keys, folder, only_inlined, outcome):
    """`folder`: the files of the network's folder, None if there is no folder."""
    raw = {"name": "some-network", "cniVersion": "0.4.0", **keys}
    (tmp_path / "50-whatever.conflist").write_text(json.dumps(raw))
    if folder is not None:
        (tmp_path / "some-network").mkdir()
        for name in folder:
            text = '{ "type": "bro-check-out-my-plugin", "subnet": "10.0.0.1/24" }'
            (tmp_path / "some-network" / name).write_text(text)
    if isinstance(outcome, str):
        with pytest.raises(ConfigError) as caught:
            conf.load_network_conf(str(tmp_path), "some-network")
        assert str(caught.value) == outcome
        return
    found = conf.load_network_conf(str(tmp_path), "some-network")
    assert found.load_only_inlined_plugins is only_inlined
    assert [plugin.type for plugin in found.plugins] == outcome


@pytest.mark.parametrize(
    ("steps", "written"),
    [
        ([{"test": "test"}], b'{"name":"some-plugin","test":"test","type":"foobar"}'),
        ([{"test": "test"}, {"test": "changedValue"}], b'{"name":"some-plugin","test":"changedValue","type":"foobar"}'),
        ([{"test": "test"}, {"test": "test"}], b'{"name":"some-plugin","test":"test","type":"foobar"}'),
        (
            [{"dns": {"nameservers": ["server1", "server2"], "domain": "local"}}, {"type": "bridge"}],
            b'{"dns":{"domain":"local","nameservers":["server1","server2"]},"name":"some-plugin","type":"bridge"}',
        ),
    ],
)
def test_inject_conf(steps, written):
    found = conf.network_plugin_conf_from_bytes(b'{ "name": "some-plugin", "type": "foobar" }')
    for values in steps:
        found = conf.inject_conf(found, values)
    assert found.bytes == written
    assert (found.name, found.type) == ("some-plugin", json.loads(written)["type"])
