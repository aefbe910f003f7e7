# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation level ``directory``: what is wrong with the files of a conf_dir taken together, as planned."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set

from .confdir import ConfFile, sort_key
from .problems import INFO, WARNING, problem

# Names that people and tools give to what should not be live; only a last extension other than CNI's makes it so.
_BACKUP = re.compile(
    r"(^|[-_. ])(bak|backup|old|orig|save|saved|copy|tmp|temp|rpmsave|rpmnew)([-_. \d]|$)", re.IGNORECASE
)


def directory_problems(
    conf_dir: str, files: Sequence[ConfFile], after: Mapping[str, Optional[str]], ours: Set[str]
) -> List[Dict[str, Any]]:
    """Return the problems of the planned directory.

    *files* is what is there now, in order; *after* maps the name of each file that will be there to its network (None:
    nobody can tell); *ours* are the names of the files that we wrote.
    """
    present = {file.name: file for file in files}
    names = sorted(after, key=sort_key)
    problems: List[Dict[str, Any]] = []
    problems.extend(_order_flip(conf_dir, files, names, after))
    problems.extend(_duplicates(conf_dir, names, after))
    wanted = [name for name in names if name not in present or name in ours or after[name] != present[name].network]
    last_of_ours = wanted[-1] if wanted else ""
    for name in names:
        if name in present and name not in wanted:
            problems.extend(_foreign_file(present[name], sort_key(name) < sort_key(last_of_ours)))
    return problems


def _order_flip(
    conf_dir: str, files: Sequence[ConfFile], names: Sequence[str], after: Mapping[str, Optional[str]]
) -> List[Dict[str, Any]]:
    if not files or not names:
        return []
    old, new = files[0], names[0]
    if old.network is None or after[new] is None or old.network == after[new]:
        return []
    text = (
        "this file becomes the first one in place of %s, so runtimes that go by order (containerd, CRI-O) change from "
        "the network %r to %r; choose another 'priority' if that is not meant (names are compared as text: 100- comes "
        "before 20-)"
    )
    return [problem(WARNING, "order_flip", text % (old.name, old.network, after[new]), os.path.join(conf_dir, new))]


def _duplicates(conf_dir: str, names: Sequence[str], after: Mapping[str, Optional[str]]) -> List[Dict[str, Any]]:
    first: Dict[str, str] = {}
    problems = []
    for name in names:
        network = after[name]
        if not network:
            continue
        if network in first:
            text = (
                "the network %r is in %s already; runtimes take the file that sorts first, some take both: remove one"
            )
            problems.append(
                problem(WARNING, "duplicate_name", text % (network, first[network]), os.path.join(conf_dir, name))
            )
        first.setdefault(network, name)
    return problems


def _foreign_file(file: ConfFile, before_ours: bool) -> List[Dict[str, Any]]:
    """Return what is to be said of a file that is not ours; *before_ours* if it sorts before a network of ours."""
    if file.name.startswith(".ansible_tmp"):
        return [
            _problem(
                file,
                WARNING,
                "temp_file",
                "Ansible's copy or template left this half-written file, and runtimes read it; remove it",
            )
        ]
    problems = []
    if file.error:
        effect = "containerd then loads no network at all, others skip it" if before_ours else "most runtimes skip it"
        text = "cannot be loaded: %s; %s: mend it, remove it, or give it another extension" % (file.error, effect)
        problems.append(_problem(file, WARNING, "broken_file", text))
    if file.name.startswith("."):
        text = "runtimes read hidden files, too, and before all others; remove it, or give it another extension"
        problems.append(_problem(file, WARNING, "hidden_file", text))
    elif _BACKUP.search(file.name[: file.name.rfind(".")]):
        text = "looks like a backup, but runtimes read it; give it an extension such as .bak at the end"
        problems.append(_problem(file, WARNING, "backup_file", text))
    elif not file.error and file.kind != "conflist":
        text = "is a single plugin, not a list; libcni looks at it only where no list has the name, others by order"
        problems.append(_problem(file, INFO, "single_plugin", text))
    return problems


def _problem(file: ConfFile, level: str, code: str, text: str) -> Dict[str, Any]:
    return problem(level, code, text, file.path)
