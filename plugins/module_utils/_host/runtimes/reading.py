# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the configuration files of runtimes and the output of their commands. All of it is untrusted."""

from __future__ import annotations

import fnmatch
import glob
import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional

from .. import commands
from ..confdir import read_regular
from ..errors import HostError
from ..paths import absolute, names_in
from ..trust import check_trusted
from .profiles import version_of

# More drop-ins than any host has.
_MOST_FILES = 500
# A runtime prints its version or configuration within some hundredths of a second.
_TIMEOUT = 20.0


def read_text(path: str) -> Optional[str]:
    """Return the text of a regular file, None if there is none. Raises HostError.

    That is ``unreadable``, or ``unsafe_permissions`` for a file that others than root can change or redirect.
    """
    check_trusted(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HostError(f"{path} cannot be read ({error.strerror})", code="unreadable") from error
    try:
        return read_regular(fd).decode("utf-8", "replace")
    except HostError as error:
        raise HostError(f"{path} {error.msg}", code="unreadable") from error


def parsed(path: str, loads: Optional[Callable[[str], Dict[str, Any]]] = None) -> Optional[Dict[str, Any]]:
    """Return the content of a configuration file, None if there is none; *loads* parses it (default: TOML).

    Raises HostError ``unreadable``, ``unsafe_permissions`` or ``not_understood``, which name the file.
    """
    text = read_text(path)
    if text is None:
        return None
    from .toml import load_toml

    try:
        return (loads or load_toml)(text)
    except HostError as error:
        raise HostError(f"{path}: {error.msg}", code=error.code) from error


def merged(paths: Iterable[str], *keys: str) -> Dict[str, Any]:
    """Return the table under *keys* of TOML files, a later one over an earlier one. Raises as :func:`parsed`."""
    table: Dict[str, Any] = {}
    for path in paths:
        table.update(section(parsed(path), *keys))
    return table


def listed(directory: str, ending: str = "") -> List[str]:
    """Return the paths of the files in *directory* whose names have this ending, sorted; none if it does not exist."""
    names = sorted(names_in(directory), key=os.fsencode)
    paths = [os.path.join(directory, name) for name in names if name.endswith(ending)]
    return [path for path in paths if not os.path.isdir(path)][:_MOST_FILES]


def imported(config: str, tables: Dict[str, Any], planned: str = "") -> Dict[str, str]:
    """Return the files that containerd reads after *config*, each with the file that imports it; later ones count more.

    *tables* is the content of *config*. *planned* is a file that will exist. Raises as :func:`parsed`.
    """
    importers: Dict[str, str] = {}
    # Observed with 1.7.24 and 2.1.9: imports of imports come after all other imports, and no file is read twice.
    waiting = [(config, tables)]
    while waiting:
        importer, content = waiting.pop(0)
        imports = content.get("imports")
        for pattern in imports if isinstance(imports, list) else []:
            if isinstance(pattern, str):
                pattern = plain_path(os.path.join(os.path.dirname(importer), pattern), "imports")
                paths = {*glob.glob(pattern), *([planned] if _matches(planned, pattern) else [])} - {config, *importers}
                for path in sorted(paths)[: _MOST_FILES - len(importers)]:
                    importers[path] = importer
                    waiting.append((path, parsed(path) or {}))
    return importers


def _matches(path: str, pattern: str) -> bool:
    (folder, name), (where, names) = os.path.split(path), os.path.split(pattern)
    return folder == where and fnmatch.fnmatchcase(name, names)


def below(directory: str) -> List[str]:
    """Return the paths of all files in *directory* and its folders, in the order of Go's filepath.Walk.

    Raises HostError ``unsafe_permissions``.
    """
    check_trusted(directory)
    paths: List[str] = []
    for folder, folders, names in os.walk(directory):
        folders.sort(key=os.fsencode)
        paths.extend(os.path.join(folder, name) for name in names)
        if len(paths) > _MOST_FILES:
            break
    return sorted(paths, key=lambda path: [os.fsencode(part) for part in path.split("/")])[:_MOST_FILES]


def section(tables: Any, *keys: str) -> Dict[str, Any]:
    """Return the table under *keys*, an empty one if there is none."""
    for key in keys:
        tables = tables.get(key) if isinstance(tables, dict) else None
    return tables if isinstance(tables, dict) else {}


def text_of_key(table: Mapping[str, Any], key: str) -> str:
    """Return a string, "" if there is none. Raises HostError ``not_understood`` for any other type."""
    value = table.get(key, "")
    if not isinstance(value, str):
        raise HostError(f"{key} is not a string", code="not_understood")
    # An escape can make half of a surrogate pair, which cannot be encoded.
    return value.encode("utf-8", "replace").decode("utf-8")


def directory(table: Mapping[str, Any], key: str) -> str:
    """Return a path, cleaned, "" if there is none. Raises HostError ``not_understood``."""
    return plain_path(table[key], key) if text_of_key(table, key) else ""


def directories(table: Mapping[str, Any], key: str, separator: Optional[str] = None) -> List[str]:
    """Return a list of paths, cleaned. Raises HostError ``not_understood``.

    *separator*: what is between those of a text, "" if it is one path; None: a text is not understood.
    """
    values = table.get(key) or []
    if isinstance(values, str) and separator is not None:
        values = values.split(separator) if separator else [values]
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise HostError(f"{key} is not a list of strings", code="not_understood")
    return [plain_path(value, key) for value in values if value]


def plain_path(value: str, what: str) -> str:
    """Return a path as Go's filepath.Clean leaves it. Raises HostError ``not_understood`` for a relative one."""
    try:
        os.fsencode(value)
        return absolute(os.path.normpath(value), what)
    except (HostError, UnicodeEncodeError) as error:
        raise HostError(f"{what} is {value!r}, which is not an absolute path", code="not_understood") from error


def number(table: Dict[str, Any], key: str, default: int) -> int:
    """Return an integer. Raises HostError ``not_understood`` for any other type."""
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise HostError(f"{key} is not an integer", code="not_understood")
    return value


def output(*argv: str, timeout: float = _TIMEOUT) -> str:
    """Return the output of a runtime's command. Raises HostError such as ``command_failed``, ``unsafe_permissions``."""
    done = commands.run_command(argv, timeout)
    if done.rc != 0:
        raise commands.failure(argv, f"exit status {done.rc}", done.stderr)
    return done.stdout.decode("utf-8", "replace")


def installed(name: str) -> str:
    """Return the path of a command, whoever may execute it; "" if it is not installed."""
    for folder in commands.DIRECTORIES:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def version(program: str, argument: str, notes: List[str]) -> str:
    """Return the version that a program reports; if it reports none, return "" and add a note."""
    try:
        reported = version_of(output(program, argument))
    except HostError as error:
        reported, why = "", error.msg
    else:
        why = f"{program} {argument} prints none"
    if not reported:
        notes.append(f"its version is unknown ({why}); a recent one is assumed")
    return reported
