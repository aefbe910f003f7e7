# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that are broken in one way each, and what looks like a fault beside it and is none (a red herring)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from ansible_collections.podwire.cni.tests.host import networks
from ansible_collections.podwire.cni.tests.host.host import sh

CONF_DIR = Path("/etc/cni/net.d")
BIN_DIR = Path("/opt/cni/bin")
LEASES = Path("/var/lib/cni/networks")
LOADER = b"/lib64/ld-linux-x86-64.so.2"
NO_IPTABLES = "mount --bind /dev/null $(readlink -f $(command -v iptables))"
IPV6_OFF = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")


def bridge(**keys):
    return networks.bridge("pwd0", "10.91.0.0/24", **keys)


def write(name, *plugins, version="1.0.0", network="pods", **keys):
    """Write a conflist, in a way that containerd notices."""
    data = {"cniVersion": version, "name": network, "plugins": list(plugins), **keys}
    put(name, json.dumps(data))


def put(name, text):
    temporary = CONF_DIR / f".{name}.new"
    temporary.write_text(text)
    temporary.rename(CONF_DIR / name)


def sound():
    sh("rm -rf /etc/cni/tuning; iptables -P FORWARD ACCEPT; nft delete table inet pwd 2>/dev/null || true")
    IPV6_OFF.write_text("0")
    write("10-pods.conflist", bridge())


# --- the faults


class Fault(NamedTuple):
    """What breaks a host: a *script*, or *do*, and then the *plugins* of the network with its other *keys*, if any.

    *code* is that of the cause, none for a red herring; *words* are in its message or evidence. Scripts have a plugin
    as ``$fake``, and the directory of the newer ones as ``$new``.
    """

    name: str
    code: str = ""
    script: str = ""
    plugins: Sequence[dict[str, Any]] = ()
    keys: Mapping[str, Any] = MappingProxyType({})
    do: Callable[[], None] | None = None
    words: Sequence[str] = ()

    def __str__(self) -> str:
        return self.name

    def make(self, node: Any) -> None:
        sh(f"fake={node.fake} new={node.new}; {self.script or 'true'}")
        if self.do is not None:
            self.do()
        if self.plugins:
            write("10-pods.conflist", *self.plugins, **self.keys)


def other_machine():
    text = bytearray((BIN_DIR / "bridge").read_bytes())
    text[18:20] = (183 if os.uname().machine != "aarch64" else 62).to_bytes(2, "little")
    (BIN_DIR / "bridge").write_bytes(text)


def no_loader():
    text = Path("/bin/bash").read_bytes()
    assert LOADER in text
    (BIN_DIR / "bridge").write_bytes(text.replace(LOADER, b"/lib64/no-loader-at-all.so."))


def with_ipam(**ipam):
    """Return the plugins of a network whose addresses come from host-local with other keys."""
    return [bridge(ipam={"type": "host-local", **ipam})]


def leases(*addresses):
    """Return a script that gives each address to a container that is dead."""
    lease = f'printf "dead${{ip##*[.:]}}\\r\\neth0" >{LEASES}/pods/$ip'
    return f"mkdir -p {LEASES}/pods; for ip in {' '.join(addresses)}; do {lease}; done"


RANGES = [[{"subnet": "10.91.0.0/24"}]]
ELSEWHERE = {"subnet": "10.91.0.0/24", "rangeStart": "10.92.0.9", "rangeEnd": "10.91.0.99"}
CALICO = {
    "type": "calico",
    "kubernetes": {"kubeconfig": "/etc/cni/net.d/calico-kubeconfig"},
    "ipam": {"type": "host-local", "subnet": "10.91.0.0/24"},
}
PTP = {"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.93.0.0/24"}}
ARP_FILTER = {"type": "tuning", "sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"}}
IN_A_LIST = {"type": "tuning", "sysctl": ["net.ipv4.conf.IFNAME.arp_filter=1"]}
MOVED = json.dumps({"cniVersion": "1.0.0", "name": "moved", "plugins": [bridge()]})
LIST = json.dumps({"cniVersion": "1.0.0", "name": "x", "plugins": [bridge()]})
OWN_TABLE = "add table inet pwd; add chain inet pwd f { type filter hook forward priority 9; policy drop; }"
# What operators have reported.
REPORTED = [
    Fault(
        "full_pool",
        "pool_full",
        leases(*(f"10.91.0.{number}" for number in range(2, 7))),
        with_ipam(subnet="10.91.0.0/29"),
        words=["5 of 5 addresses"],
    ),
    Fault("text_for_a_number", "add_fails", plugins=[bridge(mtu="1400")]),
    Fault("text_for_a_route", "add_fails", plugins=with_ipam(ranges=RANGES, routes=["0.0.0.0/0"])),
    Fault("no_such_vlan", "add_fails", plugins=[bridge(vlan=5000)]),
    Fault("sysctls_in_a_list", "add_fails", plugins=[bridge(), IN_A_LIST]),
    Fault("rate_without_burst", "add_fails", plugins=[bridge(), {"type": "bandwidth", "ingressRate": 1000000}]),
    # 1.1.1 has no such list.
    Fault(
        "forbidden_sysctl",
        "add_fails",
        """
        cp $new/tuning /opt/cni/bin; mkdir /etc/cni/tuning
        echo '^net.ipv4.tcp_nothing$' >/etc/cni/tuning/allowlist.conf
        """,
        [bridge(), ARP_FILTER],
    ),
    Fault(
        "gateway_elsewhere",
        "add_fails",
        plugins=with_ipam(ranges=RANGES, routes=[{"dst": "0.0.0.0/0", "gw": "10.99.0.1"}]),
    ),
    Fault("forward_policy", "packets_lost", "iptables -P FORWARD DROP"),
    Fault("own_table", "packets_lost", f"nft '{OWN_TABLE}'"),
]
# containerd ignores a file that is renamed in from another directory.
WRITTEN_FROM_ELSEWHERE = Fault(
    "written_from_elsewhere",
    "not_loaded",
    f"echo '{MOVED}' >/etc/cni/other.conflist; mv /etc/cni/other.conflist {CONF_DIR}/05-moved.conflist",
)
FAULTS = [
    Fault("empty", "no_network", f"rm {CONF_DIR}/10-pods.conflist", words=["is empty"]),
    Fault(
        "broken_json",
        "broken_file",
        do=lambda: put("05-broken.conflist", '{"cniVersion": "1.0.0", "name": "x", "plugins": ['),
        words=["05-broken.conflist"],
    ),
    Fault("list_in_conf", "broken_file", do=lambda: put("05-list.conf", LIST), words=["05-list.conf"]),
    Fault(
        "text_for_a_flag",
        "broken_file",
        plugins=[bridge()],
        keys={"disableCheck": "true"},
        words=["10-pods.conflist"],
    ),
    Fault("no_bridge", "missing_plugin", f"rm {BIN_DIR}/bridge"),
    Fault("no_ipam", "missing_plugin", f"rm {BIN_DIR}/host-local"),
    Fault("no_chained_plugin", "missing_plugin", f"rm {BIN_DIR}/tuning", [bridge(), {"type": "tuning"}]),
    Fault("dangling_link", "missing_plugin", f"ln -sf {BIN_DIR}/bridge-1.9.1 {BIN_DIR}/bridge"),
    Fault("directory_of_that_name", "missing_plugin", f"rm {BIN_DIR}/bridge; mkdir {BIN_DIR}/bridge"),
    Fault("no_loopback", "missing_plugin", f"rm {BIN_DIR}/loopback"),
    Fault("loopback_is_not_executable", "not_executable", f"chmod 0644 {BIN_DIR}/loopback"),
    Fault("not_executable", "not_executable", f"chmod 0644 {BIN_DIR}/bridge"),
    Fault("noexec", "noexec_mount", f"mount --bind {BIN_DIR} {BIN_DIR}; mount -o remount,bind,noexec {BIN_DIR}"),
    Fault("other_machine", "wrong_machine", do=other_machine),
    Fault("no_iptables", "missing_tool", NO_IPTABLES, [bridge(ipMasq=True)], words=["bridge", "iptables"]),
    Fault("no_interpreter", "missing_loader", f"echo '#!/usr/bin/nothing' >{BIN_DIR}/bridge"),
    Fault("no_loader", "missing_loader", do=no_loader),
    Fault(
        "ipv6_off",
        "ipv6_off",
        f"echo 1 >{IPV6_OFF}",
        with_ipam(ranges=[[{"subnet": "fd91::/64"}]]),
        words=["bridge", "conf/default/disable_ipv6 is 1"],
    ),
    Fault("version_of_the_future", "unsupported_by_plugin", plugins=[bridge()], keys={"version": "0.4.7"}),
    # The runtime never asks for STATUS, either.
    Fault(
        "too_new_for_the_runtime",
        "unsupported_by_runtime",
        f"cp $fake {BIN_DIR}/unready",
        [{"type": "unready"}],
        {"version": "1.1.0"},
        words=["1.6", "1.1.0"],
    ),
    Fault(
        "full_second_pool",
        "pool_full",
        leases("fd91::2", "fd91::3"),
        with_ipam(ranges=[*RANGES, [{"subnet": "fd91::/126"}]]),
        words=["2 of 2 addresses"],
    ),
    Fault("bad_range", "add_fails", plugins=with_ipam(ranges=[[ELSEWHERE]]), words=["10.91.0.0/24"]),
    Fault("no_range", "add_fails", plugins=with_ipam()),
    Fault("no_ipam_type", "no_addresses", plugins=[bridge(ipam={})], words=['no "ipam" with a type']),
    Fault("blank_in_the_name", "add_fails", plugins=[bridge()], keys={"network": "my pods"}),
    Fault("no_master", "master_missing", plugins=[{**bridge(), "type": "macvlan", "master": "pwdnone"}]),
    Fault("meta_plugin_first", "chain_order", plugins=[{"type": "tuning"}, bridge()], words=["tuning", "/plugins/0"]),
    Fault("two_interfaces", "chain_order", plugins=[bridge(), PTP], words=["ptp", "/plugins/1"]),
    Fault("no_firewalld", "missing_tool", plugins=[bridge(), {"type": "firewall", "backend": "firewalld"}]),
    Fault(
        "read_only_state", "state_unwritable", "mkdir -p /var/lib/cni; mount -t tmpfs -o ro podwire-test /var/lib/cni"
    ),
    Fault(
        "full_state",
        "state_unwritable",
        """
        mkdir -p /var/lib/cni; mount -t tmpfs -o size=8k podwire-test /var/lib/cni
        head -c 100000 /dev/zero >/var/lib/cni/full || true
        """,
    ),
    Fault("leases_in_a_file", "state_unwritable", f"mkdir -p {LEASES}; rm -rf {LEASES}/pods; touch {LEASES}/pods"),
    Fault("no_flannel", "no_flannel", f"cp $fake {BIN_DIR}/flannel", [{"type": "flannel"}]),
    Fault("no_kubeconfig", "no_kubeconfig", f"cp $fake {BIN_DIR}/calico", [CALICO]),
    Fault("no_dhcp_daemon", "no_dhcp_daemon", plugins=[bridge(isGateway=False, ipam={"type": "dhcp"})]),
    Fault("no_device", "no_device", plugins=[{**bridge(), "type": "host-device", "device": "pwdnone"}]),
    *REPORTED,
    WRITTEN_FROM_ELSEWHERE,
]


# --- red herrings: none of them keeps a pod from its network


# It sorts later, and lacks its plugin.
UNUSED_NETWORK = Fault(
    "unused_network", do=lambda: write("90-herring.conflist", {"type": "herring"}, network="herring")
)
UNUSED_PLUGIN = Fault("broken_unused_plugin", script=f": >{BIN_DIR}/herring")
HERRINGS = [
    UNUSED_NETWORK,
    # No runtime reads it.
    Fault("backup", do=lambda: put("00-herring.conflist.bak", "{")),
    UNUSED_PLUGIN,
    # The network is gone.
    Fault(
        "leases_of_another_network",
        script=f"""
        mountpoint -q /var/lib/cni || {{
          mkdir -p {LEASES}/herring
          printf 'dead\\r\\neth0' >{LEASES}/herring/10.91.0.2
        }}
        """,
    ),
    # bridge changes it.
    Fault("no_forwarding", script="echo 0 >/proc/sys/net/ipv4/ip_forward"),
    # containerd 1.6 ignores it.
    Fault("ignored_drop_in", script=f"mkdir -p {CONF_DIR}/pods; printf '{{' >{CONF_DIR}/pods/10-herring.conf"),
]
