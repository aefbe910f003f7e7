# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths that come from a user or a host: checked before anything is joined to them."""

from __future__ import annotations

import os

from .errors import HostError


def is_url(text: str) -> bool:
    """Tell whether *text* is meant as a URL and not as a path."""
    return "://" in text


def absolute(path: str, option: str) -> str:
    """Return *path* without a trailing slash; it must be absolute and free of ``.`` and ``..`` components.

    ``..`` is refused and not resolved: across a symbolic link its textual resolution is another directory.
    """
    if not path.startswith("/"):
        raise HostError(
            "%s: %r is not an absolute path; write it from the root, such as '/etc/cni/net.d'" % (option, path),
            code="path_not_absolute",
        )
    parts = [part for part in path.split("/") if part]
    if not parts or "\0" in path or any(part in (".", "..") for part in parts):
        raise HostError(
            "%s: %r is refused; the path must name a directory below / without '.' and '..'" % (option, path),
            code="path_not_clean",
        )
    return "/" + "/".join(parts)


def file_name(name: str, where: str) -> str:
    """Return *name* if it is one plain file name, so that joining it to a directory cannot leave the directory."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise HostError(
            "%s: %r is not a plain file name; it must not be empty, '.', '..' or contain '/'" % (where, name),
            code="bad_file_name",
        )
    if len(os.fsencode(name)) > 200:
        raise HostError("%s: the file name %r is longer than 200 bytes" % (where, name), code="bad_file_name")
    return name
