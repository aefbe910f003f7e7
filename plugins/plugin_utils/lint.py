# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Validates conflists and NetworkAttachmentDefinitions of any repository, without Ansible.

python3 -m podwire_cni.plugin_utils.lint [--strict] FILE...

It needs jsonschema, and for manifests in YAML also PyYAML. The exit status is 1 if a file has an error (``--strict``:
or a warning), and 2 if it could not do its work.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, Optional

from ..module_utils._host.json_text import parse_json
from ..module_utils._host.problems import ERROR, Finding, errors_of
from ..module_utils._host.problems import strict as with_strict
from ..module_utils.libcni.multi.definitions import KIND
from ._conf.nads import YAML_MISSING, CheckedNads
from ._conf.schema import MISSING
from ._conf.source import TextSource
from ._conf.validate import ALONE, Checked

LEVELS = ("syntax", "schema", ALONE)
MAX_SIZE = 1024 * 1024
MANIFESTS = (".yaml", ".yml")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


class Unavailable(Exception):
    """The file cannot be checked here; the message says why."""


def problems_of(path: str) -> list[Finding]:
    """Return the problems of a file; none if it is neither a network nor a manifest. Raises Unavailable."""
    text = _read(path)
    if isinstance(text, Finding):
        return [text]
    if path.endswith(MANIFESTS):
        # Many manifests of other kinds are templates, which are not YAML.
        if KIND not in text:
            return []
        if YAML_MISSING is not None:
            raise Unavailable(
                f"{path} is a manifest in YAML, and PyYAML is missing ({YAML_MISSING}); "
                f"run {sys.executable} -m pip install PyYAML"
            )
        return CheckedNads(text, LEVELS, "", path, True).problems
    if path.endswith(".json"):
        kind = _kind(text)
        if kind in (KIND, "List"):
            return CheckedNads(parse_json(text), LEVELS, "", path, True).problems
        if kind != "network":
            return []
    return Checked(TextSource(text), path, None, LEVELS).problems


def _read(path: str) -> Any:
    """Return the text of a file, or the problem that it cannot be one."""
    try:
        with open(path, "rb") as stream:
            content = stream.read(MAX_SIZE + 1)
    except OSError as error:
        raise Unavailable(f"cannot read {path}: {error.strerror}") from error
    if len(content) > MAX_SIZE:
        return Finding(ERROR, "src_unreadable", "the file is larger than 1 MiB; no network needs as much", file=path)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return Finding(ERROR, "not_utf8", "the file is not UTF-8; save it as UTF-8", file=path)


def _kind(text: str) -> Optional[str]:
    """Return what a JSON file is: the kind of its object, ``network``, or None."""
    try:
        document = parse_json(text)
    except ValueError:
        # Text that is not JSON has no kind; in a directory of networks it was to be one.
        return "network" if re.search(r'"cniVersion"', text) else None
    if not isinstance(document, dict):
        return None
    if isinstance(document.get("kind"), str):
        return str(document["kind"])
    return "network" if "cniVersion" in document or "plugins" in document else None


def line_of(finding: Finding) -> str:
    """Return it as compilers write it: FILE:LINE:COLUMN: LEVEL: MESSAGE [CODE]."""
    place = [finding.file, *([str(finding.line), str(finding.column)] if finding.line else [])]
    pointer = f"{finding.pointer}: " if finding.pointer else ""
    text = f"{':'.join(place)}: {finding.level}: {pointer}{finding.message} [{finding.code}]"
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def main(words: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="podwire-cni-lint",
        description="Validate conflists (.conflist, .conf, .json) and NetworkAttachmentDefinitions (.yaml, .json).",
    )
    parser.add_argument("--strict", action="store_true", help="fail on warnings, too")
    parser.add_argument("--quiet", action="store_true", help="print errors and what fails only, no notes")
    parser.add_argument("files", nargs="*", metavar="FILE")
    arguments = parser.parse_args(words)
    if MISSING is not None:
        print(
            f"podwire-cni-lint needs the Python library jsonschema ({MISSING}); "
            f"run {sys.executable} -m pip install jsonschema",
            file=sys.stderr,
        )
        return 2
    status = 0
    for path in arguments.files:
        try:
            found = problems_of(path)
        except Unavailable as reason:
            print(_UNPRINTABLE.sub("?", str(reason)), file=sys.stderr)
            status = 2
            continue
        found = with_strict(found) if arguments.strict else found
        for finding in found:
            if finding.level == ERROR or not arguments.quiet:
                print(line_of(finding))
        if status == 0 and errors_of(found):
            status = 1
    return status


if __name__ == "__main__":
    # A reader that ends early, such as head, is not an error of the linter.
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)
