# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The request of ``cni_conf``. The controller uses the checks of single options, too."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence

from ..errors import HostError
from ..paths import file_name
from ..runtimes.profiles import NAMES
from ..struct import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..files import Attributes
    from ..runtimes.settings import RuntimeSettings

DEFAULT_PRIORITY = 10
# The options that a ConfRequest has as they are.
_TAKEN = ["conf_dir", "bin_dirs", "cache_dir", "force", "exclusive", "ensure_effective", "on_not_effective", "strict"]
LEVELS = ["syntax", "schema", "plugins", "directory"]
NETWORK_ARGUMENTS: Dict[str, Any] = {
    "name": {"type": "str"},
    "conflist": {"type": "dict"},
    "content": {"type": "str"},
    "src": {"type": "str"},
    "priority": {"type": "int"},
    "file": {"type": "str"},
    "drop_ins": {
        "type": "list",
        "elements": "dict",
        "options": {
            "file": {"type": "str", "required": True},
            "plugin": {"type": "dict"},
            "content": {"type": "str"},
        },
    },
    "replace": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["present", "absent", "restored"], "default": "present"},
}
NETWORKS_ARGUMENTS: Dict[str, Any] = {
    "networks": {"type": "list", "elements": "dict", "required": True, "options": NETWORK_ARGUMENTS},
    "nads": {
        "type": "dict",
        "options": {
            "manifests": {"type": "raw"},
            "src": {"type": "list", "elements": "str"},
            "kubeconfig": {"type": "path"},
            "context": {"type": "str"},
            "namespace": {"type": "str"},
        },
    },
    "validate": {"type": "list", "elements": "str", "choices": LEVELS, "default": LEVELS},
    "strict": {"type": "bool", "default": False},
    "exclusive": {"type": "bool", "default": False},
    "mode": {"type": "raw", "default": "0644"},
    "owner": {"type": "str", "default": "root"},
    "group": {"type": "str", "default": "root"},
    "force": {"type": "bool", "default": False},
}
CONFIGURE_ARGUMENTS: Dict[str, Any] = {
    "max_conf_num": {"type": "int"},
    "setup_serially": {"type": "bool"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "wait": {"type": "float", "default": 0},
    "allow": {
        "type": "dict",
        "options": {name: {"type": "list", "elements": "str"} for name in ("networks", "users", "groups")},
    },
}
EFFECT_ARGUMENTS: Dict[str, Any] = {
    "on_not_effective": {"type": "str", "choices": ["warn", "error", "ignore"], "default": "warn"},
}
RUNTIME_ARGUMENTS: Dict[str, Any] = {
    "runtime": {"type": "list", "elements": "str", "choices": list(NAMES)},
    "ensure_effective": {"type": "str"},
    "configure": {"type": "dict", "options": CONFIGURE_ARGUMENTS},
}


def read_file_name(name: Optional[str], option: str) -> Optional[str]:
    """Return the name of a network's file; it must be plain, not hidden, and end in ``.conflist``."""
    if name is None:
        return None
    file_name(name, option)
    if name.startswith(".") or not name.endswith(".conflist"):
        raise HostError(
            f"{option}: {name!r} cannot hold a network; the name must end in .conflist and not begin with a dot, such "
            "as '10-apps.conflist'",
            code="bad_file_name",
        )
    return name


def read_drop_in_name(name: str, option: str) -> str:
    """Return the name of a drop-in's file; libcni reads only names that end in ``.conf``."""
    file_name(name, option)
    if name.startswith(".") or not name.endswith(".conf"):
        raise HostError(
            f"{option}: {name!r} cannot be a drop-in; libcni reads files whose names end in .conf, such as "
            "'10-tuning.conf'",
            code="bad_file_name",
        )
    return name


def check_priority(priority: Optional[int], option: str) -> Optional[int]:
    """Return *priority* if it has at most two digits, so that the order as text is the order as numbers."""
    if priority is not None and not 0 <= priority <= 99:
        raise HostError(
            f"{option}: {priority} is not from 0 to 99; runtimes compare file names as text, so 100- would come before "
            "20-",
            code="bad_priority",
        )
    return priority


@struct
class WantedNetwork:
    """One network of the request: ``text`` is the rendered conflist (empty unless ``present``).

    ``restored`` asks for what was there before; then ``name`` may be "" if there is a ``file``. ``drop_ins`` is the
    text of each desired drop-in by the name of its file, None to leave them as they are. ``replace``: unmanaged files
    with this network are set aside.
    """

    name: str
    present: bool
    text: bytes = b""
    file: Optional[str] = None
    priority: Optional[int] = None
    restored: bool = False
    drop_ins: Optional[Mapping[str, bytes]] = None
    replace: bool = False

    def default_file(self) -> str:
        return f"{DEFAULT_PRIORITY if self.priority is None else self.priority:02d}-{self.name}.conflist"


@struct
class ConfRequest:
    """All options of the module. ``levels``: those of ``plugins`` and ``directory`` that apply.

    ``strict``: warnings are errors. ``exclusive``: files of networks that are not requested are set aside.
    ``runtimes``: the profiles whose effective network is reported, None for those of this host; ``ensure_effective``:
    the network that they must use. ``expected``: the networks of which they should use at least one, and
    ``on_not_effective`` what happens otherwise. ``settings``: the desired settings of their configurations, if any.
    """

    networks: Sequence[WantedNetwork]
    conf_dir: str
    bin_dirs: Sequence[str]
    cache_dir: str
    attributes: Attributes
    levels: Sequence[str] = ("plugins", "directory")
    force: bool = False
    tolerate_missing: bool = False
    exclusive: bool = False
    runtimes: Optional[Sequence[str]] = ()
    ensure_effective: Optional[str] = None
    expected: Sequence[str] = ()
    on_not_effective: str = "ignore"
    settings: Optional[RuntimeSettings] = None
    strict: bool = False


def conf_request(params: Mapping[str, Any], tolerate_missing: bool) -> ConfRequest:
    """Return the request for *params*, the options of cni_conf. Raises HostError."""
    from ..files import read_attributes

    networks = [_wanted(index, entry) for index, entry in enumerate(params["networks"])]
    return ConfRequest(
        **{name: params[name] for name in _TAKEN},
        networks=networks,
        attributes=read_attributes(params["mode"], params["owner"], params["group"]),
        levels=params["validate"],
        tolerate_missing=tolerate_missing,
        runtimes=params["runtime"],
        expected=params.get("_expected") or [network.name for network in networks if network.present],
        settings=_settings(params),
    )


def _wanted(index: int, entry: Mapping[str, Any]) -> WantedNetwork:
    """Return an entry of ``networks`` as the action plugin passes it: with its name and rendered text."""
    present, restored = entry["state"] == "present", entry["state"] == "restored"
    named = entry["name"] or (restored and entry["file"])
    if not named or (present and entry["content"] is None):
        raise HostError(
            f"networks[{index}]: its name and content are missing; the configuration is rendered by the action plugin "
            "of this module, so call it from a playbook or with 'ansible -m podwire.cni.cni_conf'",
            code="not_rendered",
        )
    where = f"networks[{index}].file"
    if restored:
        file = entry["file"] and file_name(entry["file"], where)
        return WantedNetwork(entry["name"] or "", False, file=file, restored=True)
    return WantedNetwork(
        entry["name"],
        present,
        (entry["content"] or "").encode("utf-8") if present else b"",
        read_file_name(entry["file"], where),
        check_priority(entry["priority"], f"networks[{index}].priority"),
        drop_ins=_drop_ins(entry.get("drop_ins"), f"networks[{index}].drop_ins") if present else None,
        replace=present and bool(entry.get("replace")),
    )


def _drop_ins(entries: Optional[Sequence[Mapping[str, Any]]], where: str) -> Optional[Dict[str, bytes]]:
    """Return the texts of the drop-ins, as the action plugin passes them."""
    if entries is None:
        return None
    return {
        read_drop_in_name(entry["file"], f"{where}.file"): (entry["content"] or "").encode("utf-8") for entry in entries
    }


def _settings(params: Mapping[str, Any]) -> Optional[RuntimeSettings]:
    configure = params["configure"]
    if configure is None:
        return None
    from ..runtimes.settings import RuntimeSettings

    return RuntimeSettings(
        params["conf_dir"],
        params["bin_dirs"],
        configure["max_conf_num"],
        configure["setup_serially"],
        present=configure["state"] == "present",
        wait=configure["wait"],
        allow=_allowed(configure["allow"] or {}),
    )


def _allowed(lists: Mapping[str, Optional[Sequence[str]]]) -> Dict[str, Sequence[str]]:
    """Return the lists that are set. A name must fit into a line of Apptainer's configuration."""
    for what, names in lists.items():
        for name in names or ():
            if not name or name != name.strip() or not name.isprintable() or "," in name:
                raise HostError(
                    f"configure.allow.{what}: {name!r} is not a name; names have no commas, control characters, or "
                    "blanks at their ends",
                    code="bad_argument",
                )
    return {what: names for what, names in lists.items() if names is not None}
