# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import NETWORK_STATE, sh, wait_until
from ansible_collections.podwire.cni.tests.host.networks import (
    DEFAULT_ROUTE,
    PORTMAP,
    bridge as main_bridge,
    host_local,
)
from ansible_collections.podwire.cni.tests.host.records import lose_footprints

PLUGIN = Path(__file__).parent / "files" / "plugin.bash"

REMOVE = r"""
shopt -s nullglob
# The plugins never remove their bridges.
for bridge in /sys/class/net/pwa*; do ip link delete "${bridge##*/}"; done
nft flush ruleset
"""


def _delete_namespaces():
    sh("for path in /run/netns/pwa-*; do [ ! -e $path ] || ip netns delete ${path##*/}; done")
    # The kernel removes what was in them a moment later.
    wait_until(lambda: not sh("ip link show type veth"))


@pytest.fixture
def plugins(generations, generation):
    """The directory of the plugins of the generation."""
    return generations[generation]


@pytest.fixture
def leases(work):
    """The directory of host-local's leases, which are files such as leases/pwatwo/10.67.0.2."""
    return work / "leases"


@pytest.fixture
def cache(work):
    """The directory of cache entries, such as cache/results/pwatwo-web-eth0."""
    return work / "cache"


@pytest.fixture
def bridge(leases):
    """Return a function that returns the configuration of a plugin bridge with host-local, with or without routes."""

    def make(name, subnet, routes=None, **more):
        ipam = host_local(dataDir=str(leases), subnet=subnet, **({"routes": routes} if routes else {}))
        return {"type": "bridge", "bridge": name, "ipam": ipam, **more}

    return make


@pytest.fixture
def networks(bridge, leases):
    """The plugins of networks that many tests attach to."""
    both_families = host_local("10.66.0.0/24", "fd66::/64", dataDir=str(leases), routes=DEFAULT_ROUTE)
    return {
        "pwademo": [main_bridge("pwademo0", ipMasq=True, ipam=both_families), {**PORTMAP, "snat": True}],
        "pwatwo": [bridge("pwatwo0", "10.67.0.0/24", capabilities={"ips": True})],
        "pwamap": [bridge("pwamap0", "10.68.0.0/24", isGateway=True), PORTMAP],
        "pwasbr": [bridge("pwasbr0", "10.69.0.0/24", DEFAULT_ROUTE, isGateway=True), {"type": "sbr"}],
    }


@pytest.fixture
def write_network(work):
    """Return a function that configures a network: its name, plugins, version and layout."""
    (work / "net.d").mkdir()

    def write(name, plugins, version="1.0.0", **layout):
        network = {"cniVersion": version, "name": name, "plugins": plugins}
        (work / "net.d" / f"10-{name}.conflist").write_text(json.dumps(network, **layout))

    return write


@pytest.fixture
def fakes(work, monkeypatch):
    """The directory of the plugins that ``files/plugin.bash`` plays."""
    monkeypatch.setenv("BASH_ENV", str(PLUGIN))
    folder = work / "fakes"
    folder.mkdir()
    for name in (
        "hang",
        "die",
        "garbage",
        "babble",
        "mute",
        "flood",
        "hold",
        "leaky",
        "meet",
        "record",
        "slow",
        "stubborn",
    ):
        (folder / name).symlink_to("/bin/bash")
    return folder


@pytest.fixture
def host(host, work, plugins, fakes, cache, networks, write_network):
    """A host with the namespaces pwa-web and pwa-db, and networks to which nothing is attached."""
    for name, chain in networks.items():
        write_network(name, chain)
    try:
        sh("ip netns add pwa-web; ip netns add pwa-db")
        yield host.with_defaults(
            conf_dir=str(work / "net.d"), bin_dirs=[str(plugins), str(fakes)], cache_dir=str(cache)
        )
    finally:
        _delete_namespaces()
        sh(REMOVE)


@pytest.fixture
def namespaces(host):
    """Return a function that deletes all namespaces, and then adds those of the given names."""

    def renew(*names):
        _delete_namespaces()
        for name in names:
            sh(f"ip netns add {name}")

    return renew


@pytest.fixture
def files(cache, leases):
    """Return a function that lists the files of the cache and of the leases."""

    def look():
        return sorted(path for folder in (cache, leases) for path in folder.rglob("*") if path.is_file())

    return look


@pytest.fixture
def forget_footprints(cache):
    """Return a function that removes all footprints, of attachments whose ADD cannot be rehearsed."""

    def forget():
        lose_footprints(cache)
        for entry in (cache / "results").iterdir():
            os.utime(entry, (1, 1))

    return forget


@pytest.fixture
def state(files):
    """Return a function that shows all that an attachment changes on the host."""

    def look():
        return sh(NETWORK_STATE), [(str(path), path.read_bytes()) for path in files()]

    return look


@pytest.fixture
def attach(host):
    """Return a function that runs the module, which must not fail, with attachments and options."""

    def run(*attachments, **options):
        return host.run("cni_attach", attachments=list(attachments), **options)

    return run


@pytest.fixture
def change(host, state):
    """Return a function that makes one change of state, with the given steps (None: any) and actions."""

    def make(attachments, kinds, actions, **options):
        results = host.change("cni_attach", state, attachments=attachments, **options)
        predicted, ran, again = (result["attachments"] for result in results[:3])
        assert [row["action"] for row in predicted] == [row["action"] for row in ran] == actions
        steps = results.check["actions"]
        in_place = {step["target"] for step in steps if {"kind": "put_back"} in step.get("parts", ())}
        for row in predicted:
            known = "/".join(row[name] for name in ("network", "container_id", "ifname")) in in_place
            assert row["action"] in ("none", "adopted") or known or not row["result"]
        assert kinds is None or [step["kind"] for step in results.run["actions"]] == kinds
        assert {row["action"] for row in again} == {"none"}
        assert [row["result"] for row in again] == [row["result"] for row in ran]
        assert results.check_again["attachments"] == again
        return results

    return make
