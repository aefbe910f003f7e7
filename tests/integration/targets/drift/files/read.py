# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validates a report and prints what matters of it: read.py SCHEMA REPORT"""

from __future__ import annotations

import json
import sys

from jsonschema import Draft202012Validator

with open(sys.argv[1], encoding="utf-8") as stream:
    schema = json.load(stream)
with open(sys.argv[2], encoding="utf-8") as stream:
    report = json.load(stream)
Draft202012Validator(schema).validate(report)
short = {
    host["host"]: {
        "status": host["status"],
        "error": host["error"] or "",
        "steps": [" ".join((step["kind"], step["target"], step["class"])) for step in host["steps"]],
        "reasons": [step["reason"] for step in host["steps"]],
        "diffs": [step["after"] for step in host["steps"] if "after" in step],
        "networks": [row["network"] for row in (host["info"] or {}).get("conf") or []],
    }
    for host in report["hosts"]
}
print(json.dumps({"status": report["status"], "counts": report["counts"], "hosts": short}))
