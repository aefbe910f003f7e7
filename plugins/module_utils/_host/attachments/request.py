# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The request of ``cni_attach``: its entries, checked before anything runs, and the networks that they name."""

from __future__ import annotations

import hashlib
import os
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ...libcni.conf import (
    NetworkConfigList,
    PluginConfig,
    conf_list_from_conf,
    network_conf_from_file,
    network_plugin_conf_from_bytes,
    network_plugin_conf_from_file,
)
from ...libcni.errors import CNIError, ConfigError, ValidationError
from ...libcni.validate import validate_container_id, validate_if_name, validate_network_name
from ..confdir import paths_of
from ..errors import HostError
from ..netns import netns_path
from ..secrets import mask_text
from ..struct import field, struct
from ..trust import check_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..binaries.usable import Binaries
    from ..hostview import HostView
    from .pod_part import PodPart

PRESENT = "present"
ABSENT = "absent"
POD_ARGUMENTS: Dict[str, Any] = {
    "type": "dict",
    "options": {
        "name": {"type": "str", "required": True},
        "namespace": {"type": "str", "default": "default"},
        "uid": {"type": "str"},
        "infra_container_id": {"type": "str"},
        "labels": {"type": "dict"},
        "annotations": {"type": "dict"},
        "ports": {
            "type": "list",
            "elements": "dict",
            "options": {
                "container_port": {"type": "int", "required": True},
                "host_port": {"type": "int"},
                "protocol": {"type": "str", "choices": ["tcp", "udp", "sctp"], "default": "tcp"},
                "host_ip": {"type": "str"},
            },
        },
        "ingress_bandwidth": {"type": "str"},
        "egress_bandwidth": {"type": "str"},
        "dns": {
            "type": "dict",
            "options": {name: {"type": "list", "elements": "str"} for name in ("servers", "searches", "options")},
        },
        "cgroup_path": {"type": "str"},
    },
}
ATTACHMENTS_ARGUMENTS: Dict[str, Any] = {
    "attachments": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "network": {"type": "str", "required": True},
            "container_id": {"type": "str"},
            "netns": {"type": "str"},
            "ifname": {"type": "str", "default": "eth0"},
            "args": {"type": "dict"},
            "capability_args": {"type": "dict"},
            "pod": POD_ARGUMENTS,
            "_networks": {"type": "raw"},
            "state": {"type": "str", "choices": [PRESENT, ABSENT], "default": PRESENT},
        },
    },
    "nads": {
        "type": "dict",
        "options": {
            "manifests": {"type": "raw"},
            "src": {"type": "list", "elements": "str"},
            "kubeconfig": {"type": "path"},
            "context": {"type": "str"},
            "conf_dir": {"type": "path", "default": "/etc/cni/multus/net.d"},
            "namespace_isolation": {"type": "bool", "default": False},
            "global_namespaces": {"type": "list", "elements": "str", "default": ["default"]},
        },
    },
    "timeout": {"type": "float", "default": 60},
    "parallel": {"type": "int"},
    "on_drift": {"type": "str", "choices": ["report", "repair", "fail"], "default": "report"},
    "check": {"type": "str", "choices": ["auto", "always", "never"], "default": "auto"},
    "force": {"type": "bool", "default": False},
    "preview": {"type": "bool", "default": False},
}


class Key(NamedTuple):
    """What identifies an attachment, here and in libcni's cache."""

    network: str
    container_id: str
    ifname: str

    def __str__(self) -> str:
        return "/".join(self)


@struct
class WantedAttachment:
    """One entry of the request.

    ``netns`` is an absolute path, "" if none was given (``absent`` only). ``args`` are the pairs of CNI_ARGS in the
    user's order, ``capability_args`` any JSON by capability. ``pod`` is the part of a pod that it is, None for an entry
    without pod.
    """

    key: Key
    netns: str
    args: List[Tuple[str, str]] = field(default_factory=list)
    capability_args: Dict[str, Any] = field(default_factory=dict)
    state: str = PRESENT
    pod: Optional[PodPart] = None


def default_container_id(netns: str) -> str:
    """Return the container ID that ``cnitool`` derives from a namespace path (cnitool/cmd/root.go)."""
    return "cnitool-" + hashlib.sha512(netns.encode("utf-8", "surrogateescape")).digest()[:10].hex()


def parse_attachments(
    entries: Sequence[Mapping[str, Any]], refused: Optional[List[HostError]] = None
) -> List[WantedAttachment]:
    """Return the request, or raise a HostError that names the entry: ``bad_id``, ``bad_netns``, ``bad_args``,
    ``bad_capability_args``, ``bad_pod``, ``duplicate_attachment`` or ``duplicate_ifname``.

    An entry with a pod becomes one attachment for each of its networks. If *refused* is given, such errors are added to
    it and their entries left out.
    """
    wanted: List[WantedAttachment] = []
    keys: Set[Key] = set()
    interfaces: Dict[Tuple[str, str], str] = {}
    for index, entry in enumerate(entries):
        where = f"attachments[{index}]"
        try:
            item = _entry(entry, where)
            items = [item] if entry.get("pod") is None else _pod(entry, item, index, where)
            for attachment in items:
                _check_unique(attachment.key, keys, interfaces, where)
        except HostError as error:
            if refused is None:
                raise
            refused.append(error)
        else:
            wanted.extend(items)
    return wanted


def _pod(entry: Mapping[str, Any], item: WantedAttachment, index: int, where: str) -> List[WantedAttachment]:
    """Return the networks of a pod, whose own one is *item*."""
    # Imported late: most entries are no pods.
    from .pod_part import PodPart, PodRoutes, PodUnit, reaching

    pod = entry["pod"]
    name = f"{pod.get('namespace') or 'default'}/{pod['name']}"
    whole = Key(item.key.network, item.key.container_id, "") if item.state == PRESENT else None
    unit = PodUnit(name, index, item.key.container_id, item.netns, whole)
    own = {"network": item.key.network, "ifname": item.key.ifname, "name": item.key.network}
    attachments = []
    for place, sent in enumerate(entry.get("_networks") or [own]):
        if "error" in sent:
            # In check mode, the controller sends what it refuses as well.
            raise HostError(str(sent["error"]["message"]), str(sent["error"]["code"]))
        key = Key(str(sent["network"]), unit.container_id, str(sent["ifname"]))
        _check_ids(key, where)
        own_args = reaching(dict(item.args), sent.get("args"), place)
        args = [_arg(name, value, f"{where}.pod") for name, value in own_args.items()]
        capability_args = reaching(item.capability_args, sent.get("capability_args"), place)
        if capability_args and item.state == PRESENT:
            from .capability_args import check_capability_args

            check_capability_args(capability_args, f"{where}.pod, network {key.network}")
        asked = [*(sent.get("capability_args") or ()), *(item.capability_args if place == 0 else ())]
        routes = PodRoutes.from_data(sent["routes"]) if sent.get("routes") else PodRoutes()
        conf_dir = str(sent.get("conf_dir") or "")
        part = PodPart(unit, place, str(sent["name"]), routes, sent.get("config"), conf_dir, asked)
        attachments.append(WantedAttachment(key, item.netns, args, capability_args, item.state, part))
    return attachments


def _check_unique(key: Key, keys: Set[Key], interfaces: Dict[Tuple[str, str], str], where: str) -> None:
    if key in keys:
        raise HostError(f"{where}: {key} is listed twice; remove one of the two entries", code="duplicate_attachment")
    other = interfaces.setdefault((key.container_id, key.ifname), key.network)
    if other != key.network:
        raise HostError(
            f"{where}: the networks {other} and {key.network} both ask for the interface {key.ifname} "
            f"of the container {key.container_id}; give one of them another ifname (to move an interface to "
            "another network, detach it first in a separate task)",
            code="duplicate_ifname",
        )
    keys.add(key)


def _entry(entry: Mapping[str, Any], where: str) -> WantedAttachment:
    netns = netns_path(entry["netns"], f"{where}.netns") if entry.get("netns") else ""
    container_id = entry.get("container_id")
    if not container_id:
        if not netns:
            raise HostError(f"{where}: container_id or netns is required to identify the attachment", code="bad_id")
        container_id = default_container_id(netns)
    key = Key(entry["network"], container_id, entry.get("ifname") or "eth0")
    _check_ids(key, where)
    state = entry.get("state") or PRESENT
    if state == PRESENT and not netns:
        raise HostError(f"{where}: netns is required to attach {key}", code="bad_netns")
    args = [_arg(name, value, f"{where}.args") for name, value in (entry.get("args") or {}).items()]
    capability_args: Dict[str, Any] = dict(entry.get("capability_args") or {})
    if state == ABSENT:
        # A DEL gets the recorded ones.
        return WantedAttachment(key, netns, args, capability_args, state)
    if capability_args:
        from .capability_args import check_capability_args

        check_capability_args(capability_args, f"{where}.capability_args")
    if entry.get("pod"):
        from .pod import arguments_of

        args, capability_args = arguments_of(entry["pod"], container_id, args, capability_args, f"{where}.pod")
    return WantedAttachment(key, netns, args, capability_args, state)


def _check_ids(key: Key, where: str) -> None:
    of_names = "letters, digits, '_', '.' and '-', starting with a letter or digit"
    for option, value, validate, rule in (
        ("network", key.network, validate_network_name, of_names),
        ("container_id", key.container_id, validate_container_id, of_names),
        ("ifname", key.ifname, validate_if_name, "at most 15 bytes without '/', ':' and blanks, and not '.' or '..'"),
    ):
        try:
            validate(value)
        except ValidationError as error:
            text = f"{where}.{option}: {value!r} is not valid ({error}); allowed: {rule}"
            raise HostError(text, code="bad_id") from error


def _arg(name: Any, value: Any, where: str) -> Tuple[str, str]:
    """Return a pair of CNI_ARGS, which has no way to escape its separators (Go: types.LoadArgs)."""
    if isinstance(value, bool):
        value = "true" if value else "false"
    elif isinstance(value, int):
        value = str(value)
    if not isinstance(value, str):
        raise HostError(
            f"{where}: the value of {name!r} is {type(value).__name__}; CNI_ARGS holds text, so quote it",
            code="bad_args",
        )
    if not isinstance(name, str) or not name:
        raise HostError(f"{where}: {name!r} is not a valid argument name; use a non-empty string", code="bad_args")
    for text in (name, value):
        if any(char in text for char in ";=\0"):
            # The value is not shown: it may be a secret.
            raise HostError(
                f"{where}: the argument {name!r} contains ';', '=' or NUL, which CNI_ARGS cannot carry; "
                "pass such values with capability_args",
                code="bad_args",
            )
    return name, value


# ---- the networks


class Networks:
    """Loads each network once and asks each plugin once; later calls raise the same error again."""

    def __init__(self, conf_dir: str, bin_dirs: Sequence[str], view: HostView) -> None:
        self._view = view
        self._conf_dir = conf_dir
        self._bin_dirs = list(bin_dirs)
        self._answers: Dict[Tuple[str, Union[str, bytes]], Any] = {}
        self._binaries: Optional[Binaries] = None

    def load(self, name: str) -> NetworkConfigList:
        """Return the network.

        Raises HostError ``missing_network``, ``missing_conf_dir``, ``bad_config`` or ``unsafe_permissions``.
        """
        try:
            config: NetworkConfigList = self._once("network", name, partial(self._find, name))
        except CNIError as error:
            raise _bad_config(name, error) from error
        return config

    def _once(self, what: str, which: Union[str, bytes], work: Callable[[], Any]) -> Any:
        """Return or raise what *work* does when it is called first."""
        if (what, which) not in self._answers:
            try:
                self._answers[what, which] = work()
            except (CNIError, HostError) as error:
                self._answers[what, which] = error
        answer = self._answers[what, which]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _find(self, name: str) -> NetworkConfigList:
        """Return the network. Files that cannot be loaded count only if no other has it. Raises CNIError, HostError."""
        broken: List[ConfigError] = []
        for path in self._view.conf_paths(self._conf_dir, (".conflist",)):
            try:
                loaded = self._once("file", path, partial(self._read, path))
            except ConfigError as error:
                broken.append(error)
                continue
            if loaded.name == name:
                return self._trusted(loaded, [path])
        singles = self._view.conf_paths(self._conf_dir, (".conf", ".json"))
        for path in singles:
            single = network_plugin_conf_from_file(path)
            if single.name == name:
                # Each file before it decides, too, whether it is found.
                return self._trusted(conf_list_from_conf(single), singles)
        raise self._broken(name, broken) if broken else self._missing(name)

    def _trusted(self, config: NetworkConfigList, paths: Sequence[str]) -> NetworkConfigList:
        """Return *config*. Raises HostError if users other than root can change its file, which is one of *paths*."""
        for path in paths:
            for part in paths_of(self._conf_dir, path, config.name):
                # What the plan writes gets the owner and mode of the request.
                if part not in self._view.written:
                    check_trusted(part)
        return config

    def _read(self, path: str) -> NetworkConfigList:
        return network_conf_from_file(path, self._view.written.get(path), self._drop_ins)

    def _drop_ins(self, network: str) -> Optional[List[PluginConfig]]:
        """Return the drop-ins that a step of the plan gives to a network, None if none does."""
        folder = self._view.folder_of(self._conf_dir, network)
        return None if folder is None else [network_plugin_conf_from_bytes(file.text or b"") for file in folder]

    def _broken(self, name: str, errors: Sequence[ConfigError]) -> HostError:
        """Return why there is no network *name*; *errors* come from the files that cannot be loaded."""
        # cni_conf and cni_plugins report a damaged manifest.
        managed = self._view.manifest.networks
        # A file named after the network probably belongs to it.
        unmanaged = sorted(
            (error for error in errors if error.path not in managed),
            key=lambda error: not error.path.endswith(f"{name}.conflist"),
        )
        for error in errors:
            if managed.get(error.path, {}).get("network") == name:
                what = f"the file of the network {name} cannot be loaded: {_text_of(error)}"
                return HostError(f"{what}; write it again with cni_conf", code="missing_network", file=error.path)
        return _bad_config(name, unmanaged[0]) if unmanaged else self._missing(name)

    def _missing(self, name: str) -> HostError:
        if not os.path.isdir(self._conf_dir):
            what = f"the network {name} is not configured: there is no directory {self._conf_dir}"
            return HostError(f"{what}; create both with cni_conf", code="missing_conf_dir")
        what = f"no file in {self._conf_dir} configures the network {name}"
        return HostError(f"{what}; write one with cni_conf", code="missing_network")

    def test_plugins(self, config: NetworkConfigList) -> None:
        """Test that every plugin of the network is installed and supports its version.

        Raises HostError ``unsupported_by_plugin`` or what Binaries.ask raises.
        """
        # By configuration: networks of pods may have the same name.
        self._once("plugins", config.expanded_bytes(), partial(self._test, config))

    def _test(self, config: NetworkConfigList) -> None:
        # Imported late: what stays attached is tested by its CHECK.
        from ..binaries.usable import Binaries, check_chain

        chain = [("", f"/plugins/{index}", plugin.network) for index, plugin in enumerate(config.plugins)]
        if self._binaries is None:
            self._binaries = Binaries(self._bin_dirs, self._view)
        problems = check_chain(self._binaries, config.name, config.cni_version, chain, tolerate_missing=False)
        # A missing plugin may be installed before the run; other problems stay.
        problems.sort(key=lambda finding: finding.code == "missing_plugin")
        if problems:
            raise HostError(problems[0].message, code=problems[0].code)


def _bad_config(name: str, error: CNIError) -> HostError:
    what = f"the network {name} cannot be loaded: {_text_of(error)}"
    path = error.path if isinstance(error, ConfigError) else ""
    return HostError(f"{what}; fix or remove the file, runtimes cannot load it either", code="bad_config", file=path)


def _text_of(error: CNIError) -> str:
    path, text = error.path if isinstance(error, ConfigError) else "", mask_text(str(error))
    return f"{path}: {text}" if path not in text else text
