# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the command of a page that runs a playbook for one host alone: command.py PAGE PLAYBOOK HOST"""

from __future__ import annotations

import html
import re
import shlex
import sys

page, playbook, host = sys.argv[1:]
with open(page, encoding="utf-8") as stream:
    text = stream.read()
section = next(part for part in text.split("<details") if f"<h3><bdi>{html.escape(host)}</bdi></h3>" in part)
commands = [html.unescape(found) for found in re.findall("<code><b>(.*?)</b></code>", section)]
print(next(command for command in commands if f"podwire.cni.{playbook}" in shlex.split(command)))
