# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Returns the status of a report as exit status: ``python3 drift_status.py REPORT`` (report.json, or its directory).

0: every host is clean. 2: at least one has drifted. 1: the status of at least one is unknown, or the report cannot be
read. Needs only Python 3.8.
"""

from __future__ import annotations

import json
import os
import sys

EXIT = {"clean": 0, "drift": 2, "error": 1}
FORMAT = 1


def main(arguments: list[str]) -> int:
    """Print one sentence and return the exit status."""
    if len(arguments) != 1:
        print("usage: drift_status.py REPORT (report.json, or its directory)", file=sys.stderr)
        return 1
    path = os.path.join(arguments[0], "report.json") if os.path.isdir(arguments[0]) else arguments[0]
    try:
        with open(path, encoding="utf-8") as stream:
            report = json.load(stream)
        if report["format"] != FORMAT:
            raise ValueError(f"its format is {report['format']!r}, but this program reads {FORMAT}")
        status = EXIT[report["status"]]
        counts = {key: int(report["counts"][key]) for key in ("hosts", "drift", "error", "clean")}
    except OSError as error:
        print(f"{path} cannot be read: {error.strerror}", file=sys.stderr)
        return 1
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        print(f"{path} is not a report of podwire.cni ({type(error).__name__}: {error})", file=sys.stderr)
        return 1
    hosts = "1 host" if counts["hosts"] == 1 else f"{counts['hosts']} hosts"
    words = f"{counts['error']} with an error, {counts['drift']} with drift, {counts['clean']} clean"
    print(f"{report['status']}: {hosts}: {words}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
