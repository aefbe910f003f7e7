# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""One host for each file of tests, because gathering changes nothing. Tests ask for the parts of the host they need."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh, wait_until
from ansible_collections.podwire.cni.tests.host.networks import DEFAULT_ROUTE, PORTMAP, bridge, host_local, network

PLUGINS = ["bridge", "host-local", "loopback", "portmap", "tuning"]
NAMESPACES = ["pwi-web", "pwi-other", "pwi-gone"]
ATTACHMENTS = [
    {
        "network": "pwi",
        "container_id": "web",
        "netns": "pwi-web",
        "args": {"IgnoreUnknown": True, "K8S_TOKEN": "very-secret-token"},
        "capability_args": {"portMappings": [{"hostPort": 8076, "containerPort": 80, "protocol": "tcp"}]},
    },
    {"network": "pwi", "container_id": "other", "netns": "pwi-other"},
    {"network": "pwi", "container_id": "gone", "netns": "pwi-gone"},
    {"network": "pwi", "container_id": "unknown", "netns": "pwi-web", "ifname": "eth2"},
    {"network": "pwiptp", "container_id": "web", "netns": "pwi-web", "ifname": "eth1"},
]
FOREIGN = {
    "50-other.conf": '{"cniVersion": "0.4.0", "name": "pwiother", "type": "calico", '
    '"etcd_password": "very-secret-token", "etcd_key_file": "/etc/calico/key.pem", '
    '"policy": {"type": "k8s", "k8s_auth_token": "very-secret-token"}, '
    '"kubernetes": {"kubeconfig": "/etc/cni/net.d/calico-kubeconfig"}, "ipam": {"type": "calico-ipam"}}',
    "60-list.conflist": '{"cniVersion": "1.0.0", "name": "pwilist", "plugins": [{"type": "loopback"}]}',
    "pwilist/10-more.conf": '{"type": "tuning"}',
    "pwilist/20-broken.conf": '{"type": "tuning", "secret": "very-secret-token"',
    "pwilist/README": "nothing that libcni reads",
    "70-single.json": '{"cniVersion": "0.3.1", "name": "pwisingle", "type": "loopback"}',
    "71-list.json": '{"cniVersion": "1.0.0", "name": "pwilist", "plugins": [{"type": "loopback"}]}',
    "85-huge.conflist": " " * 1048577,
    "88-kubeconfig.conf": '{"name": "x", "type": "loopback", "users": "very-secret-token"}',
    "99-broken.conflist": '{"cniVersion": "1.0.0", "name": "x", "token": "very-secret-token",}',
    "calico-kubeconfig": "users: [{user: {token: very-secret-token}}]",
    "40-saved.conflist.bak": '{"token": "very-secret-token"}',
}


@pytest.fixture(scope="module")
def generation() -> str:
    """The generation of the plugins, unless a file asks for both."""
    return "old"


@pytest.fixture(scope="module")
def site(host, generation, generations, tmp_path_factory):
    """The directories of a host that has nothing yet, and ``run``, which runs a module with them."""
    helpers = tmp_path_factory.mktemp("helpers")
    work = tmp_path_factory.mktemp("host")
    site = SimpleNamespace(
        work=work,
        conf_dir=work / "net.d",
        bin_dir=work / "bin",
        other_dir=work / "other",
        cache_dir=work / "cache",
        lease_dir=work / "leases",
        # Not in the working directory, whose state is compared.
        helpers=helpers,
        executed=helpers / "executed",
        plugins=generations[generation],
        other_plugins=generations["new" if generation == "old" else "old"],
    )
    defaults = host.with_defaults(
        conf_dir=str(site.conf_dir),
        bin_dirs=[str(site.bin_dir), str(site.other_dir), f"{work}/none"],
        cache_dir=str(site.cache_dir),
    )
    shutil.copy(Path(__file__).parent / "files" / "plugin.bash", helpers)
    environment = {"BASH_ENV": f"{helpers}/plugin.bash", "EXECUTED": str(site.executed)}

    def run(module, **arguments):
        return defaults.run(module, environment=environment, **arguments)

    site.host = defaults
    site.run = run
    yield site
    # What the collection notes about the plugins and networks that it has written.
    shutil.rmtree("/var/lib/podwire", ignore_errors=True)


@pytest.fixture(scope="module")
def state(site):
    """Return a function that lists all that gathering must leave as it is. Times of access are not part of it."""

    def look():
        return sh(
            rf"""
            # Beside the memory of what experiments have shown.
            for path in {site.work} /etc/cni /opt/cni /var/lib/{{cni,podwire}} /run/podwire-cni/[!e]* /run/netns; do
              find $path -printf '%p %y %m %U %G %s %i %T@ %C@ %l\n' 2>/dev/null || echo no $path
            done | sort
            ip -brief address
            ip route show table all
            iptables-save | sed '/^[#:]/d'
            """
        ).splitlines()

    return look


@pytest.fixture(scope="module")
def gather(site, state):
    """Return a function that gathers all, in a run and in check mode; both agree, and leave the host as it is."""

    def look():
        # New interfaces come up and get link-local addresses, which change what the host shows.
        wait_until(_links_are_up, 20)
        before = state()
        info = site.run("cni_info")
        again = site.run("cni_info", check_mode=True)
        assert state() == before
        assert not info["changed"]
        assert info == again
        assert "very-secret" not in json.dumps(info)
        return info

    return look


def _links_are_up():
    links = sh("ip -6 address show tentative; ip -brief link show type bridge up; ip -brief link show type veth up")
    return not re.search("tentative| DOWN | UNKNOWN ", links)


@pytest.fixture(scope="module")
def networks(site):
    """The networks that this collection writes."""
    ipam = host_local(dataDir=str(site.lease_dir), subnet="10.76.0.0/24", routes=DEFAULT_ROUTE)
    edit = {"type": "bridge", "bridge": "pwiedit0", "ipam": host_local(subnet="10.78.0.0/24")}
    return [
        network("pwi", bridge("pwi0", ipam=ipam), PORTMAP),
        network("pwiptp", {"type": "ptp", "ipam": host_local(subnet="10.77.0.0/24")}, version="0.4.0"),
        network("pwiedit", edit, {"type": "tuning", "mtu": 1400}, priority=20),
    ]


@pytest.fixture(scope="module")
def installed(site):
    """Managed plugins, one of which has replaced another file, and an unmanaged one in the second directory."""
    site.bin_dir.mkdir()
    site.other_dir.mkdir()
    shutil.copy(site.other_plugins / "tuning", site.bin_dir)
    shutil.copy(site.other_plugins / "ptp", site.other_dir)
    site.run("cni_plugins", src=str(site.plugins), remote_src=True, bin_dir=str(site.bin_dir), plugins=PLUGINS)


@pytest.fixture(scope="module")
def configured(site, installed, networks):
    """Managed networks."""
    site.run("cni_conf", networks=networks)


@pytest.fixture(scope="module")
def attached(site, configured):
    """The result of attaching ``ATTACHMENTS``."""
    try:
        site.run("cni_netns", names=NAMESPACES)
        yield site.run("cni_attach", attachments=ATTACHMENTS, check="always")["attachments"]
    finally:
        for path in ("podwire/pwi-gone-eth0", "podwire/pwi-cut-eth0", "results/junk", "results/pwi-copy-eth0"):
            sh(f"rm -rf {site.cache_dir}/{path}")
        site.run("cni_attach", attachments=[{**attachment, "state": "absent"} for attachment in ATTACHMENTS])
        site.run("cni_netns", names=NAMESPACES, state="absent")
        sh(
            """
            # The plugins never remove their bridge and their tables.
            [ ! -e /sys/class/net/pwi0 ] || ip link delete pwi0
            nft flush ruleset
            rm -rf /var/lib/cni/networks/pwiptp
            [ ! -e /var/lib/cni/networks ] || rmdir --ignore-fail-on-non-empty --parents /var/lib/cni/networks
            """
        )


# --- what is odd on a host


@pytest.fixture(scope="module")
def foreign_conf(site, configured):
    """An edited network, and all kinds of unmanaged files beside it."""
    edited = site.conf_dir / "20-pwiedit.conflist"
    text = edited.read_text()
    assert "1400" in text
    edited.write_text(text.replace("1400", "1300"))
    sh(
        f"""
        cd {site.conf_dir}
        mkdir pwilist
        ln -s ../linked.conflist 80-link.conflist
        ln -s nowhere 81-nowhere.conflist
        mkfifo 82-pipe.conflist
        echo '{{"cniVersion": "1.0.0", "name": "pwilinked", "plugins": [{{"type": "loopback"}}]}}' >../linked.conflist
        """
    )
    for name, content in FOREIGN.items():
        path = site.conf_dir / name
        path.write_text(content)
        path.chmod(0o640)


@pytest.fixture(scope="module")
def foreign_plugins(site, installed):
    """A replaced plugin, files that must not be executed, and some that are no plugins."""
    shutil.copy(site.other_plugins / "loopback", site.bin_dir)
    sh(
        rf"""
        cd {site.other_dir}
        install -m 0755 /bin/bash fine
        install -m 0777 /bin/bash open
        install -m 0755 -o 1 /bin/bash theirs
        printf '#!/bin/sh\necho "$0 $CNI_COMMAND" >>{site.executed}\n' >script
        chmod 0755 script
        install -m 0755 /bin/true silent
        # The header of an ELF file for aarch64, little-endian.
        printf '\177ELF\002\001\001\0\0\0\0\0\0\0\0\0\002\0\267\0' >cut
        chmod 0755 cut
        ln -s {site.bin_dir}/bridge link
        ln -s nowhere broken
        mkdir folder
        echo '# Plugins' >README.md
        chmod 0644 README.md
        """
    )


@pytest.fixture(scope="module")
def spoiled_cache(site, attached):
    """A namespace that was replaced, one that is gone, records that are missing or damaged, and a damaged cache."""
    site.run("cni_netns", names=["pwi-other", "pwi-gone"], state="absent")
    site.run("cni_netns", names=["pwi-other"])
    sh(
        f"""
        cd {site.cache_dir}
        rm podwire/pwi-unknown-eth2 podwire/pwi-gone-eth0
        mkdir podwire/pwi-gone-eth0
        echo '{{"state": "adding"}}' >podwire/pwi-cut-eth0
        echo '{{"kind": "cniCacheV1", "token": "very-secret-token"}}' >results/junk
        cp results/pwi-web-eth0 results/pwi-copy-eth0
        """
    )


@pytest.fixture(scope="module")
def odd_leases(site, attached):
    """Leases that no container holds, also of the oldest format, an empty one, and a file that is no lease."""
    leases = site.lease_dir / "pwi"
    (leases / "10.76.0.200").write_bytes(b"dead\r\neth0")
    (leases / "10.76.0.99").write_text("old")
    (leases / "10.76.0.98").write_text("")
    (leases / "notes").write_text("hello\n")
