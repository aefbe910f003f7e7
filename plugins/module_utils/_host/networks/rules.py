# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation level ``directory``: what is wrong with the files of a conf_dir taken together, as planned."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

from ..binaries.usable import Binaries
from ..confdir import ConfFile
from ..problems import ERROR, WARNING, problem
from .advisories import security_problems
from .rules_addresses import address_problems
from .rules_chain import chain_problems
from .rules_files import file_problems
from .rules_host import host_problems
from .rules_stores import store_problems
from .uses import uses_of_network
from .view import ConfView

Problem = Dict[str, Any]


def directory_problems(view: ConfView, binaries: Binaries) -> List[Problem]:
    """Return the problems of the planned directory. *binaries* are asked for releases only where that matters."""
    problems: List[Problem] = []
    problems.extend(_order(view))
    problems.extend(_names(view))
    problems.extend(file_problems(view))
    uses = []
    for file in view.loaded():
        problems.extend(_drop_ins(view, file))
        problems.extend(chain_problems(view, file))
        uses.append(uses_of_network(view, file))
    problems.extend(address_problems(view, uses))
    problems.extend(store_problems(view, uses))
    problems.extend(host_problems(view, uses))
    problems.extend(security_problems(view, binaries))
    return problems


def _order(view: ConfView) -> Iterator[Problem]:
    """Yield that another network than before comes first: by another file, or by another name in the same one."""
    if not view.before or not view.files:
        return
    old, new = view.before[0], view.files[0]
    if old.network is None or new.network is None or old.network == new.network:
        return
    runtimes = "runtimes that go by order (containerd, CRI-O) change from the network %r to %r"
    if old.name == new.name:
        text = (
            "this file, which comes first, changes its network's name, so " + runtimes + "; rules and reservations of "
            "attached containers go by the name: detach them first, and choose another 'file' if that is not meant"
        )
        yield problem(WARNING, "name_flip", text % (old.network, new.network), new.path, "/name")
        return
    text = (
        "this file becomes the first one in place of %s, so " + runtimes + "; choose another 'priority' if that is not "
        "meant (names are compared as text: 100- comes before 20-, capitals and dots before small letters)"
    )
    yield problem(WARNING, "order_flip", text % (old.name, old.network, new.network), new.path)


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
            text = (
                "the network %r is in %s, too: by name libcni takes the list (%s), by order runtimes take %s, and some "
                "take both; remove one"
            )
            message = text % (file.network, other.name, listed.name, other.name)
            yield problem(WARNING, "conf_and_conflist", message, single.path)
            continue
        text = "the network %r is in %s already; runtimes take the file that sorts first, some take both: remove one"
        yield problem(WARNING, "duplicate_name", text % (file.network, other.name), file.path)


def _drop_ins(view: ConfView, file: ConfFile) -> Iterator[Problem]:
    for extra in view.drop_ins(file):
        if extra.error:
            text = "%s; because of it no runtime with libcni 1.3 or later loads the network %r: fix or remove it"
            level = ERROR if file.name in view.wanted else WARNING
            yield problem(level, "drop_in_broken", text % (extra.error, file.network), extra.path)
            continue
        text = "libcni 1.3 and later append this plugin to the network %r, older ones do not; it is not ours and stays"
        yield problem(view.level(file), "drop_in", text % file.network, extra.path)
