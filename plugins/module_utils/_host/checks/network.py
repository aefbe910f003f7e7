# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a single network, whatever else is in its directory and on its host."""

from __future__ import annotations

import socket
from typing import Any, Dict, Iterator, List, Tuple

from ..addresses import packed, prefix_length
from ..confdir import ConfFile
from ..kinds import META, kind_of, member_of, object_of, text_of
from ..problems import problem
from .view import Bridge, ConfView, Placed, Pool, Uses, address_number, address_text

Problem = Dict[str, Any]

_RATES = ("ingressrate", "egressrate")


def network_problems(view: ConfView, file: ConfFile, uses: Uses) -> Iterator[Problem]:
    """Yield the problems of the chain of one network, and of the addresses that it *uses*."""
    chain = view.chain(file)
    yield from _chain_order(view, file, chain)
    for placed in chain:
        yield from _capability(view, file, placed)
        yield from _static_gateways(view, file, placed)
    for pool in uses.pools:
        yield from _gateway(view, pool)
    for bridge in uses.bridges:
        yield from _two_gateways(view, bridge)


def _chain_order(view: ConfView, file: ConfFile, chain: List[Placed]) -> Iterator[Problem]:
    makers = [placed for placed in chain if kind_of(placed.plugin).alone]
    first = text_of(chain[0].plugin, "type") if chain else ""
    if chain and kind_of(chain[0].plugin).role == META:
        after = f"put it after {text_of(makers[0].plugin, 'type')}" if makers else "begin with one such as bridge"
        text = (
            f"{first} comes first, but works on the interface that another plugin creates, so every ADD fails; {after}"
        )
        yield _at(view.certain(file), "chain_order", text, chain[0])
    for placed in makers[1:]:
        message = (
            f"{text_of(placed.plugin, 'type')} creates the container's interface, which "
            f"{text_of(makers[0].plugin, 'type')} has created already, so every ADD fails; move it to a network of its "
            "own"
        )
        yield _at(view.certain(file), "chain_order", message, placed)


def _capability(view: ConfView, file: ConfFile, placed: Placed) -> Iterator[Problem]:
    plugin, kind = placed.plugin, text_of(placed.plugin, "type")
    capabilities = object_of(plugin, "capabilities")
    # Values written there stay unless a runtime passes other ones.
    written = object_of(plugin, "runtimeconfig")
    ports = capabilities.get("portMappings") is True or member_of(written, "portmappings")
    if kind == "portmap" and not ports:
        text = (
            "portmap never gets port mappings, because runtimes pass them only to plugins that declare the capability; "
            'write "capabilities": {"portMappings": true}'
        )
        yield _at(view.level(file), "capability_missing", text, placed)
    limits = [plugin, object_of(written, "bandwidth")]
    # A runtime may spell its key in any way in which the capability is spelled: the plugin ignores case.
    limited = member_of(capabilities, "bandwidth") is True or any(
        member_of(place, rate) for place in limits for rate in _RATES
    )
    if kind == "bandwidth" and not limited:
        text = (
            "bandwidth has no limits, and runtimes pass none without the capability; write "
            '"capabilities": {"bandwidth": true}, or ingressRate and ingressBurst'
        )
        yield _at(view.level(file), "capability_missing", text, placed)


def _at(level: str, code: str, message: str, placed: Placed) -> Problem:
    return problem(level, code, message, placed.path, placed.pointer)


def _static_gateways(view: ConfView, file: ConfFile, placed: Placed) -> Iterator[Problem]:
    for place, address, gateway in _static(placed.plugin):
        if not _is_in(address, gateway):
            text = (
                f"static: the gateway {gateway} is not in the subnet of {address}, so no container can reach it; write "
                "an address of that subnet"
            )
            yield problem(view.level(file), "gateway_outside", text, placed.path, placed.pointer + place)


def _gateway(view: ConfView, pool: Pool) -> Iterator[Problem]:
    span = pool.range
    bits = 32 if span.family == socket.AF_INET else 128
    link_local = span.family == socket.AF_INET6 and span.gateway >> (bits - 10) == 0xFE80 >> 6
    if span.first <= span.gateway <= span.last or link_local:
        return
    text = (
        "host-local: the gateway %s is not in the subnet %s, so no container can reach it, and ADD fails where a route "
        "leads through it (network is unreachable); write an address of the subnet, such as %s"
    )
    message = text % (address_text(span.family, span.gateway), span.subnet, address_text(span.family, span.first + 1))
    yield problem(view.level(pool.file), "gateway_outside", message, pool.path, pool.pointer + "/gateway")


def _static(plugin: Dict[str, Any]) -> Iterator[Tuple[str, str, str]]:
    ipam = object_of(plugin, "ipam")
    addresses = member_of(ipam, "addresses") if text_of(ipam, "type") == "static" else None
    for index, entry in enumerate(addresses if isinstance(addresses, list) else []):
        if isinstance(entry, dict) and text_of(entry, "gateway"):
            yield f"/ipam/addresses/{index}/gateway", text_of(entry, "address"), text_of(entry, "gateway")


def _is_in(address: str, gateway: str) -> bool:
    """Tell whether *gateway* is in the subnet of *address*; True if one of them is not an address."""
    ip, _slash, text = address.partition("/")
    raw, other = packed(ip), packed(gateway)
    bits = 8 * (len(raw) - 1)
    length = prefix_length(text, bits)
    if not other or length is None or raw[:1] != other[:1]:
        return True
    hosts = bits - length
    number = address_number(other)[1]
    return address_number(raw)[1] >> hosts == number >> hosts or (bits == 128 and number >> 118 == 0xFE80 >> 6)


def _two_gateways(view: ConfView, bridge: Bridge) -> Iterator[Problem]:
    """Yield the problem of a single network with two IPv4 gateways on its bridge, which can have only one."""
    pools = [pool for pool in bridge.pools if pool.range.family == socket.AF_INET] if bridge.gateway else []
    for pool in pools[1:]:
        if gateway_text(pool) == gateway_text(pools[0]):
            continue
        always = pool.group != pools[0].group and not bridge.force
        effect = "every ADD fails" if always else "containers of one of the subnets lose their gateway"
        message = (
            f"the bridge {bridge.name} would get the gateways {gateway_text(pools[0])} and {gateway_text(pool)}, but "
            f"can have only one IPv4 address: {effect}; keep one subnet here, and move the other to a network with a "
            "bridge of its own"
        )
        level = view.certain(bridge.file) if always else view.level(bridge.file)
        yield problem(level, "bridge_two_subnets", message, pool.path, pool.pointer)


def gateway_text(pool: Pool) -> str:
    return f"{address_text(pool.range.family, pool.range.gateway)}/{pool.range.length}"
