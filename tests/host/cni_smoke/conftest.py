# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh, wait_until
from ansible_collections.podwire.cni.tests.host.networks import DEFAULT_ROUTE, PORTMAP, bridge

# What a smoke test must leave as it is. Plugins never remove some chains that all containers share.
STATE = r"""
find {leases} -type f ! -name 'last_reserved_ip.*' ! -name lock -printf '%p %T@\n' | sort
find {cache} -type d -printf '%p\n' -o -type f -printf '%p %T@\n' | sort
ip -oneline link show
for netns in $(ip netns list | cut -d ' ' -f 1); do
  ip -n "$netns" -oneline address show
done
iptables-save | grep '^-' | grep -vE 'CNI-(FORWARD|ADMIN|HOSTPORT-[A-Z]+)( |$)' || true
ip6tables-save | grep '^-' | grep -vE 'CNI-(FORWARD|ADMIN|HOSTPORT-[A-Z]+)( |$)' || true
nft --stateless list ruleset | grep masquerade | grep -v 'mark & 0x00002000' || true
"""


@pytest.fixture(scope="session")
def fakes(tmp_path_factory):
    """The directory of copies of bash that play plugins, see files/plugin.bash."""
    folder = tmp_path_factory.mktemp("fakes")
    for name in ("refuse", "stubborn", "leaky", "slow", "single", "unmap", "vendor"):
        shutil.copy("/bin/bash", folder / name)
    return folder


@pytest.fixture
def host(host, generations, generation, fakes, work, monkeypatch):
    """A host with an interface for macvlan, and with the namespace of a container, pws-web."""
    for name in ("net.d", "leases", "cache"):
        (work / name).mkdir()
    monkeypatch.setenv("BASH_ENV", str(Path(__file__).parent / "files" / "plugin.bash"))
    monkeypatch.setenv("PLUGIN_DIR", str(work))
    monkeypatch.setenv("REAL_PLUGINS", str(generations[generation]))
    try:
        sh(
            """
            ip link add pwslower type veth peer name pwslower1
            ip link set pwslower up
            ip link set pwslower1 up
            ip netns add pws-web
            """
        )
        # The kernel tells a carrier some time after the other end is up.
        wait_until(lambda: sh("ip -brief link | grep -c '^pwslower.* UP '", check=False) == "2")
        yield host.with_defaults(
            conf_dir=str(work / "net.d"),
            bin_dirs=[str(generations[generation]), str(fakes)],
            cache_dir=str(work / "cache"),
        )
    finally:
        sh(
            """
            ip netns delete pws-web
            for link in /sys/class/net/pws*; do
              ip link delete ${link##*/} 2>/dev/null || true
            done
            nft flush ruleset
            """
        )


@pytest.fixture
def write(work):
    """Return a function that configures a network in a file of conf_dir."""

    def put(number, name, plugins, version="1.0.0"):
        network = {"cniVersion": version, "name": name, "plugins": plugins}
        (work / "net.d" / f"{number}-{name}.conflist").write_text(json.dumps(network))

    return put


@pytest.fixture
def host_local(work):
    """Return a function that returns a configuration of host-local."""

    def ipam(**options):
        return {"type": "host-local", "dataDir": str(work / "leases"), **options}

    return ipam


@pytest.fixture
def networks(host, write, host_local):
    """Five networks that work."""
    # Addresses of both families, rules in the firewall.
    ranges = [[{"subnet": "10.46.0.0/24"}], [{"subnet": "fd46::/64"}]]
    ipam = host_local(ranges=ranges, routes=DEFAULT_ROUTE)
    write(10, "pwsboth", [bridge("pwsboth0", ipMasq=True, ipam=ipam), PORTMAP, {"type": "firewall"}])
    write(10, "pwsptp", [{"type": "ptp", "ipMasq": True, "ipam": host_local(subnet="10.47.0.0/24")}])
    write(10, "pwsmac", [{"type": "macvlan", "master": "pwslower", "ipam": host_local(subnet="10.48.0.0/24")}])
    # Without CHECK, and nobody has ever been attached to it.
    ipam = host_local(subnet="10.49.0.0/24")
    write(10, "pwsold", [{"type": "bridge", "bridge": "pwsold0", "isGateway": True, "ipam": ipam}], version="0.3.1")
    # CHECK of bridge with sbr can never pass.
    ipam = host_local(subnet="10.50.0.0/24", routes=[{"dst": "0.0.0.0/0"}])
    write(10, "pwssbr", [{"type": "bridge", "bridge": "pwssbr0", "isGateway": True, "ipam": ipam}, {"type": "sbr"}])


@pytest.fixture
def container(host, networks):
    """The attachment of a container to pwsboth."""
    attachment = {
        "network": "pwsboth",
        "container_id": "web",
        "netns": "pws-web",
        "capability_args": {"portMappings": [{"hostPort": 8046, "containerPort": 80, "protocol": "tcp"}]},
    }
    host.run("cni_attach", attachments=[attachment])
    return attachment


@pytest.fixture
def smoke(host, work):
    """Return a function that predicts and runs a smoke test that leaves the host as it was, and returns its result."""

    def look():
        return sh(STATE.format(leases=work / "leases", cache=work / "cache")).splitlines()

    def run(fails=False, **options):
        before = look()
        if fails:
            # An IPv6 address is usable after about two seconds; nothing else comes late here.
            options["patched"] = {"_host.trials.trial:_DEADLINE": 3.0}
        predicted = host.run("cni_smoke", check_mode=True, **options)
        tried, again = ((host.fail if fails else host.run)("cni_smoke", **options) for _time in range(2))
        assert host.run("cni_smoke", check_mode=True, **options)["actions"] == predicted["actions"]
        assert look() == before
        assert tried["changed"] is again["changed"] is predicted["changed"] is False
        assert predicted["actions"] == tried["actions"] == again["actions"]
        assert [outcome(row) for row in again["networks"]] == [outcome(row) for row in tried["networks"]]
        names = [row["network"] for row in tried["networks"]]
        assert [row["network"] for row in predicted["networks"]] == names
        assert {row["status"] for row in predicted["networks"]} <= {"planned", "skipped"}
        assert "very-secret-token" not in json.dumps(tried)
        return tried

    return run


def outcome(row):
    """Return what is the same in each test of a network."""
    return {**row, "ips": None, "error": row["error"] and row["error"]["code"], "leaks": None}


@pytest.fixture
def left(work):
    """Return a function that returns what a test of a network has left on the host."""

    def find(network):
        return sh(
            f"""
            find {work}/leases/{network} -name '10.*'
            {{ iptables-save; nft list ruleset; }} | grep {network} || true
            ls {work}/cache/smoke 2>/dev/null || true
            """
        )

    return find
