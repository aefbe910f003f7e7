# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints a playbook made of the examples in Markdown pages: examples.py PAGE...

Taken are the yaml blocks that are a list of tasks or a list of plays, in their order. Left out are a block after the
line `<!-- not run: REASON -->`, and blocks that are neither (variables, inventories).
"""

from __future__ import annotations

import json
import re
import sys

import yaml

BLOCK = re.compile(r"^(?P<skip><!-- not run: [^\n]+ -->\n\s*)?```yaml\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(text: str) -> list[list[dict]]:
    """Return the blocks of a page that are to be run, parsed."""
    found = []
    for block in BLOCK.finditer(text):
        parsed = yaml.safe_load(block["text"])
        if not block["skip"] and isinstance(parsed, list) and all(isinstance(entry, dict) for entry in parsed):
            found.append(parsed)
    return found


def playbook(pages: list[str]) -> list[dict]:
    """Return the plays that run the examples of all *pages* one after another."""
    plays = []
    for page in pages:
        with open(page, encoding="utf-8") as stream:
            blocks = examples(stream.read())
        for number, block in enumerate(blocks, 1):
            if "hosts" in block[0] or "ansible.builtin.import_playbook" in block[0]:
                plays.extend(block)
            else:
                name = f"Example {number} of {page}"
                plays.append({"name": name, "hosts": "all", "gather_facts": False, "become": True, "tasks": block})
    return plays


if __name__ == "__main__":
    # JSON is YAML, and keeps strings strings.
    print(json.dumps(playbook(sys.argv[1:]), indent=2))
