# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import Change, sh


@pytest.fixture
def bin_dir() -> Path:
    return Path("/opt/cni/bin")


@pytest.fixture(scope="session")
def host(host):
    return host.with_defaults(bin_dirs=["/opt/cni/bin"])


@pytest.fixture(autouse=True)
def _clean():
    yield
    for path in ("/opt/cni", "/var/lib/podwire"):
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def old(generations) -> str:
    return str(generations["old"])


@pytest.fixture(scope="session")
def new(generations) -> str:
    return str(generations["new"])


@pytest.fixture
def look(bin_dir):
    """Return a function that lists the plugins, or other *paths*, with modes, owners, times of change and inodes."""

    def find(*paths):
        listed = " ".join(str(path) for path in paths or [bin_dir])
        return sh(f"find {listed} -printf '%p %m %U %G %C@ %i %l\\n' 2>/dev/null || true")

    return find


@pytest.fixture
def change(host, bin_dir, look):
    """Return a function that makes one change and returns its results.

    *kinds* are those of the steps, *actions* those of the plugins, *files* are in the directory afterwards. This is not
    host.change: only a run can tell which versions a new plugin supports, and the second run may note in the state
    directory what it has found out.
    """

    def make(kinds, actions, files, **options):
        def state():
            return look(bin_dir, "/var/lib/podwire")

        before = state()
        check = host.run("cni_plugins", check_mode=True, diff=True, **options)
        assert state() == before, "the check changed the host"
        run = host.run("cni_plugins", diff=True, **options)
        after = look()
        again = host.run("cni_plugins", diff=True, **options)
        assert look() == after, "the second run changed the plugins"
        noted = state()
        check_again = host.run("cni_plugins", check_mode=True, diff=True, **options)
        assert state() == noted, "the second check changed the host"

        assert check["changed"] and run["changed"]
        assert check["actions"] == run["actions"]
        for key in ("name", "path", "sha256", "action"):
            assert column(check, key) == column(run, key)
        assert check["diff"] == run["diff"]
        # The plugins share a diff; that of their directory comes before it.
        assert len(run["diff"]) == (2 if "make_directory" in kinds else 1)
        assert [step["kind"] for step in run["actions"]] == kinds
        assert column(run, "action") == actions
        assert all(plugin["cni_versions"] for plugin in run["plugins"] if plugin["sha256"])
        for result in (again, check_again):
            assert not result["changed"], result
            assert result["actions"] == []
            assert result["diff"] == []
        assert set(column(again, "action")) == {"none"}
        assert column(again, "cni_versions") == column(run, "cni_versions")

        found = {path.name: digest(path) for path in bin_dir.rglob("*") if path.is_file() and not path.is_symlink()}
        assert sorted(found) == sorted(files)
        for plugin in run["plugins"]:
            assert found.get(plugin["name"]) == plugin["sha256"]
        return Change(check, run, again, check_again)

    return make


@pytest.fixture
def refuse(host, bin_dir, look):
    """Return a function that expects a refusal, in a run and in a check, and returns the result."""

    def ask(code, words=(), **options):
        return host.refuse("cni_plugins", lambda: look(bin_dir, "/var/lib/podwire"), code, words, **options)

    return ask


@pytest.fixture(scope="session")
def pack():
    """Return a function that packs plugins as the official archives are.

    They have "./" in the root, owners of a build machine, README and LICENSE.
    """

    def make(folder, archive, by, names=None):
        content = archive.with_name("pack")
        shutil.copytree(folder, content, ignore=lambda _folder, files: set(files).difference(names or files))
        for name, mode in (("README.md", 0o755), ("LICENSE", 0o644)):
            (content / name).write_text("text\n")
            (content / name).chmod(mode)
        sh(f"tar -I '{by}' -cf {archive} --owner 1001 --group 127 -C {content} .")
        shutil.rmtree(content)
        return archive

    return make


def column(result, key):
    return [plugin[key] for plugin in result["plugins"]]


def digest(path):
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
