# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of cni_host, as the modules of its sections would have returned it."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping

from .values import rows, table, text

HOST = "host"
"""The name of the result of cni_host among the results of a host."""


def results_of_sections(result: Mapping[str, Any], sections: Iterable[str]) -> dict[str, Any]:
    """Return a result for each of *sections*, without warnings and problems, and with the errors of that section.

    *result* is the result of cni_host, as a task registered it.
    """
    return {name: _section(name, result) for name in sections if name in result}


def failure_of_call(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield why there is no plan; errors of sections are in :func:`results_of_sections`."""
    if result.get("unreachable"):
        yield "unreachable: " + (text(result.get("msg")) or "the reason is unknown")
    elif not isinstance(result.get("plan"), list):
        yield text(result.get("msg")) or "the task failed without a message"


def _section(name: str, result: Mapping[str, Any]) -> dict[str, Any]:
    section = table(result[name])
    errors = list(dict.fromkeys(_errors(name, section)))
    return {
        "actions": [step for step in rows(result.get("plan")) if step.get("section") == name],
        "diff": result.get("diff"),
        "attachments": section.get("attachments"),
        "confirmed": section.get("confirmed"),
        "configured": section.get("configured"),
        "failed": bool(errors),
        "msg": "\n".join(errors),
    }


def _errors(name: str, section: Mapping[str, Any]) -> Iterator[str]:
    # Of several attachments that fail, the section has the first error only.
    for row in [section, *(rows(section.get("attachments")) if name == "attachments" else [])]:
        if row.get("error"):
            yield text(table(row["error"]).get("message")) or "the task failed without a message"
