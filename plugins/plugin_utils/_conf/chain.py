# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about what a plugin needs from earlier plugins in the chain."""

from __future__ import annotations

from typing import Any, Iterator

from ...module_utils._host.problems import ERROR, WARNING
from .source import Finding

# Plugins that create the container's interface and never a bridge.
_WITHOUT_BRIDGE = frozenset(("ptp", "macvlan", "ipvlan", "vlan", "host-device", "dummy", "loopback", "sriov"))


# Plugins that, the second time in a chain, repeat what the first one has done.
_ONCE = frozenset(("portmap", "firewall"))
_RATES = {"ingress": "ingressRate", "egress": "egressRate"}


def chain_findings(plugins: list[dict[str, Any]]) -> Iterator[Finding]:
    """Yield findings on a conflist's (folded, valid) plugins; pointers are relative to the conflist."""
    before: set[str] = set()
    for index, plugin in enumerate(plugins):
        kind = plugin.get("type", "")
        if kind == "ipvlan" and not before and not plugin.get("ipam", {}).get("type"):
            text = "ipvlan: ipam is missing, and no earlier plugin in the chain provides addresses; add an ipam"
            yield Finding(ERROR, "schema", text, ("plugins", index))
        policy = plugin.get("ingressPolicy") or "open"
        if kind == "firewall" and policy != "open" and before & _WITHOUT_BRIDGE and "bridge" not in before:
            text = (
                f"firewall: ingressPolicy {policy} affects only bridges, and no earlier plugin in the chain makes "
                "one; use the plugin bridge, or other rules"
            )
            yield Finding(WARNING, "no_effect", text, ("plugins", index, "ingressPolicy"))
        before.add(kind)
    yield from _twice(plugins)


def _twice(plugins: list[dict[str, Any]]) -> Iterator[Finding]:
    """Yield plugins whose type occurs twice in the chain; tested with releases 1.1.1 and 1.9.1."""
    for index, plugin in enumerate(plugins):
        kind, place = plugin.get("type", ""), ("plugins", index)
        others = [other for other in plugins[:index] if other.get("type") == kind]
        if kind in _ONCE and any(other.get("backend") == plugin.get("backend") for other in others):
            text = f"{kind} is in the chain twice and makes the same rules twice; remove one of them"
            yield Finding(WARNING, "plugin_twice", text, place)
        for other in others:
            if kind == "bandwidth":
                yield from _limited_twice(other, plugin, place)
            elif kind == "tuning":
                yield from _tuned_twice(other, plugin, place)


def _limited_twice(other: dict[str, Any], plugin: dict[str, Any], place: tuple[Any, ...]) -> Iterator[Finding]:
    for direction, rate in _RATES.items():
        if not (_limits(other, rate) and _limits(plugin, rate)):
            continue
        certain = bool(other.get(rate) and plugin.get(rate))
        effect = "every ADD fails" if certain else "every ADD with limits from the runtime fails"
        text = f"bandwidth limits {direction} twice in the chain, so {effect} (file exists); keep one limit"
        yield Finding(ERROR if certain else WARNING, "plugin_twice", text, place)
        return


def _limits(plugin: dict[str, Any], rate: str) -> bool:
    # Its own limits override those of the runtime.
    if any(plugin.get(key) for key in _RATES.values()):
        return bool(plugin.get(rate))
    handed = [plugin.get("capabilities", {}).get("bandwidth"), plugin.get("runtimeConfig", {}).get("bandwidth")]
    return any(handed)


def _tuned_twice(other: dict[str, Any], plugin: dict[str, Any], place: tuple[Any, ...]) -> Iterator[Finding]:
    """Yield what two tuning plugins set to different values: CHECK of the first one fails."""
    first, second = _tuned(other), _tuned(plugin)
    for key in sorted(first):
        if first[key] != second.get(key, first[key]):
            text = (
                f"tuning sets {key} twice in the chain, to {first[key]} and {second[key]}, so every CHECK fails; "
                "keep one of them"
            )
            yield Finding(WARNING, "plugin_twice", text, place)


def _tuned(plugin: dict[str, Any]) -> dict[str, Any]:
    # Values in args.cni override others. 0 and "" do not change MTU and MAC address; promisc is always set.
    given = {**plugin, **plugin.get("args", {}).get("cni", {})}
    own = {key: given[key] for key in ("mac", "mtu") if given.get(key)}
    own.update((key, given[key]) for key in ("allmulti", "txQLen") if key in given)
    sysctls = {**plugin.get("sysctl", {}), **given.get("sysctl", {})}
    own.update((name.replace("/", ".").strip("."), value) for name, value in sysctls.items())
    return {**own, "promisc": bool(given.get("promisc"))}
