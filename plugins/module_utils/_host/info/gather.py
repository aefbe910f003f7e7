# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that ``cni_info`` tells about a host."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence

from ..confdir import plugins_in, scan_conf_dir
from ..errors import HostError
from ..hostview import HostView
from ..manifest import Manifest
from ..plan import workers_of
from ..problems import ERROR, WARNING, Finding, rows, unreadable
from . import conf

# Each is None in the result unless it is gathered.
_KEYS = (
    "conf",
    "plugins",
    "attachments",
    "leases",
    "kernel",
    "audit",
    "garbage",
    "runtime",
    "aside",
    "pools",
    "readiness",
)


def gather(params: Mapping[str, Any], sets: Sequence[str]) -> Dict[str, Any]:
    """Return the result of cni_info for *params*, its options, and these *sets*; None for others.

    What cannot be read is in ``problems``.
    """
    wanted = set(sets)
    result: Dict[str, Any] = dict.fromkeys(_KEYS)
    problems: List[Finding] = []

    def attempt(read: Callable[[], Any], otherwise: Any, file: str = "") -> Any:
        """Return the result of *read*. What it cannot read becomes a problem and does not hide the rest."""
        try:
            return read()
        except HostError as error:
            problems.append(unreadable(error, ERROR, file=file))
            return otherwise

    manifest = Manifest()
    if manifest.error is not None:
        problems.append(unreadable(manifest.error, ERROR))
    conf_dir, needed = params["conf_dir"], wanted & {"conf", "leases", "runtime", "readiness"}
    files = attempt(lambda: scan_conf_dir(conf_dir), [], conf_dir) if needed else []
    nothing: Any = (None, [])
    if "conf" in wanted:
        result["conf"], findings = attempt(lambda: conf.conf(files, conf_dir, manifest), nothing)
        problems.extend(findings)
        result["aside"] = conf.aside(conf_dir, manifest)
    if "plugins" in wanted:
        result["plugins"], findings = attempt(lambda: conf.plugins(params["bin_dirs"], manifest, workers_of()), nothing)
        problems.extend(findings)
    if wanted & {"attachments", "leases", "kernel", "garbage", "audit"}:
        # Imported late: these modules take long to compile and are not always needed.
        from ..attachments.caches import HostStores

        stores = HostStores(params["cache_dir"])
    if wanted & {"attachments", "leases", "kernel"}:
        from . import attachments

        networks = attempt(lambda: plugins_in(files), [])
        cache = attachments.AttachmentsInfo(stores)
        if "attachments" in wanted:
            result["attachments"] = attempt(lambda: attachments.attachments(cache), None)
            problems.extend(cache.problems)
        if "leases" in wanted:
            leases = attempt(lambda: attachments.leases(stores, networks, cache.entries), (None, None, []))
            result["leases"], result["pools"], findings = leases
            problems.extend(findings)
        if "kernel" in wanted:
            from .kernel import kernel

            result["kernel"], findings = attempt(lambda: kernel(cache.entries, params["cache_dir"]), nothing)
            problems.extend(findings)
    if "garbage" in wanted:
        from .garbage import garbage

        result["garbage"], findings = garbage(conf_dir, params["bin_dirs"], stores)
        problems.extend(findings)
    if "audit" in wanted:
        from ..trials.audit import Audit

        audit = Audit(params["bin_dirs"], stores)
        result["audit"] = attempt(audit.run, None)
        problems.extend(Finding(WARNING, code, text) for code, text in audit.problems)
    if wanted & {"runtime", "readiness"}:
        from ..runtimes.effective import Effective

        effective = attempt(lambda: Effective(None, conf_dir, params["bin_dirs"], files, HostView(manifest)), None)
        if "runtime" in wanted and effective is not None:
            result["runtime"] = attempt(effective.rows, None)
            for row, file in zip(result["conf"] or [], files):
                row["used_by"] = effective.users_of(file)
        if "readiness" in wanted and effective is not None:
            from ..trials.readiness import Readiness

            examined = effective, effective.runtimes, params["bin_dirs"]
            result["readiness"] = attempt(lambda: Readiness(*examined).rows(), None)
    result["problems"] = rows(problems)
    return result
