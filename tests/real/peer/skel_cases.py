# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The seeded generator of calls of a plugin: its environment, its stdin, and what its callbacks do."""

from __future__ import annotations

import json
import random
import typing as t

COMMANDS = ("ADD", "CHECK", "DEL", "GC", "STATUS")
ALL = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
_IDS = ("c1", "-x", "a b", "a/b", "", "\udcff", "é", "a" * 300, "0", "A.b_c-d", "a\n", ".a", "_")
_IFNAMES = (
    *("eth0", "a/b", "a:b", "..", ".", "...", "", "fifteencharacte", "sixteencharacter", "é" * 7, "é" * 8),
    *("a\u00a0b", "a\x1cb", "a\u2003b", "a\x85b", "\udcff" * 15, "\udcff" * 16, "\udcc2\udca0", "eth0@x", "\u3000"),
)
_VERSIONS = (*ALL, "", "1.2.0", "9.9.9", "1.0", "01.0.0", "+1.0.0", "1", "x", " 1.0.0", "1.0.0 ", "1.0.0-rc1", "v1.0.0")
_ODD_VERSIONS = (
    "1..0",
    "1.0.0.0",
    "-1.0.0",
    "99999999999999999999.0.0",
    "1.x",
    "é",
    "1.0.0\n",
    "\u0661.0.0",
    "0.4",
    "1_0",
)
_SUPPORTED = (
    ("0.3.1",),
    ("0.4.0",),
    ("1.0.0",),
    ("1.1.0", "0.4.0"),
    ("2.0.0",),
    ("x",),
    ("x", "1.1.0"),
    ("1.1.0", "x"),
)
_TEXTS = ("", "boom", 'a"b\\c\nd\te\x01f\x7f', "<>&\u2028\u2029", "é😀\ufffd", "x" * 5000, "\x00", "{}", "%s %d")
_NETNS = ("@other",) * 6 + ("@own", "@own-bind", "@file", "@directory", "@missing", "@deleted", "a\nb")
_CODES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 50, 51, 99, 100, 999, 1000, 2**32)
_GARBAGE = (
    *(
        "",
        "null",
        "[]",
        '"x"',
        "1",
        "true",
        "garbage",
        "{",
        "{}{}",
        "{'name':'net'}",
        '{"name":"net",}',
        "\ufeff{}",
        " ",
    ),
    *('{"name":"net"}x', '{"name":"net"}\n\t ', '{"name" "net"}', '{"name":"net","x":NaN}', '{"name":"net","x":01}'),
    *('{"name":"net","x":[1,2.50,1e999,-0]}', '{"name":"net","x":"\\ud800"}', '{"name":"\\ud800"}', "//{}"),
    *('{"name":"net","x":"\t"}', '{"name":"net","x":"\\x"}', '{"name":"net","x":+1}', '{"name":"net","x":.5}'),
)
_NAMES = ("net", "", None, 1, True, ["a"], {"a": 1}, "a b", "-a", "a\n", "a" * 300, "é", "a.b_c-d", "_a", "\ufffd")
_ARGS_KEYS = (
    "IgnoreUnknown",
    "K8S_POD_NAME",
    "IP",
    "Flag",
    "FOO",
    "k8s_pod_name",
    "",
    " IP",
    "K8S_POD_INFRA_CONTAINER_ID",
)
_ARGS_VALUES = (
    "1",
    "0",
    "true",
    "FALSE",
    "True",
    "yes",
    "",
    "web",
    "fd00::1",
    "10.0.0.1",
    "010.0.0.1",
    "::ffff:1.2.3.4",
    " x ",
    "é",
)
_ADDRESSES = (
    "10.1.0.2/24",
    "fd00::2/64",
    "FD00:0::0002/64",
    "10.1.0.2",
    "10.1.0.2/33",
    "x",
    "",
    "::ffff:10.0.0.1/120",
    "0.0.0.0/0",
)


class _Maker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def command(self) -> str:
        return self.rng.choice(COMMANDS) if self.rng.random() < 0.9 else self.rng.choice(("FOO", "add", "ADD ", "ä"))

    def env(self, command: str, careful: bool = True) -> dict[str, str]:
        rng = self.rng
        env = {"CNI_COMMAND": command, "CNI_CONTAINERID": "c1", "CNI_NETNS": "@other", "CNI_IFNAME": "eth0"}
        env["CNI_PATH"] = "/opt/cni/bin"
        if not careful:
            for name, values in (
                ("CNI_CONTAINERID", _IDS),
                ("CNI_IFNAME", _IFNAMES),
                ("CNI_NETNS", ("@other", "", "@missing")),
                ("CNI_PATH", ("/opt/cni/bin", "", "relative")),
            ):
                chance = rng.random()
                if chance < 0.2:
                    del env[name]
                elif chance < 0.6:
                    env[name] = rng.choice(values)
        if rng.random() < 0.2:
            env["CNI_ARGS"] = rng.choice(("", "a;b=;=c;;", "IgnoreUnknown=1", "é"))
        return env

    def conf(self, **changed: t.Any) -> str:
        conf = {"cniVersion": self.rng.choice(("1.0.0", "1.1.0", "0.4.0")), "name": "net", "type": "probe", **changed}
        items = list(conf.items())
        if self.rng.random() < 0.3:
            self.rng.shuffle(items)
        return json.dumps(dict(items), ensure_ascii=self.rng.random() < 0.5)

    def result(self, cni_version: str) -> dict[str, t.Any]:
        rng = self.rng

        def address() -> str:
            return rng.choice(_ADDRESSES[:3] if rng.random() < 0.8 else _ADDRESSES)

        routes = [
            {"dst": address(), **({"gw": "10.1.0.1"} if rng.random() < 0.5 else {})} for _i in range(rng.randrange(3))
        ]
        out: dict[str, t.Any] = {"cniVersion": cni_version, "dns": rng.choice(({}, {"nameservers": ["10.1.0.53"]}))}
        if cni_version in ("", "0.1.0", "0.2.0"):
            for key in ("ip4", "ip6"):
                if rng.random() < 0.6:
                    out[key] = {"ip": address(), "routes": routes}
            return out
        nic = {"name": "eth0", "mac": "02:00:00:00:00:01", "sandbox": "/x", "mtu": 1400, "pciID": "p", "odd": 1}
        out["interfaces"] = [nic][: rng.randrange(2)]
        ips = [{"version": rng.choice("46"), "address": address(), "interface": 0} for _i in range(rng.randrange(3))]
        out.update(ips=ips, routes=[{**route, "mtu": 1400, "table": 0} for route in routes])
        for key in ("interfaces", "ips", "routes", "dns"):
            if rng.random() < 0.1:
                out.pop(key)
        return out

    def order(self) -> dict[str, t.Any]:
        rng = self.rng
        do = rng.choice(
            (
                "ok",
                "print",
                "stderr",
                "cni_error",
                "wrapped_cni_error",
                "joined_errors",
                "plain_error",
                "exit",
                "print_and_error",
            )
        )
        error = {"code": rng.choice(_CODES), "msg": rng.choice(_TEXTS), "details": rng.choice(_TEXTS)}
        return {"do": do, "text": rng.choice(_TEXTS), "exit": rng.choice((0, 1, 3, 99)), **error}


def _plain(order: dict[str, t.Any]) -> dict[str, t.Any]:
    return {name.lower(): order for name in COMMANDS}


def _environment(make: _Maker) -> dict[str, t.Any]:
    command = make.rng.choice((*COMMANDS, "FOO", "VERSION", ""))
    env = make.env(command, careful=False)
    if not command and make.rng.random() < 0.5:
        del env["CNI_COMMAND"]
    about = {"about": "about\nit"} if make.rng.random() < 0.3 else {}
    stdin = make.conf() if make.rng.random() < 0.7 else make.rng.choice(_GARBAGE)
    return {"env": env, "stdin": stdin, "plugin": {"callbacks": _plain({"do": "ok"}), **about}}


def _stdin(make: _Maker) -> dict[str, t.Any]:
    rng = make.rng
    chance = rng.random()
    stdin: t.Any = rng.choice(_GARBAGE)
    if chance < 0.3:
        stdin = make.conf(name=rng.choice(_NAMES))
    elif chance < 0.4:
        pairs = [f'"{rng.choice(("name", "Name", "NAME"))}":{json.dumps(rng.choice(_NAMES))}' for _i in range(3)]
        stdin = "{" + ",".join(pairs) + "}"
    elif chance < 0.5:
        data = bytearray(make.conf(x="padding").encode())
        data[rng.randrange(len(data))] = rng.choice((0, 0xFF, 0xC3, 0x22, 0x5C, 0x7B))
        stdin = {"kind": "hex", "hex": data.hex()}
    elif chance < 0.6:
        depth = rng.choice((10, 400, 600, 1000, 5000, 9998, 9999, 10000, 10001, 20000))
        stdin = '{"name":"net","x":' + "[" * depth + "]" * depth + "}"
    elif chance < 0.7:
        stdin = rng.choice(({"kind": "null"}, {"kind": "directory"}, {"kind": "closed"}))
    elif chance < 0.75:
        stdin = {"kind": "padded", "text": make.conf(), "size": rng.choice((4096, 65536, 65537, 1 << 20))}
    return {"env": make.env(make.command()), "stdin": stdin, "plugin": {"callbacks": _plain({"do": "ok"})}}


def _versions(make: _Maker) -> dict[str, t.Any]:
    rng = make.rng
    versions = rng.choice((_VERSIONS, _VERSIONS, _ODD_VERSIONS))
    value = rng.choice(versions) if rng.random() < 0.9 else rng.choice((None, 1, 1.0, ["1.0.0"], {}, True))
    plugin: dict[str, t.Any] = {"callbacks": _plain({"do": "ok"})}
    if rng.random() < 0.5:
        plugin["versions"] = list(rng.choice(_SUPPORTED))
    return {"env": make.env(make.command()), "stdin": make.conf(cniVersion=value), "plugin": plugin}


def _callbacks(make: _Maker) -> dict[str, t.Any]:
    callbacks = {name.lower(): make.order() for name in COMMANDS if make.rng.random() < 0.9}
    stdin = make.conf(cniVersion="1.1.0")
    return {"env": make.env(make.rng.choice(COMMANDS)), "stdin": stdin, "plugin": {"callbacks": callbacks}}


def _namespaces(make: _Maker) -> dict[str, t.Any]:
    env = make.env(make.rng.choice(("ADD", "DEL", "ADD", "DEL", "CHECK")))
    env["CNI_NETNS"] = make.rng.choice(_NETNS)
    if make.rng.random() < 0.4:
        env["CNI_NETNS_OVERRIDE"] = make.rng.choice(
            ("1", "true", "TRUE", "tRuE", "", "0", " 1", "yes", "on", "\uff54rue", "11")
        )
    order = make.rng.choice(({"do": "ok"}, {"do": "print", "text": "{}"}, {"do": "plain_error", "text": "x"}))
    callbacks = _plain(order) if make.rng.random() < 0.8 else {}
    return {"env": env, "stdin": make.conf(), "plugin": {"callbacks": callbacks}}


def _results(make: _Maker) -> dict[str, t.Any]:
    rng = make.rng
    own = rng.choice(("", *ALL, "2.0.0"))
    order: dict[str, t.Any] = {
        "do": "print_result",
        "result": make.result(own),
        "version": rng.choice(("", *ALL, "3.0.0")),
    }
    conf = make.conf(cniVersion=rng.choice(ALL))
    if rng.random() < 0.4:
        order["do"] = "return_result"
    return {"env": make.env("ADD"), "stdin": conf, "plugin": {"callbacks": {"add": order}}}


def _prev_results(make: _Maker) -> dict[str, t.Any]:
    rng = make.rng
    conf_version = rng.choice(ALL)
    prev: t.Any = make.result(conf_version if rng.random() < 0.7 else rng.choice(("", *ALL, "7.0.0")))
    if rng.random() < 0.2:
        prev.pop("cniVersion")
    conf = {"cniVersion": conf_version, "prevResult": prev if rng.random() < 0.9 else rng.choice((None, {}))}
    return {"env": make.env("ADD"), "stdin": make.conf(**conf), "plugin": {"callbacks": {"add": {"do": "prev_result"}}}}


def _arguments(make: _Maker) -> dict[str, t.Any]:
    rng = make.rng
    pairs = [f"{rng.choice(_ARGS_KEYS)}={rng.choice(_ARGS_VALUES)}" for _i in range(rng.randrange(4))]
    if rng.random() < 0.3:
        pairs.append(rng.choice(("IgnoreUnknown=1", "x", "a=b=c", "", "=", "=x")))
    rng.shuffle(pairs)
    env = {**make.env("ADD"), "CNI_ARGS": ";".join(pairs)}
    do = "load_args" if rng.random() < 0.8 else "load_args_common"
    return {"env": env, "stdin": make.conf(), "plugin": {"callbacks": {"add": {"do": do}}}}


CATEGORIES: dict[str, t.Callable[[_Maker], dict[str, t.Any]]] = {
    "environment": _environment,
    "stdin": _stdin,
    "versions": _versions,
    "callbacks": _callbacks,
    "namespaces": _namespaces,
    "results": _results,
    "prevResult": _prev_results,
    "arguments": _arguments,
}


def names(cases: int) -> list[str]:
    """Return the names of that many cases, taken from the categories in turn."""
    categories = list(CATEGORIES)
    return [f"{categories[index % len(categories)]}/{index // len(categories)}" for index in range(cases)]


def make_call(seed: int, name: str) -> dict[str, t.Any]:
    """Return the call of that name: env, stdin, plugin."""
    return {"name": name, **CATEGORIES[name.partition("/")[0]](_Maker(random.Random(f"{seed}/{name}")))}
