# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Garbage collection on hosts that are made up: files are real, the kernel and the runtimes are data.

What is known of a container is written down here a second time, from the layout and not from what the planner reads.
"""

from __future__ import annotations

import json
import random
import shutil
from typing import List, NamedTuple

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import leases
from ansible_collections.podwire.cni.plugins.module_utils._host.addresses import packed
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import caches as gc_cache
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.containers import sources
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.live import Answer, RuntimeSource
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.namespaces import Namespace, Namespaces
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import owners
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.kinds import FIREWALL, PORTMAP
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.owners import FoundRules, RuleOwner, RuleSet
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage import planner
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage.candidate import DELETED, SCOPES, GcSettings
from ansible_collections.podwire.cni.plugins.module_utils._host.netlink import Link
from ansible_collections.podwire.cni.plugins.module_utils.libcni.cache import Entry
from ansible_collections.podwire.cni.tests.tools import sample
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.records import write_record

COUNT = 8 * sample.number("EXAMPLES", 65, 8)
CHOICES = (None, [], ["netns"], ["cache", "netns"], ["podman"], ["cache", "containerd", "netns"])

# What leads to a namespace. `unknown` does not show itself; `none` is a namespace that has come to its end.
HOLDERS = ("name", "bind", "process", "fd", "socket", "unknown", "none", "none", "none")
CACHES = ("ours", "ours", "libcni", "containerd", "containerd", "podman", "multus", "lost")
RUNTIMES = ("containerd", "podman")
# What an ADD made: the MACs of ipvlan are all the same, and a result before version 0.3.0 names no interface.
KINDS = ("veth", "veth", "veth", "macvlan", "host-device", "ipvlan", "old")
# Where the path of the ADD leads: to the namespace, as long as something shows it there; to nowhere, because it was
# renamed or its mount removed; to a place that all containers have in mount namespaces of their own; or to where a
# container that came later has its own.
PATHS = ("own", "own", "own", "nowhere", "session", "taken")
SESSION = "/var/lib/apptainer/mnt/session/netns"
NUMBER = "27"


class Container(NamedTuple):
    number: int
    container_id: str
    network: str
    holder: str
    kind: str
    path_is: str
    # Whether its address is on its interface, on another one in its namespace or in that of a guest, or nowhere.
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
        return "eth0" if self.container_id in (f"c{self.number}", NUMBER) else f"eth{self.number}"

    @property
    def veth(self):
        return self.kind == "veth"

    @property
    def mac(self):
        return f"0a:00:00:00:00:{0xFF if self.kind == 'ipvlan' else self.number:02x}"

    @property
    def host_end(self):
        return f"veth{self.number}"

    @property
    def exists(self):
        return self.holder != "none"

    @property
    def path(self):
        """Where the ADD found the namespace."""
        if self.path_is == "session":
            return SESSION
        if self.path_is == "taken":
            return f"/run/netns/c{self.number + 1}"
        if self.path_is == "nowhere":
            return f"/run/renamed/c{self.number}"
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

    def leads(self, one):
        """Whether the path of the ADD leads to the namespace, here or in another mount namespace."""
        return self.visible(one) and one.path_is in ("own", "session") and one.holder in ("name", "bind", "process")

    def known(self, container_id, network=""):
        """Whether anything on the host tells that the container, or its attachment to a network, lives."""
        mine = [one for one in self.containers if one.container_id == container_id]
        return any(self._tells(one) for one in mine if not network or one.network == network)

    def _tells(self, one):
        if one.runtime and self.daemon(one.runtime) == "runs":
            return True
        if not one.exists or one.cache == "lost":
            return False
        if one.cache == "ours" and self.visible(one):
            return True
        # Its interface shows itself, whether or not the path does.
        return one.whole and (one.veth or self.visible(one))

    def dead_for_certain(self, one):
        """Whether an attachment of this collection must go: its record tells which namespace it had."""
        if one.exists or one.cache != "ours" or not one.whole or one.address == "guest":
            return False
        # Of an interface that no entry has, it is not known whose it is.
        others = [x for x in self.containers if x.kind == "ipvlan" and self.visible(x)]
        doubtful = one.kind == "ipvlan" and not all(x.whole and x.cache != "lost" for x in others)
        return not doubtful and not self.known(one.container_id)

    def addresses(self):
        return {
            one.ip
            for one in self.containers
            if one.address == "guest" or (one.exists and one.address in ("seen", "moved") and self.visible(one))
        }


def generate(seed):
    rng = random.Random(seed)
    made = []
    for number in range(rng.randint(1, 8)):
        cache = rng.choice(CACHES)
        holder = rng.choice(HOLDERS)
        # Some have several interfaces, and some of these are of another owner. Numbers of processes are given again.
        container_id = rng.choice([f"c{number}", f"c{number}", f"c{max(0, number - 1)}", NUMBER])
        path_is = rng.choice(PATHS)
        made.append(
            Container(
                number,
                container_id,
                f"net{number}" if container_id == NUMBER else rng.choice(["demo", "other"]),
                holder,
                rng.choice(KINDS),
                "own" if path_is == "taken" and holder != "none" else path_is,
                rng.choice(["seen", "flushed", "flushed", "guest", "moved"]),
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
        monkeypatch.setattr(owners, "read_rules", lambda: self.firewall)
        monkeypatch.setattr(planner, "FirstSeen", _Seen)
        monkeypatch.setattr(sources, "read_namespaces", lambda paths: self.namespaces())
        monkeypatch.setattr(sources, "RUNTIMES", {name: self._runtime(name) for name in RUNTIMES})
        others = {}
        if layout.containerd == "traces":
            others["containerd"] = (str(path),)
        if layout.crio:
            others["CRI-O"] = (str(path),)
        monkeypatch.setattr(sources, "_OTHERS", others)
        for network in {one.network for one in layout.containers}:
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
        interfaces = [{"name": one.ifname, "mac": one.mac, "sandbox": one.path}]
        if one.veth:
            interfaces += [{"name": "cni0"}, {"name": one.host_end}]
        result = {"cniVersion": "1.0.0", "interfaces": interfaces, "ips": [{"address": f"{one.ip}/24"}]}
        if one.kind == "old":
            result = {"cniVersion": "0.2.0", "ip4": {"ip": f"{one.ip}/24"}}
        # containerd's libcni does not cache the path.
        netns = "" if one.cache == "containerd" else one.path
        config = self._config(one.network)
        entry = Entry(one.container_id, config, one.ifname, one.network, netns, result=result).to_bytes()
        (folder / "results").mkdir(parents=True, exist_ok=True)
        name = f"{one.network}-{one.container_id}-{one.ifname}"
        (folder / "results" / name).write_bytes(entry if one.whole else entry[: len(entry) // 2])
        if one.cache == "ours":
            key = Key(one.network, one.container_id, one.ifname)
            write_record(folder, key, one.identity)

    def namespaces(self):
        layout = self.layout
        identity = {"boot_id": "b", "dev": 4, "inode": 1, "cookie": 1, "processes": 0}
        host = Namespace(identity, "/proc/self/ns/net", "the host", True)
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
                here.links[2] = Link(2, one.ifname, "", 0, 0, True, False, one.mac)
                if one.address in ("seen", "moved"):
                    here.addresses[packed(one.ip)] = (2 if one.address == "seen" else 3, 24)
                found.append(here)
                if layout.leads(one):
                    elsewhere.setdefault(one.path, set()).add(one.identity["inode"])
        return Namespaces(found, elsewhere, away, unseen, layout.nested)

    def _runtime(self, name):
        state = self.layout.daemon(name)
        ids = [one.container_id for one in self.layout.containers if one.runtime == name]

        def ask():
            if state == "stopped":
                raise HostError("it is stopped", code="source_unusable")
            return Answer(name, dict.fromkeys(ids))

        return lambda: RuntimeSource("a socket", ask) if state in ("runs", "stopped") else None

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
            plan = planner.plan_gc(settings)
        except HostError as error:
            return [], error.code
        return [candidate for candidate in plan.candidates if candidate.action == DELETED], ""


class _Seen:
    """A memory that makes nothing young."""

    @staticmethod
    def age(key):
        return 1.0


@pytest.fixture(scope="module")
def collect(tmp_path_factory):
    """Return a function that returns (collected, code) for each choice of sources."""
    folder = tmp_path_factory.getbasetemp() / "layout"

    def run(layout, choices):
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            host = Host(layout, folder, patch)
            found = [host.collect(choice) for choice in choices]
        shutil.rmtree(folder)
        return found

    return run


@pytest.fixture(scope="module")
def runs(collect):
    """Return [(layout, results)]: for each choice of sources, and with every daemon running."""
    layouts = [generate(seed) for seed in range(COUNT)]
    return [(layout, [*collect(layout, CHOICES), *collect(layout.running, [None])]) for layout in layouts]


def test_nothing_of_a_container_that_anything_tells_to_live_is_collected(runs):
    for layout, results in runs:
        for choice, (collected, _code) in zip(CHOICES, results):
            for candidate in collected:
                about = (choice, candidate.row(), layout)
                # Another process has the number of one that has died.
                again = candidate.kind == "attachment" and candidate.container_id == NUMBER
                assert not layout.known(candidate.container_id, candidate.network if again else ""), about
                assert not layout.addresses() & {ip.partition("/")[0] for ip in candidate.addresses}, about
                assert candidate.ident not in [one.host_end for one in layout.containers], about


def test_what_has_died_for_certain_is_collected(runs):
    for layout, results in runs:
        whole, (collected, code) = layout.running, results[-1]
        targets = {candidate.step_target for candidate in collected if candidate.kind == "attachment"}
        for one in whole.containers if not code else ():
            if whole.dead_for_certain(one):
                assert f"{one.network}/{one.container_id}/{one.ifname}" in targets, (one, layout)


@pytest.mark.parametrize("less", [{"path_is": "nowhere"}, {"address": "flushed"}, {"runtime": ""}])
def test_a_living_container_that_shows_itself_less_costs_nothing(runs, collect, less):
    for layout, results in runs[: len(runs) // 4]:
        whole, (collected, code) = layout.running, results[-1]
        for one in whole.containers if not code else ():
            changed = one._replace(**less)
            # Something must still tell of it.
            if one == changed or not one.exists or not whole._tells(changed):
                continue
            fewer = [changed if other is one else other for other in whole.containers]
            ((found, _code),) = collect(whole._replace(containers=fewer), [None])
            known = {candidate.key for candidate in collected}
            for candidate in found:
                # A path that leads nowhere is no longer taken for that of a dead container, either.
                if candidate.key not in known:
                    assert not whole.known(candidate.container_id), (candidate.row(), one, layout)
                    if one.whole and whole._tells(changed._replace(runtime="")):
                        assert one.ip not in candidate.addresses, (candidate.row(), one, layout)


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
