# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What the cases of all categories are made of."""

from __future__ import annotations

import base64
import random
import typing as t

import jsontext
from model import NETNS, Case, Step

VERSIONS = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
NETWORK = "net"
PLUGINS = ("alpha", "beta", "gamma")
IPV4 = ("10.1.2.3/24", "192.168.0.1/32", "10.0.0.0/8", "0.0.0.0/0", "1.2.3.4/31")
IPV6 = ("fd00::1/64", "FD00:0:0::A/128", "::/0", "2001:db8::0:1/120", "::ffff:10.0.0.1/120", "fe80::1:0:0:1/10")
GATEWAYS = ("10.1.2.1", "", "fd00::ff", "::ffff:10.0.0.1", "::")


def answer(stdout: bytes = b"", stderr: bytes = b"", **more: t.Any) -> dict[str, t.Any]:
    """Return an answer for a script."""
    encode = base64.b64encode
    return {"stdout": encode(stdout).decode(), "stderr": encode(stderr).decode(), **more}


def route(rng: random.Random) -> dict[str, t.Any]:
    """Return a route, with attributes now and then."""
    out: dict[str, t.Any] = {"dst": rng.choice(IPV4 + IPV6)}
    if rng.random() < 0.5:
        out["gw"] = rng.choice(GATEWAYS)
    for name in ("mtu", "advmss", "priority", "table", "scope"):
        if rng.random() < 0.2:
            out[name] = rng.choice((0, 1, 50, 1400, 253, None))
    return out


def dns(rng: random.Random) -> t.Any:
    """Return the value of `dns`."""
    out: dict[str, t.Any] = {}
    if rng.random() < 0.5:
        out["nameservers"] = rng.choice((["1.2.3.4"], [], None, ["a", "b"]))
    if rng.random() < 0.3:
        out["domain"] = rng.choice(("local", "", None, "<x>"))
    if rng.random() < 0.3:
        out["search"] = ["a.b", "c"]
    if rng.random() < 0.3:
        out["options"] = ["ndots:5"]
    return out


def interface(rng: random.Random) -> dict[str, t.Any]:
    """Return an interface of a result."""
    out: dict[str, t.Any] = {"name": rng.choice(("eth0", "veth1", ""))}
    for name, values in (
        ("mac", ("00:11:22:33:44:55", "")),
        ("mtu", (1500, 0)),
        ("sandbox", (NETNS, "")),
        ("socketPath", ("/s",)),
        ("pciID", ("0000:00:01.0",)),
        ("extra", (1,)),
    ):
        if rng.random() < 0.4:
            out[name] = rng.choice(values)
    return out


def ip_of(rng: random.Random, shape: str) -> dict[str, t.Any]:
    """Return an entry of `ips`."""
    six = rng.random() < 0.4
    out: dict[str, t.Any] = {"address": rng.choice(IPV6 if six else IPV4)}
    if shape == "0.3":
        out["version"] = rng.choice(("6" if six else "4", "6" if six else "4", "4", ""))
    if rng.random() < 0.5:
        out["interface"] = rng.choice((0, 1, None, -1))
    if rng.random() < 0.5:
        out["gateway"] = rng.choice(GATEWAYS)
    return out


def result(rng: random.Random, version: str) -> dict[str, t.Any]:
    """Return a result of that version which is as it has to be."""
    out: dict[str, t.Any] = {"cniVersion": version}
    if version in ("0.1.0", "0.2.0", ""):
        for key, addresses in (("ip4", IPV4), ("ip6", IPV6)):
            if rng.random() < 0.6:
                config: dict[str, t.Any] = {"ip": rng.choice(addresses)}
                if rng.random() < 0.5:
                    config["gateway"] = rng.choice(GATEWAYS)
                if rng.random() < 0.5:
                    config["routes"] = [route(rng) for _index in range(rng.randrange(3))]
                out[key] = config
    else:
        shape = "0.3" if version.startswith("0.") else "1"
        if rng.random() < 0.6:
            out["interfaces"] = [interface(rng) for _index in range(rng.randrange(3))]
        if rng.random() < 0.8:
            out["ips"] = [ip_of(rng, shape) for _index in range(rng.randrange(4))]
        if rng.random() < 0.5:
            out["routes"] = [route(rng) for _index in range(rng.randrange(4))]
    if rng.random() < 0.6:
        out["dns"] = dns(rng)
    if rng.random() < 0.2:
        out["unknown"] = jsontext.value(rng)
    return shuffled(rng, out)


def shuffled(rng: random.Random, members: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return an object with its members in another order."""
    keys = list(members)
    rng.shuffle(keys)
    return {key: members[key] for key in keys}


def plugin(rng: random.Random, plugin_type: str) -> dict[str, t.Any]:
    """Return a plugin's configuration that loads."""
    out: dict[str, t.Any] = {"type": plugin_type}
    if rng.random() < 0.4:
        capabilities = {
            name: rng.choice((True, True, False, None)) for name in ("portMappings", "bandwidth", "mac", "\u00e4<")
        }
        out["capabilities"] = capabilities
    if rng.random() < 0.3:
        out["ipam"] = rng.choice(({"type": "host-local", "subnet": "10.0.0.0/8"}, {}, None, {"ranges": [1.0]}))
    if rng.random() < 0.2:
        out["dns"] = dns(rng)
    if rng.random() < 0.2:
        out["runtimeConfig"] = {"old": jsontext.value(rng)}
    if rng.random() < 0.2:
        out["prevResult"] = {"own": 1}
    if rng.random() < 0.2:
        out["name"] = rng.choice(("other", "", "a<b"))
    for _index in range(rng.randrange(3)):
        out["x" + rng.choice(jsontext.KEYS)] = jsontext.value(rng)
    return shuffled(rng, out)


def conflist(rng: random.Random, version: t.Any, plugins: t.Sequence[t.Any], **more: t.Any) -> dict[str, t.Any]:
    """Return a network list."""
    out: dict[str, t.Any] = {"name": NETWORK, "plugins": list(plugins), **more}
    if version is not None:
        out["cniVersion"] = version
    return shuffled(rng, out)


def chain(rng: random.Random) -> list[str]:
    """Return the types of the plugins of a list."""
    return [rng.choice(PLUGINS) for _index in range(rng.choice((1, 1, 2, 2, 3)))]


def network_case(rng: random.Random, version: str, types: t.Sequence[str], **more: t.Any) -> Case:
    """Return a case with one list in one file, whose plugins answer every ADD with a result of its version."""
    data = jsontext.text(rng, conflist(rng, version, [plugin(rng, name) for name in types], **more))
    case = Case(files={"net.d/10-net.conflist": data}, plugins=list(PLUGINS))
    for name in PLUGINS:
        case.script[f"{name}/ADD"] = [
            answer(jsontext.text(rng, result(rng, version)))
            if rng.random() < 0.7
            else answer(b"{}")
            if rng.random() < 0.3
            else answer(passthrough=True)
            for _index in range(2)
        ]
        # The first of a chain has nothing to pass on.
        case.script[f"{name}/ADD"][0].pop("passthrough", None)
        if not case.script[f"{name}/ADD"][0]["stdout"]:
            case.script[f"{name}/ADD"][0] = answer(b"{}")
    return case


def runtime_env(rng: random.Random) -> dict[str, str]:
    """Return what a runtime may pass by the environment."""
    env: dict[str, str] = {}
    if rng.random() < 0.4:
        env["CNI_ARGS"] = rng.choice(
            ("A=b", "IgnoreUnknown=1;K8S_POD_NAME=x", "A=b;A=c", "<=>", "A", "A=", "A=b;", "\u00e4=\u20ac")
        )
    if rng.random() < 0.5:
        arguments = {
            name: jsontext.value(rng)
            for name in ("portMappings", "bandwidth", "mac", "other", "\u00e4<")
            if rng.random() < 0.6
        }
        env["CAP_ARGS"] = jsontext.text(rng, arguments).decode()
    if rng.random() < 0.3:
        env["CNI_IFNAME"] = rng.choice(("net1", "eth0", "a-b", "123456789012345", "\u00e4"))
    if rng.random() < 0.2:
        env["CNI_CONTAINERID"] = rng.choice(("c", "a-b", "A.b_c-9"))
    if rng.random() < 0.2:
        env.update({"CNI_FOO": "bar", "EMPTY": "", "CNI_COMMAND": "NONE", "CNI_NETNS": "/nowhere"})
    return env


def verb(name: str, **more: t.Any) -> Step:
    """Return the step of a verb on the one network."""
    return Step([name, NETWORK, NETNS], **more)
