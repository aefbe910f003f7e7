# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Filter cni_summary: what a playbook has done, in a line for each host and one for all of them."""

from __future__ import annotations

from typing import Any, Callable

from ansible.errors import AnsibleFilterError

from ..plugin_utils._report.bounds import plain
from ..plugin_utils.summaries import summaries


def cni_summary(results: Any, active: Any = None, planned: bool = False) -> list[str]:
    """Return the lines about *results*; see the filter's documentation."""
    if not isinstance(results, dict):
        raise AnsibleFilterError("cni_summary: the input must be a mapping from hosts to results")
    if active is not None and not isinstance(active, list):
        raise AnsibleFilterError("cni_summary: active must be a list of hosts")
    try:
        return summaries(plain(results), active, bool(planned))
    except RecursionError as error:
        raise AnsibleFilterError("cni_summary: a result is nested too deeply") from error


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cni_summary": cni_summary}
