# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The class of a step follows what the plan changes for containers, whichever step does it."""

from __future__ import annotations

import functools
import json
import random

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.usable import Binaries
from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import scan_conf_dir
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.networks import effects
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.request import WantedNetwork
from ansible_collections.podwire.cni.plugins.module_utils._host.plan import DISRUPTIVE, SAFE, Plan, Step
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.effective import Effective
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.runtime import Runtime
from ansible_collections.podwire.cni.tests.tools import sample
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.networks.conf_host import (
    Host,
    steps,
    text,
    unset,
    unwant,
    want,
)

KINDS = ("containerd-1.6", "containerd-2.1", "crio", "podman", "nomad", "nerdctl")


class RuntimesHost(Host):
    """A host with runtimes that read the directory; ``lacks`` are plugins that none of them finds."""

    def __init__(self, root, monkeypatch):
        super().__init__(root, monkeypatch)
        self.conf_dir.mkdir()
        self.lacks = []

        def ask(_binaries, name):
            if name in self.lacks:
                raise HostError(f"there is no plugin {name!r}", code="missing_plugin")
            return f"/opt/cni/bin/{name}", ["0.3.1", "0.4.0", "1.0.0"]

        monkeypatch.setattr(Binaries, "ask", ask)

    def has(self, name, **settings):
        runtime = Runtime(name, "", "a process", str(self.conf_dir))
        vars(runtime).update(settings)
        self.runtimes.append(runtime)

    def classes(self, *wanted, **options):
        plan = self.plan(*wanted, **options)
        return [(step.kind, step.step_class) for step in plan.steps]

    def given(self):
        """Return what each runtime gives to containers: interface or name -> the subnet; and the networks by name."""
        files = scan_conf_dir(str(self.conf_dir))
        view = HostView(self.manifest())
        view.runtimes = list(self.runtimes)
        effective = Effective(None, str(self.conf_dir), ["/nowhere"], files, view)
        subnets = {file.path: _subnet(file) for file in files}
        seen = []
        for runtime, row in zip(effective.runtimes, effective.rows()):
            networks = {each["network"]: subnets[each["file"]] for each in row["networks"]}
            if runtime.profile.choice == "first":
                seen.append([(each["network"], subnets[each["file"]]) for each in row["networks"]])
            else:
                networks[""] = (row["network"], subnets.get(row["file"]))
                seen.append(networks)
        by_name = {}
        for file in sorted(files, key=lambda file: file.kind != "conflist"):
            if file.network and not file.error:
                by_name.setdefault(file.network, subnets[file.path])
        return seen, by_name


def _subnet(file):
    return next((str(plugin.get("subnet")) for plugin in file.plugins if plugin.get("type") == "bridge"), "")


@pytest.fixture
def effects_host(tmp_path, monkeypatch):
    return RuntimesHost(tmp_path, monkeypatch)


def of(name, subnet="10.1.0.0/24"):
    return text(name, ipam={"type": "host-local", "subnet": subnet}, subnet=subnet)


# ---- which network a runtime chooses


@pytest.mark.parametrize(
    ("kind", "step_class"), [(kind, DISRUPTIVE if kind[:2] in ("co", "cr") else SAFE) for kind in KINDS]
)
def test_a_network_before_the_first_one(effects_host, kind, step_class):
    # As on each Debian host with podman.
    effects_host.put("87-podman-bridge.conflist", of("podman"))
    effects_host.has(kind)
    plan = effects_host.plan(want("podnet"))
    assert steps(plan) == [("create", "10-podnet.conflist", step_class)]
    if step_class == DISRUPTIVE:
        assert plan.steps[0].reason == f"does not exist; {kind} changes from the network 'podman' to 'podnet'"
    # Behind it, it is only one more.
    assert effects_host.classes(want("podnet", file="90-podnet.conflist")) == [("create", SAFE)]


def test_another_name_of_a_file_that_multus_finds_by_its_path(effects_host):
    effects_host.has("crio")
    path = str(effects_host.conf_dir / "20-b.conflist")
    effects_host.put("00-multus.conflist", text("multus", type="multus", clusterNetwork=path))
    effects_host.run(want("b", priority=20))
    assert effects_host.classes(want("b", priority=30)) == [("rename", DISRUPTIVE)]


def test_what_no_runtime_would_load_is_not_chosen(effects_host):
    effects_host.put("10-a.conflist", of("a"))
    effects_host.has("crio")
    effects_host.lacks = ["bridge"]
    assert effects_host.classes(want("b", priority=5)) == [("create", SAFE)]


def test_a_runtime_of_another_directory_does_not_count(effects_host):
    effects_host.put("10-a.conflist", of("a"))
    effects_host.has("crio", conf_dir="/elsewhere")
    effects_host.has("podman", reads=False)
    assert effects_host.classes(want("b", priority=5)) == [("create", SAFE)]


# ---- plugins


class Plugins:
    """A plan of plugins, in order: name -> whether a step installs (True) or removes it (False)."""

    def __init__(self, host, bin_dir="/opt/cni/bin"):
        self.host, self.bin_dir = host, bin_dir

    def classes(self, **changes):
        view = self.host.view()
        plan, expected = Plan(), {}
        for name, exists in changes.items():
            path = f"{self.bin_dir}/{name}"
            expected[path] = ["1.0.0"] if exists else None
            kind = "install" if exists else "remove"
            plan.add(Step(kind, path, SAFE, None, None, lambda: None, reason="x"))
        options = {"conf_dir": str(self.host.conf_dir), "bin_dirs": [self.bin_dir]}
        effects.classify_plugins(plan, expected, options, view)
        return [(step.target.rpartition("/")[2], step.step_class, step.reason) for step in plan.steps]


@pytest.mark.parametrize(
    ("kind", "step_class"), [("crio", DISRUPTIVE), ("containerd-2.1", SAFE), ("podman", SAFE), ("nomad", SAFE)]
)
def test_a_plugin_because_of_which_a_runtime_chooses_another_network(effects_host, monkeypatch, kind, step_class):
    def ask(binaries, name):
        path = f"/opt/cni/bin/{name}"
        exists = binaries._view.versions_after(path) if binaries._view.changes_binary(path) else name == "bridge"
        if not exists:
            raise HostError(f"there is no plugin {name!r}", code="missing_plugin")
        return path, ["1.0.0"]

    monkeypatch.setattr(Binaries, "ask", ask)
    first = json.loads(of("a"))
    first["plugins"].append({"type": "ptp"})
    effects_host.put("05-a.conflist", json.dumps(first).encode())
    effects_host.put("10-b.conflist", of("b"))
    effects_host.has(kind)
    words = "; crio changes from the network 'b' to 'a'" if kind == "crio" else ""
    plan = Plugins(effects_host)
    assert plan.classes(tap=True, ptp=True) == [("tap", SAFE, "x"), ("ptp", step_class, "x" + words)]
    assert Plugins(effects_host, "/elsewhere").classes(ptp=True) == [("ptp", SAFE, "x")]
    # Without its plugin, the only network of CRI-O goes, and those of others cannot be attached.
    [(_name, gone, why)] = plan.classes(bridge=False)
    assert gone == (DISRUPTIVE if kind in ("crio", "podman") else SAFE), why


# ---- any plan


def generated(rng):
    """Return files, and a request about some of them."""
    names = ["a", "b", "c", "podman", "bridge"]
    subnets = ("10.1.0.0/24", "10.2.0.0/24")
    priorities = rng.sample(range(5, 95), 12)

    def entry(name):
        conflist = of(name, rng.choice(subnets))
        return WantedNetwork(name, True, conflist, priority=priorities.pop(), replace=rng.random() < 0.5)

    foreign = {}
    for _each in range(rng.randrange(3)):
        name = rng.choice(names)
        file = f"{priorities.pop():02}-{name}.{rng.choice(['conflist', 'conflist', 'conf'])}"
        content = of(name, rng.choice(subnets))
        if file.endswith(".conf"):
            single = json.loads(content)
            content = json.dumps(dict(single["plugins"][0], name=name, cniVersion="1.0.0")).encode()
        foreign[file] = b"{" if rng.random() < 0.15 else content
    managed = [entry(name) for name in rng.sample(names, rng.randrange(3))]
    kept = [wanted for wanted in managed if rng.random() < 0.5]
    others = [name for name in names if name not in {wanted.name for wanted in kept}]
    request = kept + [entry(name) for name in rng.sample(others, rng.randrange(3))]
    left = [name for name in others if name not in {wanted.name for wanted in request}]
    request += [rng.choice([unwant, unset])(name) for name in rng.sample(left, rng.randrange(min(2, len(left)) + 1))]
    kinds = rng.sample(KINDS, rng.randrange(1, 4))
    most = {kind: rng.choice([0, 1, 2]) for kind in kinds}
    return foreign, managed, request, kinds, most, {"exclusive": rng.random() < 0.3, "force": rng.random() < 0.5}


@pytest.mark.parametrize("seed", range(sample.number("EXAMPLES", 300, 60)))
def test_the_class_of_a_step_tells_its_effect(effects_host, seed):
    rng = random.Random(seed)
    foreign, managed, request, kinds, most, options = generated(rng)
    for kind in kinds:
        effects_host.has(kind, **({"max_networks": most[kind]} if kind.startswith("containerd") else {}))
    for name, content in foreign.items():
        effects_host.put(name, content)
    try:
        if managed:
            effects_host.plan(*managed, force=True).apply()
        plan = effects_host.plan(*request, **options)
    except HostError:
        return
    seen = []

    def watched(step, action):
        before = effects_host.given()
        action()
        after = effects_host.given()
        gone = [name for name, subnet in before[1].items() if after[1].get(name) != subnet]
        changed = [(old, new) for old, new in zip(before[0], after[0]) if differs(old, new)]
        seen.append((step.kind, step.step_class, bool(gone or changed)))

    for step in plan.steps:
        step.action = functools.partial(watched, step, step.action)
    plan.apply()
    wrong = [entry for entry in seen if (entry[1] == DISRUPTIVE) != entry[2]]
    assert not wrong and len(seen) == len(plan.steps), (seed, seen)


def differs(old, new):
    """Tell whether containers of a runtime that have a network would get another one."""
    if isinstance(old, list):
        return bool(old) and old != new
    return any(new.get(name) != network for name, network in old.items() if network != (None, None))
