# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""A cache directory in which everything lies that does not belong there, and configurations that are no files."""

from __future__ import annotations

import json
import os
import signal
import socket

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import cache, conf
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import CacheError, ConfigError

RESULT = '{"cniVersion":"1.1.0","ips":[{"address":"10.1.2.3/24"}]}'
ENTRY = b'{"kind":"cniCacheV1","containerId":"c","config":"e30=","ifName":"eth0","networkName":"n","result":{}}'


@pytest.fixture(autouse=True)
def no_waiting():
    """To wait for a FIFO's writer is a failure, not the end of all tests."""

    def late(_signal, _frame):
        raise TimeoutError("something waited for a FIFO")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def make_socket(path):
    # The path of a socket has 107 bytes at most, and that of a test's directory can have more.
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{directory}/{path.name}")
    finally:
        os.close(directory)


def make_directory(path):
    path.mkdir()
    (path / "of somebody").write_text("kept")


def make_large(path):
    with open(path, "wb") as file:
        file.truncate(100 * 1024 * 1024)


def make_unreadable(path):
    # To root it is garbage.
    path.write_bytes(b"garbage")
    path.chmod(0)


KINDS = {
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(4096)),
    "garbage": lambda path: path.write_bytes(b"adfadsfasdfasfdsafaf"),
    "truncated": lambda path: path.write_bytes(ENTRY[:-20]),
    "of another kind": lambda path: path.write_bytes(ENTRY.replace(b"V1", b"V2")),
    "JSON of somebody": lambda path: path.write_bytes(b'["kind", null]'),
    "deep": lambda path: path.write_bytes(b"[" * 100000),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\x00\xd8"),
    "large": make_large,
    "unreadable": make_unreadable,
    "directory": make_directory,
    "fifo": os.mkfifo,
    "socket": make_socket,
    "link to nowhere": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to a directory": lambda path: path.symlink_to("/"),
    "link to a device that waits": lambda path: path.symlink_to("/dev/ptmx"),
    "link to a device without end": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.fixture(params=KINDS)
def foreign(request, world):
    """Something foreign at the place of the attachment's entry, and one of everything beside it."""
    results = world.cache / "results"
    results.mkdir(parents=True)
    for number, make in enumerate(KINDS.values()):
        make(results / f"foreign-{number}-eth0")
        make(results / f".{number}")
    path = world.cache_file()
    KINDS[request.param](path)
    return path


def test_nothing_stops_an_add(world, foreign):
    debug = world.debug(ReportResult=RESULT)
    lst, rt = world.lst([debug]), world.rt()
    result = world.cni.add_network_list(lst, rt)
    assert world.cni.get_network_list_cached_result(lst, rt) == result
    assert [found.container_id for found in world.cni.get_cached_attachments()] == [rt.container_id]
    assert not foreign.is_symlink()
    world.cni.del_network_list(lst, rt)
    assert debug.stdin["prevResult"] == json.loads(RESULT)
    assert not os.path.lexists(foreign)


def test_nothing_fails_a_del(world, foreign):
    debug = world.debug()
    world.cni.del_network_list(world.lst([debug]), world.rt())
    assert debug.command == "DEL"
    assert not os.path.lexists(foreign) or foreign.is_dir()
    world.cni.gc_network_list(world.lst([debug]), [])
    assert debug.command == "GC"


def test_disk_that_cannot_be_read(world, monkeypatch):
    debug = world.debug(ReportResult=RESULT)
    lst, rt = world.lst([debug]), world.rt()
    world.put_cache(RESULT)

    def fail(*_args, **_keywords):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(cache, "read_file", fail)
    world.cni.add_network_list(lst, rt)
    assert world.cni.get_cached_attachments() == []
    world.cni.del_network_list(lst, rt)
    assert debug.command == "DEL"
    assert not world.cache_file().exists()


def test_directory_in_the_way_is_kept(tmp_path):
    path = tmp_path / "results" / "n-c-eth0"
    path.parent.mkdir()
    make_directory(path)
    entry = cache.Entry.from_bytes(ENTRY)
    cache.write_entry(str(tmp_path), entry)
    assert cache.read_entry(str(path)).network_name == "n"
    assert os.listdir(tmp_path / "results") == ["n-c-eth0"]
    [aside] = [name for name in os.listdir(tmp_path) if name != "results"]
    assert (tmp_path / aside / "of somebody").read_text() == "kept"


def test_directory_that_cannot_be_moved(tmp_path, monkeypatch):
    (tmp_path / "results" / "n-c-eth0").mkdir(parents=True)

    def fail(*_args):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(cache.os, "rename", fail)
    with pytest.raises(CacheError, match=r"n-c-eth0: operation not permitted$"):
        cache.prepare(str(tmp_path), "n", "c", "eth0")


def test_entry_that_would_be_too_large_to_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "LARGEST", len(ENTRY) - 1)
    with pytest.raises(CacheError, match=r"is too large$"):
        cache.write_entry(str(tmp_path), cache.Entry.from_bytes(ENTRY.replace(b"{}", b'{"a":1}')))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("fifo", "not a regular file"),
        ("socket", "not a regular file"),
        ("directory", "is a directory"),
        ("link to a device without end", "not a regular file"),
        ("link to nowhere", "no such file or directory"),
    ],
)
def test_configuration_that_is_no_file(tmp_path, kind, text):
    (tmp_path / "90-net.conflist").write_text('{"name":"net","plugins":[{"type":"t"}]}')
    KINDS[kind](tmp_path / "10-x.conflist")
    if kind == "directory":
        # A directory is no configuration at all; a link to one is.
        (tmp_path / "10-x.conflist").rename(tmp_path / "x")
        (tmp_path / "10-x.conflist").symlink_to("x")
    with pytest.raises(ConfigError, match=f"^error reading {tmp_path}/10-x.conflist: .*{text}$"):
        conf.load_network_conf(str(tmp_path), "net")
