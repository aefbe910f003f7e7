# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What ``cni_info`` reports on configurations and plugin binaries."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..binaries.store import ORIGINAL
from ..binaries.types import types_of
from ..binaries.usable import Binaries
from ..confdir import ConfFile, paths_of, read_go_json
from ..errors import HostError
from ..hostview import HostView
from ..manifest import Manifest, digest_of, identity
from ..networks.difference import readable_secret
from ..networks.owners import recognise
from ..plan import each_of
from ..problems import ERROR, INFO, WARNING, Finding, unreadable
from ..secrets import mask, mask_text
from ..trust import SCRIPT, check_plugin, plugin_machine, untrusted

Rows = List[Dict[str, Any]]


def conf(files: Sequence[ConfFile], conf_dir: str, manifest: Manifest) -> Tuple[Rows, List[Finding]]:
    """Return a row for each file of *conf_dir* that a runtime would read, and the problems. Secrets are masked."""
    rows: Rows = []
    paths = [path for file in files for path in paths_of(conf_dir, file.path, file.network or "")]
    problems = untrusted([conf_dir, *paths])
    for file in files:
        for candidate in [file, *file.drop_ins]:
            if candidate.error:
                problems.append(Finding(ERROR, "bad_config", mask_text(candidate.error), file=candidate.path))
        for candidate in [file, *file.drop_ins]:
            # A link's own mode does not matter.
            mode = 0 if candidate.is_link else candidate.mode
            problems += readable_secret(candidate.text or b"", mode, candidate.path)
        rows.append(_conf_row(file, manifest.network_file(file.path, file.text)))
        managed = [extra.path for extra in file.drop_ins if manifest.network_file(extra.path, extra.text)]
        rows[-1]["managed_drop_ins"] = managed
    return rows, problems


def _conf_row(file: ConfFile, managed: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    digest = hashlib.sha256(file.text).hexdigest() if file.text is not None else ""
    owner = recognise(file)
    return {
        "path": file.path,
        "kind": file.kind,
        "network": file.network or "",
        "cni_version": file.cni_version,
        "plugins": types_of(file.plugins),
        "drop_ins": [extra.path for extra in file.drop_ins],
        "config": None if file.text is None else mask(read_go_json(file.text)),
        "sha256": digest,
        "managed": managed is not None,
        "managed_as": managed["network"] if managed else "",
        "original": bool(managed and managed.get("original")),
        "used_by": None,
        "owner": owner.name if owner and not managed else "",
        "edited": managed is not None and managed.get("sha256") != digest,
        "link": file.is_link,
        "mode": f"{file.mode:04o}",
        "uid": file.uid,
        "gid": file.gid,
        "error": mask_text(file.error),
    }


def aside(conf_dir: str, manifest: Manifest) -> Rows:
    """Return a row for each file of *conf_dir* that was set aside and is still there, sorted by path."""
    return [
        {
            "path": path,
            "original_path": record["path"],
            "network": record["network"],
            "managed": bool(record.get("managed")),
        }
        for path, record in sorted(manifest.aside.items())
        if os.path.dirname(path) == conf_dir and os.path.lexists(path)
    ]


def plugins(bin_dirs: Sequence[str], manifest: Manifest, workers: int) -> Tuple[Rows, List[Finding]]:
    """Return a row for each file in *bin_dirs*, and the problems. ELF files that root may run are asked for VERSION."""
    rows: Rows = []
    problems: List[Finding] = []
    for bin_dir in bin_dirs:
        binaries = Binaries([bin_dir], HostView(manifest))
        for name in _files(bin_dir):
            path = os.path.join(bin_dir, name)
            try:
                rows.append(_plugin_row(path, manifest))
            except OSError as error:
                problems.append(Finding(WARNING, "unreadable", f"cannot be read: {error.strerror}", file=path))
        own = [row for row in rows if os.path.dirname(row["path"]) == bin_dir]

        def ask(row: Dict[str, Any], binaries: Binaries = binaries) -> None:
            try:
                if row["kind"] == SCRIPT and not row["managed"]:
                    # Anything may be in that directory, such as an installer.
                    text = f"{row['path']} is a script that cni_plugins has not installed; it is not executed"
                    raise HostError(text, code="not_elf")
                check_plugin(row["path"])
                row["cni_versions"] = binaries.ask(row["name"])[1]
            except HostError as error:
                # A README is not a plugin; an executable script is one that root does not run.
                if row["machine"] or row["mode"][-3:] != "644":
                    level = INFO if error.code == "not_elf" and not row["managed"] else WARNING
                    problems.append(unreadable(error, level, file=row["path"]))

        each_of(ask, own, workers)
    problems.sort(key=lambda finding: (finding.file, finding.code))
    return rows, problems


def _files(bin_dir: str) -> List[str]:
    try:
        with os.scandir(bin_dir) as entries:
            return sorted(entry.name for entry in entries if not entry.is_dir(follow_symlinks=True))
    except OSError:
        return []


def _plugin_row(path: str, manifest: Manifest) -> Dict[str, Any]:
    managed = manifest.binaries.get(path)
    history = managed["history"] if managed else []
    if managed and managed.get("gone"):
        # The managed file was removed; the file here now is another one.
        managed = None
    status = os.lstat(path)
    link = os.readlink(path) if stat.S_ISLNK(status.st_mode) else ""
    target = os.stat(path)
    machine, digest = "", ""
    if stat.S_ISREG(target.st_mode):
        with open(path, "rb") as stream:
            machine = plugin_machine(stream) or ""
            stream.seek(0)
            # Reading all of them would take longer than everything else here.
            known = manifest.versions.get(os.path.realpath(path), {})
            is_known = known.get("identity") == identity(target) and bool(known.get("sha256"))
            digest = str(known["sha256"]) if is_known else digest_of(stream)
    return {
        "name": os.path.basename(path),
        "path": path,
        "link": link,
        "sha256": digest,
        "kind": SCRIPT if machine == SCRIPT else "elf" if machine else "",
        "machine": "" if machine == SCRIPT else machine,
        "cni_versions": [],
        "managed": managed is not None,
        "edited": managed is not None and managed.get("sha256") != digest,
        "original": any(record["origin"] == ORIGINAL for record in history),
        "mode": f"{stat.S_IMODE(target.st_mode):04o}",
        "uid": target.st_uid,
        "gid": target.st_gid,
    }
