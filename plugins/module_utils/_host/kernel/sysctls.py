# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Sysctls below /proc/sys/net: the global ones, and those of interfaces, which the kernel tells with its links."""

from __future__ import annotations

import contextlib
import os
from typing import Dict, Iterable, Iterator, Optional, Sequence, Tuple

from .objects import CONF4, CONF6, KernelObject, State

_ROOT = "/proc/sys/net"
# The numbers of IFLA_INET_CONF and IFLA_INET6_CONF in order (include/uapi/linux/ip.h and ipv6.h): the files' names.
_NAMES4 = """forwarding mc_forwarding proxy_arp accept_redirects secure_redirects send_redirects shared_media rp_filter
accept_source_route bootp_relay log_martians tag arp_filter medium_id disable_xfrm disable_policy force_igmp_version
arp_announce arp_ignore promote_secondaries arp_accept arp_notify accept_local src_valid_mark proxy_arp_pvlan
route_localnet igmpv2_unsolicited_report_interval igmpv3_unsolicited_report_interval ignore_routes_with_linkdown
drop_unicast_in_l2_multicast drop_gratuitous_arp bc_forwarding arp_evict_nocarrier"""
_NAMES6 = """forwarding hop_limit mtu accept_ra accept_redirects autoconf dad_transmits router_solicitations
router_solicitation_interval router_solicitation_delay use_tempaddr temp_valid_lft temp_prefered_lft regen_max_retry
max_desync_factor max_addresses force_mld_version accept_ra_defrtr accept_ra_pinfo accept_ra_rtr_pref
router_probe_interval accept_ra_rt_info_max_plen proxy_ndp optimistic_dad accept_source_route mc_forwarding
disable_ipv6 accept_dad force_tllao ndisc_notify mldv1_unsolicited_report_interval mldv2_unsolicited_report_interval
suppress_frag_ndisc accept_ra_from_local use_optimistic accept_ra_mtu stable_secret use_oif_addrs_only
accept_ra_min_hop_limit ignore_routes_with_linkdown drop_unicast_in_l2_multicast drop_unsolicited_na
keep_addr_on_down router_solicitation_max_interval seg6_enabled seg6_require_hmac enhanced_dad addr_gen_mode
disable_policy accept_ra_rt_info_min_plen ndisc_tclass rpl_seg_enabled ra_defrtr_metric ioam6_enabled ioam6_id
ioam6_id_wide ndisc_evict_nocarrier accept_untracked_na accept_ra_min_lft"""
# The kernel tells these in another unit than their file, or follows something else with them: the MTU is the link's.
_NOT_COMPARED = """mtu router_probe_interval router_solicitation_delay router_solicitation_interval
router_solicitation_max_interval stable_secret ioam6_id_wide"""
_FAMILIES = {CONF4: ("ipv4", _NAMES4.split()), CONF6: ("ipv6", _NAMES6.split())}
_COMPARED = {
    kind: ["" if name in _NOT_COMPARED.split() else name for name in names]
    for kind, (_family, names) in _FAMILIES.items()
}
GLOBAL = "sysctl"
# "neigh" and the other directories of "conf" are those of interfaces. What a new interface starts with says nothing
# about the traffic of those that exist.
_SKIPPED = ("ipv4/conf/", "ipv6/conf/", "ipv4/neigh/", "ipv6/neigh/")
_FIRST = ("", "ipv4/conf/all/", "ipv6/conf/all/")
# Counters, a second name of ip_forward, and what the kernel derives from it.
_CHANGING = (
    "netfilter/nf_conntrack_count",
    "netfilter/nf_conntrack_max",
    "netfilter/nf_conntrack_buckets",
    "nf_conntrack_max",
    "ipv4/conf/all/forwarding",
    "ipv4/conf/all/accept_redirects",
    "ipv6/conf/all/accept_redirects",
    "ipv4/route/flush",
    "ipv6/route/flush",
)
_LARGEST = 4096


def compared_names(kind: str) -> Sequence[str]:
    """Return the names of the numbers in a link's values of *kind*; "" for those that are not to be compared."""
    return _COMPARED[kind]


def sysctl_place(kind: str, name: str) -> int:
    """Return the place of a name among the numbers in a link's values of *kind*. Raises ValueError."""
    return _FAMILIES[kind][1].index(name)


def interface_sysctl(path: str) -> Tuple[str, str, str]:
    """Return kind, interface and name of the sysctl at *path*, as "ipv4/conf/eth0/arp_filter"; no interface if global.

    A sysctl of an interface that a link does not tell, or not comparably, has no kind.
    """
    parts = path.split("/")
    if len(parts) < 4 or parts[1] not in ("conf", "neigh") or parts[2] in ("all", "default"):
        return "", "", ""
    kinds = [kind for kind, (family, _names) in _FAMILIES.items() if family == parts[0] and parts[1] == "conf"]
    kind = kinds[0] if kinds and parts[3] in _COMPARED[kinds[0]] else ""
    return kind, parts[2], parts[3]


def interface_defaults(names: Optional[Iterable[Tuple[str, str]]] = None) -> Dict[Tuple[str, str], int]:
    """Return what an interface of this thread's namespace starts with: (kind, name) -> number. *names*: only these."""
    defaults = {}
    every = ((kind, name) for kind, (_family, of_kind) in _FAMILIES.items() for name in of_kind)
    for kind, name in every if names is None else names:
        value = read_global(f"{_FAMILIES[kind][0]}/conf/default/{name}") if kind in _FAMILIES else None
        if value is not None and value.lstrip("-").isdigit():
            defaults[kind, name] = int(value)
    return defaults


def write_interface(kind: str, interface: str, name: str, value: int) -> None:
    """Set a sysctl of an interface. Raises OSError."""
    _write(f"{_FAMILIES[kind][0]}/conf/{interface}/{name}", str(value))


@contextlib.contextmanager
def announced(interface: str) -> Iterator[None]:
    """Let the kernel tell the neighbours which MAC an interface gets meanwhile.

    They would send to the last one until they ask again, for IPv6 half a minute later. Raises OSError.
    """
    switches = [f"ipv4/conf/{interface}/arp_notify", f"ipv6/conf/{interface}/ndisc_notify"]
    off = [name for name in switches if read_global(name) == "0"]
    try:
        for name in off:
            _write(name, "1")
        yield
    finally:
        for name in off:
            _write(name, "0")


def read_globals(names: Optional[Iterable[str]] = None) -> State:
    """Return the sysctls *names* (as "ipv4/ip_forward") of this thread's namespace; without names, all global ones."""
    sysctls: State = {}
    for name in _all_names() if names is None else names:
        value = read_global(name)
        if value is not None:
            sysctls[GLOBAL, name] = KernelObject(value)
    return sysctls


def write_global(name: str, value: str) -> None:
    """Set a global sysctl. Raises OSError; ValueError if *name* leads out of /proc/sys/net."""
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError(f"no sysctl of the network: {name!r}")
    _write(name, value)


def _all_names() -> Iterator[str]:
    waiting = list(_FIRST)
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.path.join(_ROOT, folder)) as entries:
                for entry in entries:
                    name = folder + entry.name
                    if not entry.is_dir(follow_symlinks=False):
                        if name not in _CHANGING:
                            yield name
                    elif f"{name}/" not in _SKIPPED:
                        waiting.append(f"{name}/")
        except OSError:
            # A directory of a module that was just unloaded, or of IPv6, which is off.
            continue


def read_global(name: str) -> Optional[str]:
    """Return the sysctl *name* of this thread's namespace, None if there is none."""
    try:
        # Not a stream: a namespace has hundreds of these files.
        fd = os.open(f"{_ROOT}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, _LARGEST).decode("ascii", "replace").strip()
    except OSError:
        return None
    finally:
        os.close(fd)


def _write(name: str, value: str) -> None:
    fd = os.open(f"{_ROOT}/{name}", os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.write(fd, value.encode("ascii"))
    finally:
        os.close(fd)
