# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import shutil
import subprocess

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh


@pytest.fixture(autouse=True)
def _no_leftovers():
    yield
    sh(
        """
        ip -all netns delete
        for bridge in $(ip -oneline link show type bridge | cut -d: -f2); do
          ip link delete $bridge
        done
        nft flush ruleset
        rm -rf /var/lib/podwire /var/lib/cni /run/podwire-cni
        """
    )


@pytest.fixture
def generation():
    """The generation of plugins, unless a test has it as a parameter: only what executes plugins differs."""
    return "new"


@pytest.fixture
def bin_dir(generations, generation):
    return generations[generation]


@pytest.fixture
def host(host, work, bin_dir):
    """The host of a test, whose networks are in ``net.d`` of the test's own directory."""
    return host.with_defaults(conf_dir=f"{work}/net.d", bin_dirs=[str(bin_dir)], cache_dir=f"{work}/cache")


@pytest.fixture
def conf_dir(work):
    path = work / "net.d"
    path.mkdir(mode=0o755)
    return path


@pytest.fixture
def change(host, work):
    """Return a function that makes one change of state, whose steps and actions are given, and returns its results."""

    def look():
        return sh(f"find {work}/net.d -printf '%P %m %U %G %C@ %i\\n' | sort", check=False)

    def make(networks, kinds, actions, **options):
        results = host.change("cni_conf", look, networks=networks, **options)
        assert [step["kind"] for step in results.run["actions"]] == kinds
        assert [entry["action"] for entry in results.run["networks"]] == actions
        assert results.check["networks"] == results.run["networks"]
        return results

    return make


@pytest.fixture
def files(work):
    """Return a function that lists all files of the test with what a change of any of them would change."""
    return lambda: sh(f"find {work} -printf '%p %m %U %G %C@ %i\\n' | sort")


@pytest.fixture
def refuse(host, files):
    """Return a function that expects a refusal, in a run and in a check, and returns the result."""

    def ask(code, words, networks, **options):
        refused = host.refuse("cni_conf", files, code, words, networks=networks, **options)
        assert code in [entry["code"] for entry in refused["problems"] if entry["level"] == "error"]
        return refused

    return ask


@pytest.fixture
def daemon(work):
    """Return a context in which a process of root has a name, and which gives its ID."""

    @contextlib.contextmanager
    def run(name):
        shutil.copy("/bin/sleep", work / name)
        process = subprocess.Popen([work / name, "600"])
        try:
            yield process.pid
        finally:
            process.kill()
            process.wait()

    return run
