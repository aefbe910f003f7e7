# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The cache's files (libcni.md 1.7)."""

from __future__ import annotations

import json
import os
import stat

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import cache
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import CacheError, JSONError, ValidationError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.multi import records

SAMPLE = (
    b'{"kind":"cniCacheV1","containerId":"cid","config":"eyJjbmlWZXJzaW9uIjoiMS4wLjAifQ==","ifName":"eth0",'
    b'"networkName":"net","netns":"/ns","cniArgs":[["A","b"]],"capabilityArgs":{"portMappings":[1]},'
    b'"result":{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.2/24"}]}}'
)


def sample(**changed):
    values = {
        "container_id": "cid",
        "config": b'{"cniVersion":"1.0.0"}',
        "if_name": "eth0",
        "network_name": "net",
        "net_ns": "/ns",
        "cni_args": [["A", "b"]],
        "capability_args": {"portMappings": [1]},
        "result": {"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.2/24"}]},
    }
    values.update(changed)
    return cache.Entry(**values)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


# ---- the format


def test_bytes_are_those_of_go():
    assert sample().to_bytes() == SAMPLE
    assert vars(cache.Entry.from_bytes(SAMPLE)) == vars(sample())


def test_empty_members_are_left_out():
    entry = sample(net_ns="", cni_args=[], capability_args={}, result=None)
    assert entry.to_bytes() == (
        b'{"kind":"cniCacheV1","containerId":"cid","config":"eyJjbmlWZXJzaW9uIjoiMS4wLjAifQ==","ifName":"eth0",'
        b'"networkName":"net"}'
    )
    read = cache.Entry.from_bytes(entry.to_bytes())
    assert (read.net_ns, read.cni_args, read.capability_args, read.result) == ("", None, None, None)


def test_inner_keys_are_sorted():
    entry = sample(capability_args={"b": {"z": 1, "a": 1500.0}, "a": 0}, result={"z": 1, "cniVersion": "1.0.0"})
    assert entry.to_bytes().endswith(
        b'"capabilityArgs":{"a":0,"b":{"a":1500,"z":1}},"result":{"cniVersion":"1.0.0","z":1}}'
    )


def test_reading_as_go_does():
    entry = cache.Entry.from_bytes(
        b'{"KIND":"cniCacheV1","ContainerID":"cid","config":"e\\r\\n30=","cniArgs":[["A"],["a","b","c"],null],"x":1,'
        b'"capabilityArgs":null,"result":null,"netns":null}'
    )
    assert (entry.kind, entry.container_id, entry.config) == ("cniCacheV1", "cid", b"{}")
    assert entry.cni_args == [["A", ""], ["a", "b"], ["", ""]]
    assert (entry.capability_args, entry.result, entry.net_ns) == (None, None, "")


def test_configuration_as_an_array_as_go_reads_it():
    assert cache.Entry.from_bytes(b'{"config":[123,125,null]}').config == b"{}\0"
    assert cache.Entry.from_bytes(b'{"config":[]}').config == b""


def test_null_leaves_a_name_as_it_is():
    entry = cache.Entry.from_bytes(b'{"kind":"cniCacheV1","ifName":"eth0","ifName":null,"kind":null}')
    assert (entry.kind, entry.if_name) == ("cniCacheV1", "eth0")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        b"[]",
        b'{"kind":1}',
        b'{"config":1}',
        b'{"config":[256]}',
        b'{"config":["a"]}',
        b'{"config":"e30"}',
        b'{"config":"e30=e30="}',
        b'{"config":"e3 0"}',
        b'{"config":"e-_="}',
        b'{"cniArgs":{}}',
        b'{"cniArgs":["A=b"]}',
        b'{"cniArgs":[["A",1]]}',
        b'{"capabilityArgs":[]}',
        b'{"result":"x"}',
        SAMPLE[:-1],
    ],
)
def test_broken_files(data, tmp_path):
    with pytest.raises(JSONError):
        cache.Entry.from_bytes(data)
    (tmp_path / "file").write_bytes(data)
    assert cache.read_entry(str(tmp_path / "file")) is None


def test_read_entry_of_another_kind(tmp_path):
    (tmp_path / "file").write_bytes(SAMPLE.replace(b"cniCacheV1", b"cniCacheV2"))
    assert cache.read_entry(str(tmp_path / "file")) is None
    assert cache.read_entry(str(tmp_path / "nope")) is None
    assert cache.read_entry(str(tmp_path)) is None
    assert cache.read_bytes("a\0b") is None


# ---- paths


def test_path():
    assert cache.cache_path("/var/lib/cni", "net", "cid", "eth0") == "/var/lib/cni/results/net-cid-eth0"
    assert cache.cache_path("/x//y/", "net", "cid", "eth0") == "/x/y/results/net-cid-eth0"


@pytest.mark.parametrize("names", [("", "cid", "eth0"), ("net", "", "eth0"), ("net", "cid", "")])
def test_path_with_a_missing_name(names):
    with pytest.raises(CacheError) as caught:
        cache.cache_path("/d", *names)
    assert str(caught.value) == (
        'cache file path requires network name ("{}"), container ID ("{}"), and interface name ("{}")'.format(*names)
    )


@pytest.mark.parametrize(
    "names",
    [
        ("../x", "cid", "eth0"),
        ("net", "../../x", "eth0"),
        ("net", "cid", "../x"),
        ("net", "cid\n", "eth0"),
        ("net", "cid", ".."),
        ("a/b", "cid", "eth0"),
    ],
)
def test_path_with_an_invalid_name(names, tmp_path):
    with pytest.raises(ValidationError):
        cache.cache_path("/d", *names)
    with pytest.raises(ValidationError):
        cache.remove_entry(str(tmp_path), *names)
    with pytest.raises(ValidationError):
        cache.prepare(str(tmp_path), *names)
    with pytest.raises(ValidationError):
        cache.write_entry(str(tmp_path), sample(network_name=names[0], container_id=names[1], if_name=names[2]))
    assert list(tmp_path.iterdir()) == []


# ---- writing


def test_write(tmp_path):
    old = os.umask(0)
    try:
        path = cache.write_entry(str(tmp_path / "a" / "b"), sample())
    finally:
        os.umask(old)
    assert path == str(tmp_path / "a" / "b" / "results" / "net-cid-eth0")
    with open(path, "rb") as file:
        assert file.read() == SAMPLE
    assert mode(path) == 0o600
    assert [mode(tmp_path / name) for name in ("a", "a/b", "a/b/results")] == [0o700] * 3
    assert os.listdir(tmp_path / "a" / "b") == ["results"]


def test_write_replaces_at_once(tmp_path):
    path = cache.write_entry(str(tmp_path), sample())
    with open(path, "rb") as before:
        cache.write_entry(str(tmp_path), sample(net_ns="/other"))
        # Whoever has the old file open goes on reading the old content.
        assert before.read() == SAMPLE
    assert cache.read_entry(path).net_ns == "/other"
    assert os.listdir(tmp_path / "results") == ["net-cid-eth0"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_interrupted_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, step):
    path = cache.write_entry(str(tmp_path), sample())

    def fail(*_args):
        # What is on the way to its place is not where entries are listed.
        assert os.listdir(tmp_path / "results") == ["net-cid-eth0"]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, step, fail)
    with pytest.raises(CacheError, match=r"no space left on device"):
        cache.write_entry(str(tmp_path), sample(net_ns="/other"))
    with open(path, "rb") as file:
        assert file.read() == SAMPLE
    assert os.listdir(tmp_path) == ["results"]


def test_write_order_is_fsync_then_rename(tmp_path, monkeypatch):
    steps = []
    for name in ("fsync", "replace"):
        original = getattr(os, name)
        monkeypatch.setattr(cache.os, name, lambda *args, n=name, o=original: (steps.append(n), o(*args)))
    cache.write_entry(str(tmp_path), sample())
    assert steps == ["fsync", "replace"]


def test_results_that_is_no_directory(tmp_path):
    (tmp_path / "results").write_text("")
    with pytest.raises(CacheError, match=r"results: not a directory"):
        cache.write_entry(str(tmp_path), sample())
    with pytest.raises(CacheError):
        cache.list_entries(str(tmp_path))


def test_file_in_the_way_of_the_cache_directory(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match=r"not a directory"):
        cache.write_entry(str(tmp_path / "file" / "cache"), sample())


def test_name_that_is_too_long(tmp_path):
    long = sample(container_id="c" * 255)
    with pytest.raises(CacheError, match=r"is longer than 255 bytes"):
        cache.write_entry(str(tmp_path), long)
    cache.write_entry(str(tmp_path), sample(container_id="c" * (255 - len("net--eth0"))))


def test_arguments_that_json_cannot_express(tmp_path):
    with pytest.raises(JSONError):
        cache.write_entry(str(tmp_path), sample(capability_args={"a": object()}))
    assert list(tmp_path.iterdir()) == []


# ---- two attachments, one file name


def test_collision(tmp_path):
    first = sample(network_name="a-b", container_id="c")
    second = sample(network_name="a", container_id="b-c")
    path = cache.write_entry(str(tmp_path), first)
    assert cache.cache_path(str(tmp_path), "a", "b-c", "eth0") == path
    with pytest.raises(CacheError) as caught:
        cache.write_entry(str(tmp_path), second)
    assert str(caught.value) == (
        f'cache file {path} belongs to another attachment: network "a-b", container ID "c", interface "eth0"'
    )
    cache.remove_entry(str(tmp_path), "a", "b-c", "eth0")
    assert cache.read_entry(path).network_name == "a-b"
    cache.remove_entry(str(tmp_path), "a-b", "c", "eth0")
    assert not os.path.exists(path)
    cache.write_entry(str(tmp_path), second)


def test_entry_that_names_nobody_is_everybodys(tmp_path):
    path = tmp_path / "results" / "net-cid-eth0"
    path.parent.mkdir()
    path.write_text('{"kind":"cniCacheV1"}')
    cache.write_entry(str(tmp_path), sample())
    assert path.read_bytes() == SAMPLE


def test_remove_takes_an_empty_directory_as_go_does(tmp_path):
    path = tmp_path / "results" / "net-cid-eth0"
    path.mkdir(parents=True)
    cache.remove_entry(str(tmp_path), "net", "cid", "eth0")
    assert not path.exists()
    (path / "something").mkdir(parents=True)
    cache.remove_entry(str(tmp_path), "net", "cid", "eth0")
    assert (path / "something").exists()


def test_remove_takes_a_link_and_not_where_it_leads(tmp_path):
    path = tmp_path / "results" / "net-cid-eth0"
    path.parent.mkdir()
    path.symlink_to(tmp_path)
    cache.remove_entry(str(tmp_path), "net", "cid", "eth0")
    assert not path.is_symlink()
    assert tmp_path.exists()


def test_remove_takes_what_killed_writers_have_left(tmp_path, monkeypatch):
    """Files of other attachments stay, also if their names begin like this one's."""

    def killed(*_paths):
        raise Killed

    class Killed(BaseException):
        pass

    monkeypatch.setattr(cache.os, "replace", killed)
    monkeypatch.setattr(cache, "_remove", lambda _path: None)
    ids = ["cid", "cid-eth0", "ci", "cid-eth0-" + "0" * 16, "c" * 190, "c" * 190 + "d", "c" * 240]
    written = {}
    for container_id in ids:
        for _turn in range(2):
            there = set(os.listdir(tmp_path))
            with pytest.raises(Killed):
                cache.write_entry(str(tmp_path), sample(container_id=container_id))
            written.setdefault(container_id, set()).update(set(os.listdir(tmp_path)) - there - {"results"})
    assert {len(names) for names in written.values()} == {2}
    for container_id in ids:
        cache.remove_entry(str(tmp_path), "net", container_id, "eth0")
        del written[container_id]
        assert set(os.listdir(tmp_path)) == {"results"}.union(*written.values())


def test_removing_reads_no_directory_that_grows_with_attachments(tmp_path, monkeypatch):
    """Detaching all containers of a host would take time that grows with the square of their number."""
    sizes = []
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: sizes.append(len(listdir(folder))) or listdir(folder))
    paths = {}
    for number in range(20):
        name = f"c{number}"
        cache.write_entry(str(tmp_path), sample(container_id=name))
        with records.create_record(str(tmp_path), records.PodRecord("net", name, "eth0", "", "", [])) as record:
            paths[name] = record.path
    for name, path in paths.items():
        cache.remove_entry(str(tmp_path), "net", name, "eth0")
        cache.remove_unfinished(path)
    assert set(sizes) == {len(["pods", "results"])}


def test_remove_without_a_directory(tmp_path):
    cache.remove_entry(str(tmp_path / "none"), "net", "cid", "eth0")
    assert os.listdir(tmp_path) == []


# ---- listing


def test_list_entries(tmp_path):
    assert cache.list_entries(str(tmp_path / "nope")) == []
    for network, container in (("net", "b"), ("net", "a"), ("Net", "a"), ("a", "a")):
        cache.write_entry(str(tmp_path), sample(network_name=network, container_id=container))
    results = tmp_path / "results"
    (results / "net-x-eth0").write_text("")
    (results / "net-y-eth0").write_text('{"cniVersion":"0.4.0"}')
    (results / "net-z-eth0").write_text('{"kind":"cniCacheV1","containerId":"z","networkName":"net"}')
    (results / "net-v-eth0").write_text('{"kind":"cniCacheV1","containerId":"v","ifName":"eth0"}')
    (results / "directory").mkdir()
    found = [(entry.network_name, entry.container_id) for entry in cache.list_entries(str(tmp_path))]
    assert found == [("Net", "a"), ("a", "a"), ("net", "a"), ("net", "b")]


def test_list_entries_of_a_container(tmp_path):
    for network, container in (("net", "a"), ("net", "a-b"), ("x-a", "c"), ("net", "b")):
        cache.write_entry(str(tmp_path), sample(network_name=network, container_id=container))
    found = [(entry.network_name, entry.container_id) for entry in cache.list_entries(str(tmp_path), "a")]
    assert found == [("net", "a")]
    os.rename(tmp_path / "results" / "net-a-eth0", tmp_path / "results" / "-a-eth0")
    assert cache.list_entries(str(tmp_path), "a") == []
    os.rename(tmp_path / "results" / "-a-eth0", tmp_path / "results" / "net-a-eth0")
    # The name alone decides nothing, and neither does the content alone.
    (tmp_path / "results" / "other").write_bytes(
        json.dumps({"kind": "cniCacheV1", "containerId": "a", "ifName": "e", "networkName": "n"}).encode()
    )
    assert len(cache.list_entries(str(tmp_path), "a")) == 1
    assert len(cache.list_entries(str(tmp_path))) == 5


def test_directory_that_cannot_be_read(tmp_path, monkeypatch):
    def fail(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache.os, "listdir", fail)
    with pytest.raises(CacheError, match=r"results: permission denied"):
        cache.list_entries(str(tmp_path))
