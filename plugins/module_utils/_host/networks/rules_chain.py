# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about single networks that no schema of a plugin can tell: the order of the chain, and what reaches it.

Which order fails was tried with the plugins themselves, 1.1.1 and 1.9.1.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List

from ..binaries.types import member_of, object_of, text_of
from ..confdir import ConfFile
from ..problems import WARNING, problem
from .view import ConfView, Placed

Problem = Dict[str, Any]

# They work on the interface that another plugin has made, and fail without it.
_META = {"portmap", "bandwidth", "firewall", "tuning", "sbr", "vrf"}
# They make an interface of the name that the runtime asks for, and fail if there is one already. tap and ipvlan do not.
_INTERFACE = {"bridge", "ptp", "macvlan", "vlan", "host-device", "dummy", "flannel"}
_RATES = ("ingressrate", "egressrate")


def chain_problems(view: ConfView, file: ConfFile) -> Iterator[Problem]:
    """Yield what is wrong with the chain of one network."""
    chain = view.chain(file)
    yield from _order(view, file, chain)
    for placed in chain:
        yield from _capability(view, file, placed)
        yield from _delegate_of_multus(view, file, placed)


def _order(view: ConfView, file: ConfFile, chain: List[Placed]) -> Iterator[Problem]:
    makers = [placed for placed in chain if text_of(placed.plugin, "type") in _INTERFACE]
    first = text_of(chain[0].plugin, "type") if chain else ""
    if first in _META:
        after = "put it after %s" % text_of(makers[0].plugin, "type") if makers else "begin with one such as bridge"
        text = "%s comes first, but works on the interface that another plugin makes, so every ADD fails; %s"
        yield _at(view.certain(file), "chain_order", text % (first, after), chain[0])
    for placed in makers[1:]:
        kind = text_of(placed.plugin, "type")
        text = (
            "%s makes the container's interface, which %s has made already, so every ADD fails; make a network of its "
            "own of it"
        )
        message = text % (kind, text_of(makers[0].plugin, "type"))
        yield _at(view.certain(file), "chain_order", message, placed)


def _capability(view: ConfView, file: ConfFile, placed: Placed) -> Iterator[Problem]:
    plugin, kind = placed.plugin, text_of(placed.plugin, "type")
    capabilities = object_of(plugin, "capabilities")
    # What is written there stays unless a runtime hands over something else.
    written = object_of(plugin, "runtimeconfig")
    ports = capabilities.get("portMappings") is True or member_of(written, "portmappings")
    if kind == "portmap" and not ports:
        text = (
            "portmap never gets a port to map, because runtimes hand them over only where the capability is declared; "
            'write "capabilities": {"portMappings": true}'
        )
        yield _at(view.level(file), "capability_missing", text, placed)
    limits = [plugin, object_of(written, "bandwidth")]
    # A runtime's key can be spelled as it likes, if the capability is: the plugin reads it in any case.
    limited = member_of(capabilities, "bandwidth") is True or any(
        member_of(place, rate) for place in limits for rate in _RATES
    )
    if kind == "bandwidth" and not limited:
        text = (
            "bandwidth has no limits, and no runtime hands it any without the capability; write "
            '"capabilities": {"bandwidth": true}, or ingressRate and ingressBurst'
        )
        yield _at(view.level(file), "capability_missing", text, placed)


def _delegate_of_multus(view: ConfView, file: ConfFile, placed: Placed) -> Iterator[Problem]:
    """Yield where Multus points at a file that will not be there: it keeps the path, whatever becomes of the file."""
    target = text_of(placed.plugin, "clusternetwork")
    if not text_of(placed.plugin, "type").startswith("multus") or os.path.dirname(target) != view.conf_dir:
        return
    if os.path.basename(target) not in {other.name for other in view.files}:
        text = "Multus takes its first network from %s, which will not be there; put the network there, or change this"
        # Ours to know only if it is this plan that takes the file away.
        taken = os.path.basename(target) in {other.name for other in view.before}
        level = WARNING if taken else view.level(file)
        message = text % target
        yield _at(level, "multus_target_missing", message, Placed(placed.path, placed.pointer + "/clusterNetwork", {}))


def _at(level: str, code: str, message: str, placed: Placed) -> Problem:
    return problem(level, code, message, placed.path, placed.pointer)
