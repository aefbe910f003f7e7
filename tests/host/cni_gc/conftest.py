# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh, wait_until
from ansible_collections.podwire.cni.tests.host.networks import DEFAULT_ROUTE, PORTMAP, bridge, conflist, host_local


def routed(*subnets, **keys):
    return host_local(*subnets, **{"routes": DEFAULT_ROUTE, **keys})


BOTH_ROUTES = [*DEFAULT_ROUTE, {"dst": "::/0"}]
NETWORKS = [
    conflist(
        bridge("pwgone0", ipMasq=True, ipam=routed(subnet="10.81.0.0/24")),
        {**PORTMAP, "snat": True},
        {"type": "firewall"},
        name="pwgone",
    ),
    conflist(bridge("pwgtwo0", ipam=routed("10.82.0.0/24", "fd82::/64", routes=BOTH_ROUTES)), PORTMAP, name="pwgtwo"),
    conflist({"type": "ptp", "ipMasq": True, "ipam": routed(subnet="10.83.0.0/24")}, PORTMAP, name="pwgthree"),
    conflist(
        bridge("pwgfour0", ipMasq=True, ipam=routed(subnet="10.84.0.0/24")),
        {"type": "tuning", "sysctl": {"net.core.somaxconn": "500"}},
        PORTMAP,
        version="0.4.0",
        name="pwgfour",
    ),
    conflist(bridge("pwgoff0", "10.85.0.0/24", isGateway=False), name="pwgoff", disableGC=True),
    # Its plugin notes what GC tells it.
    conflist({"type": "listens"}, version="1.1.0", name="pwgverb"),
]

# What cni_gc collects. Left out are counters, and veths, because the kernel ends those of the dead in the background.
LOOK = r"""
find {leases} {cache} -type f -printf '%p %s %T@ %i\n' 2>/dev/null | sort || true
{{ iptables-save; ip6tables-save; }} | sed '/^#/d; s/\[.*//'
ip -oneline link | cut -d ' ' -f 2 | sed '/^veth/d'
"""


@pytest.fixture
def generation():
    """The generation of the plugins. Tests that depend on it override this."""
    return "new"


@pytest.fixture
def leases():
    """Where host-local keeps the addresses of networks that do not say otherwise."""
    return Path("/var/lib/cni/networks")


@pytest.fixture
def gc(host, generations, generation, work, monkeypatch):
    """A host with the networks above. The plugin ``listens`` is a copy of bash, see files/plugin.bash."""
    for name in ("net.d", "fake"):
        (work / name).mkdir()
    shutil.copy("/bin/bash", work / "fake" / "listens")
    for network in NETWORKS:
        (work / "net.d" / f"10-{network['name']}.conflist").write_text(json.dumps(network))
    monkeypatch.setenv("BASH_ENV", str(Path(__file__).parent / "files" / "plugin.bash"))
    monkeypatch.setenv("PLUGIN_DIR", str(work))
    yield host.with_defaults(
        conf_dir=str(work / "net.d"),
        bin_dirs=[str(generations[generation]), str(work / "fake")],
        cache_dir=str(work / "cache"),
    )
    sh(
        """
        shopt -s nullglob
        for netns in /run/netns/pwg*; do ip netns delete "${netns##*/}"; done
        for link in /sys/class/net/pwg*; do ip link delete "${link##*/}" 2>/dev/null || true; done
        rm -rf /var/lib/cni /run/podwire-cni/gc-seen
        nft flush ruleset
        """
    )
    # The kernel ends namespaces in the background.
    wait_until(lambda: "veth" not in sh("ip -brief link"))


@pytest.fixture
def attach(gc):
    """Return a function that makes containers and attaches them. Their namespaces have the names of the containers."""

    def make(entries):
        for name in {entry["container_id"] for entry in entries}:
            sh(f"ip netns add {name}")
        attachments = [{"netns": entry["container_id"], **entry} for entry in entries]
        return gc.run("cni_attach", attachments=attachments)["attachments"]

    return make


@pytest.fixture
def detach(gc):
    """Return a function that detaches containers."""

    def remove(entries):
        gc.run("cni_attach", attachments=[{**entry, "state": "absent"} for entry in entries])

    return remove


@pytest.fixture
def look(work, leases):
    """Return a function that shows what cni_gc collects."""
    return lambda: sh(LOOK.format(leases=leases, cache=work / "cache")).splitlines()


@pytest.fixture
def collect(gc, look):
    """Return a function that predicts, collects, finds nothing more to do, and returns the result."""

    def run(**options):
        options = {"min_age": "0", "scope": ["attachments", "leases", "rules", "cache", "links"], **options}
        results = gc.change("cni_gc", look, **options)
        assert results.check["collected"] == results.run["collected"]
        assert {one["action"] for one in results.again["collected"]} <= {"left"}
        assert [one for one in results.run["collected"] if not one["evidence"]] == []
        return results.run

    return run
