# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which attachment a chain or rule of the firewall is for.

Reference plugins tell it exactly: by the hash in a chain's name, by a comment, or by the address in a rule of a fixed
form. Only what a plugin that is not known may have made is searched for a container ID in its comment and for
addresses. What may be of several containers is nobody's.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from ..firewall.chains import CHAIN, NFTABLES, jumps_of, words_of
from ..firewall.kinds import chain_name, instance_hash
from ..firewall.owners import SPOOF_CHAIN, SPOOF_COMMENT, chain_kind, of_forward, of_iptables
from ..json_text import parse_json
from ..kernel.objects import ObjectKey
from .object_kinds import CHAIN_KEY_LENGTH

# An attribution.Party.
Party = Any
_FORWARD = "CNI-FORWARD"
_MASQUERADE, _HOSTPORT = "cni_plugins_masquerade", "cni_hostport"
_WORD = re.compile(r"[\w.:-]+")


class RuleOwners:
    """Finds the attachments of chains and rules among *parties*."""

    def __init__(self, parties: Iterable[Party]) -> None:
        self._parties = list(parties)
        self._chains: Dict[str, List[Party]] = {}
        for party in self._parties:
            network, container_id, ifname = party.key
            spoof = f"{SPOOF_CHAIN}{container_id}-{ifname}"
            names = [chain_name(prefix, network, container_id) for prefix in ("", "DN-", "SN-")]
            for name in (*names, spoof, f"{spoof}-mac"):
                self._chains.setdefault(name, []).append(party)

    def owner(self, key: ObjectKey) -> Optional[Tuple[str, ...]]:
        """Return the attachment that a chain, rule, set or element is for, None if it is for none or for several."""
        rule = str(key[-1]) if len(key) > CHAIN_KEY_LENGTH else ""
        comment = _comment(str(key[1]), rule)
        named = self._exactly(key, rule, comment)
        words = _words(rule)
        if named is None:
            said = set(_WORD.findall(comment))
            named = [
                party
                for party in self._parties
                if party.unknown
                and (words.intersection(party.addresses) or said & {party.key[1], f"{party.key[1]}-{party.key[2]}"})
            ]
        if len({party.key for party in named}) > 1:
            # The chains of a container are those of all its interfaces in the network.
            narrowed = [party for party in named if words.intersection(party.addresses)]
            same = len({party.key[:2] for party in named}) == 1
            named = narrowed if len(narrowed) == 1 else named[:1] if same else []
        return named[0].key if named else None

    def _exactly(self, key: ObjectKey, rule: str, comment: str) -> Optional[List[Party]]:
        """Return whose it is as reference plugins tell it, None if none of them makes it for a single container."""
        kind, backend, family, table = map(str, key[:4])
        chains = [str(key[4]), *jumps_of(backend, rule)] if kind == CHAIN else []
        if chains and is_of_container(chains[0]):
            return self._chains.get(chains[0], [])
        if backend != NFTABLES:
            told = of_iptables(comment)
            if told is not None:
                return [
                    party
                    for party in self._parties
                    if party.key[0] == told.network
                    and (party.key[1] == told.container_id or (told.claimed and party.key[1].startswith(told.claimed)))
                ]
            address = of_forward(family, words_of(rule)) if chains[:1] == [_FORWARD] else ""
            if address:
                return [party for party in self._parties if address in party.addresses]
        elif comment and table == _MASQUERADE:
            told_hash = comment.partition(",")[0]
            return [
                party for party in self._parties if instance_hash(party.key[0], party.key[2], party.key[1]) == told_hash
            ]
        elif comment and table == _HOSTPORT:
            return [party for party in self._parties if party.key[1] == comment]
        elif comment.startswith(SPOOF_COMMENT):
            name = comment[len(SPOOF_COMMENT) :]
            return [party for party in self._parties if f"{party.key[1]}-{party.key[2]}" == name]
        for chain in filter(is_of_container, chains):
            return self._chains.get(chain, [])
        return None


def is_of_container(chain: str) -> bool:
    """Tell whether a reference plugin names the chains of a single container so."""
    return chain_kind(chain) is not None or chain.startswith(SPOOF_CHAIN)


def _comment(backend: str, rule: str) -> str:
    if backend != NFTABLES:
        words = words_of(rule)
        return next((value for option, value in zip(words, words[1:]) if option == "--comment"), "")
    try:
        content = parse_json(rule or "{}")
    except ValueError:
        return ""
    comment = content.get("comment") if isinstance(content, dict) else None
    return comment if isinstance(comment, str) else ""


def _words(rule: str) -> Set[str]:
    """Return the words of a rule. They are compared whole, as 10.88.0.2 is in 10.88.0.21."""
    words = _WORD.findall(rule)
    # Such as 10.88.0.2:80 of a port mapping.
    return {*words, *(word.rpartition(":")[0] for word in words if word.count(":") == 1)}
