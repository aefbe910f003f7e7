# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The Python side's commands: those of `python3 -m libcni`, and those that only the driver in Go has besides.

With the latter, the rest of the interface is compared, too: single plugins, VERSION, and what the cache gives back.
"""

from __future__ import annotations

import os
import sys
import typing as t

from libcni import CNIConfig, CNIError, RuntimeConf, cli, conf, gojson
from libcni.invoke import Executor


def run(argv: list[str]) -> int:
    """Run one command and return its exit status."""
    command = _COMMANDS.get(argv[0])
    if command is None:
        return cli.main(argv)
    try:
        command(*argv[1:])
    except CNIError as exc:
        sys.stderr.write(f"libcni: {exc}\n")
        return 1
    return 0


def _cni() -> CNIConfig:
    return CNIConfig(
        os.environ["CNI_PATH"].split(":"), os.environ["CNI_CACHE_DIR"], executor=Executor(stderr=sys.stderr.buffer)
    )


def _plugin(name: str) -> conf.PluginConfig:
    return conf.load_conf(os.environ["NETCONFPATH"], name)


def _attachment(netns: str) -> RuntimeConf:
    env = os.environ
    return RuntimeConf(
        env["CNI_CONTAINERID"],
        netns,
        env.get("CNI_IFNAME", "eth0"),
        cli.parse_args(env.get("CNI_ARGS", "")),
        t.cast(dict, gojson.loads(env.get("CAP_ARGS") or "{}")),
    )


def _print(value: t.Any) -> None:
    sys.stdout.buffer.write(gojson.dumps(value, 4) + b"\n")


def _plugin_add(name: str, netns: str) -> None:
    sys.stdout.buffer.write(_cni().add_network(_plugin(name), _attachment(netns)).to_json(4) + b"\n")


def _plugin_check(name: str, netns: str) -> None:
    _cni().check_network(_plugin(name), _attachment(netns))


def _plugin_del(name: str, netns: str) -> None:
    _cni().del_network(_plugin(name), _attachment(netns))


def _plugin_validate(name: str) -> None:
    _print(_cni().validate_network(_plugin(name)))


def _plugin_versions(plugin_type: str) -> None:
    _print(_cni().get_version_info(plugin_type))


def _cached(name: str, netns: str) -> None:
    network = conf.load_network_conf(os.environ["NETCONFPATH"], name)
    cni, rt = _cni(), _attachment(netns)
    config, found = cni.get_network_list_cached_config(network, rt)
    result = cni.get_network_list_cached_result(network, rt)
    shown = None if result is None else result.to_dict()
    if config is None or found is None:
        _print([None, shown])
    else:
        text = config.decode("utf-8", "surrogateescape")
        _print([text, found.net_ns, [list(pair) for pair in found.args], found.capability_args, shown])


def _attachments_of(container: str) -> None:
    _print(
        [
            gojson.Struct(
                network=found.network,
                container_id=found.container_id,
                ifname=found.if_name,
                netns=found.net_ns,
                cni_args=found.cni_args,
                capability_args=found.capability_args,
            )
            for found in _cni().get_cached_attachments(container)
        ]
    )


_COMMANDS: dict[str, t.Callable[..., None]] = {
    "plugin-add": _plugin_add,
    "plugin-check": _plugin_check,
    "plugin-del": _plugin_del,
    "plugin-validate": _plugin_validate,
    "plugin-versions": _plugin_versions,
    "cached": _cached,
    "attachments-of": _attachments_of,
}
