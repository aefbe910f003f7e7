# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Directories of network configurations: what people and tools leave there, and everything that libcni is picky about.

``observed.json`` beside this has what runtimes do with each; ``./run runtimes predictions --record`` wrote it.
"""

from __future__ import annotations

import json
import os
import random
import shutil

FOLDER = None
"""Stands for a folder in place of a file's text."""


def link(target):
    """Return what stands for a symbolic link in place of a file's text."""
    return "->" + target


BRIDGE = {"type": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}]]}}


def network(name, **keys):
    return json.dumps(dict({"cniVersion": "1.0.0", "name": name, "plugins": [BRIDGE]}, **keys))


def single(name, **keys):
    return json.dumps(dict({"cniVersion": "0.4.0", "name": name, "type": "bridge"}, **keys))


def one(**keys):
    return {"10-a.conflist": network("n", **keys)}


def plugin(*plugins):
    return one(plugins=list(plugins))


def bridge(**keys):
    return plugin(dict(BRIDGE, **keys))


def ranges(value):
    return plugin({"type": "bridge", "ipam": {"type": "host-local", "ranges": value}})


A, B, C = network("a"), network("b"), network("c")
NO_PLUGINS = json.dumps({"cniVersion": "1.0.0", "name": "n"})

LAYOUTS = {
    # Which file is first, and which is a file at all
    "empty": {},
    "one list": {"10-a.conflist": A},
    "two lists": {"20-a.conflist": A, "10-b.conflist": B},
    "100 comes before 20": {"100-a.conflist": A, "20-b.conflist": B},
    "upper case comes first": {"a.conflist": A, "Z.conflist": B},
    "a hidden file comes first": {".a.conflist": A, "00-b.conflist": B},
    "a file with nothing but an extension": {".conf": single("a"), "00-b.conflist": B},
    "a single one before a list": {"10-a.conf": single("a"), "10-a.conflist": B},
    "json": {"10-a.json": single("a"), "20-a.conflist": B},
    "only a single one": {"10-a.conf": single("a")},
    "backup": {"10-a.conflist.bak": A, "20-a.conflist": B},
    "only a backup": {"10-a.conflist.bak": A},
    "upper case extension": {"10-a.CONFLIST": A, "20-a.conflist": B},
    "set aside": {"10-a.conflist.podwire-aside": A, "20-b.conflist": B},
    "cilium": {"05-cilium.conflist": network("cilium", plugins=[{"type": "cilium-cni"}]), "10.conflist.cilium_bak": A},
    "multus": {
        "00-multus.conf": single("multus-cni-network", cniVersion="0.3.1", type="multus", delegates=[{}]),
        "10-a.conflist": A,
    },
    "a kubeconfig": {"10-a.conflist": A, "calico-kubeconfig": "apiVersion: v1"},
    "a folder with an extension": {"10-a.conflist": FOLDER, "20-b.conflist": B},
    "a link to a file": {"data": A, "10-a.conflist": link("data")},
    "a link to nothing": {"10-a.conflist": link("nowhere"), "20-b.conflist": B},
    "a link to a folder": {"folder": FOLDER, "10-a.conflist": link("folder"), "20-b.conflist": B},
    "ansible's temporary file": {".ansible_tmpx10-a.conflist": A[:20], "10-a.conflist": A},
    "three": {"10-a.conflist": A, "20-b.conflist": B, "30-c.conf": single("c")},
    "one name twice": {"10-a.conflist": network("n"), "20-b.conflist": network("n", cniVersion="0.4.0")},
    "one name in a list and a single one": {"10-a.conf": single("n"), "20-b.conflist": network("n")},
    "default of podman": {"87-podman.conflist": network("podman"), "10-a.conflist": A},
    "default of podman twice": {"87-podman.conflist": network("podman"), "10-a.conflist": network("podman")},
    "default of nerdctl": {"nerdctl-bridge.conflist": network("bridge"), "10-a.conflist": A},
    # What cannot be loaded, and where it stands
    "broken before": {"10-a.conflist": A[:-3], "20-b.conflist": B},
    "broken after": {"10-a.conflist": A, "20-b.conflist": B[:-3]},
    "broken between": {"10-a.conflist": A, "20-b.conflist": "{", "30-c.conflist": C},
    "broken at the end": {"10-a.conflist": A, "20-b.conflist": B, "30-c.conf": "{"},
    "empty file": {"10-a.conflist": "", "20-b.conflist": B},
    "a list in a json": {"10-a.json": A, "20-b.conflist": B},
    "a list in a conf": {"10-a.conf": A, "20-b.conflist": B},
    "a single one in a conflist": {"10-a.conflist": single("a"), "20-b.conflist": B},
    "a stray json": {"10-a.json": '{"some": "thing"}', "20-b.conflist": B},
    "byte order mark": {"10-a.conflist": "\ufeff" + A},
    "comment": {"10-a.conflist": "// mine\n" + A},
    "trailing comma": {"10-a.conflist": A[:-1] + ",}"},
    "trailing text": {"10-a.conflist": A + "x"},
    "array": {"10-a.conflist": "[]"},
    "null": {"10-a.conflist": "null"},
    "NaN": {"10-a.conflist": A[:-1] + ', "x": NaN}'},
    "a number too large": {"10-a.conflist": A[:-1] + ', "x": 1e999}'},
    # Names
    "no name": {"10-a.conflist": json.dumps({"cniVersion": "1.0.0", "plugins": [BRIDGE]})},
    "empty name": {"10-a.conflist": network("")},
    "empty name, and a conf": {"10-a.conflist": network(""), "20-x.conf": single("x")},
    "empty name, and a broken conf": {"10-a.conflist": network(""), "20-x.conf": "{"},
    "null as name": {"10-a.conflist": network(None)},
    "a number as name": {"10-a.conflist": network(7)},
    "a name that no plugin takes": {"10-a.conflist": network("bridge@123")},
    "Name": {"10-a.conflist": A.replace('"name"', '"Name"')},
    "two names": {"10-a.conflist": A[:-1] + ', "name": "b"}'},
    "a single one without name": {"10-a.conf": json.dumps({"cniVersion": "0.4.0", "type": "bridge"})},
    "a single one without type": {"10-a.conf": json.dumps({"cniVersion": "0.4.0", "name": "x"})},
    # Versions
    "version as number": one(cniVersion=1.0),
    "version that is none": one(cniVersion="bogus"),
    "version to come": one(cniVersion="9.0.0"),
    "version 1.1.0": one(cniVersion="1.1.0"),
    "version 0.3.1": one(cniVersion="0.3.1"),
    "no version": {"10-a.conflist": json.dumps({"name": "n", "plugins": [BRIDGE]})},
    "versions": one(cniVersions=["0.4.0", "1.0.0"]),
    "versions as text": one(cniVersions="1.0.0"),
    "versions with a number": one(cniVersions=["1.0.0", 1]),
    "versions with nonsense": one(cniVersions=["x.y"]),
    # Flags
    "disableCheck": one(disableCheck=True),
    "disableCheck as text": one(disableCheck="true"),
    "disableCheck as another text": one(disableCheck="yes"),
    "disableCheck null": one(disableCheck=None),
    "disableCheck escaped": {"10-a.conflist": network("n")[:-1] + ', "disable\\u0043heck": "true"}'},
    "disableGC as number": one(disableGC=1),
    "disableGC as text": one(disableGC="TRUE"),
    "loadOnlyInlinedPlugins as number": one(loadOnlyInlinedPlugins=1),
    "loadOnlyInlinedPlugins": dict(one(loadOnlyInlinedPlugins=True), **{"n/10-x.conf": "{"}),
    "loadOnlyInlinedPlugins without plugins": {
        "10-a.conflist": json.dumps({"cniVersion": "1.0.0", "name": "n", "loadOnlyInlinedPlugins": True})
    },
    # Drop-ins
    "drop-in": dict(one(), **{"n/10-x.conf": single("x")}),
    "broken drop-in": dict(one(), **{"n/10-x.conf": "{"}),
    "drop-in that is json": dict(one(), **{"n/10-x.json": "{"}),
    "drop-in of a single one": {"10-a.conf": single("n"), "n/10-x.conf": "{"},
    "no plugins": {"10-a.conflist": NO_PLUGINS},
    "no plugins but a drop-in": {"10-a.conflist": NO_PLUGINS, "n/10-x.conf": single("x")},
    # Plugins
    "plugins null": one(plugins=None),
    "plugins as object": one(plugins={}),
    "plugins empty": one(plugins=[]),
    "a plugin without type": plugin({}),
    "a plugin that is a text": plugin("bridge"),
    "a plugin with a number as type": plugin({"type": 1}),
    "a plugin with Type": plugin({"Type": "bridge"}),
    "a plugin that is not there": plugin(BRIDGE, {"type": "nowhere"}),
    "capabilities as list": bridge(capabilities=[]),
    "capabilities with texts": bridge(capabilities={"a": "x"}),
    "ipam as text": bridge(ipam="x"),
    "ipam null": bridge(ipam=None),
    "ipam with a number as type": bridge(ipam={"type": 1}),
    "dns as text": bridge(dns="x"),
    "prevResult as text": bridge(prevResult="x"),
    "args as text": bridge(args="x"),
    "valid-attachments as text": bridge(**{"cni.dev/valid-attachments": "x"}),
    # What podman makes of a network
    "mtu as text": bridge(mtu="1500"),
    "mtu null": bridge(mtu=None),
    "vlan as boolean": bridge(vlan=True),
    "isGateway as text": bridge(isGateway="true"),
    "no ipam": plugin({"type": "bridge"}),
    "ptp without ipam": plugin({"type": "ptp"}),
    "macvlan with dhcp": plugin({"type": "macvlan", "ipam": {"type": "dhcp"}}),
    "macvlan with static": plugin({"type": "macvlan", "ipam": {"type": "static"}}),
    "macvlan with a number as mode": plugin({"type": "macvlan", "mode": 1}),
    "static with ranges as text": plugin({"type": "bridge", "ipam": {"type": "static", "ranges": "x"}}),
    "routes as text": plugin({"type": "bridge", "ipam": {"type": "host-local", "routes": "x"}}),
    "ranges null": ranges(None),
    "ranges with null": ranges([None]),
    "ranges flat": ranges([{"subnet": "10.1.0.0/24"}]),
    "range without subnet": ranges([[{}]]),
    "subnet that is none": ranges([[{"subnet": "x"}]]),
    "subnet of 33 bits": ranges([[{"subnet": "10.1.0.0/33"}]]),
    "subnet of IPv6": ranges([[{"subnet": "fd00::/64", "gateway": "fd00::1"}]]),
    "gateway that is none": ranges([[{"subnet": "10.1.0.0/24", "gateway": "x"}]]),
    "rangeStart that is none": ranges([[{"subnet": "10.1.0.0/24", "rangeStart": "10.1.0"}]]),
}


def _random_layouts(count):
    chance = random.Random(7)
    found = {}
    for number in range(count):
        files = {}
        for _file in range(chance.randint(1, 5)):
            prefix = chance.choice(["00-", "10-", "5-", "100-", "A", "z", "."])
            extension = chance.choice([".conflist", ".conflist", ".conf", ".json", ".bak"])
            name = chance.choice(["n1", "n2", "n3"])
            files[prefix + chance.choice("abc") + extension] = chance.choice(
                [network(name)] * 2
                + [single(name)] * 2
                + ["{", network(name, disableGC=1), json.dumps({"name": name}), network(name, cniVersions=3)]
            )
            if chance.random() < 0.15:
                files[name + "/1.conf"] = chance.choice([single("x"), "{"])
        found["random %d" % number] = files
    return found


LAYOUTS.update(_random_layouts(40))


def put(directory, files):
    """Make *directory* hold these files and nothing else."""
    for entry in os.scandir(directory):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    for name, text in files.items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if text is FOLDER:
            os.makedirs(path)
        elif text.startswith("->"):
            os.symlink(text[2:], path)
        else:
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
