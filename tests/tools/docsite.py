# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the docs site: docsite.py OUTPUT.

The pages are the Markdown files that GitHub shows, too, and what antsibull-docs makes of the documentation of modules,
roles and plugins. docs/README.md, the table of contents, is also that of the site. Every warning of Sphinx is an error,
and so is a page that loads something from elsewhere.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCSITE = ROOT / "docs" / "docsite"
REPOSITORY = "https://github.com/podwire/podwire.cni/blob/main/"
NAMESPACE, NAME = "podwire", "cni"
COLLECTION = f"collections/{NAMESPACE}/{NAME}"
FENCE = re.compile(r"^[ \t]*```.*?^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(`[^`\n]*`)|(\]\()([^)\s]+)(\))")


def pages(root: Path = ROOT) -> dict[Path, str]:
    """Return the Markdown files of the site, and what each is called there, without extension."""
    found = {root / "docs" / "docsite" / "index.md": "index", root / "docs" / "README.md": "contents"}
    for path in sorted((root / "docs").rglob("*.md")):
        folder = path.relative_to(root / "docs").parts[0]
        if folder not in ("contributing", "docsite", "README.md"):
            found[path] = path.relative_to(root / "docs").with_suffix("").as_posix()
    for path in sorted((root / "roles").glob("*/README.md")):
        found[path] = f"roles/{path.parent.name}"
    return found


class Site:
    """The source of the site: where each page goes, and what its links become there."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.pages = pages(root)

    def link(self, page: Path, target: str) -> str:
        """Return what the link *target* of *page* is on the site."""
        path, hash_, anchor = target.partition("#")
        if not path or "://" in target:
            return target
        file = Path(os.path.normpath(page.parent / path))
        here = Path(self.pages[page]).parent
        if file in self.pages:
            return Path(os.path.relpath(f"{self.pages[file]}.md", here)).as_posix() + hash_ + anchor
        name = file.relative_to(self.root).as_posix()
        if name.startswith("docs/images/"):
            return Path(os.path.relpath(name[len("docs/") :], here)).as_posix()
        return REPOSITORY + name + hash_ + anchor

    def text(self, page: Path) -> str:
        """Return a page with links that hold on the site, and with what the site adds to it."""
        text = self._with_links(page, page.read_text(encoding="utf-8"))
        name = self.pages[page]
        if (self.root / "plugins" / "modules" / f"{name}.py").exists():
            title, _newline, rest = text.partition("\n")
            options = f"Options and return values: [podwire.cni.{name}]({COLLECTION}/{name}_module.rst)"
            text = f"{title}\n\n{options}\n{rest}"
        return text + "".join(self._trees(page))

    def _with_links(self, page: Path, text: str) -> str:
        def replaced(match: re.Match[str]) -> str:
            return match[1] or match[2] + self.link(page, match[3]) + match[4]

        parts, end = [], 0
        for fence in FENCE.finditer(text):
            parts += [LINK.sub(replaced, text[end : fence.start()]), fence[0]]
            end = fence.end()
        return "".join([*parts, LINK.sub(replaced, text[end:])])

    def _trees(self, page: Path) -> Iterator[str]:
        """Yield the tables of contents that the navigation shows: those of the site, or the pages of a folder."""
        name = self.pages[page]
        if name == "index":
            yield _tree(["contents"])
            for title, links in self.sections():
                yield _tree([*links, *([f"{COLLECTION}/index"] if title == "Reference" else [])], title)
        children = [other for other in self.pages.values() if other.startswith(f"{name}/") and name != "index"]
        if children:
            yield _tree([os.path.relpath(child, Path(name).parent) for child in children])

    def sections(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the sections of docs/README.md, each with the pages that it links, in order."""
        contents = self.root / "docs" / "README.md"
        seen = set()
        for section in re.split(r"^## ", contents.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            title, _newline, body = section.partition("\n")
            links = []
            for target in re.findall(r"\]\(([^)\s#]+)", body):
                name = self.pages.get(Path(os.path.normpath(contents.parent / target)))
                if name and name not in seen:
                    seen.add(name)
                    links.append(name)
            yield title, links

    def write(self, folder: Path) -> None:
        for page, name in self.pages.items():
            path = folder / f"{name}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text(page), encoding="utf-8")
        shutil.copytree(self.root / "docs" / "images", folder / "images")
        shutil.copytree(self.root / "docs" / "docsite" / "static", folder / "static")
        shutil.copy(self.root / "docs" / "docsite" / "conf.py", folder)
        write_inventory(folder / "ansible.inv", (self.root / "docs" / "docsite" / "ansible-labels.txt").read_text())


def _tree(entries: list[str], caption: str = "") -> str:
    options = f":caption: {caption}\n" if caption else ""
    return "\n```{toctree}\n:hidden:\n" + options + "\n" + "\n".join(entries) + "\n```\n"


def write_inventory(path: Path, labels: str) -> None:
    """Write an inventory for intersphinx, from lines with a label and the address that it leads to."""
    rows = [line.split() for line in labels.splitlines() if line and not line.startswith("#")]
    body = "".join(f"{label} std:label -1 {address} {label}\n" for label, address in rows)
    head = "# Sphinx inventory version 2\n# Project: Ansible\n# Version: \n"
    path.write_bytes(
        f"{head}# The remainder of this file is compressed using zlib.\n".encode() + zlib.compress(body.encode())
    )


class Foreign(HTMLParser):
    """Collects what a page loads from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        address = values.get("src") or (values.get("href") if tag == "link" else None) or ""
        if re.match(r"(https?:)?//", address) and values.get("rel") not in ("canonical", "author"):
            self.found.append(address)


def foreign(folder: Path) -> list[str]:
    """Return what the pages in *folder* load from elsewhere."""
    found = []
    for path in sorted(folder.rglob("*.html")):
        parser = Foreign()
        parser.feed(path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(folder)}: {address}" for address in parser.found]
    return found


# A list of the headings of a page. The theme has one beside the page, and says in red that another is unnecessary.
CONTENTS = re.compile(r"^\.\. contents::\n(?:   :.*\n)*", re.MULTILINE)
CONTENTS_MADE = re.compile(r'<\w+ class="contents[ "]')


def without_contents(folder: Path) -> None:
    """Remove the lists of headings from generated pages."""
    for path in folder.rglob("*.rst"):
        path.write_text(CONTENTS.sub("", path.read_text(encoding="utf-8")), encoding="utf-8")


def without_internal(folder: Path, root: Path = ROOT) -> None:
    """Remove the pages of internal plugins, which are links: ansible-doc hides those, here they are bad redirects."""
    for link in (root / "plugins").glob("*/*.py"):
        if link.is_symlink():
            (folder / f"{link.stem}_{link.parent.name}.rst").unlink()


def build(output: Path) -> int:
    """Build the site in *output*, and return the number of its pages."""
    with tempfile.TemporaryDirectory(prefix="podwire-") as temporary:
        source = Path(temporary, "source")
        source.mkdir()
        Site().write(source)
        options = ["--use-current", "--fail-on-error", "--squash-hierarchy", "--no-add-antsibull-docs-version"]
        generated = source / COLLECTION
        generated.mkdir(parents=True)
        subprocess.run(
            ["antsibull-docs", "collection", *options, "--dest-dir", generated, f"{NAMESPACE}.{NAME}"], check=True
        )
        without_contents(generated)
        without_internal(generated)
        made = Path(temporary, "html")
        jobs = f"--jobs={len(os.sched_getaffinity(0))}"
        subprocess.run(
            ["sphinx-build", "--quiet", "--fail-on-warning", jobs, "--builder=html", source, made], check=True
        )
        loaded = foreign(made)
        if loaded:
            sys.exit("The site loads something from elsewhere:\n" + "\n".join(loaded))
        listed = [path.name for path in made.rglob("*.html") if CONTENTS_MADE.search(path.read_text(encoding="utf-8"))]
        if listed:
            sys.exit("The theme reports an error for the list of headings in these pages:\n" + "\n".join(listed))
        shutil.rmtree(output, ignore_errors=True)
        output.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, output)
    return len(list(output.rglob("*.html")))


if __name__ == "__main__":
    target = Path(sys.argv[1])
    print(f"{build(target)} pages: {target / 'index.html'}")
