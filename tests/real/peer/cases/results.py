# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Cases about results and the cache."""

from __future__ import annotations

import base64
import json
import random
import typing as t

import jsontext
from model import CONTAINER, NETNS, Case, Directory, File, Link, Step

from cases.material import GATEWAYS, IPV4, IPV6, NETWORK, VERSIONS, chain, network_case, result, runtime_env, verb

_TARGETS = (*VERSIONS, "", "0.2", "9.9.9", "1.0.0 ", "bogus")
_ADDRESSES = (
    *IPV4,
    *IPV6,
    "10.0.0.1",
    "10.0.0.1/",
    "010.0.0.1/8",
    "10.0.0.1/033",
    "10.0.0.1/+8",
    "::1%lo/64",
    "1.2.3.4/255.0.0.0",
    "",
    "x/8",
    "::1/129",
    "::ffff:1.2.3.4/95",
    "1::2::3/64",
    "1:2:3:4:5:6:7::/64",
    "::1.2.3.4/96",
    "1.2.3.4/8 ",
    "/8",
    "12345::/16",
    "1.2.3/8",
    "1.2.3.4.5/8",
    "256.0.0.1/8",
    "::ffff:0:0/96",
    "1:2:3:4:5:6:1.2.3.4/8",
    ":::/8",
)
_ODD: tuple[t.Any, ...] = (
    None,
    "x",
    1,
    1.0,
    [],
    {},
    True,
    "",
    -1,
    jsontext.Raw("1e0"),
    jsontext.Raw("9007199254740993"),
    jsontext.Raw("9223372036854775808"),
)


def results(rng: random.Random) -> Case:
    """Convert a result to every version, a good one or one with something odd in it."""
    version = rng.choice(VERSIONS)
    members = result(rng, version)
    if rng.random() < 0.1:
        members["cniVersion"] = rng.choice(_TARGETS)
    if rng.random() < 0.5:
        _spoil(rng, members)
    elif rng.random() < 0.3:
        members.update(rng.choice(({"ips": [None]}, {"routes": [None]}, {"ip4": {"ip": "::/0", "routes": [None]}})))
    if rng.random() < 0.1:
        members = {key.swapcase() if rng.random() < 0.5 else key: value for key, value in members.items()}
    if rng.random() < 0.15:
        # Twice the same key, whatever its case.
        key = rng.choice(list(members))
        other = result(rng, version).get(key, rng.choice(_ODD))
        members = jsontext.Pairs([*members.items(), (rng.choice((key, key.upper(), key.title())), other)])
        rng.shuffle(members)
    data = jsontext.text(rng, members)
    targets = rng.sample(_TARGETS, 4)
    return Case(steps=[Step(["convert", target], stdin=data) for target in targets])


def _spoil(rng: random.Random, members: dict[str, t.Any]) -> None:
    """Put something odd somewhere into a result."""
    containers: list[t.Any] = []

    def walk(value: t.Any) -> None:
        if isinstance(value, dict) and value:
            containers.append(value)
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(item)

    walk(members)
    container = rng.choice(containers)
    key = rng.choice(list(container))
    if isinstance(container[key], list) and rng.random() < 0.5:
        container[key] = [*container[key], rng.choice((None, {}))]
    elif key in ("address", "ip", "dst"):
        container[key] = rng.choice(_ADDRESSES)
    elif key in ("gateway", "gw"):
        container[key] = rng.choice((*GATEWAYS, "10.0.0.1/8", "01.2.3.4", "::1%lo", "x"))
    elif rng.random() < 0.2:
        del container[key]
    else:
        container[key] = rng.choice(_ODD)


def cache(rng: random.Random) -> Case:
    """Find something in the cache: another's, an older one, a broken one, none."""
    version = rng.choice((*VERSIONS, "0.4.0", "1.0.0", "1.1.0"))
    more = {"disableCheck": True} if rng.random() < 0.15 else {}
    case = network_case(rng, version, chain(rng), **more)
    case.files[f"cache/results/{NETWORK}-{CONTAINER}-eth0"] = entry(rng, NETWORK, CONTAINER, "eth0")
    for network, container, interface in (("other", CONTAINER, "eth0"), (NETWORK, "two", "eth1"), ("x", "y", "z")):
        if rng.random() < 0.4:
            case.files[f"cache/results/{network}-{container}-{interface}"] = entry(rng, network, container, interface)
    target = entry(rng, NETWORK, CONTAINER, "eth0")
    if isinstance(target, bytes) and Link("../elsewhere") in case.files.values():
        case.files["cache/elsewhere"] = target
    if rng.random() < 0.2:
        case.files["cache/results/stray"] = rng.choice((b"", b"stray", Link("nowhere"), Directory()))
    case.mode = rng.choice((0o600, 0o600, 0o600, 0o644))
    if rng.random() < 0.08:
        case.files = {name: content for name, content in case.files.items() if name.startswith("net.d")}
        case.files["cache/results"] = b""
    env = runtime_env(rng)
    env.pop("CNI_CONTAINERID", None)
    env.pop("CNI_IFNAME", None)
    names = rng.sample(("check", "del", "add", "cached"), 3)
    case.steps = [Step(["list-attachments"]), Step(["attachments-of", rng.choice((CONTAINER, "two", "cid", "-"))])]
    case.steps += [verb(name, env=env) for name in names]
    if rng.random() < 0.3 or case.files.get("cache/results") == b"":
        case.steps.append(Step(["gc", NETWORK, "--valid", f"{CONTAINER}/eth0"]))
    case.steps.append(Step(["list-attachments"]))
    return case


def entry(rng: random.Random, network: str, container: str, interface: str) -> File:
    """Return an attachment's cache file, or something else where it should be."""
    kind = rng.randrange(10)
    if kind == 0:
        return rng.choice((b"", b"garbage", b"null", b"[]", b"{}", b'{"kind":1}', b"\xff\xfe", b"\x00" * 100))
    if kind == 1:
        return jsontext.text(rng, result(rng, rng.choice(VERSIONS)))
    if kind in (2, 3, 4):
        return Directory() if kind == 2 else Link("../elsewhere")
    config = {"name": network, "cniVersion": "1.0.0", "plugins": [{"type": "alpha"}]}
    members: dict[str, t.Any] = {
        "kind": "cniCacheV1",
        "containerId": container,
        "config": base64.b64encode(json.dumps(config).encode()).decode(),
        "ifName": interface,
        "networkName": network,
        "netns": NETNS,
        "cniArgs": [["A", "b"], ["C", ""]],
        "capabilityArgs": {"portMappings": [jsontext.obj(rng)], "mac": "00:11"},
        "result": result(rng, rng.choice(VERSIONS)),
    }
    for key in list(members):
        if rng.random() < 0.08:
            del members[key]
        elif rng.random() < 0.05:
            members[key] = rng.choice(_ODD)
    if rng.random() < 0.2:
        # Another attachment's; some have the same name for their file.
        of_others = ({"containerId": "another"}, {"ifName": "eth1"}, {"networkName": "x"}, {"containerId": "<\u00e4>"})
        same_file = ({"containerId": "cid", "ifName": "1-eth0"}, {"networkName": "net-cid", "containerId": "1"})
        members.update(rng.choice((*of_others, *same_file)))
    if rng.random() < 0.15:
        where = rng.choice(("ips", "routes", "interfaces"))
        members["result"] = {
            **result(rng, "1.0.0"),
            where: rng.choice(([None], [{"dst": "::/0", "address": "::/0"}, None])),
        }
    if rng.random() < 0.1:
        members["cniArgs"] = rng.choice(([], [[]], [["A"]], [["A", "b", "c"]], [[1, 2]], {}, "A=b", [None]))
    if rng.random() < 0.1:
        members["config"] = rng.choice(("", "!", "e30=\n", "e30", "YQ==", "\u00e4"))
    if rng.random() < 0.1:
        members["kind"] = rng.choice(("cniCacheV2", "", "CNICACHEV1"))
    data = jsontext.text(rng, members)
    return data[: rng.randrange(len(data))] if rng.random() < 0.08 else data
