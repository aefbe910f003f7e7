# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A report as metrics for Prometheus' textfile collector."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping

from ...module_utils._host.secrets import visible
from .fleet import seconds
from .record import CLASSES, STATUSES, classes_of


def metrics_of(report: Mapping[str, Any]) -> str:
    """Return the metrics of a report in Prometheus' text format."""
    lines: list[str] = []
    hosts = report["hosts"]
    counts = report["counts"]
    classes = {host["host"]: classes_of(host) for host in hosts}
    reasons = [(host["host"], reason["code"]) for host in hosts for reason in host["attention"]]
    metrics: list[tuple[str, str, Iterable[tuple[dict[str, str], int]]]] = [
        ("report_timestamp_seconds", "When the report was made.", _times([({}, report["time"])])),
        ("hosts", "Hosts by status.", [({"status": status}, counts[status]) for status in STATUSES]),
        ("hosts_attention", "Hosts that need attention for any reason.", [({}, counts["attention"])]),
        (
            "steps",
            "Steps that a run would take, by class.",
            [({"class": name}, sum(counted.get(name, 0) for counted in classes.values())) for name in CLASSES],
        ),
        (
            "host_status",
            "The status of each host.",
            [({"host": host["host"], "status": host["status"]}, 1) for host in hosts],
        ),
        (
            "host_steps",
            "Steps that a run would take on a host, by class.",
            [({"host": host, "class": name}, n) for host, counted in classes.items() for name, n in counted.items()],
        ),
        (
            "host_ready",
            "Whether a container started now would get its network; missing if that is not known.",
            [({"host": host["host"]}, int(host["confirmed"])) for host in hosts if host["confirmed"] is not None],
        ),
        (
            "host_attention",
            "Why a clean host needs attention.",
            [({"host": host, "reason": code}, 1) for host, code in dict.fromkeys(reasons)],
        ),
        (
            "host_inspected_timestamp_seconds",
            "When a host was inspected.",
            _times(({"host": host["host"]}, host["time"]) for host in hosts),
        ),
    ]
    for name, text, samples in metrics:
        lines += [f"# HELP podwire_cni_{name} {text}", f"# TYPE podwire_cni_{name} gauge"]
        lines += [f"podwire_cni_{name}{_labels(labels)} {value}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _times(samples: Iterable[tuple[dict[str, str], str]]) -> Iterator[tuple[dict[str, str], int]]:
    for labels, value in samples:
        then = seconds(value)
        if then is not None:
            yield labels, then


def _labels(labels: Mapping[str, str]) -> str:
    shown = {key: visible(value).replace("\\", "\\\\").replace('"', '\\"') for key, value in labels.items()}
    inside = ",".join(f'{key}="{value}"' for key, value in shown.items()).replace("\n", "\\n")
    return f"{{{inside}}}" if inside else ""
