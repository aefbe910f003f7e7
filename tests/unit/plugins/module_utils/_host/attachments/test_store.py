# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""How the files of attachments are written, read and removed; what becomes of them is in garbage."""

from __future__ import annotations

import base64
import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.addresses import packed
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import caches, store
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import (
    ADDING,
    ATTACHED,
    Attached,
    AttachmentStore,
    result_addresses,
)
from ansible_collections.podwire.cni.plugins.module_utils.libcni.cache import DEFAULT_DIR, Entry, write_entry
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.records import write_record
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with, raising

KEY = Key("demo", "web", "eth0")
RESULT = {
    "cniVersion": "1.0.0",
    "interfaces": [
        {"name": "cni0"},
        {"name": "veth1"},
        {"name": "eth0", "sandbox": "/run/netns/web"},
        {"name": "eth1", "sandbox": "/run/netns/other"},
        7,
    ],
    "ips": [{"address": "10.1.0.2/24"}, {"address": "fd00::2/64"}],
}


def config(network="demo", plugins=("bridge", "portmap")):
    return json.dumps(
        {"cniVersion": "1.0.0", "name": network, "plugins": [{"type": name} for name in plugins]}
    ).encode()


def add(cache_dir, key=KEY, netns="/run/netns/web", conf=None, **changed):
    """Write a cache entry; *changed* may hold another ``result``."""
    arguments = [["K", "v"]], {"ips": ["10.1.0.2/24"]}
    entry = Entry(
        key.container_id,
        conf or config(key.network),
        key.ifname,
        key.network,
        netns,
        *arguments,
        changed.get("result", RESULT),
    )
    return write_entry(str(cache_dir), entry)


def given(key=KEY, **members):
    conf = network_conf_from_bytes(config(key.network))
    return Attached(key, conf, "/run/netns/web", [("K", "v")], {}, RESULT).changed(**{"state": ATTACHED, **members})


def put(cache_dir, name, data, folder="results"):
    path = cache_dir / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def read(cache_dir):
    return caches.read_cache(str(cache_dir))


def only(cache_dir):
    (entry,) = read(cache_dir).entries
    return entry


def test_an_attachment(tmp_path):
    path = add(tmp_path)
    entry = only(tmp_path)
    assert (entry.name, entry.key, entry.problem, entry.message) == ("demo-web-eth0", KEY, "", "")
    assert (entry.netns, entry.result, entry.state, entry.interrupted) == ("/run/netns/web", RESULT, "", False)
    assert [file.path for file in entry.files] == [path]
    assert entry.written == os.stat(path).st_mtime
    assert entry.ips == ["10.1.0.2/24", "fd00::2/64"]
    assert entry.paths == ["/run/netns/web", "/run/netns/other"]
    assert entry.host_ends == ["cni0", "veth1"]
    attached = entry.attached
    assert (attached.key, attached.netns, attached.args) == (KEY, "/run/netns/web", [("K", "v")])
    assert attached.capability_args == {"ips": ["10.1.0.2/24"]}
    assert [plugin.type for plugin in attached.config.plugins] == ["bridge", "portmap"]


def test_an_attachment_without_a_result(tmp_path):
    add(tmp_path, result=None, netns="")
    entry = only(tmp_path)
    assert (entry.ips, entry.paths, entry.host_ends) == ([], [], [])
    add(tmp_path, result={"interfaces": "x"})
    assert only(tmp_path).host_ends == []


def test_the_files_of_an_attachment(tmp_path):
    path = add(tmp_path)
    AttachmentStore(str(tmp_path)).write(given())
    record = tmp_path / "podwire" / "demo-web-eth0"
    os.utime(path, (5, 5))
    os.utime(record, (9, 9))
    entry = only(tmp_path)
    assert [file.path for file in entry.files] == [path, str(record)]
    assert entry.state == entry.attached.state == ATTACHED
    assert entry.written == 9
    assert entry.problem == ""


def test_what_is_managed(tmp_path, monkeypatch):
    monkeypatch.setattr(store.cache, "DEFAULT_DIR", str(tmp_path))
    add(tmp_path)
    add(tmp_path, Key("demo", "db", "eth0"))
    AttachmentStore(str(tmp_path)).write(given())
    contents = read(tmp_path)
    # A runtime made the one without a record.
    assert [(entry.key.container_id, entry.managed) for entry in contents.entries] == [("db", False), ("web", True)]
    assert contents.made == {("demo", "web")}
    assert contents.made_addresses == {("demo", packed("10.1.0.2")), ("demo", packed("fd00::2"))}
    # In a directory of its own, the collection made all of them.
    monkeypatch.setattr(store.cache, "DEFAULT_DIR", "/elsewhere")
    assert [entry.managed for entry in read(tmp_path).entries] == [True, True]
    assert [entry.managed for entry in caches.read_cache(str(tmp_path), is_other=True).entries] == [False, True]


def test_networks_are_listed_once(tmp_path):
    shared, other = network_conf_from_bytes(config()), network_conf_from_bytes(config("other", ["ptp"]))
    entries = []
    for key, conf in ((KEY, shared), (Key("demo", "db", "eth0"), shared), (Key("other", "db", "eth1"), other)):
        entry = store.CachedAttachment("-".join(key), [], True)
        entry.attached = Attached(key, conf, "", [], {}, None)
        entries.append(entry)
    contents = caches.CacheContents([*entries, store.CachedAttachment("x", [], True)])
    assert [(network, plugin["type"]) for network, plugin in contents.networks] == [
        ("demo", "bridge"),
        ("demo", "portmap"),
        ("other", "ptp"),
    ]
    assert contents.configs == [shared, other]


def test_entries_are_sorted(tmp_path):
    for key in (Key("b", "web", "eth0"), Key("a", "web", "eth1"), Key("a", "web", "eth0"), Key("a", "db", "eth9")):
        add(tmp_path, key)
    put(tmp_path, "zzz", b"")
    assert [entry.name for entry in read(tmp_path).entries] == [
        "zzz",
        "a-db-eth9",
        "a-web-eth0",
        "a-web-eth1",
        "b-web-eth0",
    ]


def document(tmp_path, **changed):
    """Return the text of an entry with other members."""
    path = add(tmp_path)
    with open(path) as stream:
        return json.dumps(dict(json.load(stream), **changed)).encode()


@pytest.mark.parametrize(
    ("changed", "problem", "message", "key"),
    [
        ({"kind": "other"}, store.OTHER, "its kind is 'other' instead of 'cniCacheV1'", KEY),
        ({"ifName": "eth1"}, store.DAMAGED, "its content does not match its file name", Key("demo", "web", "eth1")),
        ({"config": "e30="}, store.DAMAGED, "it is not a valid cache entry of libcni: ", KEY),
        ({"config": 7}, store.DAMAGED, "it is not a valid cache entry of libcni: ", None),
        (
            {"config": base64.b64encode(config("other")).decode()},
            store.DAMAGED,
            "its configuration is not a conflist named 'demo'",
            KEY,
        ),
    ],
)
def test_damaged_entries(tmp_path, changed, problem, message, key):
    put(tmp_path, "demo-web-eth0", document(tmp_path, **changed))
    entry = only(tmp_path)
    assert (entry.problem, entry.message[: len(message)], entry.key) == (problem, message, key)
    assert entry.attached is None


def test_names_that_no_plugin_accepts(tmp_path):
    put(tmp_path, "demo-we b-eth0", document(tmp_path, containerId="we b"))
    (tmp_path / "results" / "demo-web-eth0").unlink()
    entry = only(tmp_path)
    assert (entry.problem, entry.message) == (store.DAMAGED, "no plugin accepts its names: 'demo/we b/eth0'")
    assert entry.key is None


def test_files_that_cannot_be_read(tmp_path):
    results = tmp_path / "results"
    put(tmp_path, "large", b" " * ((4 << 20) + 1))
    put(tmp_path, "whole", b" " * (4 << 20))
    os.mkfifo(results / "pipe")
    os.symlink(add(tmp_path), results / "link")
    os.symlink(str(tmp_path), results / "link to a directory")
    (results / "directory").mkdir()
    found = {entry.name: entry for entry in read(tmp_path).entries}
    assert {name: entry.problem for name, entry in found.items()} == {
        "demo-web-eth0": "",
        "large": store.UNREADABLE,
        "link": store.UNREADABLE,
        "link to a directory": store.UNREADABLE,
        "pipe": store.UNREADABLE,
        "whole": store.EMPTY,
    }
    # What was opened can be told from a file that replaces it.
    assert {name for name, entry in found.items() if entry.files[0].status is None} == {"link", "link to a directory"}
    assert found["link"].message == "it is not a regular file of at most 4 MiB that can be read"
    assert found["link"].written == 0


def test_a_file_that_was_being_written(tmp_path):
    add(tmp_path)
    put(tmp_path, ".demo-web-eth0.tmp", b"{}")
    put(tmp_path, ".cniCacheV1-x.tmp", b"{}", "")
    for name in (".cniCacheV1-x", ".other.tmp", "cniCacheV1-x.tmp"):
        put(tmp_path, name, b"", "")
    found = {entry.name: entry for entry in read(tmp_path).entries if entry.problem}
    assert sorted(found) == [".cniCacheV1-x.tmp", ".demo-web-eth0.tmp"]
    for entry in found.values():
        assert (entry.problem, entry.message) == (store.LEFTOVER, "it was being written when its writer died")
        assert entry.managed
        assert len(entry.files) == 1


def test_records_without_an_entry(tmp_path):
    AttachmentStore(str(tmp_path)).write(given(state=ADDING))
    entry = only(tmp_path)
    assert (entry.key, entry.problem, entry.interrupted, entry.netns) == (KEY, "", True, "/run/netns/web")
    assert entry.attached.key == KEY
    AttachmentStore(str(tmp_path)).write(given())
    entry = only(tmp_path)
    assert (entry.problem, entry.interrupted, entry.result) == ("", False, RESULT)
    assert entry.attached.netns == "/run/netns/web"
    write_record(tmp_path, KEY, None)
    entry = only(tmp_path)
    assert (entry.problem, entry.attached, entry.interrupted) == (store.STRAY, None, False)
    put(tmp_path, "demo-web-eth0", b"{", "podwire")
    entry = only(tmp_path)
    assert (entry.problem, entry.message) == (store.DAMAGED, "it is not a valid record of an attachment")
    assert entry.interrupted
    assert entry.managed


def test_the_record_names_a_damaged_entry(tmp_path):
    AttachmentStore(str(tmp_path)).write(given())
    put(tmp_path, "demo-web-eth0", b"")
    entry = only(tmp_path)
    assert (entry.problem, entry.key, entry.netns, entry.result) == (store.EMPTY, KEY, "/run/netns/web", RESULT)


def test_the_record_of_another_attachment_with_that_file_name(tmp_path):
    one, other = Key("a-b", "c", "eth0"), Key("a", "b-c", "eth0")
    AttachmentStore(str(tmp_path)).write(given(one))
    cached = AttachmentStore(str(tmp_path)).read(other)
    assert (cached.state, cached.attached) == ("", None)
    add(tmp_path, other)
    entry = only(tmp_path)
    assert (entry.key, entry.state, entry.problem) == (other, "", "")


def test_a_directory_that_cannot_be_listed(tmp_path):
    (tmp_path / "results").write_text("")
    text = "cannot list .*/results: Not a directory; its attachments may be alive"
    with fails_with("source_unusable", text):
        read(tmp_path)


def test_an_empty_cache(tmp_path):
    contents = read(tmp_path / "none")
    assert (contents.entries, contents.networks, contents.configs, contents.made) == ([], [], [], set())


def test_the_other_caches(tmp_path, monkeypatch):
    default = tmp_path / "default"
    monkeypatch.setattr(caches, "_MANAGED_DIR", str(tmp_path / "managed"))
    monkeypatch.setattr(store.cache, "DEFAULT_DIR", str(default))
    add(default)
    add(default / "multus", Key("demo", "pod", "eth0"))
    (default / "empty").mkdir()
    AttachmentStore(str(tmp_path / "managed")).write(given())
    found = caches.HostStores(str(tmp_path / "elsewhere")).others
    assert [contents.source for contents in found] == [
        f"cache {tmp_path}/managed",
        f"cache {default}",
        f"cache {default}/multus",
    ]
    os.symlink(str(default), str(tmp_path / "link"))
    assert [contents.cache_dir for contents in caches.HostStores(str(tmp_path / "link")).others] == [
        f"{tmp_path}/managed",
        f"{default}/multus",
    ]


def test_the_known_caches():
    assert (caches._MANAGED_DIR, DEFAULT_DIR) == ("/var/lib/podwire/cni", "/var/lib/cni")


def test_only_files_that_have_not_changed_are_removed(tmp_path):
    for name in ("a", "b", "c", "d", "e"):
        put(tmp_path, name, b"")
    files = {entry.name: entry.files[0] for entry in read(tmp_path).entries}
    results = tmp_path / "results"
    (results / "b").write_bytes(b"now there is something")
    (results / "c").unlink()
    put(tmp_path, "new", b"")
    os.utime(results / "new", ns=(0, files["d"].status.st_mtime_ns))
    (results / "new").rename(results / "d")
    os.utime(results / "e", ns=(0, 1))
    caches.remove_files(list(files.values()))
    assert sorted(os.listdir(results)) == ["b", "d", "e"]


def test_a_file_that_could_not_be_read_is_removed(tmp_path):
    os.makedirs(tmp_path / "results")
    os.symlink("/nowhere", tmp_path / "results" / "link")
    caches.remove_files(only(tmp_path).files)
    assert os.listdir(tmp_path / "results") == []


def test_a_file_that_cannot_be_removed(tmp_path):
    path = put(tmp_path, "a", b"")
    (file,) = only(tmp_path).files
    path.unlink()
    path.mkdir()
    with fails_with("cache_not_removed", rf"cannot remove {path}: Is a directory"):
        caches.remove_files([file._replace(status=None)])


# ---- one attachment

IDENTITY = {"boot_id": "b", "dev": 4, "inode": 7, "cookie": None, "processes": 5}


def record_of(tmp_path):
    return tmp_path / "podwire" / "demo-web-eth0"


def test_the_record_of_an_add_holds_all_that_its_del_needs(tmp_path):
    AttachmentStore(str(tmp_path)).write(given(state=ADDING, identity=IDENTITY, result=None))
    cached = AttachmentStore(str(tmp_path)).read(KEY)
    recorded = cached.recorded
    assert (cached.state, cached.attached, recorded.state, recorded.identity) == (ADDING, recorded, ADDING, IDENTITY)
    assert recorded.config.bytes == config()
    assert (recorded.netns, recorded.args, recorded.result) == ("/run/netns/web", [("K", "v")], None)
    assert record_of(tmp_path).stat().st_mode & 0o777 == 0o600
    assert record_of(tmp_path).parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(record_of(tmp_path).parent) == ["demo-web-eth0"]


def test_the_record_tells_what_the_entry_has_no_place_for(tmp_path):
    add(tmp_path)
    check = {"plugin": "portmap", "code": 999, "message": "never"}
    write_record(tmp_path, KEY, IDENTITY, check=check)
    cached = AttachmentStore(str(tmp_path)).read(KEY)
    attached = cached.attached
    assert cached.has_entry and cached.recorded is None
    assert (attached.state, attached.identity, attached.interface, attached.check) == (ATTACHED, IDENTITY, True, check)
    assert attached.damage == ""


NAMED = {"network": "demo", "container_id": "web", "ifname": "eth0"}
REST = {"state": "adding", "interface": True, "check": None, "netns": "/x"}
GOOD = base64.b64encode(config()).decode()


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"7", b"[]", b"{}", json.dumps(NAMED).encode()]
    + [
        json.dumps(
            {**NAMED, **REST, "identity": identity, "config": conf, "args": args, "capability_args": {}}
        ).encode()
        for identity, conf, args in (
            (None, "!", []),
            (None, "e30=", []),
            (7, GOOD, []),
            ({"boot_id": "b", "dev": 1, "inode": "1"}, GOOD, []),
            (None, GOOD, 7),
            (None, GOOD, [["a"]]),
        )
    ],
)
def test_a_record_that_makes_no_sense(tmp_path, content):
    """It counts as that of an interrupted ADD without an entry, and as missing with one."""
    put(tmp_path, "demo-web-eth0", content, "podwire")
    cached = AttachmentStore(str(tmp_path)).read(KEY)
    assert (cached.state, cached.recorded, cached.attached) == (ADDING, None, None)
    add(tmp_path)
    attached = AttachmentStore(str(tmp_path)).read(KEY).attached
    assert (attached.state, attached.identity, attached.footprint) == ("", None, None)
    assert attached.damage == f"the record {record_of(tmp_path)} is damaged"


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_is_no_record_is_told_and_stays(tmp_path, kind):
    add(tmp_path)
    (tmp_path / "victim").write_text("untouched")
    record_of(tmp_path).parent.mkdir()
    if kind == "folder":
        record_of(tmp_path).mkdir()
    elif kind == "link":
        record_of(tmp_path).symlink_to(tmp_path / "victim")
    else:
        os.mkfifo(record_of(tmp_path))
    for cached in (AttachmentStore(str(tmp_path)).read(KEY), only(tmp_path)):
        assert cached.has_entry
        assert cached.attached.damage == f"the record {record_of(tmp_path)} is not {store._REGULAR}"
    AttachmentStore(str(tmp_path)).remove(KEY)
    assert (tmp_path / "victim").read_text() == "untouched"


def test_a_killed_write_leaves_the_old_record(tmp_path, monkeypatch):
    AttachmentStore(str(tmp_path)).write(given())

    monkeypatch.setattr(os, "rename", raising(OSError(28, "No space left on device")))
    with fails_with("record_unwritable", "No space left"):
        AttachmentStore(str(tmp_path)).write(given(state=ADDING))
    assert AttachmentStore(str(tmp_path)).read(KEY).state == ATTACHED


def test_addresses_of_every_version():
    addresses = ["10.1.0.2/24", "fd00::2/64"]
    assert result_addresses({"ips": [{"address": address} for address in addresses]}) == addresses
    assert result_addresses({"ip4": {"ip": "10.1.0.2/24"}, "ip6": {"ip": "fd00::2/64"}}) == addresses
    assert result_addresses(None) == []
