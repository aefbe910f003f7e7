# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Garbage collection on hosts that are made up: files are real, the kernel and the runtimes are data.

What is known of a container is written down here a second time, from the layout and not from what the planner reads.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from typing import List, NamedTuple

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import leases
from ansible_collections.podwire.cni.plugins.module_utils._host.addresses import packed
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import cache as gc_cache
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.records import ATTACHED, Record, Records
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.containers import sources
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.live import Answer
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.namespaces import Namespace, Namespaces
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.ownership import (
    FIREWALL,
    PORTMAP,
    RuleOwner,
    RuleSet,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.rules import FoundRules
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage import planner
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage.outcome import DELETED, SCOPES, GcSettings
from ansible_collections.podwire.cni.plugins.module_utils._host.netlink import Link
from ansible_collections.podwire.cni.plugins.module_utils.libcni.cache import Entry

COUNT = 8 * int(os.environ.get("PODWIRE_EXAMPLES", "65"))
CHOICES = (None, [], ["netns"], ["cache", "netns"], ["podman"], ["cache", "containerd", "netns"])

# What leads to a namespace. `unknown` does not show itself; `none` is a namespace that has come to its end.
HOLDERS = ("name", "bind", "process", "fd", "socket", "unknown", "none", "none", "none")
CACHES = ("ours", "ours", "libcni", "containerd", "containerd", "podman", "multus", "lost")
RUNTIMES = ("containerd", "podman")


class Container(NamedTuple):
    number: int
    container_id: str
    network: str
    holder: str
    veth: bool
    # Whether its address is seen in its namespace, in that of a guest, or nowhere.
    address: str
    cache: str
    whole: bool
    lease: str
    rules: str
    runtime: str

    @property
    def ip(self):
        return f"10.1.0.{self.number + 2}"

    @property
    def ifname(self):
        return f"eth{self.number}"

    @property
    def host_end(self):
        return f"veth{self.number}"

    @property
    def exists(self):
        return self.holder != "none"

    @property
    def path(self):
        """Where the ADD found the namespace, and whether it is still there to be found."""
        return f"/proc/{7000 + self.number}/ns/net" if self.holder == "process" else f"/run/netns/c{self.number}"

    @property
    def identity(self):
        return {"boot_id": "b", "dev": 4, "inode": 100 + self.number, "cookie": 100 + self.number}


class Layout(NamedTuple):
    containers: List[Container]
    containerd: str
    podman: str
    crio: bool
    nested: bool
    same_cache: bool

    @property
    def running(self):
        """The same host with every daemon running."""
        return self._replace(containerd="runs", podman="runs", crio=False)

    def daemon(self, runtime):
        return {"containerd": self.containerd, "podman": self.podman}[runtime]

    def visible(self, one):
        """Whether the namespace can be looked into: from another PID namespace, processes do not show themselves."""
        return one.holder in ("name", "bind") or (not self.nested and one.holder in ("process", "fd", "socket"))

    def known(self, container_id):
        """Whether anything on the host tells that the container lives."""
        return any(self._tells(one) for one in self.containers if one.container_id == container_id)

    def _tells(self, one):
        if one.runtime and self.daemon(one.runtime) == "runs":
            return True
        if not one.exists or one.cache == "lost":
            return False
        if one.cache == "ours" and self.visible(one):
            return True
        return one.whole and (one.veth or (self.visible(one) and one.holder in ("name", "bind", "process")))

    def addresses(self):
        return {
            one.ip
            for one in self.containers
            if one.address == "guest" or (one.exists and one.address == "seen" and self.visible(one))
        }


def generate(seed):
    rng = random.Random(seed)
    made = []
    for number in range(rng.randint(1, 8)):
        cache = rng.choice(CACHES)
        made.append(
            Container(
                number,
                # Some have several interfaces, and some of these are of another owner.
                "c%d" % rng.choice([number, number, max(0, number - 1)]),
                rng.choice(["demo", "other"]),
                rng.choice(HOLDERS),
                rng.random() < 0.6,
                rng.choice(["seen", "flushed", "flushed", "guest"]),
                cache,
                rng.random() < 0.8,
                rng.choice(["", "old", "new", "new", "empty"]),
                rng.choice(["", "portmap", "firewall"]),
                # What this collection attached may be a further interface of a runtime's container.
                rng.choice([cache, ""] if cache in RUNTIMES else ["", "", "", "", *RUNTIMES]),
            )
        )
    return Layout(
        made,
        rng.choice(["runs", "runs", "stopped", "traces"]),
        rng.choice(["runs", "runs", "runs", "stopped"]),
        rng.random() < 0.1,
        rng.random() < 0.15,
        rng.random() < 0.1,
    )


class Host:
    """A layout on disk, and a planner for it."""

    def __init__(self, layout, path, monkeypatch):
        self.layout, self.path = layout, path
        self.conf_dir, self.libcni = path / "net.d", path / "libcni"
        # Who uses the runtimes' own cache directory shares it.
        self.ours = self.libcni if layout.same_cache else path / "ours"
        self.firewall = FoundRules()
        self.conf_dir.mkdir()
        bin_dir = path / "bin"
        bin_dir.mkdir()
        for name in ("bridge", "host-local"):
            (bin_dir / name).touch()
        monkeypatch.setattr(gc_cache, "_MANAGED_DIR", str(self.ours))
        monkeypatch.setattr(gc_cache.cache, "DEFAULT_DIR", str(self.libcni))
        monkeypatch.setattr(leases.lease_stores, "__defaults__", (str(path / "leases"),))
        monkeypatch.setattr(planner.rules, "read_rules", lambda: self.firewall)
        monkeypatch.setattr(planner, "FirstSeen", _Seen)
        monkeypatch.setattr(sources, "read_namespaces", lambda paths: self.namespaces())
        monkeypatch.setattr(sources, "RUNTIMES", {name: self._runtime(name) for name in RUNTIMES})
        others = {}
        if layout.containerd == "traces":
            others["containerd"] = (str(path),)
        if layout.crio:
            others["CRI-O"] = (str(path),)
        monkeypatch.setattr(sources, "_OTHERS", others)
        for network in ("demo", "other"):
            (self.conf_dir / f"{network}.conflist").write_bytes(self._config(network))
        for one in layout.containers:
            self._write(one)

    def _config(self, network):
        # The networks of two conflists share a directory of leases.
        ipam = {"type": "host-local", "dataDir": str(self.path / "shared"), "subnet": "10.1.0.0/24"}
        plugins = [{"type": "bridge", "bridge": "cni0", "ipam": ipam}]
        return json.dumps({"cniVersion": "1.0.0", "name": network, "plugins": plugins}).encode()

    def _write(self, one):
        if one.lease:
            folder = self.path / "shared" / one.network
            folder.mkdir(parents=True, exist_ok=True)
            text = {"old": one.container_id, "new": f"{one.container_id}\r\n{one.ifname}", "empty": ""}[one.lease]
            (folder / one.ip).write_bytes(text.encode())
        if one.rules == "portmap":
            owner = RuleOwner(one.network, one.container_id)
            self.firewall.sets.append(RuleSet("n", "ipv4", PORTMAP, one.host_end, owner, [one.ip]))
        elif one.rules:
            self.firewall.sets.append(RuleSet("n", "ipv4", FIREWALL, one.ip, addresses=[one.ip]))
        if one.cache == "lost":
            return
        folder = {"ours": self.ours, "multus": self.libcni / "multus"}.get(one.cache, self.libcni)
        interfaces = [{"name": one.ifname, "sandbox": one.path}]
        if one.veth:
            interfaces += [{"name": "cni0"}, {"name": one.host_end}]
        result = {"cniVersion": "1.0.0", "interfaces": interfaces, "ips": [{"address": f"{one.ip}/24"}]}
        # containerd's libcni does not cache the path.
        netns = "" if one.cache == "containerd" else one.path
        config = self._config(one.network)
        entry = Entry(one.container_id, config, one.ifname, one.network, netns, result=result).to_bytes()
        (folder / "results").mkdir(parents=True, exist_ok=True)
        name = f"{one.network}-{one.container_id}-{one.ifname}"
        (folder / "results" / name).write_bytes(entry if one.whole else entry[: len(entry) // 2])
        if one.cache == "ours":
            key = Key(one.network, one.container_id, one.ifname)
            Records(str(folder)).attached(key, Record(ATTACHED, one.identity, True))

    def namespaces(self):
        layout = self.layout
        host = Namespace({"boot_id": "b", "dev": 4, "inode": 1, "cookie": 1}, "/proc/self/ns/net", "the host", True)
        guest = Namespace({"boot_id": "b", "dev": 4, "inode": 2, "cookie": 2}, "/run/netns/guest", "guest", False)
        host.links[1] = Link(1, "cni0", "bridge", 0, 0, True, False)
        found, elsewhere, away, unseen = [host, guest], {}, [], []
        for one in layout.containers:
            if one.address == "guest":
                guest.addresses[packed(one.ip)] = (2, 24)
            if one.exists and one.veth:
                host.links[10 + one.number] = Link(10 + one.number, one.host_end, "veth", 2, 1, True, True)
                away.append(one.host_end)
                if not layout.visible(one):
                    unseen.append(one.host_end)
            if layout.visible(one):
                here = Namespace(one.identity, one.path, one.holder, False)
                if one.address == "seen":
                    here.addresses[packed(one.ip)] = (2, 24)
                found.append(here)
                if one.holder in ("name", "bind", "process"):
                    elsewhere[one.path] = (4, one.identity["inode"])
        return Namespaces(found, elsewhere, away, unseen, layout.nested)

    def _runtime(self, name):
        state = self.layout.daemon(name)
        ids = [one.container_id for one in self.layout.containers if one.runtime == name]

        def ask():
            if state == "stopped":
                raise HostError("it is stopped", code="source_unusable")
            return Answer(name, dict.fromkeys(ids))

        return sources.RuntimeSource(lambda: "a socket" if state in ("runs", "stopped") else None, ask)

    def collect(self, keep_from):
        """Return what would be collected, and the code of a refusal."""
        settings = GcSettings(
            str(self.conf_dir),
            [str(self.path / "bin")],
            str(self.ours),
            keep_from,
            scope=list(SCOPES),
            min_age=0,
            allow_empty=True,
            # A runtime that is named and not there is a warning then.
            check_mode=True,
        )
        try:
            plan = planner.GcPlanner(settings).make()
        except HostError as error:
            return [], error.code
        return [candidate for candidate in plan.candidates if candidate.action == DELETED], ""


class _Seen:
    """A memory that makes nothing young."""

    @staticmethod
    def age(key):
        return 1.0


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return [(layout, results)]: (collected, code) for each choice of sources, and with every daemon running."""
    folder = tmp_path_factory.getbasetemp() / "layout"

    def collect(layout, choices):
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            host = Host(layout, folder, patch)
            found = [host.collect(choice) for choice in choices]
        shutil.rmtree(folder)
        return found

    layouts = [generate(seed) for seed in range(COUNT)]
    return [(layout, [*collect(layout, CHOICES), *collect(layout.running, [None])]) for layout in layouts]


def test_nothing_of_a_container_that_anything_tells_to_live_is_collected(runs):
    for layout, results in runs:
        for choice, (collected, _code) in zip(CHOICES, results):
            for candidate in collected:
                about = (choice, candidate.row(), layout)
                assert not layout.known(candidate.container_id), about
                assert not layout.addresses() & {ip.partition("/")[0] for ip in candidate.addresses}, about
                assert candidate.ident not in [one.host_end for one in layout.containers], about


def test_fewer_sources_never_mean_more_deletions(runs):
    for layout, results in runs:
        whole = [candidate.key for candidate in results[-1][0]]
        for choice, (collected, _code) in zip(CHOICES, results):
            for candidate in collected:
                # Where a runtime cannot be asked, what this collection made is left to do.
                may = candidate.managed and layout != layout.running
                assert may or candidate.key in whole, (choice, candidate.row(), layout)


def test_processes_that_cannot_be_seen_are_a_refusal(runs):
    for layout, results in runs:
        hidden = [one for one in layout.containers if one.exists and one.veth and not layout.visible(one)]
        if layout.nested and hidden:
            codes = {code for _collected, code in results}
            assert codes <= {"processes_hidden", "source_unusable"} and "processes_hidden" in codes, layout


def test_the_layouts_are_about_something(runs):
    collected = [candidate for _layout, results in runs for candidate in results[-1][0]]
    codes = {code for _layout, results in runs for _collected, code in results}
    kinds = {candidate.kind for candidate in collected}
    assert {"attachment", "lease", "rule", "cache"} <= kinds and len(collected) > len(runs) / 2
    assert codes == {"", "source_unusable", "processes_hidden"}
