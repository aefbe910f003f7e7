# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter cni_report: create the report of a fleet from the records of its hosts."""

from __future__ import annotations

from typing import Any, Callable

from ansible.errors import AnsibleFilterError

from ..plugin_utils._report.bounds import bounded
from ..plugin_utils._report.fleet import fleet, to_json
from ..plugin_utils._report.page import render

FORMATS = {"json": to_json, "html": render}


def cni_report(records: Any, format: str = "json") -> str:
    """Return the report of *records*; see the filter's documentation."""
    if format not in FORMATS:
        raise AnsibleFilterError(f"cni_report: format must be 'json' or 'html', not {format!r}")
    if not isinstance(records, list):
        raise AnsibleFilterError("cni_report: the input must be a list of host records")
    return FORMATS[format](fleet(map(bounded, records)))


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cni_report": cni_report}
