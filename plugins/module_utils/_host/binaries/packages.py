# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The distribution package that a file belongs to, by dpkg or rpm."""

from __future__ import annotations

import functools
import os
import re
from typing import Dict, Mapping, NamedTuple, Optional, Sequence

from ..commands import Done, find_command, run_command
from ..errors import HostError
from ..paths import names_in
from ..trust import check_executable

# A plugin that is run without CNI_COMMAND prints what it is (pkg/utils/buildversion).
_ABOUT = re.compile(r"CNI \S+ plugin v?(\d+\.\d+\.\d+)")
_PACKAGE = re.compile(r"(?:\d+:)?v?(\d+\.\d+\.\d+)")


def release_of(path: str) -> str:
    """Return the release, such as ``1.9.1``, of the plugin at *path*, "" if neither the plugin nor a package tells it.

    Raises HostError ``unsafe_permissions`` or ``not_elf``.
    """
    about = _ABOUT.search(about_plugin(path, _TIMEOUT))
    if about:
        return about.group(1)
    package = _packages_beside(os.path.dirname(path)).get(path)
    version = _PACKAGE.match(package.version) if package else None
    return version.group(1) if version else ""


@functools.lru_cache(maxsize=None)
def _packages_beside(folder: str) -> Mapping[str, Package]:
    """Return the packages of the files in *folder*: dpkg takes as long to find one as to find all."""
    return packages_of([os.path.join(folder, name) for name in names_in(folder)])


def about_plugin(path: str, timeout: float) -> str:
    """Return what the plugin at *path* prints without CNI_COMMAND, in *timeout* seconds. Raises as release_of."""
    check_executable(path)
    # The manifest usually has the release already, so few calls have to compile this.
    from ...libcni.process import run_program

    ended = run_program(path, [path], b"", {}, timeout)
    return (ended.stderr + ended.stdout).decode("utf-8", "replace")


DPKG = "dpkg"
RPM = "rpm"
_TIMEOUT = 20.0


class Package(NamedTuple):
    """``manager`` is :data:`DPKG` or :data:`RPM`."""

    name: str
    version: str
    manager: str


def packages_of(paths: Sequence[str]) -> Dict[str, Package]:
    """Return the packages of those *paths* that belong to one; none if neither dpkg nor rpm can be asked."""
    if not paths:
        return {}
    packages = _by_dpkg(paths)
    for path in paths:
        package = None if path in packages else _by_rpm(path)
        if package is not None:
            packages[path] = package
    return packages


def _by_dpkg(paths: Sequence[str]) -> Dict[str, Package]:
    # An exit status of 1 means that some files belong to no package.
    listed = _run("dpkg-query", ["--search", "--", *paths])
    owners: Dict[str, str] = {}
    for line in _lines(listed):
        names, colon, path = line.rpartition(": ")
        if colon and path in paths and not line.startswith("diversion by "):
            owners[path] = names.split(", ")[0]
    if not owners:
        return {}
    shown_format = "--showformat=${binary:Package} ${Version}\\n"
    shown = _run("dpkg-query", ["--show", shown_format, *sorted(set(owners.values()))])
    versions = {line.partition(" ")[0]: line.partition(" ")[2] for line in _lines(shown)}
    # Only one of the two commands may add the architecture to the name.
    bare = {name.partition(":")[0]: version for name, version in versions.items()}
    return {
        path: Package(name.partition(":")[0], versions.get(name) or bare.get(name.partition(":")[0], ""), DPKG)
        for path, name in owners.items()
    }


def _by_rpm(path: str) -> Optional[Package]:
    done = _run("rpm", ["--query", "--queryformat=%{NAME} %{VERSION}-%{RELEASE}\\n", "--file", path])
    if done is None or done.rc != 0:
        return None
    name, blank, version = _lines(done)[-1].partition(" ") if _lines(done) else ("", "", "")
    return Package(name, version, RPM) if blank else None


def _run(command: str, arguments: Sequence[str]) -> Optional[Done]:
    try:
        program = find_command(command)
        return run_command([program, *arguments], _TIMEOUT) if program else None
    except HostError:
        return None


def _lines(done: Optional[Done]) -> Sequence[str]:
    return done.stdout.decode("utf-8", "replace").splitlines() if done else []
