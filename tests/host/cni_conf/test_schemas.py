# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Schemas of the reference plugins have the keys of real plugins: binaries of Go contain the names of JSON keys."""

from __future__ import annotations

import re

import pytest

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


def tags(path):
    return {tag.decode() for tag in TAG.findall(path.read_bytes())}


def keys(shape, since=None):
    """Return the keys of a schema, and of the objects inside, each with the release that it came with."""
    found = {}
    for key, inner in shape.properties.items():
        if not key.startswith("cni.dev/") and key != "capabilities":
            found[key] = since or inner.since
            found.update(keys(inner, since or inner.since))
    for inner in shape.items:
        found.update(keys(inner, since))
    return found


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in REFERENCE for name in REFERENCE[kind].split()])
def test_a_schema_has_the_keys_of_its_plugin_in_each_release(generations, kind, name):
    schema = keys(schema_files.shape(schema_files.types(kind)[name]))
    new = tags(generations["new"] / name)
    others = {*SHARED.split(), *ROUTES.split(), *(NFT.split() if name == "bridge" else ())}
    assert new - set(schema) - others == set()

    own = {key: since for key, since in schema.items() if key not in SHARED.split()}
    assert new & set(own) == {key for key, since in own.items() if since != "a release after 1.9.1"}
    # The old release does not have all plugins, and no key that came with a later release.
    if (generations["old"] / name).exists():
        old = tags(generations["old"] / name)
        assert old & set(own) == {key for key, since in own.items() if not isinstance(since, str)}
