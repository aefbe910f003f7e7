# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The modules against a real host: namespaces of this machine, with real plugins and runtimes.

`./run test host` runs these tests with tests/private.sh.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import subprocess
import sys
import zlib
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

from ansible_collections.podwire.cni.tests.host.host import COLLECTION, Host, sh, wait_until

# What a host shows of networks and of this collection. Nothing of it may outlive a file of tests.
LOOK = r"""
ip -oneline link | sed 's/@.*//; s/: <.*//' | cut -d: -f2
ip -oneline address show scope global
ip route
ls -A /run/netns
{ readlink /proc/[0-9]*/task/*/ns/net || true; } 2>/dev/null | sort -u
find /etc/cni /opt/cni /var/lib/cni /var/lib/podwire /etc/containers /etc/containerd 2>/dev/null || true
nft list ruleset 2>/dev/null | grep -E '^table|comment' || true
"""


def pytest_collection_modifyitems(config, items):
    """With PODWIRE_SAMPLE, as in the gate, run each test with one generation of plugins, and one containerd of several.

    Which depends on its name.
    """
    if not os.environ.get("PODWIRE_SAMPLE"):
        return
    alternatives = defaultdict(list)
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        given = (entry for entry in parameters.items() if entry[0] not in ("generation", "newer"))
        # The text of a function has its address, which is another one in each run.
        others = sorted((name, getattr(value, "__name__", str(value))) for name, value in given)
        alternatives[item.path, item.originalname, str(others)].append(item)
    kept = {same[zlib.crc32(repr(name[1:]).encode()) % len(same)].nodeid for name, same in alternatives.items()}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


@pytest.fixture(scope="session", autouse=True)
def _private() -> None:
    assert os.uname().nodename == "podwire-private", "these tests change the host: run them with tests/private.sh"
    # dpkg reads the list of each package for each question, and a machine of a developer has hundreds.
    sh("mount -t tmpfs podwire-private /var/lib/dpkg; mkdir /var/lib/dpkg/{info,updates}; touch /var/lib/dpkg/status")


@pytest.fixture(scope="module", autouse=True)
def _as_before(_private):
    before = sh(LOOK)
    yield
    # A socket of a test keeps the namespace of its container, until it is collected.
    gc.collect()
    # What rehearsals have shown is remembered, and forgotten by whoever looks next.
    shutil.rmtree("/run/podwire-cni/rehearsals", ignore_errors=True)
    # The kernel removes what was in a namespace a moment after it.
    with contextlib.suppress(AssertionError):
        wait_until(lambda: sh(LOOK) == before, 10)
    assert sh(LOOK) == before, "the tests of this file left something on the host"


@pytest.fixture(scope="session")
def settings():
    """The variables that playbooks of tests get, too: where plugins and runtimes are."""
    return yaml.safe_load((COLLECTION / "tests" / "integration" / "integration_config.yml").read_text())


@pytest.fixture(scope="session")
def generations(settings):
    """The directories of the plugins of both generations, ``old`` (1.1.1) and ``new`` (1.9.1).

    They are copies, because modules run only files of root, and a user may own the cache.
    """
    copies = {}
    for name in ("old", "new"):
        copies[name] = Path("/run/home/plugins", name)
        if not copies[name].exists():
            shutil.copytree(settings[f"cni_test_plugins_{name}"], copies[name])
    return copies


@pytest.fixture(params=["old", "new"])
def generation(request) -> str:
    """The generation of the plugins; ``pytest.mark.parametrize("generation", ["new"])`` takes one of them."""
    return request.param


@pytest.fixture(scope="session")
def host() -> Host:
    folder = Path("/run/home/host")
    folder.mkdir(exist_ok=True)
    return Host(folder)


@pytest.fixture
def work(tmp_path) -> Path:
    """An empty directory for what a test needs."""
    return tmp_path


@pytest.fixture(scope="module")
def newer(request, settings) -> list[str]:
    """The containerd that is newer than 1.6, if a test has one: the Debian suite that it comes from, or None."""
    suite = getattr(request, "param", None)
    return [path for path in settings["cni_test_containerds"] if Path(path).name == suite]


@pytest.fixture(scope="module")
def runtimes(settings, newer):
    """A real containerd, which runs, and a real podman, as if installed, with the plugins of the older generation.

    Return a function that runs a command of tests/real/runtimes/installed.py, and returns what it prints.
    """

    def run(*words: str) -> str:
        program = COLLECTION / "tests" / "real" / "runtimes" / "installed.py"
        done = subprocess.run(
            [sys.executable, "-B", program, *words],
            check=False,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout.strip()

    try:
        sh(
            f"""
            mkdir -p /etc/cni/net.d /opt/cni/bin
            cp --no-preserve=ownership {settings["cni_test_plugins_old"]}/* /opt/cni/bin/
            """
        )
        run("install", settings["cni_test_runtimes"], *newer)
        run("start")
        yield run
    finally:
        run("uninstall")
        sh("nft flush ruleset; rm -rf /etc/cni /opt/cni /var/lib/cni /var/lib/podwire")
