# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Name servers in configurations and results (Go: pkg/types/types.go)."""

from __future__ import annotations

from . import gojson

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

_NAMES = ("nameservers", "domain", "search", "options")


def decode_dns(value: t.Any, where: str = "dns", before: t.Mapping[str, t.Any] | None = None) -> gojson.Struct:
    """Return a DNS object: nameservers, domain, search, options. It extends `before`, from an earlier equal key."""
    members: dict[str, t.Any] = dict(before or {})
    for name, item in gojson.struct_items(gojson.as_object(value, where), _NAMES):
        at = f"{where}/{name}"
        if name == "domain":
            members[name] = gojson.string_over(members.get(name, ""), item, at)
        else:
            members[name] = [gojson.as_string(element, at) for element in gojson.as_list(item, at)]
    return gojson.pick(members, _NAMES)
