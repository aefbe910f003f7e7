# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Whatever is read, nothing but a CNIError is raised, and what was accepted can be written and read again."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ansible_collections.podwire.cni.plugins.module_utils.libcni import api, cache, conf, gojson, invoke, types, version
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import CNIError
from ansible_collections.podwire.cni.tests.tools import sample

PROPERTY = settings(
    derandomize=True,
    deadline=None,
    database=None,
    # What differs from Python to Python is little: ./run looks at fewer on all but the main one.
    max_examples=sample.number("EXAMPLES", 40, 8),
    suppress_health_check=list(HealthCheck),
)

# ---- what is tested: each takes bytes, and is free to raise CNIError


def load_list(data):
    found = conf.network_conf_from_bytes(data)
    found.drop_ins = len(found.plugins)
    again = conf.network_conf_from_bytes(found.expanded_bytes())
    assert [plugin.bytes for plugin in again.plugins] == [plugin.bytes for plugin in found.plugins]


def load_plugin(data):
    found = conf.network_plugin_conf_from_bytes(data)
    injected = conf.inject_conf(found, {"name": found.name, "x": None if not found.type else {"a": [found.network]}})
    assert json.loads(injected.bytes)["name"] == found.name
    conf.conf_list_from_conf(injected)


def parse_result(data):
    results = []
    for read in (
        lambda: types.create_from_bytes(data),
        lambda: types.create(*types.fixup_result_version(b'{"cniVersion":"1.0.0"}', data)),
    ):
        try:
            results.append(read())
        except CNIError:
            continue
    for result in results:
        assert types.create_from_bytes(result.to_json(4)) == result or "<nil>" in result.to_json(4).decode()
        for target in (*version.ALL, "", "7.7.7"):
            try:
                converted = result.as_version(target)
            except CNIError:
                continue
            assert converted.version == (target or "0.1.0")


def parse_prev_result(data):
    raw = gojson.as_object(gojson.loads(data), "")
    types.parse_prev_result("1.0.0", raw)


def read_entry(data):
    entry = cache.Entry.from_bytes(data)
    again = cache.Entry.from_bytes(entry.to_bytes())
    assert (again.config, again.if_name, again.kind) == (entry.config, entry.if_name, entry.kind)


def parse_version(data):
    text = data.decode("utf-8", "surrogateescape")
    assert len(version.parse_version(text)) == 3


def parse_config_version(data):
    version.greater_than(version.decode_config_version(data), "1.0.0")


def parse_plugin_info(data):
    assert version.decode_plugin_info(data)


def parse_plugin_error(data):
    error = invoke.plugin_error("x", data, data, "exit status 1")
    assert len(str(error).encode()) > 0
    raise error


READERS = [
    load_list,
    load_plugin,
    parse_result,
    parse_prev_result,
    read_entry,
    parse_version,
    parse_config_version,
    parse_plugin_info,
    parse_plugin_error,
]


def read_with(reader, data):
    try:
        reader(data)
    except CNIError as exc:
        # Whoever prints it must not fail on it.
        assert str(exc).encode("utf-8", "backslashreplace")


# ---- documents that are nearly good

LIST = {
    "name": "n",
    "cniVersion": "1.0.0",
    "cniVersions": ["0.4.0", "1.1.0"],
    "disableCheck": "true",
    "plugins": [
        {
            "type": "bridge",
            "capabilities": {"ips": True},
            "ipam": {"type": "host-local"},
            "dns": {"nameservers": ["1.1.1.1"], "domain": "d"},
            "mtu": 1500.0,
        }
    ],
}
PLUGIN = {**LIST["plugins"][0], "name": "n", "prevResult": {}, "cni.dev/valid-attachments": [{"containerID": "c"}]}
RESULT = {
    "cniVersion": "1.1.0",
    "interfaces": [{"name": "eth0", "mtu": 1, "sandbox": "/x"}],
    "ips": [{"address": "10.0.0.1/24", "gateway": "10.0.0.254", "interface": 0}, {"address": "fd00::1/64"}],
    "routes": [{"dst": "0.0.0.0/0", "gw": "10.0.0.254", "table": 0}],
    "dns": {"search": ["x"]},
}
OLD_RESULT = {"cniVersion": "0.2.0", "ip4": {"ip": "10.0.0.1/24", "routes": [{"dst": "::/0"}]}, "dns": {}}
ENTRY = {
    "kind": "cniCacheV1",
    "containerId": "c",
    "config": "e30=",
    "ifName": "eth0",
    "networkName": "n",
    "cniArgs": [["A", "b"]],
    "capabilityArgs": {"ips": [1]},
    "result": RESULT,
}
VERSIONS = {"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"], "code": 7, "msg": "m", "details": "d"}
DOCUMENTS = [LIST, PLUGIN, RESULT, OLD_RESULT, ENTRY, VERSIONS]

# What no Python value writes, and json.dumps does not have to: text that goes in as it is.
RAW = {
    "NaN": "NaN",
    "infinity": "-Infinity",
    "1e999": "1e999",
    "-1e999": "-1e999",
    "5,000 digits": "1" * 5000,
    "5,000 digits after the point": "0." + "1" * 5000,
    "-0": "-0",
    "1e-999": "1e-999",
    "lone surrogate": '"\\ud800"',
    "surrogates the wrong way round": '"\\udc00\\ud800"',
    "control character": '"\x01"',
    "depth 1,000": "[" * 1000 + "]" * 1000,
    "depth 9,000": '{"a":' * 9000 + "1" + "}" * 9000,
    "depth 100,000": "[" * 100000 + "]" * 100000,
    "depth 100,000 without end": "[" * 100000,
    "null": "null",
}
MARK = "raw text goes here"

texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            "",
            "1.0.0",
            "99.0.0",
            "1.0.f",
            "true",
            "<nil>",
            "10.0.0.1/33",
            "::ffff:10.0.0.1/120",
            "\ud800",
            "\x00",
            "../x",
        ]
    ),
)
numbers = st.one_of(st.integers(), st.floats(), st.sampled_from([2**63, -(2**63), 2**64, 1e308, -0.0, 10**400]))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)


def places(value, path=()):
    """All paths to something inside of a document, with the document itself."""
    yield path
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def put(document, path, value):
    """A copy of the document with another value at that place."""
    if not path:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = put(document[path[0]], path[1:], value)
    return copy


def write(document):
    """JSON with lone surrogates as bytes that are no UTF-8, and with NaN and infinity as Python writes them."""
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


@st.composite
def damaged(draw):
    """A good document of some kind with other values at one to three places, and perhaps its bytes damaged."""
    document = draw(st.sampled_from(DOCUMENTS))
    for _turn in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(document))))
        document = put(document, path, draw(values))
    data = write(document)
    how = draw(st.sampled_from(["whole"] * 4 + ["cut", "other byte", "inserted", "utf-16", "utf-32", "mark", "twice"]))
    at = draw(st.integers(0, max(0, len(data) - 1)))
    if how == "cut":
        return data[:at]
    if how == "other byte":
        return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
    if how == "inserted":
        return data[:at] + draw(st.binary(max_size=4)) + data[at:]
    if how == "mark":
        return b"\xef\xbb\xbf" + data
    if how == "twice":
        return data + data
    return data.decode("utf-8", "replace").encode(how) if how.startswith("utf") else data


@pytest.mark.parametrize("reader", READERS)
@PROPERTY
@given(data=damaged())
def test_damaged_documents(reader, data):
    read_with(reader, data)


@pytest.mark.parametrize("reader", READERS)
@PROPERTY
@given(data=st.one_of(st.binary(max_size=60), texts.map(lambda text: text.encode("utf-8", "surrogatepass"))))
def test_any_bytes(reader, data):
    read_with(reader, data)


@pytest.mark.parametrize("raw", RAW)
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: "/".join(list(document)[:2]))
def test_hard_text_at_every_place(document, raw):
    for path in list(places(document))[:: sample.STEP]:
        data = json.dumps(put(document, path, MARK)).replace(json.dumps(MARK), RAW[raw]).encode()
        for reader in READERS:
            read_with(reader, data)


@pytest.mark.parametrize("raw", RAW)
def test_hard_text_as_a_key(raw):
    for key in (RAW[raw], json.dumps(RAW[raw])):
        data = f'{{"name":"n","type":"t",{key}:1,"plugins":[{{"type":"t",{key}:{{{key}:2}}}}]}}'.encode()
        for reader in READERS:
            read_with(reader, data)


def long_documents(char, size):
    long = char.encode() * (size // len(char.encode()))
    return (
        (load_list, b'{"name":"n","plugins":[{"type":"t","long":"%s"}]}' % long),
        (load_plugin, b'{"type":"%s"}' % long),
        (parse_result, b'{"cniVersion":"1.0.0","interfaces":[{"name":"%s"}]}' % long),
        (parse_result, b'{"cniVersion":"1.0.0","ips":[{"address":"%s"}]}' % long),
        (read_entry, b'{"kind":"cniCacheV1","networkName":"%s"}' % long),
        (parse_plugin_error, b'{"msg":"%s"}' % long),
        (parse_plugin_info, b'{"cniVersion":"%s"}' % long),
        (parse_version, long),
    )


@pytest.mark.parametrize("char", ["<", "\\ud800", "\u20ac", '"},{"', "9", "\\"])
def test_1_mb_strings(char):
    for reader, data in long_documents(char, 1024 * 1024):
        read_with(reader, data)


def test_50_mb_strings():
    document = b'{"name":"n","plugins":[{"type":"t","long":"%s"}],"cniVersion":"0.4.0"}' % (b"x" * (50 * 1024 * 1024))
    assert len(conf.network_conf_from_bytes(document).plugins[0].bytes) > 50 * 1024 * 1024
    assert types.create_from_bytes(document).version == "0.4.0"
    assert cache.Entry.from_bytes(document).kind == ""
    with pytest.raises(CNIError):
        version.parse_version(document.decode())
    with pytest.raises(CNIError):
        conf.network_conf_from_bytes(document[:-2])


class Fake(api.Executor):
    def find_in_path(self, plugin, paths):
        return "/fake"

    def exec_plugin(self, path, stdin, env, timeout=None):
        return b"{}"


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory):
    return str(tmp_path_factory.mktemp("cache"))


@PROPERTY
@given(data=damaged())
def test_a_damaged_cache_stops_neither_add_nor_del(cache_dir, data):
    cni = api.CNIConfig([], cache_dir, executor=Fake())
    lst = conf.network_conf_from_bytes(b'{"name":"n","cniVersion":"1.1.0","plugins":[{"type":"t"}]}')
    rt = api.RuntimeConf("c", "/ns", "eth0")
    file = cache.cache_path(cache_dir, "n", "c", "eth0")
    os.makedirs(os.path.dirname(file), exist_ok=True)
    for verb in (cni.add_network_list, cni.del_network_list):
        with open(file, "wb") as stream:
            stream.write(data)
        entry = cache.read_entry(file)
        if entry is not None and not entry.is_of("n", "c", "eth0"):
            # Another attachment's, with the same file name: neither overwritten nor removed, as test_cache.py tests.
            continue
        cni.get_cached_attachments()
        verb(lst, rt)
        assert os.path.exists(file) is (verb == cni.add_network_list)
