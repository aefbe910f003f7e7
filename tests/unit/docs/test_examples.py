# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of pages and modules name modules, options, values and roles that exist; tests/docs runs them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    page for page in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/README.md")] if BLOCK.search(page.read_text())
]
# What a name must not begin with; "have" and "let" are verbs that do not say what the task does.
NO_VERBS = {"A", "Have", "It", "Its", "Let", "Nothing", "One", "See", "The", "Their", "There", "They", "Two", "What"}
INCLUDES = [f"{prefix}{word}_role" for word in ("import", "include") for prefix in ("", "ansible.builtin.")]


@pytest.fixture(scope="module")
def modules():
    """The options of each module by its full name, as ansible-doc has them, and its examples."""
    names = sorted(f"podwire.cni.{path.stem}" for path in (ROOT / "plugins" / "modules").glob("cni_*.py"))
    command = [Path(sys.executable).with_name("ansible-doc"), "--type", "module", "--json", *names]
    shown = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return {name: (entry["doc"]["options"], entry["examples"]) for name, entry in shown.items()}


def faults(options, given, where):
    """Yield what is wrong with options of a task; values that are templates are not known before it runs."""
    if not isinstance(given, dict):
        return
    for name, value in given.items():
        if name not in options:
            yield f"{where}{name}: no such option"
            continue
        option = options[name]
        entries = value if isinstance(value, list) else [value]
        for entry in entries:
            if "suboptions" in option:
                yield from faults(option["suboptions"], entry, f"{where}{name}.")
            elif "{{" not in str(entry) and str(entry) not in map(str, option.get("choices") or [str(entry)]):
                yield f"{where}{name}: {entry} is none of its values"


def judge(node, modules):
    """Yield what is wrong with the tasks of a parsed block, wherever they are in it."""
    if isinstance(node, list):
        for entry in node:
            yield from judge(entry, modules)
    elif isinstance(node, dict):
        for name, value in node.items():
            if name.startswith("podwire.cni.cni_"):
                if name not in modules:
                    yield f"{name}: no such module"
                else:
                    yield from faults(modules[name][0], value, f"{name}: ")
            elif name in INCLUDES and "{{" not in str(value):
                role = value["name"] if isinstance(value, dict) else value
                if role.startswith("podwire.cni.") and not (ROOT / "roles" / role.rpartition(".")[2]).is_dir():
                    yield f"{role}: no such role"
            else:
                yield from judge(value, modules)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages(page, modules):
    blocks = [yaml.safe_load(text) for text in BLOCK.findall(page.read_text(encoding="utf-8"))]
    assert list(judge(blocks, modules)) == []


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/howto/*.md")), ids=lambda page: page.stem)
def test_a_how_to_guide_has_whole_files_and_a_way_back(page):
    text = page.read_text(encoding="utf-8")
    assert re.search("^##+ Remove$", text, re.MULTILINE)
    # What another role has is no file of the reader.
    own = re.sub("^<!-- not run: [^\n]*\n+```yaml$.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert [block for block in BLOCK.findall(own) if not re.match(r"# [\w/-]+\.yml\b", block)] == []
    entries = [entry for block in BLOCK.findall(own) for entry in yaml.safe_load(block) if isinstance(entry, dict)]
    assert [entry for entry in entries if "hosts" not in entry and "ansible.builtin.import_playbook" not in entry] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_of_tasks_and_plays_begin_with_a_verb(page):
    blocks = "".join(BLOCK.findall(page.read_text(encoding="utf-8")))
    assert set(re.findall(r"^ *- name: ([A-Z][a-z]*) ", blocks, re.MULTILINE)) & NO_VERBS == set()


def test_modules(modules):
    assert {name: list(judge(yaml.safe_load(examples), modules)) for name, (_options, examples) in modules.items()} == {
        name: [] for name in modules
    }


def test_faults_are_seen(modules):
    task = {"podwire.cni.cni_conf": {"networks": [{"nam": "x", "state": "gone"}], "confdir": "/x"}}
    block = {"podwire.cni.cni_cnf": {}, "block": [{"include_role": {"name": "podwire.cni.network"}}]}
    found = [fault.partition(":")[2] or fault for fault in judge([task, block], modules)]
    assert [fault.split(":")[0].strip() for fault in found] == [
        *("networks.nam", "networks.state", "confdir", "no such module", "no such role"),
    ]
