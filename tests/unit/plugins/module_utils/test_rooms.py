# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The structure of the code: rooms and their order, public faces, names, sizes, and what each module ships to a host.

docs/contributing/architecture.md describes it. Imports are read from the source, those inside of functions and of
`if TYPE_CHECKING` included.
"""

from __future__ import annotations

import ast
import collections
import operator
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
PLUGINS = ROOT / "plugins"
UTILS = "module_utils"
HOST = f"{UTILS}._host"
# From the bottom to the top; "" are the base files. A room may import from itself and from what is before it.
ORDER = [
    "",
    "kernel",
    "firewall",
    "footprints",
    "binaries",
    "runtimes",
    "checks",
    "networks",
    "attachments",
    "containers",
    "trials",
    "garbage",
    "info",
    "host",
]

# A file is one thing, at most so many lines long, and not cut to fit. The files that may be longer:
LONGEST = 600
LONGER = {
    "tests/unit/plugins/module_utils/_host/firewall/dumps/*": "recorded answers of iptables and nft",
    "tests/unit/plugins/module_utils/libcni/skel/cases.json": "a recording of what Go's skel answered",
    "LICENSES/*": "licences are copied as they are",
    "docs/schemas/*.json": "a published schema has everything in one file",
    "plugins/plugin_utils/_conf/schemas/**/*.json": "a schema has all keys of a plugin, in one file for editors",
    "tests/unit/plugins/module_utils/_host/runtimes/observed.json": "a recording of what real runtimes answered",
    "tests/unit/plugins/module_utils/libcni/multi/multus_cases.json": "a recording of what Multus answered",
}

# module -> the most of (files that Ansible ships, KiB of them, files that are imported at the start).
# A change that needs more says why in its commit; one that needs less may lower them.
PAYLOAD = {
    "cni_attach": (114, 960, 56),
    "cni_conf": (110, 946, 52),
    "cni_gc": (82, 658, 68),
    "cni_host": (187, 1617, 40),
    "cni_info": (151, 1306, 35),
    "cni_netns": (17, 107, 13),
    "cni_plugins": (70, 523, 22),
    "cni_report": (1, 11, 1),
    "cni_smoke": (94, 783, 63),
}


def name_of(path):
    parts = path.relative_to(PLUGINS).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in sorted(PLUGINS.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


def imported(name, nodes):
    """Yield the names below plugins/ that the import statements among *nodes* name; relative ones only."""
    here = name.split(".") if FILES[name].name == "__init__.py" else name.split(".")[:-1]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[: len(here) - node.level + 1] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                full = ".".join([*base, alias.name])
                yield full if full in FILES else ".".join(base)


def eager(tree):
    """Yield the nodes that run when a file is imported."""
    for node in tree.body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield from ast.walk(node) if isinstance(node, (ast.If, ast.Try)) else [node]


GRAPH = {name: set(imported(name, ast.walk(tree))) - {name} for name, tree in TREES.items()}
EAGER = {name: set(imported(name, eager(tree))) - {name} for name, tree in TREES.items()}
ROOM_FILES = [name for name in FILES if name.startswith(HOST + ".")]
MODULES = [name for name in FILES if name.startswith("modules.cni_")]


def room(name):
    parts = name[len(HOST) + 1 :].split(".")
    return parts[0] if len(parts) > 1 or FILES[name].name == "__init__.py" else ""


def face(name):
    found = re.search(r"Public face: ([\w,\s]+)\.", ast.get_docstring(TREES[f"{HOST}.{name}"]))
    return {word.strip() for word in found.group(1).split(",")}


def test_every_room_has_its_place_in_the_order():
    assert {room(name) for name in ROOM_FILES} == set(ORDER)


@pytest.mark.parametrize("name", ROOM_FILES)
def test_imports_go_down_the_rooms(name):
    place = ORDER.index(room(name))
    upwards = [other for other in GRAPH[name] if other in ROOM_FILES and ORDER.index(room(other)) > place]
    assert upwards == []
    outside = [other for other in GRAPH[name] if not other.startswith((HOST, f"{UTILS}.libcni"))]
    assert outside == []


def test_libcni_imports_nothing_of_the_collection_but_itself():
    for name in FILES:
        if name.startswith(f"{UTILS}.libcni"):
            assert [other for other in GRAPH[name] if not other.startswith(f"{UTILS}.libcni")] == [], name


@pytest.mark.parametrize("here", ORDER[1:])
def test_a_room_is_entered_by_its_public_face(here):
    doc = TREES[f"{HOST}.{here}"].body
    assert len(doc) == 1, "the __init__ of a room has a docstring and nothing else"
    used = set()
    for name in FILES:
        if not name.startswith(f"{HOST}.{here}"):
            used |= {other.rpartition(".")[2] for other in GRAPH[name] if other.startswith(f"{HOST}.{here}.")}
    assert used == face(here)


def test_no_files_import_each_other_in_a_circle():
    done = set()

    def visit(name, path):
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name not in done:
            for other in sorted(GRAPH.get(name, ())):
                visit(other, [*path, name])
            done.add(name)

    for name in FILES:
        if name.startswith(UTILS):
            visit(name, [])


def test_a_public_name_means_one_thing():
    places = collections.defaultdict(list)
    for name in ROOM_FILES:
        for node in TREES[name].body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                places[node.name].append(name)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize("name", FILES)
def test_imports_within_the_collection_are_relative(name):
    absolute = [
        node.module
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ansible_collections.podwire.cni")
    ]
    assert absolute == []


def tracked(root):
    """Return the files that git tracks below *root*. Without git: all files, except hidden ones, caches and output."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        listed = ""
    found = [root / name for name in listed.split("\0") if name]
    if not found:
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in ("__pycache__", "output") and name[0] != "."]
            found += [Path(folder, name) for name in names if name[0] != "."]
    return [path for path in found if path.is_file() and not path.is_symlink()]


def too_long(root):
    """Return the text files below *root* that are longer than the limit, without the exceptions."""
    exceptions = {path for pattern in LONGER for path in root.glob(pattern)}
    contents = {path: path.read_bytes() for path in tracked(root) if path not in exceptions}
    # Like git, take a file with a zero byte for binary.
    long = [
        path for path, content in contents.items() if content.count(b"\n") > LONGEST and b"\0" not in content[:8000]
    ]
    return sorted(str(path.relative_to(root)) for path in long)


def test_no_file_is_too_long_to_read():
    assert too_long(ROOT) == []


@pytest.mark.parametrize("git", [True, False])
def test_what_is_too_long_to_read(tmp_path, git):
    long = "a\n" * (LONGEST + 1)
    for name in ("LICENSES/x.txt", "docs/long.md", "docs/pages/long.md", ".cache/x.md", "a/__pycache__/x.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(long)
    (tmp_path / "docs" / "fits.md").write_text(long[2:])
    (tmp_path / "docs" / "picture.png").write_bytes(b"\0" + long.encode())
    if git:
        (tmp_path / ".gitignore").write_text(".cache/\n__pycache__/\n")
        for command in (["init", "--quiet"], ["add", "--all"]):
            subprocess.run(["git", *command], cwd=tmp_path, check=True)
    assert too_long(tmp_path) == ["docs/long.md", "docs/pages/long.md"]


def test_every_exception_of_the_length_exists():
    assert [pattern for pattern in LONGER if not any(ROOT.glob(pattern))] == []


def closure(name, graph):
    found, waiting = set(), [name]
    while waiting:
        current = waiting.pop()
        # Ansible ships the packages of a file, too.
        packages = [".".join(current.split(".")[:end]) for end in range(1, current.count(".") + 1)]
        for other in [current, *packages]:
            if other in FILES and other not in found:
                found.add(other)
                waiting.extend(graph[other])
    return found


@pytest.mark.parametrize("module", MODULES)
def test_what_a_module_ships_and_imports_is_bounded(module):
    shipped, started = closure(module, GRAPH), closure(module, EAGER)
    size = sum(FILES[name].stat().st_size for name in shipped) / 1024
    most = PAYLOAD[module.rpartition(".")[2]]
    assert all(map(operator.le, (len(shipped), size, len(started)), most)), (len(shipped), size, len(started), most)


def test_the_package_of_the_linter_has_all_that_it_imports():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    packages = set(re.findall(r'^  "podwire_cni\.([\w.]+)",$', text, re.MULTILINE))
    files = {name for name in closure("plugin_utils.lint", EAGER) if FILES[name].name != "__init__.py"}
    assert {name.rpartition(".")[0] for name in files} - packages == set()


def test_the_map_names_files_that_exist():
    text = (ROOT / "docs" / "contributing" / "architecture.md").read_text(encoding="utf-8")
    for name in re.findall(r"`((?:plugins|_host|tests)/[\w./]+)`", text):
        path = PLUGINS / UTILS / name if name.startswith("_host/") else ROOT / name
        assert path.exists(), name
    # Others are named by the end of their path.
    files = [path.as_posix() for path in (*PLUGINS.rglob("*.py"), *ROOT.joinpath("tests").rglob("*.py"))]
    for name in re.findall(r"`([\w/]+\.py)`", text):
        assert any(path.endswith(f"/{name}") for path in files), name
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == set(ORDER[1:])


def test_the_glossary_has_the_words_of_the_model():
    def words(page, heading):
        text = (ROOT / "docs" / "contributing" / page).read_text(encoding="utf-8").partition(heading)[2]
        return set(", ".join(re.findall(r"^\| ([\w, ]+) \|", text.partition("\n\n#")[0], re.MULTILINE)).split(", "))

    model = words("architecture.md", "| word | where |\n")
    needed = "attachment network owner object kind state difference cost drift plan step put drop rehearsal alive store"
    assert set(needed.split()) <= model <= words("style.md", "## Glossary\n")


def test_unit_tests_have_the_rooms():
    tests = Path(__file__).parent / "_host"
    assert {path.name for path in tests.iterdir() if path.is_dir() and path.name != "__pycache__"} == set(ORDER[1:])


def test_a_plan_that_is_made_again_knows_nothing_of_the_one_before():
    """After another module has changed the host, a plan with the old readings would do harm, or do things twice."""
    makers = {}
    for path in sorted((PLUGINS / "modules").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "execute":
                makers.setdefault(path.stem, []).append(type(node.args[1]).__name__)
    assert set(makers) >= {"cni_attach", "cni_conf", "cni_gc", "cni_host", "cni_netns", "cni_plugins", "cni_smoke"}
    # A function; a method would belong to a planner that has made a plan already.
    assert {kind for kinds in makers.values() for kind in kinds} <= {"Lambda", "Name"}
