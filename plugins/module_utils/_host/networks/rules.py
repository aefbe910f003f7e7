# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation level ``directory``: problems of the planned files of a conf_dir, taken together."""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from ...libcni import gojson
from ...libcni.errors import JSONError
from ..binaries.types import is_multus
from ..binaries.usable import Binaries, Use, check_uses, uses_of
from ..confdir import ConfFile, drop_ins, sort_key
from ..errors import HostError
from ..kinds import META, kind_of, member_of, object_of, text_of
from ..problems import ERROR, INFO, WARNING, problem
from .advisories import security_problems
from .plan import ConfPlan
from .rules_addresses import address_problems, host_problems
from .view import ConfView, Placed, Pool, Uses, uses_of_network

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request import ConfRequest


def check_plugins(
    plan: ConfPlan,
    binaries: Binaries,
    files: Sequence[ConfFile],
    request: ConfRequest,
    folder_of: Callable[[str, str], Sequence[ConfFile]] = drop_ins,
) -> None:
    """Add the problems with the plugins that *files*, the planned files of the request, name.

    *folder_of* returns the drop-ins of a network.
    """
    for file in files:
        if file.error or not file.network:
            text = f"libcni cannot load this network: {file.error or 'it has no name'}"
            plan.problems.append(problem(ERROR, "not_loadable", text, file.path))
            continue
        uses: List[Use] = []
        for index, plugin in enumerate(file.plugins):
            uses.extend(uses_of(file.path, f"/plugins/{index}", plugin))
        for extra in [] if file.inlined_only else folder_of(request.conf_dir, file.network):
            for plugin in extra.plugins:
                uses.extend(uses_of(extra.path, "", plugin))
        problems = check_uses(binaries, file.network, file.cni_version, uses, request.tolerate_missing)
        if any(map(is_multus, file.plugins)):
            # Imported here because few hosts have Multus.
            from .rules_multus import delegate_problems

            problems += delegate_problems(file, binaries, request.tolerate_missing)
        plan.problems.extend(problems)
        if not problems:
            _check_tools(plan, file, binaries)


def _check_tools(plan: ConfPlan, file: ConfFile, binaries: Binaries) -> None:
    """Warn about a missing command that a plugin needs.

    It is not an error: the runtime may have another PATH, and the command may be installed later.
    """
    if not any(kind_of(plugin).rules for plugin in file.plugins):
        return
    # No other plugin needs commands, so most calls do not have to compile this.
    from ..firewall.tools import require_tools

    for index, plugin in enumerate(file.plugins):
        try:
            bin_dirs = None if binaries.is_changing(plugin) else binaries.bin_dirs
            require_tools(f"network {file.network!r}", [plugin], {"portMappings": True}, bin_dirs)
        except HostError as error:
            plan.problems.append(problem(WARNING, error.code, error.msg, file.path, f"/plugins/{index}"))


# A configuration: the path of its file, and the pointer of its ipam object.
Place = Tuple[str, str]


def store_problems(view: ConfView, uses: Sequence[Uses]) -> Iterator[Dict[str, Any]]:
    """Yield the problems with host-local's lease directories. The directory of a network is ``dataDir/NETWORK``."""
    stores: Dict[str, Dict[Place, List[Pool]]] = {}
    for pool in (pool for use in uses for pool in use.pools):
        place = (pool.path, pool.pointer.partition("/ipam")[0] + "/ipam")
        stores.setdefault(pool.store, {}).setdefault(place, []).append(pool)
    for store, found in sorted(stores.items()):
        yield from _shared(view, store, found)
        outer = next((other for other in stores if store.startswith(other + "/")), None)
        if outer is not None:
            yield _nested(view, store, found, outer, stores[outer])


def _shared(view: ConfView, store: str, found: Dict[Place, List[Pool]]) -> Iterator[Dict[str, Any]]:
    (first, theirs), *others = found.items()
    for place, mine in others:
        same_list = place[0] == first[0]
        if not same_list and _ranges(mine) == _ranges(theirs):
            # One network in two files, which duplicate_name reports.
            continue
        if same_list and any(_overlap(one, other) for one in mine for other in theirs):
            effect = "the second of them fails (duplicate allocation is not allowed)"
        else:
            effect = "an address that one of them reserves or frees counts for the other, too"
        other = first[1] if same_list else f"{first[0]}, {first[1]}"
        message = (
            f"this configuration of host-local and {other} store their leases in the same directory, {store}: "
            f"{effect}; give one of them another 'dataDir'"
        )
        yield problem(view.level(mine[0].file, theirs[0].file), "shared_store", message, *place)


def _nested(
    view: ConfView, store: str, found: Dict[Place, List[Pool]], outer: str, around: Dict[Place, List[Pool]]
) -> Dict[str, Any]:
    place, mine = next(iter(found.items()))
    theirs = next(iter(around.values()))[0]
    message = (
        f"host-local's directory for this network, {store}, is inside its directory for the network "
        f"{theirs.file.network!r}, {outer}; give this network another 'dataDir'"
    )
    return problem(view.level(mine[0].file, theirs.file), "shared_store", message, *place)


def _ranges(pools: Sequence[Pool]) -> List[Tuple[int, int, int]]:
    return [(pool.range.family, pool.range.start, pool.range.end) for pool in pools]


def _overlap(one: Pool, other: Pool) -> bool:
    return (
        one.range.family == other.range.family
        and one.range.start <= other.range.end
        and other.range.start <= one.range.end
    )


# Names that people and tools give to files that should not be live. Runtimes ignore a file only by its last extension.
_BACKUP = re.compile(
    r"(^|[-_. ])(bak|backup|old|orig|save|saved|copy|tmp|temp|rpmsave|rpmnew)([-_. \d]|$)", re.IGNORECASE
)


def file_problems(view: ConfView) -> Iterator[Problem]:
    """Yield the problems of the unmanaged files that stay."""
    last_managed = max((sort_key(name) for name in view.managed | view.wanted), default=b"")
    for file in view.files:
        if file.name not in view.managed | view.wanted:
            yield from _unmanaged_file(file, sort_key(file.name) < last_managed)


def _unmanaged_file(file: ConfFile, before_managed: bool) -> Iterator[Problem]:
    """Yield the problems of an unmanaged file; *before_managed*: it sorts before a managed network."""
    if file.name.startswith(".ansible_tmp"):
        text = "Ansible's copy or template left this half-written file, and runtimes read it; remove it"
        yield problem(WARNING, "temp_file", text, file.path)
        return
    if file.error:
        yield _broken(file, before_managed)
    if file.name.startswith("."):
        text = "runtimes read hidden files, too, and before all others; remove it, or give it another extension"
        yield problem(WARNING, "hidden_file", text, file.path)
    elif _BACKUP.search(file.name[: file.name.rfind(".")]):
        text = "looks like a backup, but runtimes read it; give it an extension such as .bak at the end"
        yield problem(WARNING, "backup_file", text, file.path)
    elif not file.error and file.kind != "conflist":
        text = (
            "is a single plugin, not a conflist; libcni loads it by name only if no conflist has the name, but "
            "runtimes that go by order use it"
        )
        yield problem(INFO, "single_plugin", text, file.path)


def _broken(file: ConfFile, before_managed: bool) -> Problem:
    effect = "containerd then loads no network at all, others skip it" if before_managed else "most runtimes skip it"
    name = file.name[: file.name.rfind(".")]
    data = None if file.kind == "conflist" else _json(file.text or b"")
    if isinstance(data, dict) and "plugins" in data:
        text = (
            f"is a conflist, and conflists are read only from .conflist files; {effect}: rename it to {name}.conflist"
        )
        return problem(WARNING, "list_in_conf", text, file.path)
    if file.kind == "json" and data is not None:
        text = (
            f"is not a network configuration, but runtimes read every .json file here as one; {effect}, and Nomad and "
            "cnitool fail: move it to another directory, or give it another extension"
        )
        return problem(WARNING, "stray_json", text, file.path)
    text = f"cannot be loaded: {file.error}; {effect}: fix it, remove it, or give it another extension"
    return problem(WARNING, "broken_file", text, file.path)


def _json(text: bytes) -> Any:
    try:
        return gojson.loads(text)
    except JSONError:
        return None


_RATES = ("ingressrate", "egressrate")


def chain_problems(view: ConfView, file: ConfFile) -> Iterator[Problem]:
    """Yield the problems of the chain of one network."""
    chain = view.chain(file)
    yield from _chain_order(view, file, chain)
    for placed in chain:
        yield from _capability(view, file, placed)


def _chain_order(view: ConfView, file: ConfFile, chain: List[Placed]) -> Iterator[Problem]:
    makers = [placed for placed in chain if kind_of(placed.plugin).alone]
    first = text_of(chain[0].plugin, "type") if chain else ""
    if chain and kind_of(chain[0].plugin).role == META:
        after = f"put it after {text_of(makers[0].plugin, 'type')}" if makers else "begin with one such as bridge"
        text = (
            f"{first} comes first, but works on the interface that another plugin creates, so every ADD fails; {after}"
        )
        yield _at(view.certain(file), "chain_order", text, chain[0])
    for placed in makers[1:]:
        message = (
            f"{text_of(placed.plugin, 'type')} creates the container's interface, which "
            f"{text_of(makers[0].plugin, 'type')} has created already, so every ADD fails; move it to a network of its "
            "own"
        )
        yield _at(view.certain(file), "chain_order", message, placed)


def _capability(view: ConfView, file: ConfFile, placed: Placed) -> Iterator[Problem]:
    plugin, kind = placed.plugin, text_of(placed.plugin, "type")
    capabilities = object_of(plugin, "capabilities")
    # Values written there stay unless a runtime passes other ones.
    written = object_of(plugin, "runtimeconfig")
    ports = capabilities.get("portMappings") is True or member_of(written, "portmappings")
    if kind == "portmap" and not ports:
        text = (
            "portmap never gets port mappings, because runtimes pass them only to plugins that declare the capability; "
            'write "capabilities": {"portMappings": true}'
        )
        yield _at(view.level(file), "capability_missing", text, placed)
    limits = [plugin, object_of(written, "bandwidth")]
    # A runtime may spell its key in any way in which the capability is spelled: the plugin ignores case.
    limited = member_of(capabilities, "bandwidth") is True or any(
        member_of(place, rate) for place in limits for rate in _RATES
    )
    if kind == "bandwidth" and not limited:
        text = (
            "bandwidth has no limits, and runtimes pass none without the capability; write "
            '"capabilities": {"bandwidth": true}, or ingressRate and ingressBurst'
        )
        yield _at(view.level(file), "capability_missing", text, placed)


def _at(level: str, code: str, message: str, placed: Placed) -> Problem:
    return problem(level, code, message, placed.path, placed.pointer)


Problem = Dict[str, Any]


def directory_problems(view: ConfView, binaries: Binaries) -> List[Problem]:
    """Return the problems of the planned directory. *binaries* are asked for their releases only if that matters."""
    problems: List[Problem] = []
    problems.extend(_order(view))
    problems.extend(_names(view))
    problems.extend(file_problems(view))
    uses = []
    for file in view.loaded():
        problems.extend(_drop_ins(view, file))
        problems.extend(chain_problems(view, file))
        uses.append(uses_of_network(view, file))
    if any(is_multus(plugin) for file in view.loaded() for plugin in file.plugins):
        from .rules_multus import multus_problems

        problems.extend(multus_problems(view))
    problems.extend(address_problems(view, uses))
    problems.extend(store_problems(view, uses))
    problems.extend(host_problems(view, uses))
    problems.extend(security_problems(view, binaries))
    return problems


def _order(view: ConfView) -> Iterator[Problem]:
    """Yield a problem if another network becomes the first: in another file, or by another name in the same file."""
    if not view.before or not view.files:
        return
    old, new = view.before[0], view.files[0]
    if old.network is None or new.network is None or old.network == new.network:
        return
    change = f"runtimes that go by order (containerd, CRI-O) change from the network {old.network!r} to {new.network!r}"
    if old.name == new.name:
        text = (
            f"the name of the network in this file, the first one, changes, so {change}; firewall rules and leases of "
            "attached containers go by the name: detach them first, and choose another 'file' if this is not intended"
        )
        yield problem(WARNING, "name_flip", text, new.path, "/name")
        return
    text = (
        f"this file becomes the first one in place of {old.name}, so {change}; choose another 'priority' if this is "
        "not intended (names are compared as text: 100- comes before 20-, capitals and dots before lowercase letters)"
    )
    yield problem(WARNING, "order_flip", text, new.path)


def _names(view: ConfView) -> Iterator[Problem]:
    first: Dict[str, ConfFile] = {}
    for file in view.files:
        if not file.network:
            continue
        other: Optional[ConfFile] = first.setdefault(file.network, file)
        if other is file or other is None:
            continue
        if (file.kind == "conflist") != (other.kind == "conflist"):
            listed, single = (file, other) if file.kind == "conflist" else (other, file)
            message = (
                f"the network {file.network!r} is also in {other.name}: by name, libcni loads the conflist "
                f"({listed.name}); by order, runtimes load {other.name}, and some load both; remove one"
            )
            yield problem(WARNING, "conf_and_conflist", message, single.path)
            continue
        text = (
            f"the network {file.network!r} is also in {other.name}; runtimes load the file that sorts first, and some "
            "load both; remove one"
        )
        yield problem(WARNING, "duplicate_name", text, file.path)


def _drop_ins(view: ConfView, file: ConfFile) -> Iterator[Problem]:
    for extra in view.drop_ins(file):
        if extra.error:
            text = (
                f"{extra.error}; no runtime with libcni 1.3 or later loads the network {file.network!r} because of "
                "this file: fix or remove it"
            )
            level = ERROR if file.name in view.wanted else WARNING
            yield problem(level, "drop_in_broken", text, extra.path)
            continue
        if os.path.join(file.network or "", extra.name) in view.own_drop_ins:
            continue
        text = (
            f"libcni 1.3 and later append this plugin to the network {file.network!r}, older versions do not; the file "
            "is unmanaged and stays"
        )
        yield problem(view.level(file), "drop_in", text, extra.path)
