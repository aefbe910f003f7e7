# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that compare one value with another, which a schema cannot express. For IPAM plugins see ipam.py."""

from __future__ import annotations

from typing import Any, Callable, Iterator

from ...module_utils._host.kinds import object_of, text_of
from ...module_utils._host.problems import ERROR, WARNING
from .formats import Network, cidr, ip
from .positions import Fault
from .templates import is_placeholder

# Plugins that create the container's interface and never a bridge.
_WITHOUT_BRIDGE = frozenset(("ptp", "macvlan", "ipvlan", "vlan", "host-device", "dummy", "loopback", "sriov"))
# Plugins that, the second time in a chain, repeat what the first one has done.
_ONCE = frozenset(("portmap", "firewall"))
_RATES = {"ingress": "ingressRate", "egress": "egressRate"}


def plugin_findings(plugin: dict[str, Any], partial: bool) -> Iterator[Fault]:
    """Yield findings on a plugin's (folded, valid) configuration; pointers are relative to it.

    *partial*: another plugin adds what is missing.
    """
    yield from _ips(plugin)
    if plugin.get("type") == "bridge" and not partial and not text_of(object_of(plugin, "ipam"), "type"):
        yield from _without_ipam(plugin)
    rule = _PLUGINS.get(plugin.get("type", ""))
    if rule is not None:
        yield from rule(plugin)


def _ips(plugin: dict[str, Any]) -> Iterator[Fault]:
    """Yield addresses to assign that the IPAM plugin cannot read."""
    # This also runs if ipam is invalid.
    kind = text_of(object_of(plugin, "ipam"), "type")
    for place in (("runtimeConfig", "ips"), ("args", "cni", "ips")) if kind in ("host-local", "static") else ():
        value: Any = plugin
        for key in place:
            value = value.get(key, {})
        for index, text in enumerate(value):
            try:
                cidr(text) if kind == "static" or "/" in text else ip(text)
            except ValueError as error:
                message = f"{kind}: {'.'.join(place)}[{index}] is {text!r}, which {error}"
                yield Fault(ERROR, "schema", message, (*place, index))


def _without_ipam(plugin: dict[str, Any]) -> Iterator[Fault]:
    for key in ("isGateway", "isDefaultGateway", "ipMasq"):
        if plugin.get(key):
            text = f"bridge: {key} has no effect without ipam: there are no addresses; write an ipam, or remove it"
            yield Fault(WARNING, "no_effect", text, (key,))


def _bridge(plugin: dict[str, Any]) -> Iterator[Fault]:
    for index, entry in enumerate(plugin.get("vlanTrunk", [])):
        low, high = entry.get("minID"), entry.get("maxID")
        if low is not None and high is not None and high < low:
            text = f"bridge: vlanTrunk[{index}].maxID is {high}, less than minID {low}; swap them"
            yield Fault(ERROR, "schema", text, ("vlanTrunk", index, "maxID"))


def _portmap(plugin: dict[str, Any]) -> Iterator[Fault]:
    backend = plugin.get("backend")
    if backend == "nftables" and plugin.get("externalSetMarkChain"):
        text = "portmap: externalSetMarkChain is for iptables only, and backend is nftables; remove one of them"
        yield Fault(ERROR, "schema", text, ("externalSetMarkChain",))
    flavours = [
        (key, "iptables" if plugin[key][0][:1] in ("-", "!") else "nftables")
        for key in ("conditionsV4", "conditionsV6")
        if plugin.get(key)
    ]
    for key, flavour in flavours:
        wanted = backend or flavours[0][1]
        if flavour != wanted:
            text = (
                f"portmap: {key} has the syntax of {flavour}, the rest that of {wanted}; rewrite it, or change backend"
            )
            yield Fault(ERROR, "schema", text, (key,))


def _sbr(plugin: dict[str, Any]) -> Iterator[Fault]:
    seen = set()
    for index, gateway in enumerate(plugin.get("gateways", [])):
        family = ip(gateway).version
        if family in seen:
            text = f"sbr: {gateway} is the second gateway of its address family, and sbr allows one; remove one"
            yield Fault(ERROR, "schema", text, ("gateways", index))
        seen.add(family)


def _tuning(plugin: dict[str, Any]) -> Iterator[Fault]:
    cni = plugin.get("args", {}).get("cni", {})
    if cni.get("sysctl") and "sysctl" not in plugin:
        text = 'tuning: args.cni.sysctl crashes the plugin if the plugin has no sysctl itself; write "sysctl": {}'
        yield Fault(ERROR, "schema", text, ("args", "cni", "sysctl"))


def _ovn(plugin: dict[str, Any]) -> Iterator[Fault]:
    """Yield networks that OVN-Kubernetes cannot read, and those that are not in one of ``subnets``."""
    subnets: list[Network] = []
    for key in ("subnets", "excludeSubnets", "reservedSubnets", "infrastructureSubnets"):
        for text in filter(None, map(str.strip, plugin.get(key, "").split(","))):
            try:
                # A third part is the length for a node.
                network = cidr("/".join(text.split("/")[:2]))
            except ValueError as error:
                code = "template" if is_placeholder(text) else "schema"
                yield Fault(ERROR, code, f"ovn-k8s-cni-overlay: {key} has {text!r}, which {error}", (key,))
                return
            if key == "subnets":
                subnets.append(network)
            elif subnets and not any(
                network.prefixlen >= subnet.prefixlen and network.supernet(new_prefix=subnet.prefixlen) == subnet
                for subnet in subnets
            ):
                message = f"OVN-Kubernetes refuses {text} in {key}, because subnets does not contain it; write a part"
                yield Fault(ERROR, "schema", message, (key,))


_PLUGINS: dict[str, Callable[[dict[str, Any]], Iterator[Fault]]] = {
    "bridge": _bridge,
    "ovn-k8s-cni-overlay": _ovn,
    "portmap": _portmap,
    "sbr": _sbr,
    "tuning": _tuning,
}


# ---- what a plugin needs from earlier plugins in the chain


def chain_findings(plugins: list[dict[str, Any]]) -> Iterator[Fault]:
    """Yield findings on a conflist's (folded, valid) plugins; pointers are relative to the conflist."""
    before: set[str] = set()
    for index, plugin in enumerate(plugins):
        kind = plugin.get("type", "")
        if kind == "ipvlan" and not before and not plugin.get("ipam", {}).get("type"):
            text = "ipvlan: ipam is missing, and no earlier plugin in the chain provides addresses; add an ipam"
            yield Fault(ERROR, "schema", text, ("plugins", index))
        policy = plugin.get("ingressPolicy") or "open"
        if kind == "firewall" and policy != "open" and before & _WITHOUT_BRIDGE and "bridge" not in before:
            text = (
                f"firewall: ingressPolicy {policy} affects only bridges, and no earlier plugin in the chain makes "
                "one; use the plugin bridge, or other rules"
            )
            yield Fault(WARNING, "no_effect", text, ("plugins", index, "ingressPolicy"))
        before.add(kind)
    yield from _twice(plugins)


def _twice(plugins: list[dict[str, Any]]) -> Iterator[Fault]:
    """Yield plugins whose type occurs twice in the chain; tested with releases 1.1.1 and 1.9.1."""
    for index, plugin in enumerate(plugins):
        kind, place = plugin.get("type", ""), ("plugins", index)
        others = [other for other in plugins[:index] if other.get("type") == kind]
        if kind in _ONCE and any(other.get("backend") == plugin.get("backend") for other in others):
            text = f"{kind} is in the chain twice and makes the same rules twice; remove one of them"
            yield Fault(WARNING, "plugin_twice", text, place)
        for other in others:
            if kind == "bandwidth":
                yield from _limited_twice(other, plugin, place)
            elif kind == "tuning":
                yield from _tuned_twice(other, plugin, place)


def _limited_twice(other: dict[str, Any], plugin: dict[str, Any], place: tuple[Any, ...]) -> Iterator[Fault]:
    for direction, rate in _RATES.items():
        if not (_limits(other, rate) and _limits(plugin, rate)):
            continue
        certain = bool(other.get(rate) and plugin.get(rate))
        effect = "every ADD fails" if certain else "every ADD with limits from the runtime fails"
        text = f"bandwidth limits {direction} twice in the chain, so {effect} (file exists); keep one limit"
        yield Fault(ERROR if certain else WARNING, "plugin_twice", text, place)
        return


def _limits(plugin: dict[str, Any], rate: str) -> bool:
    # Its own limits override those of the runtime.
    if any(plugin.get(key) for key in _RATES.values()):
        return bool(plugin.get(rate))
    handed = [plugin.get("capabilities", {}).get("bandwidth"), plugin.get("runtimeConfig", {}).get("bandwidth")]
    return any(handed)


def _tuned_twice(other: dict[str, Any], plugin: dict[str, Any], place: tuple[Any, ...]) -> Iterator[Fault]:
    """Yield what two tuning plugins set to different values: CHECK of the first one fails."""
    first, second = _tuned(other), _tuned(plugin)
    for key in sorted(first):
        if first[key] != second.get(key, first[key]):
            text = f"tuning sets {key} to {first[key]} and then {second[key]}, so every CHECK fails; keep one of them"
            yield Fault(WARNING, "plugin_twice", text, place)


def _tuned(plugin: dict[str, Any]) -> dict[str, Any]:
    # Values in args.cni override others. 0 and "" do not change MTU and MAC address; promisc is always set.
    given = {**plugin, **plugin.get("args", {}).get("cni", {})}
    own = {key: given[key] for key in ("mac", "mtu") if given.get(key)}
    own.update((key, given[key]) for key in ("allmulti", "txQLen") if key in given)
    sysctls = {**plugin.get("sysctl", {}), **given.get("sysctl", {})}
    own.update((name.replace("/", ".").strip("."), value) for name, value in sysctls.items())
    return {**own, "promisc": bool(given.get("promisc"))}
