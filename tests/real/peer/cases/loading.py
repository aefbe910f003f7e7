# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Cases about loading: directories, files, lists, versions."""

from __future__ import annotations

import random
import typing as t

import jsontext
from model import Case, Directory, File, Link, Step

from cases.material import NETWORK, VERSIONS, conflist, plugin, shuffled, verb

_NAMES = ("10-a", "9-b", "A", "_", ".hidden", "", "10-a.b", "\u00e4", "zz")
_EXTENSIONS = (".conflist", ".conf", ".json", ".CONFLIST", ".conf~", "", ".conf.bak")
_BROKEN = (
    b"",
    b"{",
    b"[]",
    b'"x"',
    b"null",
    b"{} {}",
    b"\xef\xbb\xbf{}",
    b'{"name": NaN}',
    b"{'a':1}",
    b'{"a":1,}',
    b'{"n":1e999}',
    b"\xff",
    b"//\n{}",
    b'{"name":"net"',
)
_TEXT_BOOLEANS = (True, False, "true", "false", "TRUE", "False", "yes", "", None, 1, 0, [], {}, "tr\u00fce", " true")
_VERSIONS = (
    *VERSIONS,
    "",
    "1",
    "1.0",
    "1.2.0",
    "9.0.0",
    "bogus",
    "1.0.f",
    "1.0.0.0",
    "01.0.0",
    "+1.0.0",
    "-1.0",
    " 1.0.0",
    "1.0.0\n",
    "1..0",
    ".",
    "99999999999999999999.0.0",
)
# Deeper ones are refused by this collection.
DEEPEST = 500
_DEPTHS = (100, 300, 400, 450, DEEPEST, DEEPEST + 1, 3000)
_WRONG: tuple[t.Any, ...] = (None, 1, 1.5, True, [], {}, "x", [None], [{}], [1], {"a": 1})


def load(rng: random.Random) -> Case:
    """Make a directory of many files and look for networks in it."""
    case = Case()
    for _index in range(rng.randrange(1, 7)):
        name = rng.choice(_NAMES) + rng.choice(_EXTENSIONS[: 3 if rng.random() < 0.8 else None])
        case.files[f"net.d/{name or 'x'}"] = _file(rng)
    if rng.random() < 0.4:
        for _index in range(rng.randrange(1, 4)):
            name = rng.choice(_NAMES) + rng.choice(_EXTENSIONS)
            content: File = jsontext.text(rng, plugin(rng, rng.choice(("drop", "in", "")) or "third"))
            case.files[f"net.d/{NETWORK}/{name or 'x'}"] = content if rng.random() < 0.9 else rng.choice(_BROKEN)
    if rng.random() < 0.15:
        case.files["net.d/0.conf"] = b'{"n":1e999}'
    if rng.random() < 0.05:
        case.files = {} if rng.random() < 0.5 else {"net.d": Directory()}
    case.steps = [Step(["load", name]) for name in (NETWORK, "other", "", NETWORK.upper())]
    return case


def _file(rng: random.Random) -> File:
    if rng.random() < 0.06:
        return rng.choice(_BROKEN)
    if rng.random() < 0.06:
        return rng.choice((Directory(), Link("nowhere"), Link("."), Link("10-a.conflist")))
    name = rng.choice((NETWORK, NETWORK, "other", "third"))
    if rng.random() < 0.35:
        return jsontext.text(rng, {**plugin(rng, "single"), "name": name, "cniVersion": rng.choice(VERSIONS)})
    members = conflist(rng, rng.choice((*VERSIONS, None)), [plugin(rng, "inline")])
    members["name"] = name
    if rng.random() < 0.2:
        members["loadOnlyInlinedPlugins"] = rng.choice(_TEXT_BOOLEANS[:6])
    if rng.random() < 0.15:
        del members["plugins"]
    return jsontext.text(rng, members)


def negotiate(rng: random.Random) -> Case:
    """Make lists with all sorts of versions and switches."""
    members: dict[str, t.Any] = {"name": NETWORK, "plugins": [plugin(rng, "a")]}
    if rng.random() < 0.8:
        members["cniVersion"] = rng.choice(_VERSIONS) if rng.random() < 0.9 else rng.choice(_WRONG)
    if rng.random() < 0.7:
        versions = [rng.choice(VERSIONS) for _index in range(rng.randrange(4))]
        if rng.random() < 0.4:
            versions.insert(rng.randrange(len(versions) + 1), rng.choice(_VERSIONS))
        members["cniVersions"] = versions if rng.random() < 0.9 else rng.choice(_WRONG)
    for key in ("disableCheck", "disableGC", "loadOnlyInlinedPlugins"):
        if rng.random() < 0.4:
            members[key] = rng.choice(_TEXT_BOOLEANS[: 6 if rng.random() < 0.6 else None])
    if rng.random() < 0.15:
        members["plugins"] = rng.choice(_WRONG)
    if rng.random() < 0.1:
        members[rng.choice(("Name", "Plugins", "CNIVERSION", "DisableCheck"))] = rng.choice(_WRONG)
    if rng.random() < 0.05:
        members["name"] = rng.choice((None, 1, [], ""))
    case = Case(files={"net.d/10.conflist": jsontext.text(rng, shuffled(rng, members))})
    case.steps = [Step(["load", NETWORK]), Step(["load", ""])]
    return case


def json_rules(rng: random.Random) -> Case:
    """Make one plugin's configuration of wild JSON and see what the plugin gets."""
    members = jsontext.Pairs(jsontext.obj(rng, 3) + jsontext.obj(rng, 3))
    members += [("type", "alpha")]
    if rng.random() < 0.3:
        members += [(rng.choice(("Type", "TYPE", "tYpe")), rng.choice(("alpha", "beta")))]
    if rng.random() < 0.2:
        members += [(rng.choice(("Capabilities", "IPAM", "capabilitie\u017f", "DNS")), rng.choice(({}, None)))]
    if rng.random() < 0.15:
        members += [("big", jsontext.Raw(rng.choice(jsontext.BIG_NUMBERS)))]
    if rng.random() < 0.15:
        members += [
            (rng.choice(("name", "dns", "ipam", "capabilities", "prevResult", "cniVersion")), rng.choice(_WRONG))
        ]
    if rng.random() < 0.25:
        depth = rng.choice(_DEPTHS)
        members += [("deep", jsontext.Raw("[" * depth + "]" * depth))]
    if rng.random() < 0.1:
        members += [("bad", jsontext.Raw('"\\ud800x\\udc00"')), ("raw", jsontext.Raw('"\udcff\udcc3x\udce2\udc82"'))]
    rng.shuffle(members)
    single = rng.random() < 0.5
    if single:
        members += [("name", NETWORK), ("cniVersion", rng.choice(VERSIONS))]
        case = Case(files={"net.d/10.conf": jsontext.text(rng, members)})
    else:
        case = Case(files={"net.d/10.conflist": jsontext.text(rng, conflist(rng, rng.choice(VERSIONS), [members]))})
    case.plugins = ["alpha", "beta"]
    case.script = {f"{name}/ADD": [{"stdout": "e30="}] for name in case.plugins}
    case.steps = [verb("add"), verb("del")]
    return case
