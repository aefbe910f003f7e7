# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that are broken in one way each, and what looks like a fault beside it and is none (a red herring)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from ansible_collections.podwire.cni.tests.host.host import sh

CONF_DIR = Path("/etc/cni/net.d")
BIN_DIR = Path("/opt/cni/bin")
LEASES = Path("/var/lib/cni/networks")
LOADER = b"/lib64/ld-linux-x86-64.so.2"
NO_IPTABLES = "mount --bind /dev/null $(readlink -f $(command -v iptables))"
IPV6_OFF = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")


def bridge(**keys):
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.91.0.0/24"}]]}
    return {"type": "bridge", "bridge": "pwd0", "isGateway": True, "ipam": ipam, **keys}


def write(name, *plugins, version="1.0.0", network="pods", **keys):
    """Write a conflist, in a way that containerd notices."""
    data = {"cniVersion": version, "name": network, "plugins": list(plugins), **keys}
    put(name, json.dumps(data))


def put(name, text):
    temporary = CONF_DIR / f".{name}.new"
    temporary.write_text(text)
    temporary.rename(CONF_DIR / name)


def put_allowed(pattern):
    Path("/etc/cni/tuning").mkdir(exist_ok=True)
    Path("/etc/cni/tuning/allowlist.conf").write_text(f"{pattern}\n")


def sound():
    sh("rm -rf /etc/cni/tuning; iptables -P FORWARD ACCEPT; nft delete table inet pwd 2>/dev/null || true")
    IPV6_OFF.write_text("0")
    write("10-pods.conflist", bridge())


# --- the faults: each has the code of its cause


def empty(_host):
    """no_network"""
    (CONF_DIR / "10-pods.conflist").unlink()


def broken_json(_host):
    """broken_file"""
    put("05-broken.conflist", '{"cniVersion": "1.0.0", "name": "x", "plugins": [')


def list_in_conf(_host):
    """broken_file"""
    put("05-list.conf", json.dumps({"cniVersion": "1.0.0", "name": "x", "plugins": [bridge()]}))


def text_for_a_flag(_host):
    """broken_file"""
    write("10-pods.conflist", bridge(), disableCheck="true")


def no_bridge(_host):
    """missing_plugin"""
    (BIN_DIR / "bridge").unlink()


def no_ipam(_host):
    """missing_plugin"""
    (BIN_DIR / "host-local").unlink()


def no_chained_plugin(_host):
    """missing_plugin"""
    write("10-pods.conflist", bridge(), {"type": "tuning"})
    (BIN_DIR / "tuning").unlink()


def dangling_link(_host):
    """missing_plugin"""
    (BIN_DIR / "bridge").unlink()
    (BIN_DIR / "bridge").symlink_to("/opt/cni/bin/bridge-1.9.1")


def directory_of_that_name(_host):
    """missing_plugin"""
    (BIN_DIR / "bridge").unlink()
    (BIN_DIR / "bridge").mkdir()


def no_loopback(_host):
    """missing_plugin"""
    (BIN_DIR / "loopback").unlink()


def loopback_is_not_executable(_host):
    """not_executable"""
    (BIN_DIR / "loopback").chmod(0o644)


def not_executable(_host):
    """not_executable"""
    (BIN_DIR / "bridge").chmod(0o644)


def noexec(_host):
    """noexec_mount"""
    sh("mount --bind /opt/cni/bin /opt/cni/bin; mount -o remount,bind,noexec /opt/cni/bin")


def other_machine(_host):
    """wrong_machine"""
    text = bytearray((BIN_DIR / "bridge").read_bytes())
    text[18:20] = (183 if os.uname().machine != "aarch64" else 62).to_bytes(2, "little")
    (BIN_DIR / "bridge").write_bytes(text)


def no_interpreter(_host):
    """missing_loader"""
    (BIN_DIR / "bridge").write_text("#!/usr/bin/nothing\n")


def no_loader(_host):
    """missing_loader"""
    text = Path("/bin/bash").read_bytes()
    assert LOADER in text
    (BIN_DIR / "bridge").write_bytes(text.replace(LOADER, b"/lib64/no-loader-at-all.so."))


def version_of_the_future(_host):
    """unsupported_by_plugin"""
    write("10-pods.conflist", bridge(), version="0.4.7")


def too_new_for_the_runtime(host):
    """unsupported_by_runtime"""
    # The runtime never asks for STATUS, either.
    shutil.copy(host.fake, BIN_DIR / "unready")
    write("10-pods.conflist", {"type": "unready"}, version="1.1.0")


def full_pool(_host):
    """pool_full"""
    write("10-pods.conflist", bridge(ipam={"type": "host-local", "subnet": "10.91.0.0/29"}))
    (LEASES / "pods").mkdir(parents=True)
    for number in range(2, 7):
        (LEASES / "pods" / f"10.91.0.{number}").write_text(f"dead{number}\r\neth0")


def full_second_pool(_host):
    """pool_full"""
    ranges = [[{"subnet": "10.91.0.0/24"}], [{"subnet": "fd91::/126"}]]
    write("10-pods.conflist", bridge(ipam={"type": "host-local", "ranges": ranges}))
    (LEASES / "pods").mkdir(parents=True)
    for number in (2, 3):
        (LEASES / "pods" / f"fd91::{number}").write_text("dead\r\neth0")


def bad_range(_host):
    """add_fails"""
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.91.0.0/24", "rangeStart": "10.92.0.9"}]]}
    ipam["ranges"][0][0]["rangeEnd"] = "10.91.0.99"
    write("10-pods.conflist", bridge(ipam=ipam))


def no_range(_host):
    """add_fails"""
    write("10-pods.conflist", bridge(ipam={"type": "host-local"}))


def no_ipam_type(_host):
    """no_addresses"""
    write("10-pods.conflist", bridge(ipam={}))


def blank_in_the_name(_host):
    """add_fails"""
    write("10-pods.conflist", bridge(), network="my pods")


def no_master(_host):
    """master_missing"""
    write("10-pods.conflist", {**bridge(), "type": "macvlan", "master": "pwdnone"})


def meta_plugin_first(_host):
    """chain_order"""
    write("10-pods.conflist", {"type": "tuning"}, bridge())


def two_interfaces(_host):
    """chain_order"""
    write("10-pods.conflist", bridge(), {"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.93.0.0/24"}})


def no_firewalld(_host):
    """missing_tool"""
    write("10-pods.conflist", bridge(), {"type": "firewall", "backend": "firewalld"})


def read_only_state(_host):
    """state_unwritable"""
    sh("mkdir -p /var/lib/cni; mount -t tmpfs -o ro podwire-test /var/lib/cni")


def full_state(_host):
    """state_unwritable"""
    sh("mkdir -p /var/lib/cni; mount -t tmpfs -o size=8k podwire-test /var/lib/cni")
    sh("head -c 100000 /dev/zero >/var/lib/cni/full || true")


def leases_in_a_file(_host):
    """state_unwritable"""
    LEASES.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(LEASES / "pods", ignore_errors=True)
    (LEASES / "pods").touch()


def no_flannel(host):
    """no_flannel"""
    shutil.copy(host.fake, BIN_DIR / "flannel")
    write("10-pods.conflist", {"type": "flannel"})


def no_kubeconfig(host):
    """no_kubeconfig"""
    shutil.copy(host.fake, BIN_DIR / "calico")
    kubernetes = {"kubeconfig": "/etc/cni/net.d/calico-kubeconfig"}
    write(
        "10-pods.conflist",
        {"type": "calico", "kubernetes": kubernetes, "ipam": {"type": "host-local", "subnet": "10.91.0.0/24"}},
    )


def no_dhcp_daemon(_host):
    """no_dhcp_daemon"""
    write("10-pods.conflist", bridge(isGateway=False, ipam={"type": "dhcp"}))


def no_device(_host):
    """no_device"""
    write("10-pods.conflist", {**bridge(), "type": "host-device", "device": "pwdnone"})


def written_from_elsewhere(_host):
    """not_loaded"""
    other = Path("/etc/cni/other.conflist")
    data = {"cniVersion": "1.0.0", "name": "moved", "plugins": [bridge()]}
    other.write_text(json.dumps(data))
    # containerd ignores a file that is renamed in from another directory.
    other.rename(CONF_DIR / "05-moved.conflist")


def text_for_a_number(_host):
    """add_fails"""
    write("10-pods.conflist", bridge(mtu="1400"))


def text_for_a_route(_host):
    """add_fails"""
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.91.0.0/24"}]], "routes": ["0.0.0.0/0"]}
    write("10-pods.conflist", bridge(ipam=ipam))


def no_such_vlan(_host):
    """add_fails"""
    write("10-pods.conflist", bridge(vlan=5000))


def sysctls_in_a_list(_host):
    """add_fails"""
    write("10-pods.conflist", bridge(), {"type": "tuning", "sysctl": ["net.ipv4.conf.IFNAME.arp_filter=1"]})


def rate_without_burst(_host):
    """add_fails"""
    write("10-pods.conflist", bridge(), {"type": "bandwidth", "ingressRate": 1000000})


def forbidden_sysctl(host):
    """add_fails"""
    # 1.1.1 has no such list.
    shutil.copy(host.new / "tuning", BIN_DIR)
    put_allowed("^net.ipv4.tcp_nothing$")
    write("10-pods.conflist", bridge(), {"type": "tuning", "sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"}})


def gateway_elsewhere(_host):
    """add_fails"""
    routes = [{"dst": "0.0.0.0/0", "gw": "10.99.0.1"}]
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.91.0.0/24"}]], "routes": routes}
    write("10-pods.conflist", bridge(ipam=ipam))


def forward_policy(_host):
    """packets_lost"""
    sh("iptables -P FORWARD DROP")


def ipv6_off(_host):
    """ipv6_off"""
    IPV6_OFF.write_text("1")
    write("10-pods.conflist", bridge(ipam={"type": "host-local", "ranges": [[{"subnet": "fd91::/64"}]]}))


def no_iptables(_host):
    """missing_tool"""
    write("10-pods.conflist", bridge(ipMasq=True))
    sh(NO_IPTABLES)


def own_table(_host):
    """packets_lost"""
    sh("nft 'add table inet pwd; add chain inet pwd f { type filter hook forward priority 9; policy drop; }'")


# What operators have reported.
REPORTED = [
    *(full_pool, text_for_a_number, text_for_a_route, no_such_vlan, sysctls_in_a_list, rate_without_burst),
    *(forbidden_sysctl, gateway_elsewhere, forward_policy, own_table),
]
FAULTS = [
    *(empty, broken_json, list_in_conf, text_for_a_flag, no_bridge, no_ipam, no_chained_plugin, dangling_link),
    *(directory_of_that_name, no_loopback, loopback_is_not_executable, not_executable, noexec, other_machine),
    *(no_iptables, no_interpreter, no_loader, ipv6_off, version_of_the_future, too_new_for_the_runtime),
    *(full_second_pool, bad_range, no_range, no_ipam_type, blank_in_the_name, no_master, meta_plugin_first),
    *(two_interfaces, no_firewalld, read_only_state, full_state, leases_in_a_file, no_flannel),
    *(no_kubeconfig, no_dhcp_daemon, no_device),
    *(*REPORTED, written_from_elsewhere),
]


# The fault, or its code -> words that the message has, or `evidence` of the row.
WORDS = {
    "broken_json": ["05-broken.conflist"],
    "list_in_conf": ["05-list.conf"],
    "text_for_a_flag": ["10-pods.conflist"],
    "no_network": ["is empty"],
    "full_pool": ["5 of 5 addresses"],
    "ipv6_off": ["bridge", "conf/default/disable_ipv6 is 1"],
    "no_iptables": ["bridge", "iptables"],
    "full_second_pool": ["2 of 2 addresses"],
    "bad_range": ["10.91.0.0/24"],
    "no_addresses": ['no "ipam" with a type'],
    "chain_order": ["tuning", "/plugins/0"],
    "two_interfaces": ["ptp", "/plugins/1"],
    "unsupported_by_runtime": ["1.6", "1.1.0"],
}


def follow(fault, error):
    """Assert that the row of a fault quotes what is wrong."""
    said = f"{error['message']} {error['evidence']}"
    for word in WORDS.get(fault.__name__, WORDS.get(fault.__doc__, [])):
        assert word in said, said


# --- red herrings: none of them keeps a pod from its network


def unused_network():
    """A network that sorts later and lacks its plugin."""
    write("90-herring.conflist", {"type": "herring"}, network="herring")


def backup():
    """A broken file that no runtime reads."""
    put("00-herring.conflist.bak", "{")


def broken_unused_plugin():
    """A plugin that no network names, and that is damaged."""
    (BIN_DIR / "herring").write_bytes(b"")


def leases_of_another_network():
    """Leases of a network that is gone."""
    if not os.path.ismount("/var/lib/cni"):
        (LEASES / "herring").mkdir(parents=True, exist_ok=True)
        (LEASES / "herring" / "10.91.0.2").write_text("dead\r\neth0")


def ignored_drop_in():
    """A broken drop-in, which containerd 1.6 ignores."""
    (CONF_DIR / "pods").mkdir(exist_ok=True)
    (CONF_DIR / "pods" / "10-herring.conf").write_text("{")


def no_forwarding():
    """Forwarding is off, which bridge changes."""
    Path("/proc/sys/net/ipv4/ip_forward").write_text("0")


HERRINGS = [unused_network, backup, broken_unused_plugin, leases_of_another_network, no_forwarding, ignored_drop_in]
