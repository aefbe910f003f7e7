# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as one self-contained HTML page, on which everything from a host is only text."""

from __future__ import annotations

import base64
import functools
import hashlib
import os
from typing import Any, Mapping

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from ...module_utils._host.secrets import visible
from .record import CLASSES, CLEAN, DRIFT, ERROR, STATUSES
from .view import host_view

FOLDER = os.path.join(os.path.dirname(__file__), "templates")


def render(report: Mapping[str, Any]) -> str:
    """Return the page of a report, as :func:`fleet.fleet` makes it."""
    order = {status: index for index, status in enumerate(STATUSES)}
    ranked = sorted(report["hosts"], key=lambda host: order[host["status"]])
    hosts = [host_view(record, index, len(ranked) == 1) for index, record in enumerate(ranked)]
    times = sorted(host["time"] for host in hosts if host["time"])
    return _template().render(
        report=report,
        hosts=hosts,
        sums=_sums(hosts),
        shares=_shares(report["counts"]),
        first=times[0] if times else "",
        last=times[-1] if times else "",
        style=Markup(_asset("style.css")),
        script=Markup(_asset("script.js")),
        policy=_policy(),
        several=_several,
        shorten=_shorten,
    )


@functools.lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    return environment.get_template("page.html.j2")


@functools.lru_cache(maxsize=None)
def _asset(name: str) -> str:
    with open(os.path.join(FOLDER, name), encoding="utf-8") as stream:
        return stream.read()


@functools.lru_cache(maxsize=1)
def _policy() -> str:
    """Return the Content-Security-Policy: only the style and the script of the page, by their digests."""
    rules = ["default-src 'none'", f"style-src {_hash('style.css')}", f"script-src {_hash('script.js')}"]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _hash(name: str) -> str:
    digest = hashlib.sha256(_asset(name).encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _visible(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def _several(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{format(count, ',')} {one if count == 1 else many or one + 's'}"


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\u2026"


def _sums(hosts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the totals of the fleet."""
    fullest = max((host for host in hosts if host["fill"] is not None), key=lambda host: host["fill"], default=None)
    return {
        "classes": {name: sum(host["classes"].get(name, 0) for host in hosts) for name in CLASSES},
        "vulnerable": sum(bool(host["vulnerable"]) for host in hosts),
        "leaks": sum(host["leaked"] for host in hosts),
        "leaking": sum(bool(host["leaked"]) for host in hosts),
        "fullest": fullest,
        "unconfirmed": sum(host["confirmed"] is False for host in hosts),
    }


def _shares(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the parts of the bar that shows the fleet, out of 1,000."""
    parts, start, total = [], 0.0, max(1, counts["hosts"])
    for status in (ERROR, DRIFT, CLEAN):
        if counts[status]:
            # One host of a thousand must be visible.
            width = max(4.0, counts[status] * 1000 / total)
            parts.append({"status": status, "start": round(start, 1), "width": round(width, 1)})
            start += width
    return parts
