# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.caches import HostStores
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import (
    ADDING,
    ATTACHED,
    Attached,
    AttachmentStore,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import scan_conf_dir
from ansible_collections.podwire.cni.plugins.module_utils._host.containers import live
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.namespaces import Namespace, Namespaces
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.info import attachments, conf as info_conf
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest, identity
from ansible_collections.podwire.cni.plugins.module_utils._host.netlink import Link
from ansible_collections.podwire.cni.plugins.module_utils._host.netns import Seen
from ansible_collections.podwire.cni.plugins.module_utils.libcni.cache import Entry, write_entry
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.records import write_record
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import raising

CONFIG = {
    "cniVersion": "1.0.0",
    "name": "demo",
    "plugins": [{"type": "bridge", "ipam": {"type": "host-local"}, "token": "s3cr3t-token"}],
}


@pytest.fixture
def manifest(tmp_path):
    return Manifest(str(tmp_path / "state"))


def conf(conf_dir, manifest):
    return info_conf.conf(scan_conf_dir(str(conf_dir)), str(conf_dir), manifest)


def test_whose_a_file_is_and_what_was_set_aside(tmp_path, manifest):
    (tmp_path / "10-calico.conflist").write_text(json.dumps(dict(CONFIG, plugins=[{"type": "calico"}])))
    ours = tmp_path / "20-demo.conflist"
    ours.write_text(json.dumps(dict(CONFIG, plugins=[{"type": "flannel", "token": "s3cr3t-token"}])))
    manifest.networks[str(ours)] = {"network": "demo", "sha256": "", "original": {"sha256": "x"}}
    for name, managed in (("87-b.conflist", None), ("30-c.conflist", {"network": "c"})):
        path = tmp_path / (name + ".podwire-aside")
        path.write_text("{}")
        record = {"path": str(tmp_path / name), "network": name[3]}
        manifest.aside[str(path)] = dict(record, managed=managed) if managed else record
    manifest.aside[str(tmp_path / "gone.podwire-aside")] = {"path": str(tmp_path / "gone"), "network": ""}
    manifest.aside["/elsewhere/x.podwire-aside"] = {"path": "/elsewhere/x", "network": ""}
    ours.chmod(0o644)
    rows, problems = conf(tmp_path, manifest)
    assert [(problem.file, problem.code) for problem in problems] == [(str(ours), "readable_secret")]
    assert [(row["owner"], row["original"]) for row in rows] == [("Calico", False), ("", True)]
    assert info_conf.aside(str(tmp_path), manifest) == [
        {
            "path": str(tmp_path / (name + ".podwire-aside")),
            "original_path": str(tmp_path / name),
            "network": network,
            "managed": managed,
        }
        for name, network, managed in (("30-c.conflist", "c", True), ("87-b.conflist", "b", False))
    ]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    for number, container in enumerate(("web", "db", "old")):
        entry = Entry(container, json.dumps(CONFIG).encode(), "eth0", "demo", f"/run/netns/{container}")
        entry.cni_args = [["PASSWORD", "hunter22"]]
        entry.result = {"cniVersion": "1.0.0", "ips": [{"address": f"10.1.0.{number + 2}/24"}]}
        write_entry(str(tmp_path), entry)
    identity = {"boot_id": "b", "dev": 4, "inode": 7, "cookie": 1}
    write_record(tmp_path, Key("demo", "web", "eth0"), identity)
    write_record(tmp_path, Key("demo", "db", "eth0"), dict(identity, cookie=2))
    there = {"/run/netns/web": Seen(identity, ["eth0"]), "/run/netns/db": Seen(identity)}
    monkeypatch.setattr(attachments, "inspect_paths", lambda names: there)
    return tmp_path


def test_namespaces_that_cannot_be_read_may_hold_any_attachment(cache, monkeypatch):
    monkeypatch.setattr(live, "find_homes", raising(HostError("no", code="netns_unusable")))
    here = attachments.AttachmentsInfo(HostStores(str(cache)))
    assert attachments.attachments(here)[1]["netns_state"] == "unknown"
    assert [problem.code for problem in here.problems] == ["netns_unusable"]


def test_an_interface_with_the_mac_of_a_lost_one_is_that_of_its_own_attachment(cache, monkeypatch):
    """All interfaces of an ipvlan have the MAC of their parent."""
    mac = "0a:00:00:00:00:ff"
    for container in ("web", "old"):
        entry = Entry(container, json.dumps(CONFIG).encode(), "eth0", "demo", f"/run/netns/{container}")
        entry.result = {"cniVersion": "1.0.0", "interfaces": [{"name": "eth0", "mac": mac, "sandbox": "x"}]}
        write_entry(str(cache), entry)
    web = Namespace({"boot_id": "b", "dev": 4, "inode": 7, "cookie": 1}, "/run/netns/web", "web", own=False)
    web.links = {2: Link(2, "eth0", "ipvlan", 3, 0, up=True, abroad=True, mac=mac)}
    host = Namespace({"boot_id": "b", "dev": 4, "inode": 1, "cookie": 2}, "/proc/self/ns/net", "host", own=True)
    monkeypatch.setattr(live, "read_namespaces", lambda _paths: Namespaces([host, web]))
    rows = attachments.attachments(attachments.AttachmentsInfo(HostStores(str(cache))))
    assert {row["container_id"]: row["netns_state"] for row in rows} == {"db": "other", "old": "gone", "web": "same"}


def test_interrupted_and_lost_attachments_are_listed(cache):
    """So that nothing stays unseen, of a teardown for example."""
    store = AttachmentStore(str(cache))
    config = network_conf_from_bytes(json.dumps(CONFIG).encode())
    identity = {"boot_id": "b", "dev": 4, "inode": 7, "cookie": 1}
    result = {"ips": [{"address": "10.1.0.2/24"}]}
    given = Attached(Key("demo", "web", "eth0"), config, "/run/netns/web", [], {}, result)
    store.write(given.changed(state=ATTACHED, identity=identity, interface=True))
    os.unlink(cache / "results" / "demo-web-eth0")
    new = Attached(Key("demo", "new", "eth0"), config, "/run/netns/web", [], {}, None)
    store.write(new.changed(state=ADDING, identity=identity))
    here = attachments.AttachmentsInfo(HostStores(str(cache)))
    rows = attachments.attachments(here)
    assert [(row["container_id"], row["state"], row["netns_state"], row["ips"]) for row in rows] == [
        ("db", "attached", "other", ["10.1.0.3/24"]),
        ("new", "interrupted", "same", []),
        ("old", "attached", "gone", ["10.1.0.4/24"]),
        ("web", "lost", "same", ["10.1.0.2/24"]),
    ]
    assert [entry.code for entry in here.problems] == ["interrupted", "cache_lost"]


def test_a_file_in_the_place_of_the_cache_is_named(tmp_path):
    (tmp_path / "cache").write_text("")
    (problem,) = attachments.AttachmentsInfo(HostStores(str(tmp_path / "cache"))).problems
    assert problem.code == "cache_unreadable" and "/cache is a file, and no directory; look" in problem.what


def test_a_digest_is_remembered_as_long_as_the_file_is_the_same(tmp_path, manifest):
    path = tmp_path / "bridge"
    path.write_text("binary")
    manifest.versions[os.path.realpath(path)] = {"identity": identity(os.stat(path)), "sha256": "remembered"}

    def digests():
        return [row["sha256"] for row in info_conf.plugins([str(tmp_path)], manifest, 1)[0]]

    assert digests() == ["remembered"]
    path.write_text("another")
    assert digests() == [hashlib.sha256(b"another").hexdigest()]
