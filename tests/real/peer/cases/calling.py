# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Cases about the verbs: sequences, failures, arguments, GC, STATUS, VERSION, single plugins."""

from __future__ import annotations

import random
import typing as t

import jsontext
from model import CONTAINER, NETNS, Case, Step

from cases.material import NETWORK, PLUGINS, VERSIONS, answer, chain, network_case, plugin, result, runtime_env, verb
from cases.results import entry

# More than is quoted, and more than is kept, of a text.
LONG = "long " * 800
LOUD = "loud " * 4000

# How a plugin may fail, and what it may print.
FAILURES: tuple[dict[str, t.Any], ...] = (
    answer(b'{"code":11,"msg":"busy","details":"later <now>"}', exit=1),
    answer(b'{"cniVersion":"1.0.0","code":100,"msg":"plain"}', b"noise\n", exit=3),
    answer(b'{"code":7,"msg":"m","details":""}', exit=1),
    answer(b'{"Code":50,"MSG":"case"}', exit=1),
    answer(b'{"code":"7","msg":"text code"}', exit=1),
    answer(b'{"code":-1,"msg":"negative"}', exit=1),
    answer(b'{"code":1.5,"msg":"float"}', exit=1),
    answer(b'{"code":5}', exit=1),
    answer(b'{"details":"only"}', exit=1),
    answer(b"{}", exit=2),
    answer(b"null", exit=2),
    answer(b"[]", exit=2),
    answer(b"not json \xff\n", exit=1),
    answer(b"", b"went wrong\n", exit=1),
    answer(b"", b'quoted "\xff\xe2\x82\xac\x00\x1b"\t', exit=255),
    answer(b"", exit=1),
    answer(b"", exit=4, deaf=True),
    answer(b"partial", signal=9),
    # Not SIGHUP, which is ignored below nohup.
    answer(b"", b"hung up", signal=9),
    answer(b"", signal=15),
    answer(b"", b"x", repeat=1, exit=126),
    answer(b"", LONG.encode(), exit=1),
    answer(b'{"code":1,"msg":"' + LONG.encode() + b'"}', exit=1),
    answer(LONG.encode(), exit=1),
)
# Null where Go takes a list of pointers, and dies of it later.
NULLS = (
    answer(b'{"ips":[null]}'),
    answer(b'{"ips":[{"address":"10.0.0.1/8"},null]}'),
    answer(b'{"interfaces":[null,{"name":"a"}]}'),
    answer(b'{"cniVersion":"1.0.0","ROUTES":[{"dst":"10.0.0.0/8"},null]}'),
    answer(b'{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.1/8","routes":[null]}}'),
)
GARBAGE: tuple[dict[str, t.Any], ...] = (
    answer(b""),
    answer(b"null"),
    answer(b"[]"),
    answer(b"{"),
    answer(b'"text"'),
    answer(b"{} {}"),
    answer(b'{"cniVersion":"9.9.9"}'),
    answer(b'{"cniVersion":1}'),
    answer(b'{"cniVersion":null,"ips":null}'),
    answer(b'{"CNIVersion":"0.4.0"}'),
    answer(b'{"ips":[{"address":5}]}'),
    answer(b'{"ips":[{"address":"10.0.0.1"}]}'),
    answer(b'{"ips":[{}]}'),
    answer(b'{"interfaces":[{}],"routes":[{}]}'),
    answer(b'{"ips":{}}'),
    answer(b'{"routes":[{"dst":"x"}]}'),
    answer(b'{"dns":[]}'),
    answer(b'{"ip4":{"ip":"10.0.0.1/33"}}'),
    answer(b'{"interfaces":[{"name":"a","mtu":1.5}]}'),
    answer(b" ", repeat=70000),
    answer(b"{}", LOUD.encode()),
    *NULLS,
)
# More than this collection reads; not where a later command would show it again.
ENDLESS = answer(b"{}" + b" " * 1000, repeat=5000)


def any_answer(rng: random.Random, version: str) -> dict[str, t.Any]:
    """Return what a plugin may answer to anything: mostly what it should, but that is not the point."""
    if rng.random() < 0.5:
        return rng.choice(FAILURES)
    if rng.random() < 0.6:
        return rng.choice(GARBAGE)
    told = answer(jsontext.text(rng, result(rng, rng.choice((version, *VERSIONS)))))
    if rng.random() < 0.3:
        told["stderr"] = answer(b"", b"a warning \xff\n")["stderr"]
    return told


def verbs(rng: random.Random) -> Case:
    """ADD, CHECK and DEL in any order, with arguments and now and then a failure."""
    version, types = rng.choice((*VERSIONS, "0.4.0", "1.0.0", "1.1.0")), chain(rng)
    more = {"disableCheck": rng.choice((True, False, "true"))} if rng.random() < 0.2 else {}
    case = network_case(rng, version, types, **more)
    for command in ("ADD", "CHECK", "DEL"):
        if rng.random() < 0.15:
            case.script[f"{rng.choice(types)}/{command}"] = [any_answer(rng, version), answer(b"{}")]
    if rng.random() < 0.05:
        case.plugins = case.plugins[1:]
    env = runtime_env(rng)
    if rng.random() < 0.25:
        for name in rng.sample(("20-more", "9", "a", "20-more.b"), rng.randrange(1, 4)):
            case.files[f"net.d/net/{name}.conf"] = jsontext.text(rng, plugin(rng, rng.choice(PLUGINS)))
        case.files["net.d/net/30.json"] = case.files["net.d/net/.conf.old"] = b"{}"
    sequences = (("add", "check", "del"), ("add", "del", "del"), ("add", "add", "check", "del"), ("check", "del"))
    case.steps = [verb(name, env=env) for name in rng.choice(sequences)]
    case.steps.append(Step(["list-attachments"]))
    if rng.random() < 0.3:
        case.steps.insert(1, verb("cached", env={**env, "CAP_ARGS": "", "CNI_ARGS": ""}))
    return case


def names(rng: random.Random) -> Case:
    """One verb, with a container id, interface or network name that may be no name."""
    version, types = rng.choice(VERSIONS), chain(rng)
    env = runtime_env(rng)
    network = NETWORK
    which = rng.randrange(3)
    if which == 0:
        env["CNI_CONTAINERID"] = rng.choice(
            ("-a", "a/b", "a b", "a\n", "\u00e4", "../x", ".", "a" * 300, "%", "A_b.c-d")
        )
    elif which == 1:
        env["CNI_IFNAME"] = rng.choice(
            ("1234567890123456", ".", "..", "a/b", "a:b", "a b", "a\u00a0", "\u00e4" * 8, "\x1c", "a\u3000")
        )
    else:
        network = rng.choice(("%", "a b", "a/b", "../net.d", ".", "a" * 300, "\u00e4", "a\n", "a_b.C-9"))
    case = network_case(rng, version, types, name=network)
    if which == 2:
        # Where "." and "../net.d" would look for drop-ins.
        case.files["net.d/15.conf"] = jsontext.text(rng, plugin(rng, "alpha"))
    chosen = rng.choice(("add", "add", "check", "del", "gc", "status", "validate", "load", "load", "cached"))
    if network in (".", "../net.d") and rng.random() < 0.5:
        chosen = "load"
    more = {"add": [NETNS], "check": [NETNS], "del": [NETNS], "cached": [NETNS], "gc": ["--none"]}.get(chosen, [])
    for plugin_type in PLUGINS:
        case.script[f"{plugin_type}/VERSION"] = [
            answer(b'{"cniVersion":"1.0.0","supportedVersions":["1.0.0","0.4.0"]}')
        ]
    case.steps = [Step([chosen, network, *more], env=env)]
    return case


def errors(rng: random.Random) -> Case:
    """One of a chain fails, in any way, in any verb."""
    version, types = rng.choice(VERSIONS), chain(rng)
    case = network_case(rng, version, types)
    command = rng.choice(("ADD", "CHECK", "DEL"))
    case.script[f"{rng.choice(types)}/{command}"] = [
        rng.choice((*FAILURES, *GARBAGE, *NULLS)) if rng.random() < 0.9 else any_answer(rng, version),
        answer(b"{}"),
    ]
    case.steps = [verb(name) for name in ("add", "check", "del", "del")]
    return case


def plugins(rng: random.Random) -> Case:
    """The verbs on a single plugin, without a list."""
    version = rng.choice(VERSIONS)
    members = {**plugin(rng, "alpha"), "name": NETWORK, "cniVersion": version}
    if rng.random() < 0.1:
        del members["cniVersion"]
    case = Case(files={"net.d/10.conf": jsontext.text(rng, members)}, plugins=["alpha"])
    case.script["alpha/ADD"] = [answer(jsontext.text(rng, result(rng, version)))]
    case.script["alpha/VERSION"] = [version_answer(rng, version)]
    for command in ("ADD", "CHECK", "DEL"):
        if rng.random() < 0.15:
            case.script[f"alpha/{command}"] = [any_answer(rng, version)]
    env = runtime_env(rng)
    names = ("plugin-add", "plugin-check", "plugin-del", "plugin-del")
    if rng.random() < 0.5:
        # DEL and CHECK find what somebody has left there.
        env = {name: value for name, value in env.items() if name not in ("CNI_CONTAINERID", "CNI_IFNAME")}
        case.files[f"cache/results/{NETWORK}-{CONTAINER}-eth0"] = (
            entry(rng, NETWORK, CONTAINER, "eth0") if rng.random() < 0.6 else rng.choice((b"", b"{", b"garbage", b"[]"))
        )
        names = rng.sample(("plugin-check", "plugin-del", "plugin-del", "plugin-add"), 4)
    case.steps = [verb(name, env=env) for name in names[rng.randrange(2) :]]
    case.steps.insert(rng.randrange(len(case.steps)), Step(["plugin-validate", NETWORK]))
    return case


def gc(rng: random.Random) -> Case:
    """Several attachments, and GC with some of them valid."""
    version = rng.choice((*VERSIONS, "1.1.0", "1.1.0"))
    more = {"disableGC": rng.choice((True, False, "true", "false"))} if rng.random() < 0.2 else {}
    case = network_case(rng, version, chain(rng), **more)
    pairs = [(container, name) for container in ("a", "b", "c-d") for name in ("eth0", "net1") if rng.random() < 0.6]
    for container, name in pairs:
        env = {**runtime_env(rng), "CNI_CONTAINERID": container, "CNI_IFNAME": name}
        case.steps.append(verb("add", env=env))
    for command in ("GC", "DEL"):
        if rng.random() < 0.25:
            case.script[f"{rng.choice(PLUGINS)}/{command}"] = [rng.choice(FAILURES), answer(b"")]
    if rng.random() < 0.3:
        # An entry that no attachment can have.
        for container in rng.sample(("", "a b", "../x", "-a"), 2):
            case.files[f"cache/results/{NETWORK}-odd{len(container)}-eth0"] = entry(rng, NETWORK, container, "eth0")
    valid = [f"{container}/{name}" for container, name in pairs if rng.random() < 0.5]
    if rng.random() < 0.2:
        valid.append("stranger/eth0")
    if rng.random() < 0.2:
        valid += valid[:1]
    case.steps += [Step(["gc", NETWORK, *_valid_options(rng, valid)]), Step(["list-attachments"])]
    return case


def _valid_options(rng: random.Random, valid: list[str]) -> list[str]:
    """Return the options that say which attachments are valid, in one of their forms, or not as they have to be."""
    if rng.random() < 0.1:
        return rng.choice(
            (["--valid"], [], ["--none", "--valid", *valid], ["--valid", *valid, "--valid"], ["--valid="])
        )
    if rng.random() < 0.1:
        odd = rng.choice(
            ("", "/", "a", "a/", "/eth0", "a/b/c", "a/eth0 b/eth0", "a b/eth0", "../a/eth0", "a/" + "x" * 16)
        )
        valid = [*valid, odd]
    if not valid:
        return ["--none"]
    options: list[str] = []
    listing = False
    for name in valid:
        # Only after --valid, and not after --valid=..., does a word alone count.
        form = rng.choice(("--valid=", "--valid", "") if listing else ("--valid=", "--valid"))
        options += [form + name] if form == "--valid=" else [form, name] if form else [name]
        listing = form != "--valid="
    return options


def status(rng: random.Random) -> Case:
    """STATUS, with plugins that are ready or not."""
    version = rng.choice((*VERSIONS, *["1.1.0"] * 9, "1.2.0", "bogus", ""))
    case = network_case(rng, version, chain(rng))
    for name in PLUGINS:
        if rng.random() < 0.4:
            case.script[f"{name}/STATUS"] = [any_answer(rng, "1.1.0") if rng.random() < 0.7 else ENDLESS]
    if rng.random() < 0.1:
        case.plugins = case.plugins[1:]
    case.steps = [Step(["status", NETWORK], env=runtime_env(rng))]
    return case


def version_answer(rng: random.Random, version: str = "1.0.0") -> dict[str, t.Any]:
    """Return what a plugin may answer to VERSION."""
    if rng.random() < 0.5:
        supported = [version, *rng.sample(VERSIONS, rng.randrange(5))]
        return answer(jsontext.text(rng, {"cniVersion": rng.choice(VERSIONS), "supportedVersions": supported}))
    return rng.choice(
        (
            answer(b'{"cniVersion":"0.2.0"}'),
            answer(b'{"cniVersion":"0.3.0"}'),
            answer(b'{"cniVersion":"0.2.0","supportedVersions":[]}'),
            answer(b'{"supportedVersions":["1.0.0"]}'),
            answer(b'{"CNIVERSION":"1.0.0","SupportedVersions":["1.0.0", null, ""]}'),
            answer(b'{"cniVersion":"1.0.0","supportedVersions":["0.-42.0","x"]}'),
            answer(b'{"cniVersion":"1.0.0","supportedVersions":"1.0.0"}'),
            answer(b'{"cniVersion":"1.0.0","supportedVersions":[1]}'),
            answer(b'{"code":4,"msg":"unknown CNI_COMMAND: VERSION"}', exit=1),
            answer(b'{"code":4,"msg":"unknown CNI_COMMAND: VERSION","details":"x"}', exit=1),
            rng.choice(FAILURES),
            rng.choice(GARBAGE),
        )
    )


def validate(rng: random.Random) -> Case:
    """Test lists whose plugins are there or not and say all sorts of things of their versions."""
    version = rng.choice((*VERSIONS, "", "broken"))
    types = [name if rng.random() < 0.9 else "a/b" for name in chain(rng)]
    case = network_case(rng, version, types)
    case.plugins = [name for name in PLUGINS if rng.random() < 0.85]
    for name in PLUGINS:
        case.script[f"{name}/VERSION"] = [version_answer(rng, version)]
    case.steps = [Step(["validate", NETWORK])]
    if rng.random() < 0.4:
        case.env["CNI_PATH"] = rng.choice(("", "bin", "bin", "@ROOT@/nowhere:@ROOT@/bin", "@ROOT@/nowhere"))
    return case


def versions(rng: random.Random) -> Case:
    """Ask one plugin for its versions."""
    case = Case(plugins=["alpha"], script={"alpha/VERSION": [version_answer(rng)]})
    case.steps = [Step(["plugin-versions", "alpha"])]
    return case
