# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A host with leases, cache entries and networks for the tests of what is collected."""

from __future__ import annotations

import json
import os
import time
from types import MappingProxyType

from ansible_collections.podwire.cni.plugins.module_utils._host import leases
from ansible_collections.podwire.cni.plugins.module_utils._host.addresses import packed
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.containers import sources
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.live import Answer, Homes, LiveSet, answer_of
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.namespaces import Namespace, Namespaces
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import owners
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.owners import FoundRules
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage import planner as gc
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage.candidate import FirstSeen, GcSettings
from ansible_collections.podwire.cni.plugins.module_utils.libcni.cache import Entry, write_entry
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.explained import explained
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.records import write_record

IDENTITY = MappingProxyType({"boot_id": "b", "dev": 4, "inode": 11, "cookie": 7})
OTHER = dict(IDENTITY, inode=12)


def alive(ips=(), identity=IDENTITY, own=False):
    found = Namespace(dict(identity), "/run/netns/x", "/run/netns/x", own)
    found.addresses = {packed(ip): (2, 24) for ip in ips}
    return found


class Host:
    """A host made of files below a directory, a live set, and firewall rules."""

    def __init__(self, tmp_path, monkeypatch):
        self.path = tmp_path
        self.conf_dir = tmp_path / "net.d"
        self.conf_dir.mkdir()
        self.bin_dir = tmp_path / "bin"
        self.bin_dir.mkdir()
        for name in ("bridge", "host-local"):
            (self.bin_dir / name).write_bytes(b"")
        self.cache_dir = str(tmp_path / "cache")
        self.data_dir = tmp_path / "leases"
        self.answers = [Answer("podman", {"live": None})]
        self.found = {"netns": "", "podman": "x"}
        self.why = ""
        self.namespaces = [alive(own=True, identity=OTHER)]
        self.firewall = FoundRules()
        self.config("demo")
        monkeypatch.setattr(owners, "read_rules", lambda: self.firewall)
        monkeypatch.setattr(sources, "find_live", self._find)
        monkeypatch.setattr(leases.lease_stores, "__defaults__", (str(tmp_path / "default"),))
        monkeypatch.setattr(gc, "FirstSeen", lambda: FirstSeen(str(tmp_path / "run" / "seen")))

    def _find(self, caches, bridges, keep_from, keep):
        namespaces = Namespaces(self.namespaces)
        homes = Homes(caches[0].entries, namespaces)
        return LiveSet([*self.answers, answer_of(caches[0], homes)], self.found, namespaces, homes, self.why)

    def config(self, name, **more):
        ipam = {"type": "host-local", "dataDir": str(self.data_dir), "subnet": "10.1.0.0/24"}
        value = dict({"cniVersion": "1.0.0", "name": name, "plugins": [{"type": "bridge", "ipam": ipam}]}, **more)
        (self.conf_dir / f"{name}.conflist").write_text(json.dumps(value))
        return json.dumps(value).encode()

    def lease(self, ip, text, network="demo", age=3600):
        folder = self.data_dir / network
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ip).write_bytes(text.encode())
        self.aged(folder / ip, age)
        return folder / ip

    def attached(self, container_id, ip, identity=IDENTITY, age=3600, network="demo"):
        key = Key(network, container_id, "eth0")
        config = self.config(network)
        result = {"cniVersion": "1.0.0", "ips": [{"address": f"{ip}/24"}]}
        netns = str(self.path / "nowhere")
        path = write_entry(self.cache_dir, Entry(container_id, config, "eth0", network, netns, result=result))
        if identity is not None:
            write_record(self.cache_dir, key, dict(identity))
            self.aged(self.record(container_id), age)
        self.aged(path, age)
        return path

    def record(self, container_id):
        return os.path.join(self.cache_dir, "podwire", f"demo-{container_id}-eth0")

    @staticmethod
    def aged(path, age):
        moment = time.time() - age
        os.utime(path, (moment, moment))

    def plan(self, **options):
        return explained(gc.plan_gc(GcSettings(str(self.conf_dir), [str(self.bin_dir)], self.cache_dir, **options)))

    def found_rows(self, **options):
        return {(row["kind"], row["id"]): row for row in (c.row() for c in self.plan(**options).candidates)}

    def verdicts(self, **options):
        return {key: (row["action"], row["reason"]) for key, row in self.found_rows(**options).items()}
