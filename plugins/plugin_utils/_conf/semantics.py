# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of plugins that compare one value with another, which a schema cannot express. For IPAM plugins see ipam.py."""

from __future__ import annotations

from typing import Any, Callable, Iterator

from ...module_utils._host.problems import ERROR, WARNING
from .formats import cidr, ip
from .source import Finding


def plugin_findings(plugin: dict[str, Any], partial: bool) -> Iterator[Finding]:
    """Yield findings on a plugin's (folded, valid) configuration; pointers are relative to it.

    *partial*: another plugin adds what is missing.
    """
    yield from _ips(plugin)
    if plugin.get("type") == "bridge" and not partial and not _ipam_type(plugin):
        yield from _without_ipam(plugin)
    rule = _PLUGINS.get(plugin.get("type", ""))
    if rule is not None:
        yield from rule(plugin)


def _ipam_type(plugin: dict[str, Any]) -> Any:
    # This also runs if ipam is invalid.
    ipam = plugin.get("ipam")
    return ipam.get("type") if isinstance(ipam, dict) else None


def _ips(plugin: dict[str, Any]) -> Iterator[Finding]:
    """Yield addresses to assign that the IPAM plugin cannot read."""
    kind = _ipam_type(plugin)
    for place in (("runtimeConfig", "ips"), ("args", "cni", "ips")) if kind in ("host-local", "static") else ():
        value: Any = plugin
        for key in place:
            value = value.get(key, {})
        for index, text in enumerate(value):
            try:
                cidr(text) if kind == "static" or "/" in text else ip(text)
            except ValueError as error:
                message = f"{kind}: {'.'.join(place)}[{index}] is {text!r}, which {error}"
                yield Finding(ERROR, "schema", message, (*place, index))


def _without_ipam(plugin: dict[str, Any]) -> Iterator[Finding]:
    for key in ("isGateway", "isDefaultGateway", "ipMasq"):
        if plugin.get(key):
            text = (
                f"bridge: {key} has no effect without ipam, because there are no addresses; write an ipam, or remove it"
            )
            yield Finding(WARNING, "no_effect", text, (key,))


def _bridge(plugin: dict[str, Any]) -> Iterator[Finding]:
    for index, entry in enumerate(plugin.get("vlanTrunk", [])):
        low, high = entry.get("minID"), entry.get("maxID")
        if low is not None and high is not None and high < low:
            text = f"bridge: vlanTrunk[{index}].maxID is {high}, less than minID {low}; swap them"
            yield Finding(ERROR, "schema", text, ("vlanTrunk", index, "maxID"))


def _portmap(plugin: dict[str, Any]) -> Iterator[Finding]:
    backend = plugin.get("backend")
    if backend == "nftables" and plugin.get("externalSetMarkChain"):
        text = "portmap: externalSetMarkChain is for iptables only, and backend is nftables; remove one of them"
        yield Finding(ERROR, "schema", text, ("externalSetMarkChain",))
    flavours = [
        (key, "iptables" if plugin[key][0][:1] in ("-", "!") else "nftables")
        for key in ("conditionsV4", "conditionsV6")
        if plugin.get(key)
    ]
    for key, flavour in flavours:
        wanted = backend or flavours[0][1]
        if flavour != wanted:
            text = (
                f"portmap: {key} has the syntax of {flavour}, but the rest is for {wanted}; rewrite it, or change "
                "backend"
            )
            yield Finding(ERROR, "schema", text, (key,))


def _sbr(plugin: dict[str, Any]) -> Iterator[Finding]:
    seen = set()
    for index, gateway in enumerate(plugin.get("gateways", [])):
        family = ip(gateway).version
        if family in seen:
            text = f"sbr: {gateway} is the second gateway of its family, but only one of each is allowed; remove one"
            yield Finding(ERROR, "schema", text, ("gateways", index))
        seen.add(family)


def _tuning(plugin: dict[str, Any]) -> Iterator[Finding]:
    cni = plugin.get("args", {}).get("cni", {})
    if cni.get("sysctl") and "sysctl" not in plugin:
        text = 'tuning: args.cni.sysctl crashes the plugin if the plugin has no sysctl itself; write "sysctl": {}'
        yield Finding(ERROR, "schema", text, ("args", "cni", "sysctl"))


_PLUGINS: dict[str, Callable[[dict[str, Any]], Iterator[Finding]]] = {
    "bridge": _bridge,
    "portmap": _portmap,
    "sbr": _sbr,
    "tuning": _tuning,
}
