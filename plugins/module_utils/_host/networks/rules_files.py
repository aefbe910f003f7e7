# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about single files of others in a directory of network configurations: what runtimes read by mistake."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator

from ...libcni import gojson
from ...libcni.errors import JSONError
from ..confdir import ConfFile, sort_key
from ..problems import INFO, WARNING, problem
from .view import ConfView

Problem = Dict[str, Any]

# Names that people and tools give to what should not be live; only a last extension other than CNI's makes it so.
_BACKUP = re.compile(
    r"(^|[-_. ])(bak|backup|old|orig|save|saved|copy|tmp|temp|rpmsave|rpmnew)([-_. \d]|$)", re.IGNORECASE
)


def file_problems(view: ConfView) -> Iterator[Problem]:
    """Yield what is to be said of the files that are not ours and stay."""
    last_of_ours = max((sort_key(name) for name in view.ours | view.wanted), default=b"")
    for file in view.files:
        if file.name not in view.ours | view.wanted:
            yield from _foreign_file(file, sort_key(file.name) < last_of_ours)


def _foreign_file(file: ConfFile, before_ours: bool) -> Iterator[Problem]:
    """Yield what is to be said of a file that is not ours; *before_ours* if it sorts before a network of ours."""
    if file.name.startswith(".ansible_tmp"):
        text = "Ansible's copy or template left this half-written file, and runtimes read it; remove it"
        yield problem(WARNING, "temp_file", text, file.path)
        return
    if file.error:
        yield _broken(file, before_ours)
    if file.name.startswith("."):
        text = "runtimes read hidden files, too, and before all others; remove it, or give it another extension"
        yield problem(WARNING, "hidden_file", text, file.path)
    elif _BACKUP.search(file.name[: file.name.rfind(".")]):
        text = "looks like a backup, but runtimes read it; give it an extension such as .bak at the end"
        yield problem(WARNING, "backup_file", text, file.path)
    elif not file.error and file.kind != "conflist":
        text = "is a single plugin, not a list; libcni looks at it only where no list has the name, others by order"
        yield problem(INFO, "single_plugin", text, file.path)


def _broken(file: ConfFile, before_ours: bool) -> Problem:
    effect = "containerd then loads no network at all, others skip it" if before_ours else "most runtimes skip it"
    data = None if file.kind == "conflist" else _json(file.text or b"")
    if isinstance(data, dict) and "plugins" in data:
        text = "is a list, and lists are read from .conflist only; %s: rename it to %s.conflist"
        return problem(WARNING, "list_in_conf", text % (effect, file.name[: file.name.rfind(".")]), file.path)
    if file.kind == "json" and data is not None:
        text = (
            "is no network configuration, but every .json here is read as one; %s, and Nomad and cnitool fail: move it "
            "to another directory, or give it another extension"
        )
        return problem(WARNING, "stray_json", text % effect, file.path)
    text = "cannot be loaded: %s; %s: mend it, remove it, or give it another extension"
    return problem(WARNING, "broken_file", text % (file.error, effect), file.path)


def _json(text: bytes) -> Any:
    try:
        return gojson.loads(text)
    except JSONError:
        return None
