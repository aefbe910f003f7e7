# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Validation levels ``plugins`` and ``directory``: the plugins of the planned files, and all files taken together."""

from __future__ import annotations

import os
import re
from typing import Dict, Iterator, List, Optional, Sequence

from ..binaries.types import delegates_of, inner_plugins, is_multus
from ..binaries.usable import Binaries, check_chain
from ..confdir import ConfFile, read_go_json, sort_key
from ..kinds import kind_of, text_of
from ..model import chain_of, uses_of_network
from ..problems import ERROR, INFO, WARNING, Finding
from .addresses import address_problems, host_problems
from .advisories import security_problems
from .view import ConfView, network_problems


def directory_problems(view: ConfView, binaries: Binaries) -> List[Finding]:
    """Return what is wrong with the planned directory. *binaries* are asked for their releases only if that matters."""
    problems = [*_order(view), *name_problems(view), *file_problems(view)]
    for file in view.loaded():
        problems.extend(_drop_ins(view, file))
    if any(is_multus(plugin) for file in view.loaded() for plugin in file.plugins):
        from .multus import multus_problems

        problems.extend(multus_problems(view))
    return [*problems, *conflicts(view), *security_problems(view, binaries)]


def conflicts(view: ConfView) -> List[Finding]:
    """Return where networks contradict themselves, each other or the host. This is asked of hosts, not only planned."""
    uses = [uses_of_network(file) for file in view.loaded()]
    problems = [problem for file, use in zip(view.loaded(), uses) for problem in network_problems(view, file, use)]
    return [*problems, *address_problems(view, uses), *host_problems(view, uses)]


def _order(view: ConfView) -> Iterator[Finding]:
    """Yield a problem if another network becomes the first: in another file, or by another name in the same file."""
    if not view.before or not view.files:
        return
    old, new = view.before[0], view.files[0]
    if old.network is None or new.network is None or old.network == new.network:
        return
    change = f"runtimes that take the first file change from the network {old.network!r} to {new.network!r}"
    if old.name == new.name:
        what = (
            f"the name of the network in this file, the first one, changes, so {change}; firewall rules and leases of "
            "attached containers contain it"
        )
        remedy = "detach them first, and choose another 'file' if this is not intended"
        yield Finding(WARNING, "name_flip", what, remedy, new.path, "/name")
        return
    what = f"this file becomes the first one in place of {old.name}, so {change}"
    remedy = "none, if the other network is meant to go"
    if any(file.network == old.network for file in view.files):
        remedy = "choose another 'priority' if this is not intended (compared as text: 100- before 20-, A before a)"
    yield Finding(WARNING, "order_flip", what, remedy, new.path)


def name_problems(view: ConfView) -> Iterator[Finding]:
    """Yield the problems of files with the same network name."""
    first: Dict[str, ConfFile] = {}
    for file in view.files:
        if not file.network:
            continue
        other: Optional[ConfFile] = first.setdefault(file.network, file)
        if other is file or other is None:
            continue
        if (file.kind == "conflist") != (other.kind == "conflist"):
            listed, single = (file, other) if file.kind == "conflist" else (other, file)
            what = (
                f"the network {file.network!r} is also in {other.name}: by name, libcni loads the conflist "
                f"({listed.name}); by order, runtimes load {other.name}, and some load both"
            )
            yield Finding(WARNING, "conf_and_conflist", what, "remove one", single.path)
            continue
        what = (
            f"the network {file.network!r} is also in {other.name}; runtimes load the file that sorts first, and some "
            "load both"
        )
        yield Finding(WARNING, "duplicate_name", what, "remove one", file.path)


def _drop_ins(view: ConfView, file: ConfFile) -> Iterator[Finding]:
    for extra in file.drop_ins:
        if extra.error:
            what = (
                f"{extra.error}; no runtime with libcni 1.3 or later loads the network {file.network!r} because of "
                "this file"
            )
            level = ERROR if file.name in view.wanted else WARNING
            yield Finding(level, "drop_in_broken", what, "fix or remove it", extra.path)
            continue
        if os.path.join(file.network or "", extra.name) in view.own_drop_ins:
            continue
        what = (
            f"libcni 1.3 and later append this plugin to the network {file.network!r}, older versions do not; the file "
            "is unmanaged and stays"
        )
        yield Finding(view.level(file), "drop_in", what, "", extra.path)


# ---- files


# Names that people and tools give to files that should not be live. Runtimes ignore a file only by its last extension.
_BACKUP = re.compile(
    r"(^|[-_. ])(bak|backup|old|orig|save|saved|copy|tmp|temp|rpmsave|rpmnew)([-_. \d]|$)", re.IGNORECASE
)


def file_problems(view: ConfView) -> Iterator[Finding]:
    """Yield the problems of the unmanaged files that stay."""
    last_managed = max((sort_key(name) for name in view.managed | view.wanted), default=b"")
    for file in view.files:
        if file.name not in view.managed | view.wanted:
            yield from _unmanaged_file(file, sort_key(file.name) < last_managed)


def _unmanaged_file(file: ConfFile, before_managed: bool) -> Iterator[Finding]:
    """Yield the problems of an unmanaged file; *before_managed*: it sorts before a managed network."""
    if file.name.startswith(".ansible_tmp"):
        what = "Ansible's copy or template left this half-written file, and runtimes read it"
        yield Finding(WARNING, "temp_file", what, "remove it", file.path)
        return
    if file.error:
        yield broken_file(file, before_managed)
    if file.name.startswith("."):
        what = "runtimes read hidden files, too, and before all others"
        yield Finding(WARNING, "hidden_file", what, "remove it, or give it another extension", file.path)
    elif _BACKUP.search(file.name[: file.name.rfind(".")]):
        remedy = "give it an extension such as .bak at the end"
        yield Finding(WARNING, "backup_file", "looks like a backup, but runtimes read it", remedy, file.path)
    elif not file.error and file.kind != "conflist":
        what = (
            "is a single plugin, not a conflist; libcni loads it by name only if no conflist has the name, but "
            "runtimes that take the first file use it"
        )
        yield Finding(INFO, "single_plugin", what, "", file.path)


def broken_file(file: ConfFile, before_managed: bool) -> Finding:
    """Return that no runtime can load the file; *before_managed*: it sorts before a managed network."""
    effect = "containerd then loads no network at all, others skip it" if before_managed else "most runtimes skip it"
    name = file.name[: file.name.rfind(".")]
    data = None if file.kind == "conflist" else read_go_json(file.text or b"")
    if isinstance(data, dict) and "plugins" in data:
        code = "list_in_conf"
        remedy = f"rename it to {name}.conflist"
        what = f"is a conflist, and conflists are read only from .conflist files; {effect}"
    elif file.kind == "json" and data is not None:
        code = "stray_json"
        remedy = "move it to another directory, or give it another extension"
        what = (
            f"is not a network configuration, but runtimes read every .json file here as one; {effect}, and Nomad and "
            "cnitool fail"
        )
    else:
        code = "broken_file"
        remedy = "fix it, remove it, or give it another extension"
        what = f"cannot be loaded: {file.error}; {effect}"
    return Finding(WARNING, code, what, remedy, file.path)


# ---- plugins


def check_plugins(binaries: Binaries, files: Sequence[ConfFile], tolerate_missing: bool) -> Iterator[Finding]:
    """Yield the problems with the plugins that *files*, the planned files of a request, name."""
    for file in files:
        if file.error or not file.network:
            what = f"libcni cannot load this network: {file.error or 'it has no name'}"
            yield Finding(ERROR, "not_loadable", what, "", file.path)
            continue
        problems = check_chain(binaries, file.network, file.cni_version, chain_of(file), tolerate_missing)
        problems += _delegate_problems(file, binaries, tolerate_missing)
        yield from problems or _missing_tools(file, binaries)


def _missing_tools(file: ConfFile, binaries: Binaries) -> Iterator[Finding]:
    """Yield a warning about each missing command that a plugin needs.

    It is not an error: the runtime may have another PATH, and the command may be installed later.
    """
    if not any(kind_of(plugin).rules for plugin in file.chain):
        return
    from ..firewall.tools import tool_obstacles

    for path, pointer, plugin in chain_of(file):
        bin_dirs = None if binaries.is_changing(plugin) else binaries.bin_dirs
        for finding in tool_obstacles([plugin], {"portMappings": True}, bin_dirs):
            what = f"network {file.network!r}: {finding.what}"
            yield finding._replace(level=WARNING, what=what, file=path, pointer=pointer)


def _delegate_problems(file: ConfFile, binaries: Binaries, tolerate_missing: bool) -> List[Finding]:
    """Return the problems with the plugins of the networks in a configuration of Multus; each has its own version."""
    problems: List[Finding] = []
    for index, plugin in enumerate(file.plugins):
        pointer = f"/plugins/{index}" if file.kind == "conflist" else ""
        for place, network in delegates_of(plugin, pointer):
            chain = [(file.path, *inner) for inner in inner_plugins(network, place)]
            name = text_of(network, "name") or f"{file.network}, delegate {place.rpartition('/')[2]}"
            problems += check_chain(binaries, name, text_of(network, "cniversion"), chain, tolerate_missing)
    return problems
