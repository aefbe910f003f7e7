# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Says by its exit status what a report says: ``python3 drift_status.py REPORT`` (report.json, or its folder).

0: every host is as it is to be. 2: at least one is not. 1: of at least one that is not known, or the report cannot be
read. Needs nothing but Python 3.8.
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
        print("usage: drift_status.py REPORT (report.json, or the folder that it is in)", file=sys.stderr)
        return 1
    path = os.path.join(arguments[0], "report.json") if os.path.isdir(arguments[0]) else arguments[0]
    try:
        with open(path, encoding="utf-8") as stream:
            report = json.load(stream)
        if report["format"] != FORMAT:
            raise ValueError("its format is %r, and this program reads %d" % (report["format"], FORMAT))
        status = EXIT[report["status"]]
        counts = {key: int(report["counts"][key]) for key in ("hosts", "drift", "error", "clean")}
    except OSError as error:
        print("%s cannot be read: %s" % (path, error.strerror), file=sys.stderr)
        return 1
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        print("%s is no report of podwire.cni (%s: %s)" % (path, type(error).__name__, error), file=sys.stderr)
        return 1
    words = "%(hosts)d host%(s)s: %(error)d with an error, %(drift)d with drift, %(clean)d clean" % dict(
        counts, s="" if counts["hosts"] == 1 else "s"
    )
    print("%s: %s" % (report["status"], words))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
