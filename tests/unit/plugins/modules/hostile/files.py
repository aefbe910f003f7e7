# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose files hold what nobody has written: every file that a module reads, damaged at random.

``sound()`` returns the files of a host as they should be, ``Hostile(seed).damage()`` writes them with some of them
damaged. The same seed damages in the same way.
"""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import socket

CONFLIST = {
    "cniVersion": "1.0.0",
    "name": "apps",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "apps0",
            "isGateway": True,
            "ipMasq": True,
            "vlan": 7,
            "ipam": {
                "type": "host-local",
                "dataDir": "/var/lib/cni/networks",
                "ranges": [[{"subnet": "10.9.0.0/24", "rangeStart": "10.9.0.5", "gateway": "10.9.0.1"}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
        {"type": "flannel", "delegate": {"type": "bridge", "delegate": {"ipam": {"type": "static"}}}},
    ],
}
STATIC = {
    "cniVersion": "0.4.0",
    "name": "static",
    "type": "macvlan",
    "master": "eth0",
    "ipam": {"type": "static", "addresses": [{"address": "10.8.0.2/24", "gateway": "10.8.0.1"}]},
}
IDENTITY = {"boot_id": "b", "dev": 4, "inode": 4026532281, "cookie": 7}
KEPT = {"sha256": "0" * 64, "mode": 420, "uid": 0, "gid": 0}

# What stands in the place of any value.
VALUES = (
    *(None, True, -1, 0, 2**63, 10**400, 1e300, float("inf"), "", "x", "\0", "a\0b", "\ud800", "\udc80", "\u2028"),
    *("/", "..", "../../etc/passwd", "10.9.0.0/\u00b2", "10.9.0.0/" + "9" * 5000, "::/0", "10.9.0.1/33", "\x1b[31m"),
    *("/proc/self/ns/net\0", "/dev/zero", "9" * 5000, "A" * 70000, [], {}, [[]], [None], {"": None}, {"type": []}),
)
# What stands in the place of some bytes.
BYTES = (
    *(b"", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\\ud800", b"\n", b"\r\n", b"{", b"[", b"]", b'"', b'"""', b"=", b"."),
    *(b"0x_", b"9" * 6000, b"[" * 900, b'{"delegate":' * 900, b"\\" * 9999 + b'"' * 9999, b"#" * 9999, b"a." * 400),
    *(b"/*", b"<<E\n", b" " * 9999, "\u00b2".encode(), b"-", b"1e999", b"NaN", b"~", b"\x1b]0;x\x07"),
)


def deep(depth):
    """Return a network of *depth* delegates within each other, and one of lists."""
    yield (
        '{"cniVersion":"1.0.0","name":"deep","type":"bridge","delegate":%s1%s}' % ('{"delegate":' * depth, "}" * depth)
    ).encode()
    yield ('{"cniVersion":"1.0.0","name":"deep","type":"bridge","x":%s%s}' % ("[" * depth, "]" * depth)).encode()


def entry(network, container_id, ifname, plugins):
    config = json.dumps({"cniVersion": "1.0.0", "name": network, "plugins": plugins}).encode()
    return {
        "kind": "cniCacheV1",
        "containerId": container_id,
        "config": base64.b64encode(config).decode(),
        "ifName": ifname,
        "networkName": network,
        "netns": "/run/netns/web",
        "cniArgs": [["IgnoreUnknown", "1"]],
        "capabilityArgs": {"portMappings": [{"hostPort": 80, "containerPort": 80}]},
        "result": {
            "cniVersion": "1.0.0",
            "interfaces": [{"name": ifname, "sandbox": "/run/netns/web", "mac": "02:00:00:00:00:01"}],
            "ips": [{"address": "10.9.0.5/24", "gateway": "10.9.0.1", "interface": 0}],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }


def note(network, container_id, ifname, **more):
    key = {"network": network, "container_id": container_id, "ifname": ifname}
    state = {"state": "attached", "identity": IDENTITY, "interface": True, "check": None}
    return {**key, **state, **more}


def sound():
    """Return path -> content of the files of a host: objects are JSON, bytes anything else."""
    cached = entry("apps", "one", "eth0", CONFLIST["plugins"][:2])
    adding = {name: cached[key] for name, key in (("config", "config"), ("netns", "netns"), ("args", "cniArgs"))}
    conf, cache, state = "/etc/cni/net.d/", "/var/lib/podwire/cni/", "/var/lib/podwire/state/"
    networks = {conf + "10-apps.conflist": {"network": "apps", "sha256": "0" * 64, "original": KEPT}}
    return {
        conf + "10-apps.conflist": CONFLIST,
        conf + "20-static.conf": STATIC,
        conf + "apps/10-drop.conf": {"type": "tuning", "sysctl": {"a": "b"}},
        conf + "30-other.json": CONFLIST,
        conf + "40-old.conflist.podwire-aside": CONFLIST,
        conf + "50-multus.conf": {"type": "multus", "name": "m", "cniVersion": "0.3.1", "delegates": [CONFLIST]},
        conf + "87-podman.conflist": {**CONFLIST, "name": "podman", "nerdctlLabels": {"nerdctl/default-network": "1"}},
        cache + "results/apps-one-eth0": cached,
        cache + "results/apps-two-eth0": entry("apps", "two", "eth0", CONFLIST["plugins"]),
        cache + "podwire/apps-one-eth0": note("apps", "one", "eth0"),
        cache + "podwire/apps-three-eth0": note("apps", "three", "eth0", state="adding", capability_args={}, **adding),
        "/var/lib/cni/results/apps-four-eth0": cached,
        state + "manifest.json": {
            "version": 1,
            "networks": networks,
            "binaries": {
                "/opt/cni/bin/bridge": {
                    "sha256": "1" * 64,
                    "archive": "2" * 64,
                    "cni_versions": ["1.0.0"],
                    "gone": False,
                    "history": [
                        {"origin": "original", "link": "/x"},
                        {"origin": "managed", **KEPT, "archive": None, "cni_versions": ["0.4.0"]},
                    ],
                }
            },
            "archives": {"2" * 64: {"sha512": "3" * 128, "plugins": {"bridge": "1" * 64}}},
            "aside": {conf + "40-old.conflist.podwire-aside": {"path": conf + "40-old.conflist", "network": "apps"}},
            "versions": {"/opt/cni/bin/bridge": {"identity": "1:2:3:4", "cni_versions": ["1.0.0"], "release": "1.0"}},
        },
        state + "objects/" + "0" * 64: b"kept",
        "/run/podwire-cni/lock": {"generation": 3, "holder": "", "pid": 0},
        "/run/podwire-cni/gc-seen": {"rules/x": 1.5},
        "/run/podwire-cni/restarts/containerd": b"12 345\n",
        "/var/lib/cni/networks/apps/10.9.0.5": b"one\r\neth0",
        "/var/lib/cni/networks/apps/10.9.0.6": b"gone",
        "/var/lib/cni/networks/apps/fd00::5": b"gone\r\neth0",
        "/var/lib/cni/networks/apps/last_reserved_ip.0": b"10.9.0.6",
        "/var/lib/cni/networks/apps/lock": b"",
        "/opt/cni/bin/bridge": b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x02\0\x3e\0" + b"\0" * 99,
        "/opt/cni/bin/portmap": b"\x7fELF",
        "/opt/cni/bin/dhcp": b"#!/bin/sh\n",
        "/etc/containerd/config.toml": b'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n'
        b'[plugins."io.containerd.grpc.v1.cri".cni]\nconf_dir = \'/etc/cni/net.d\'\nbin_dir = """/opt/cni/bin"""\n'
        b"max_conf_num = 0x1\n[[a.b]]\nc = {d.e = [1, 2]}\n",
        "/etc/containerd/conf.d/10-podwire.toml": b"# podwire.cni\nversion = 2\n",
        "/etc/crio/crio.conf": b'[crio.network]\nnetwork_dir = "/etc/cni/net.d/"\nplugin_dirs = ["/opt/cni/bin/"]\n',
        "/etc/crio/crio.conf.d/10-x.conf": b"[crio.network]\ncni_default_network = 'apps'\n",
        "/etc/containers/containers.conf": b'[network]\nnetwork_backend = "cni"\ndefault_network = "podman"\n',
        "/etc/containers/storage.conf": b'[storage]\ngraphroot = "/var/lib/containers/storage"\n',
        "/var/lib/containers/storage/defaultNetworkBackend": b"cni",
        "/etc/nerdctl/nerdctl.toml": b'cni_path = "/opt/cni/bin"\n',
        "/etc/nomad.d/a.hcl": b'client { enabled = true\n cni_path = "/opt/cni/bin" }\n'
        b'a "b" "c" { d = [1, {e = "f"}] }\n',
        "/etc/nomad.d/b.json": {"client": [{"enabled": True}, {"cni_config_dir": "/etc/cni/net.d"}]},
    }


def copies():
    """Yield path and content of more files of those kinds that each are read by themselves: all of them are damaged."""
    for number in range(10):
        name = f"c{number}"
        yield f"/etc/cni/net.d/6{number}-{name}.conflist", {**CONFLIST, "name": name}
        yield f"/etc/cni/net.d/7{number}-{name}.conf", {**STATIC, "name": f"s{number}"}
        yield f"/var/lib/podwire/cni/results/apps-{name}-eth0", entry("apps", name, "eth0", CONFLIST["plugins"][:2])
        yield f"/var/lib/podwire/cni/podwire/apps-{name}-eth0", note("apps", name, "eth0")
        yield f"/var/lib/cni/networks/apps/10.9.0.10{number}", b"gone\r\neth0"


# Where programs say that runtimes are installed, and which: each prints its arguments.
PROGRAMS = "/opt/programs"
_RUNTIMES = ("containerd", "crio", "podman", "nomad", "nerdctl", "ctr")
_FOLDERS = (
    *("/etc/cni", "/etc/containerd", "/etc/crio", "/etc/containers", "/etc/nomad.d", "/etc/nerdctl", "/opt/cni"),
    *("/var/lib/podwire", "/var/lib/cni", "/var/lib/containers", "/run/podwire-cni"),
)


def install_programs():
    os.makedirs(PROGRAMS)
    for name in _RUNTIMES:
        shutil.copy("/bin/echo", os.path.join(PROGRAMS, name))


def clear():
    """Remove all that is written here but the programs."""
    for folder in _FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)


class Hostile:
    """Damages files. Every choice comes from *seed*."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self.log = []

    def damage(self):
        """Write the files of a host, some of them damaged. ``log`` says which and how."""
        clear()
        choose = self._random
        files = sound()
        # Most files at once, since each is read by itself; but whoever cannot read the manifest reads nothing else.
        share = choose.choice((0.1, 0.5, 0.9))
        damaged = {path for path in sorted(files) if choose.random() < share * (0.2 if "manifest" in path else 1)}
        for path, content in sorted(files.items()):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if path not in damaged:
                self._write(path, content if isinstance(content, bytes) else json.dumps(content).encode())
            elif choose.random() < 0.1:
                self._special(path)
            else:
                self._write(path, self._content(path, content))
        for folder in ("/var/lib/podwire", "/var/lib/podwire/state", "/var/lib/podwire/state/objects"):
            os.chmod(folder, 0o700)
        for path, content in copies():
            self._write(path, self._content(path, content))
        if choose.random() < 0.5:
            self._strange_names()

    @staticmethod
    def _write(path, content):
        with open(path, "wb") as stream:
            stream.write(content)
        if path.startswith("/opt/"):
            os.chmod(path, 0o755)

    def _content(self, path, content):
        choose = self._random
        if isinstance(content, bytes) or choose.random() < 0.3:
            if choose.random() < 0.2:
                how, text = "deep", choose.choice([*deep(900), *deep(480)])
            else:
                text = content if isinstance(content, bytes) else json.dumps(content).encode()
                how, text = self.spoilt(text)
        else:
            value, how = self.exchanged(content)
            text = json.dumps(value).encode()
        self.log.append(f"{path}: {how}")
        return text

    def spoilt(self, text):
        """Return bytes with others in the place of some of them."""
        choose = self._random
        said = []
        for _time in range(choose.choice((1, 1, 3))):
            start = choose.randint(0, len(text))
            end = choose.choice((start, start + choose.randint(0, 9), len(text)))
            new = choose.choice(BYTES)
            text = text[:start] + new + text[end:]
            said.append(f"{new[:20]!r} at {start}-{end}")
        return ", ".join(said), text

    def exchanged(self, value):
        """Return a copy of JSON with a value or two, or keys, replaced, and where."""
        choose = self._random
        value = json.loads(json.dumps(value))
        said = []
        for _time in range(choose.choice((1, 1, 2))):
            holder, place, where = choose.choice(list(_places(value)))
            new = choose.choice([one for one in VALUES if isinstance(one, str)] if choose.random() < 0.5 else VALUES)
            said.append(f"{where} is {str(new)[:20]!r}")
            if isinstance(holder, dict) and choose.random() < 0.1:
                holder[new if isinstance(new, str) else "more"] = holder.pop(place)
            else:
                holder[place] = new
        return value, ", ".join(said)

    def _special(self, path):
        """Put something else than a file there."""
        kinds = {
            "a FIFO": os.mkfifo,
            "a directory": os.mkdir,
            "a link to /dev/zero": lambda at: os.symlink("/dev/zero", at),
            "a link to itself": lambda at: os.symlink(at, at),
            "a link to nothing": lambda at: os.symlink("/nowhere", at),
            "a link to a FIFO": lambda at: (os.mkfifo(at + "~"), os.symlink(at + "~", at)),
            "a socket": _socket,
            "nothing": lambda at: None,
        }
        kind = self._random.choice(sorted(kinds))
        kinds[kind](path)
        self.log.append(f"{path}: {kind}")

    def _strange_names(self):
        folders = ["/etc/cni/net.d", "/var/lib/podwire/cni/results", "/var/lib/podwire/cni/podwire", "/opt/cni/bin"]
        folders += ["/var/lib/cni/networks/apps", "/var/lib/cni/networks", "/etc/nomad.d", "/etc/containerd/conf.d"]
        names = [
            b"\xff.conflist",
            b"a\nb.conf",
            b"\x1b[31m.json",
            b"x" * 250,
            b"-",
            b"apps-\xed\xa0\x80-eth0",
            b"10.9.0.\xff",
        ]
        for folder in folders:
            name = self._random.choice(names)
            path = os.path.join(os.fsencode(folder), name)
            if os.path.isdir(folder) and not os.path.lexists(path):
                self.log.append(repr(path))
                if self._random.random() < 0.2:
                    os.mkdir(path)
                else:
                    self._write(os.fsdecode(path), json.dumps(CONFLIST).encode())


def _places(value, where=""):
    """Yield (what holds it, key or index, JSON pointer) of everything in a JSON value."""
    for place in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, place, f"{where}/{place}"
        yield from _places(value[place], f"{where}/{place}")


def _socket(path):
    with socket.socket(socket.AF_UNIX) as listener:
        if len(os.fsencode(path)) < 100:
            listener.bind(path)
