# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with the files of a directory in a repository, which no host has yet."""

from __future__ import annotations

import re
from typing import Iterator, Sequence

from ...module_utils._host.checks.directory import broken_file, name_problems
from ...module_utils._host.checks.view import ConfView
from ...module_utils._host.confdir import ConfFile, read_go_json, sort_key
from ...module_utils._host.problems import ERROR, INFO, WARNING, Finding


def repository_problems(files: Sequence[ConfFile], is_live: bool) -> Iterator[Finding]:
    """Yield what is wrong with files of one directory of a repository; *is_live*: runtimes read it as it is."""
    view = ConfView("", [], sorted(files, key=lambda file: sort_key(file.name)), set(), set())
    level = WARNING if is_live else INFO
    for finding in name_problems(view):
        yield finding._replace(level=level)
    numbers = [(int(match[0]), file) for file in view.files for match in [re.match(r"\d{1,9}", file.name)] if match]
    for (number, file), (other, after) in zip(numbers, numbers[1:]):
        if number > other:
            what = f"runtimes compare names as text, so this file comes before {after.name}"
            yield Finding(level, "order_by_text", what, "write numbers of as many digits", file.path)
    for file in view.files:
        content = read_go_json(file.text or b"")
        data = content if isinstance(content, dict) else {}
        if file.kind == "conflist" and "type" in data and "plugins" not in data:
            what = "is a single plugin, and libcni reads only lists from .conflist files"
            remedy = 'write "plugins": [{"type": ...}], or give the file the extension .conf'
            yield Finding(ERROR, "no_plugins", what, remedy, file.path)
        elif file.kind != "conflist" and "plugins" in data and (is_live or file.kind == "conf"):
            finding = broken_file(file, False)
            yield finding._replace(level=ERROR if is_live else WARNING)
