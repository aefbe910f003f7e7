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
from collections.abc import Iterator, Mapping, Sequence
from typing import Optional, Union

from ..module_utils._host.checks.directory import broken_file, name_problems
from ..module_utils._host.checks.view import ConfView
from ..module_utils._host.confdir import EXTENSIONS, ConfFile, extension, read_go_json, sort_key
from ..module_utils._host.json_text import parse_json
from ..module_utils._host.problems import ERROR, INFO, WARNING, Finding, errors_of, strict as with_strict
from ..module_utils._host.secrets import one_line
from ..module_utils.libcni.multi.definitions import KIND
from ._conf.fragments import fragment_problems
from ._conf.nads import OF_INTEREST, CheckedNads, is_network, is_network_text
from ._conf.positions import text_of
from ._conf.schema import MISSING
from ._conf.templates import HIDDEN, Masked, masked
from ._conf.validate import ALONE, Checked, TemplateSource, Unreadable, parts_of
from ._conf.yaml_text import YAML_MISSING, NotYaml, YamlDocument, parts, values
from .lans import REMEDY, SHARED, ranges_on_lans

LEVELS = ("syntax", "schema", ALONE)
MAX_SIZE = 1024 * 1024
MANIFESTS = (".yaml", ".yml")
# What stands after the name of the file that it is rendered to, or copied to.
_RENDERED = re.compile(
    r"(?:\.(?:j2|jinja2?|tmpl|tpl|template|gotmpl|gtpl|tftpl|erb|in|example|sample|dist|orig|bak|old|save|disabled|off))+\Z",
    re.IGNORECASE,
)
# JSON in them is an example, or part of a program.
NO_JSON = (".md", ".rst", ".txt", ".adoc", ".jsonnet", ".cue", ".nix", ".js", ".ts", ".py", ".go", ".sh")
_LINK = re.compile(r"[\w.+@-]*(/[\w.+@-]+)+")  # A symbolic link, as git writes it where it makes none.


class Unavailable(Exception):
    """The file cannot be checked here; the message says why."""


def problems_of(path: str, text: str) -> list[Finding]:
    """Return the problems of a file; none if it has no network, whatever else it is. Raises Unavailable."""
    name = _RENDERED.sub("", path)
    ending = extension(os.path.basename(name))
    is_in_directory = os.path.basename(os.path.dirname(path)) == "net.d"
    certain = masked(text)
    is_manifest = not ending and not text.startswith("#!") and re.search(rf"^\s*kind: {KIND}\s*$", text, re.MULTILINE)
    if ending in MANIFESTS or is_manifest:
        return _manifests(path, text)
    if ending == ".conflist" or (is_in_directory and ending in EXTENSIONS):
        return [] if _LINK.fullmatch(text) else _network(path, certain)
    if (problems := fragment_problems(text, path, name)) is not None:
        return problems
    if ending in NO_JSON or not certain.text.lstrip("\ufeff \t\r\n").startswith("{"):
        return []
    try:
        document = TemplateSource(certain.text, bool(certain.open)).document()
    except Unreadable:
        return _network(path, certain) if is_network_text(certain.text, "") else []
    if is_network(document):
        problems = _network(path, certain)
        if is_in_directory and name == path:
            text = "no runtime reads a file with this name; give it the extension .conflist, or .conf for one plugin"
            problems.append(Finding(WARNING, "unread_file", text, file=path))
        return problems
    return _manifests(path, text) if "cniVersion" in text or KIND in text else []


def _network(path: str, certain: Masked) -> list[Finding]:
    return Checked(TemplateSource(certain.text, bool(certain.open)), path, None, LEVELS).problems


def problems_between(texts: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the problems of the files of each directory together; *texts* are those of the files by their paths."""
    directories: dict[str, list[ConfFile]] = {}
    for path, text in texts.items():
        directory, name = os.path.split(path)
        if extension(name) in EXTENSIONS and is_network_text(text, "") and masked(text).text == text:
            directories.setdefault(directory, []).append(ConfFile(name, path, text.encode("utf-8")))
    for directory, files in directories.items():
        yield from _of_directory(files, os.path.basename(directory) == "net.d")


def _of_directory(files: Sequence[ConfFile], is_live: bool) -> Iterator[Finding]:
    """Yield what is wrong with the files of a directory that no host has yet; *is_live*: runtimes read it as it is."""
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


def _manifests(path: str, text: str) -> list[Finding]:
    if not OF_INTEREST.search(text):
        return []
    if YAML_MISSING is not None:
        raise Unavailable(
            f"{path} is a manifest in YAML, and PyYAML is missing ({YAML_MISSING}); "
            f"run {sys.executable} -m pip install PyYAML"
        )
    problems = CheckedNads(text, LEVELS, "", path, True).problems
    return [*problems, *_of_group(path, text)] if "group_vars" in path.split(os.sep)[:-1] else problems


def _of_group(path: str, text: str) -> Iterator[Finding]:
    """Yield a problem for each range of a LAN that the variables of a group give to every host of it."""
    for part in parts(masked(text).text):
        try:
            document = YamlDocument(part)
        except NotYaml:
            continue
        for pointer, value in values(document.value):
            try:
                config = parse_json(value) if isinstance(value, str) and is_network_text(value, "") else value
            except ValueError:
                continue
            for shared in ranges_on_lans(config) if is_network(config) and "cniVersion" in config else ():
                if HIDDEN not in "".join(shared.values):
                    place = (*pointer, *parts_of(shared.pointer))
                    what = (
                        f"every host of the group assigns {shared.words} on a LAN, so containers get the same addresses"
                    )
                    yield Finding(WARNING, SHARED, what, REMEDY, path, text_of(place), *document.position(place))


def _read(path: str) -> Union[str, Finding]:
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


def line_of(finding: Finding) -> str:
    """Return it as compilers write it: FILE:LINE:COLUMN: LEVEL: MESSAGE [CODE]."""
    place = [finding.file, *([str(finding.line), str(finding.column)] if finding.line else [])]
    pointer = f"{finding.pointer}: " if finding.pointer else ""
    text = f"{':'.join(place)}: {finding.level}: {pointer}{finding.message} [{finding.code}]"
    return one_line(re.sub(f"{HIDDEN}+", "...", text))


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
    findings: list[Finding] = []
    texts: dict[str, str] = {}
    for path in arguments.files:
        try:
            text = _read(path)
            if isinstance(text, Finding):
                findings.append(text)
                continue
            texts[os.path.normpath(path)] = text
            findings += problems_of(path, text)
        except Unavailable as reason:
            print(one_line(str(reason)), file=sys.stderr)
            status = 2
    findings += problems_between(texts)
    findings = with_strict(findings) if arguments.strict else findings
    for finding in findings:
        if finding.level == ERROR or not arguments.quiet:
            print(line_of(finding))
    if status == 0 and errors_of(findings):
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
