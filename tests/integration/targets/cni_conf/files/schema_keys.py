# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the keys in the schemas of the reference plugins with those in real plugins: schema_keys.py OLD NEW

Go keeps the names of JSON keys in its binaries. OLD and NEW are the directories of releases 1.1.1 and 1.9.1. Prints
what differs, one difference a line.
"""

from __future__ import annotations

import os
import re
import sys

from ansible_collections.podwire.cni.plugins.plugin_utils._conf import schema_files

TAG = re.compile(rb'json:"([A-Za-z0-9_]+)[,"]')
REFERENCE = {
    "plugin": "bridge ptp macvlan ipvlan vlan host-device loopback dummy tap portmap bandwidth firewall tuning sbr vrf",
    "ipam": "host-local static dhcp",
}
# Keys of everything that libcni hands over: configurations, results, errors, capability arguments.
SHARED = """
address args attachments bandwidth capabilities cni cniVersion code containerID containerPort containerid cniVersions
details deviceID dns domain gateway hostIP hostPort ifname ignoreunknown interface interfaces ip ip4 ip6 ipRanges ipam
ips labels mac msg mtu name nameservers options pciID portMappings prevResult protocol routes runtimeConfig sandbox
search socketPath supportedVersions type version
"""
# Those of the routes in results.
ROUTES = "dst gw mtu advmss priority table scope"
# The plugin bridge has a library that speaks JSON with nft.
NFT = """
add addr bytes chain comment counter delete dnat expr family field flags flush goto handle hook index
json_schema_version jump left masquerade match metainfo nftables op packets payload policy port prio redirect
release_name right rule snat table target value
"""


def tags(directory: str, name: str) -> set[str] | None:
    """Return the names of JSON keys in a plugin; None if the release does not have it."""
    path = os.path.join(directory, name)
    if not os.path.exists(path):
        return None
    with open(path, "rb") as stream:
        return {tag.decode() for tag in TAG.findall(stream.read())}


def keys(shape: schema_files.Shape, since: object = None) -> dict[str, object]:
    """Return the keys of a schema, and of the objects inside, each with the release that it came with."""
    found: dict[str, object] = {}
    for key, inner in shape.properties.items():
        if not key.startswith("cni.dev/") and key != "capabilities":
            found[key] = since or inner.since
            found.update(keys(inner, since or inner.since))
    for inner in shape.items:
        found.update(keys(inner, since))
    return found


def differences(name: str, schema: dict[str, object], old: set[str] | None, new: set[str] | None) -> list[str]:
    if new is None:
        return ["%s is not there" % name]
    others = {*SHARED.split(), *ROUTES.split(), *(NFT.split() if name == "bridge" else ())}
    found = ["%s has %s, and the schema does not" % (name, key) for key in sorted(new - set(schema) - others)]
    for key, since in schema.items():
        if key not in SHARED.split():
            in_old = not isinstance(since, str)
            in_new = since != "a release after 1.9.1"
            if (key in new) != in_new or (old is not None and (key in old) != in_old):
                found.append("%s: by the schema %s is of %s" % (name, key, since or "every release"))
    return found


def main() -> None:
    for kind, names in REFERENCE.items():
        for name in names.split():
            schema = keys(schema_files.shape(schema_files.types(kind)[name]))
            for text in differences(name, schema, tags(sys.argv[1], name), tags(sys.argv[2], name)):
                print(text)


if __name__ == "__main__":
    main()
