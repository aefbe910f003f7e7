# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.records import (
    ADDING,
    ATTACHED,
    Attached,
    Record,
    Records,
    check_cache_dir,
    read_cached,
    result_addresses,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.cache import Entry, write_entry
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes

KEY = Key("demo", "web", "eth0")
IDENTITY = {"boot_id": "b", "dev": 4, "inode": 7, "cookie": None, "processes": 5}
CONFIG = b'{"cniVersion":"1.0.0","name":"demo","plugins":[{"type":"bridge"}]}'


def given():
    config = network_conf_from_bytes(CONFIG)
    return Attached(KEY, config, "/run/netns/web", [("K", "v")], {"ips": ["10.1.0.2/24"]}, None)


@pytest.fixture
def records(tmp_path):
    return Records(str(tmp_path))


def file_of(tmp_path):
    return tmp_path / "podwire" / "demo-web-eth0"


def test_the_record_of_an_add_holds_all_that_its_del_needs(records, tmp_path):
    records.adding(given(), IDENTITY)
    record = records.read(KEY)
    assert (record.state, record.identity) == (ADDING, IDENTITY)
    assert record.attached.config.bytes == CONFIG
    assert record.attached.netns == "/run/netns/web"
    assert record.attached.args == [("K", "v")]
    assert record.attached.capability_args == {"ips": ["10.1.0.2/24"]}
    assert file_of(tmp_path).stat().st_mode & 0o777 == 0o600
    assert file_of(tmp_path).parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(file_of(tmp_path).parent) == ["demo-web-eth0"]


def test_the_record_of_an_attachment_holds_what_came_of_the_add(records, tmp_path):
    records.adding(given(), IDENTITY)
    check = {"plugin": "portmap", "code": 999, "message": "never"}
    records.attached(KEY, Record(ATTACHED, IDENTITY, True, check))
    record = records.read(KEY)
    assert (record.state, record.identity, record.interface, record.check) == (ATTACHED, IDENTITY, True, check)
    assert "config" not in json.loads(file_of(tmp_path).read_text())


def test_removing_twice_is_fine(records):
    records.adding(given(), None)
    records.remove(KEY)
    records.remove(KEY)
    assert records.read(KEY) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"7", b"[]", b"{}", b'{"network":"demo","container_id":"web","ifname":"eth0"}']
    + [
        json.dumps(
            {
                "network": "demo",
                "container_id": "web",
                "ifname": "eth0",
                "state": "adding",
                "identity": identity,
                "config": config,
                "netns": "/x",
                "args": args,
                "capability_args": caps,
            }
        ).encode()
        for identity, config, args, caps in (
            (None, "!", [], {}),
            (None, "e30=", [], {}),
            (7, "e30=", [], {}),
            ({}, "e30=", [], {}),
            (None, "e30=", 7, {}),
            (None, "e30=", [["a"]], 7),
        )
    ],
)
def test_a_record_that_makes_no_sense_counts_as_an_interrupted_add(records, tmp_path, content):
    file_of(tmp_path).parent.mkdir()
    file_of(tmp_path).write_bytes(content)
    record = records.read(KEY)
    assert record.state == ADDING
    assert record.attached is None


def test_the_record_of_another_attachment_is_not_ours(records):
    records.adding(given(), IDENTITY)
    # demo-web / eth0 and demo / web-... share file names only if they join to the same text.
    other = Key("demo-web", "eth0", "x")
    assert records.read(other) is None
    first = Attached(Key("a-b", "c", "eth0"), given().config, "", [], {}, None)
    records.adding(first, None)
    assert records.read(Key("a", "b-c", "eth0")) is None


@pytest.mark.parametrize("folder", ["", "results", "podwire"])
def test_only_root_may_write_to_a_cache(tmp_path, folder):
    for name in ("results", "podwire"):
        (tmp_path / name).mkdir()
    check_cache_dir(str(tmp_path))
    (tmp_path / folder).chmod(0o777)
    with pytest.raises(HostError) as caught:
        check_cache_dir(str(tmp_path))
    assert caught.value.code == "unsafe_permissions"


def test_an_entry_that_is_a_link_is_not_followed(tmp_path):
    write_entry(str(tmp_path), Entry("web", CONFIG, "eth0", "demo", "/run/netns/web"))
    path = tmp_path / "results" / "demo-web-eth0"
    assert read_cached(str(tmp_path), KEY).netns == "/run/netns/web"
    path.rename(tmp_path / "target")
    path.symlink_to(tmp_path / "target")
    with pytest.raises(HostError, match="is a symbolic link, which is not followed") as caught:
        read_cached(str(tmp_path), KEY)
    assert caught.value.code == "unsafe_permissions"


def test_addresses_of_every_version():
    assert result_addresses({"ips": [{"address": "10.1.0.2/24"}, {"address": "fd00::2/64"}]}) == [
        "10.1.0.2/24",
        "fd00::2/64",
    ]
    assert result_addresses({"ip4": {"ip": "10.1.0.2/24"}, "ip6": {"ip": "fd00::2/64"}}) == [
        "10.1.0.2/24",
        "fd00::2/64",
    ]
    assert result_addresses(None) == []
