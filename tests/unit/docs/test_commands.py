# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Every block of commands (``console``, ``sh``) of a page for users is run, or the line before it says why not.

`./run fresh trixie tutorial` runs the tutorial. What is not marked elsewhere is run here, in the directory of the
collection.
What is not run still names playbooks, variables and commands that exist. tests/docs runs the blocks of YAML.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tutorial

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(
    r"^(?P<skip><!-- not run: [^\n]+ -->\n\s*)?(?P<block>```(?:console|sh)\n.*?^```$)", re.MULTILINE | re.DOTALL
)
PAGES = sorted(
    path
    for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/README.md")]
    if "contributing" not in path.parts and BLOCK.search(path.read_text(encoding="utf-8"))
)
TUTORIAL = ROOT / "docs" / "tutorial.md"
VARIABLES = set(
    re.findall(
        r"\b(?:cni|vm)_\w+",
        "".join(
            path.read_text(encoding="utf-8")
            for path in [*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/meta/argument_specs.yml")]
        ),
    )
)


def blocks(page):
    return list(BLOCK.finditer(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_of_commands(page):
    if page == TUTORIAL:
        assert not any(block["skip"] for block in blocks(page))
        return
    wanted = "\n\n".join(block["block"] for block in blocks(page) if not block["skip"])
    lines = list(tutorial.follow(wanted, ["bash"], [f"cd '{ROOT}'"]))
    assert [line for line in lines if not line.startswith("  [ok] ")] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_name_what_exists(page):
    text = "\n".join(block["block"] for block in blocks(page))
    playbooks = set(re.findall(r"ansible-playbook[^\n]* podwire\.cni\.(\w+)", text))
    assert {name for name in playbooks if not (ROOT / "playbooks" / f"{name}.yml").exists()} == set()
    assert set(re.findall(r"-e ['{\"]*(cni_\w+|vm_\w+)", text)) - VARIABLES == set()
    commands = (ROOT / "run").read_text(encoding="utf-8")
    for name in re.findall(r"\./run ([a-z-]+)", text):
        assert re.search(rf"^  (?:[a-z| -]*\| )?{name}(?: \|[a-z| -]*)?\)", commands, re.MULTILINE), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_who_needs_the_program_of_a_clone_is_told_to_clone(page):
    shown = re.sub("<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    before, needed, _after = shown.partition("./run ")
    assert not needed or "git clone" in before


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_titles_in_output_are_those_of_plays_and_tasks(page):
    text = page.read_text(encoding="utf-8")
    files = [*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/tasks/*.yml")]
    source = text + "".join(path.read_text(encoding="utf-8") for path in files)
    # Ansible prints the tasks that are imported, and not the import.
    names = set(re.findall(r"- name: (.+)\n(?! *ansible\.builtin\.import_)", source))
    assert set(re.findall(r"(?:TASK|PLAY) \[(?:podwire\.cni\.\w+ : )?([^]\n]+)\]", text)) - names == set()


def test_a_block_that_is_not_marked_is_run(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- not run: why -->\n\n```console\n$ false\n```\n\n```sh\ntrue\n```\n")
    assert [bool(block["skip"]) for block in blocks(page)] == [True, False]
