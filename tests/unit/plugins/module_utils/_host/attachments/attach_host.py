# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A host in memory for the tests of cni_attach's planning."""

from __future__ import annotations

import itertools
import json
import os

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.outcome import AttachSettings
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.planner import AttachPlanner
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import parse_attachments
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.verbs import Verbs
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import change, owners
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.object_kinds import HOST
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.state import Reading
from ansible_collections.podwire.cni.plugins.module_utils._host.lock import run_locked
from ansible_collections.podwire.cni.plugins.module_utils._host.netns import Netns, Seen, same
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.invoke import Executor, plugin_error
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.explained import explained
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.footprints.states import address, link

MAIN = {"type": "main", "ipam": {"type": "ipam"}}
META = {"type": "meta", "capabilities": {"portMappings": True}}


class Namespace(Netns):
    """A namespace of a host in memory. Its descriptor is none of this process."""

    def __init__(self, host, path, identity=None):
        super().__init__(path, identity)
        self._host = host

    def __enter__(self):
        seen = self._host.inspect_paths({self.path: ()})[self.path]
        here = None if seen.host else seen.identity
        self._fd = 1 if here and (self.identity is None or same(here, self.identity)) else -1
        return self

    def __exit__(self, *_exception):
        self._fd = None

    def inspect(self, names):
        seen = self._host.inspect_paths({self.path: names})[self.path] if self.fd > 0 else Seen()
        self.identity = self.identity or seen.identity
        return seen

    @property
    def at_its_path(self):
        return same(self._host.inspect_paths({self.path: ()})[self.path].identity, self.identity)


class Host(Executor):
    """A host in memory: namespaces with their interfaces, and plugins that act on them."""

    def __init__(self, root):
        super().__init__()
        self.conf_dir = str(root / "net.d")
        self.bin_dir = str(root / "bin")
        self.cache_dir = str(root / "cache")
        self.lock = str(root / "lock" / "lock")
        os.mkdir(self.conf_dir)
        os.mkdir(self.bin_dir)
        for name in ("main", "meta", "ipam"):
            open(os.path.join(self.bin_dir, name), "w").close()
        self.namespaces = {}
        # Paths that lead to the host's own namespace.
        self.own = set()
        self.calls = []
        self.broken = {}
        self.next_ip = 2
        # What the kernel has beside the names: addresses of the containers, and the host's side.
        self.addresses = {}
        self.dns = None

    def network(self, name="demo", **changed):
        conf = dict({"cniVersion": "1.0.0", "name": name, "plugins": [MAIN, META]}, **changed)
        with open(os.path.join(self.conf_dir, f"10-{name}.conflist"), "w") as stream:
            json.dump(conf, stream)

    def namespace(self, name, inode=1, links=("lo",)):
        self.namespaces[f"/run/netns/{name}"] = (
            {"boot_id": "b", "dev": 4, "inode": inode, "cookie": inode},
            set(links),
        )

    def inspect_paths(self, wanted):
        nothing = (None, set())
        return {
            path: Seen(identity, set(names) & links, path in self.own)
            for path, names in wanted.items()
            for identity, links in [self.namespaces.get(path, nothing)]
        }

    def netns(self, path, identity=None):
        return Namespace(self, path, identity)

    def read_spaces(self, _wanted, namespaces):
        """Return the states of the host, which has nothing, and of namespaces; each interface has all addresses."""
        paths = [one.path for one in namespaces if one.path in self.namespaces]
        return Reading({HOST: {}, **{path: self.objects_in(path) for path in paths}})

    def objects_in(self, path):
        names = self.namespaces[path][1] - {"lo"}
        have = [ip.partition("/") for ip in self.addresses.get(path, [])]
        addresses = {("addr", name, ip, int(length)): address() for name in names for ip, _slash, length in have}
        return {**{("link", name): link() for name in names}, **addresses}

    def exec_plugin(self, path, stdin, env, timeout=None):
        plugin, verb = os.path.basename(path), env["CNI_COMMAND"]
        conf = json.loads(stdin)
        self.calls.append((verb, plugin, env["CNI_CONTAINERID"], env["CNI_NETNS"]))
        error = self.broken.get((verb, plugin))
        if error is not None:
            raise PluginError(999, error, plugin=plugin, stderr="on stderr")
        links = self.namespaces.get(env["CNI_NETNS"], (None, set()))[1]
        result = conf.get("prevResult")
        if verb == "ADD" and plugin == "main":
            links.add(env["CNI_IFNAME"])
            ips = conf.get("runtimeConfig", {}).get("ips") or [f"10.1.0.{self.next_ip}/24"]
            self.next_ip += 1
            self.addresses[env["CNI_NETNS"]] = ips
            result = {
                "cniVersion": "1.0.0",
                "interfaces": [{"name": env["CNI_IFNAME"], "sandbox": env["CNI_NETNS"]}],
                "ips": [{"address": ip, "interface": 0} for ip in ips],
                **({"dns": self.dns} if self.dns else {}),
            }
        if verb == "DEL" and plugin == "main":
            links.discard(env["CNI_IFNAME"])
        return json.dumps(result).encode() if verb == "ADD" else b""

    def check_fails(self, code):
        """Let the CHECK of meta fail with *code*, 0 for a panic, in other words each time."""
        times = itertools.count()
        original = type(self).exec_plugin

        def exec_plugin(path, stdin, env, timeout=None):
            if (env["CNI_COMMAND"], os.path.basename(path)) != ("CHECK", "meta"):
                return original(self, path, stdin, env, timeout)
            if code == 0:
                text = b"panic: runtime error\n\ngoroutine 1 [running]:\nmain.check(0x%x)" % next(times)
                raise plugin_error("meta", b"", text, "exit status 2")
            raise PluginError(code, f"rule {next(times)} is missing", plugin="meta")

        self.exec_plugin = exec_plugin

    def fail_if(self, condition, error):
        """Let plugins fail with *error* where *condition* holds for verb, path, configuration and environment."""
        original = self.exec_plugin

        def exec_plugin(path, stdin, env, timeout=None):
            if condition(env["CNI_COMMAND"], path, json.loads(stdin), env):
                raise error
            return original(path, stdin, env, timeout)

        self.exec_plugin = exec_plugin

    def verbs(self, verb):
        """Return the plugins that were run with *verb*."""
        return [plugin for command, plugin, *_rest in self.calls if command == verb]

    def plan(self, entries, check_mode=True, **settings):
        options = AttachSettings(self.conf_dir, [self.bin_dir], self.cache_dir, check_mode=check_mode, **settings)
        verbs = Verbs([self.bin_dir], self.cache_dir, 5, executor=self)
        request = parse_attachments(entries)
        self.calls.clear()
        return explained(
            run_locked(
                lambda: AttachPlanner(options, verbs).make(request), "test", 5, check_mode, options.workers, self.lock
            )
        )

    def run(self, *entries, **settings):
        return self.plan(entries, check_mode=False, **settings)

    def check(self, *entries, **settings):
        return self.plan(entries, **settings)

    def cached(self):
        folder = os.path.join(self.cache_dir, "results")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def record(self, name):
        with open(os.path.join(self.cache_dir, "podwire", name)) as stream:
            return stream.read()

    def records(self):
        folder = os.path.join(self.cache_dir, "podwire")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


class Firewall:
    """The sets of rules of a host, and which were removed; ``errors`` are the names of those that stay, and why."""

    def __init__(self, monkeypatch, *sets):
        self.sets = list(sets)
        self.problems = []
        self.errors = {}
        self.removed = []
        self.readings = 0
        monkeypatch.setattr(owners, "read_rules", self.read)
        monkeypatch.setattr(change, "drop_rules", self.drop)

    def read(self):
        self.readings += 1
        found = owners.FoundRules()
        found.sets += self.sets
        found.problems += self.problems
        return found

    def drop(self, sets):
        self.removed += [one.name for one in sets]
        return {one.key: self.errors[one.name] for one in sets if one.name in self.errors}


def web(**changed):
    return dict({"network": "demo", "container_id": "web", "netns": "web"}, **changed)


def actions(plan):
    return [outcome.action for outcome in plan.outcomes]


def kinds(plan):
    return [(step.kind, step.target) for step in plan.steps]


def codes(plan):
    return [code for code, _message in plan.warnings]
