# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Runtimes that cni_conf makes read a directory of networks. Roles and playbooks are in tests/play/test_runtime.py."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import host_local, network

CONFIGURATIONS = [Path("/etc", name) for name in ("containerd", "crio", "nomad.d", "containers")]
BRIDGE = {"type": "bridge", "bridge": "pwrpods0", "ipam": host_local("10.97.0.0/24")}
PODS = network("pwrpods", BRIDGE, version="0.4.0")


@pytest.fixture(scope="module")
def nets(tmp_path_factory):
    """A directory where no runtime looks, for the network pwrpods."""
    return tmp_path_factory.mktemp("nets")


@pytest.fixture(scope="module")
def bins(generations):
    """The plugins, where no runtime looks either."""
    return generations["old"]


@pytest.fixture(scope="module")
def host(host, nets, bins):
    host = host.with_defaults(conf_dir=str(nets), bin_dirs=[str(bins)])
    host.run("cni_conf", networks=[PODS])
    yield host
    shutil.rmtree("/var/lib/podwire", ignore_errors=True)


@pytest.fixture
def configurations():
    """Return a function that reads all files of the runtimes' configurations; a directory has none as content."""

    def look():
        paths = [path for folder in CONFIGURATIONS if folder.exists() for path in (folder, *folder.rglob("*"))]
        return {str(path): None if path.is_dir() else path.read_bytes() for path in paths}

    return look


@pytest.fixture
def sbin():
    """The first directory in PATH, for programs of a test."""
    sh("mount -t tmpfs -o mode=0755 podwire-runtime /usr/local/sbin")
    yield Path("/usr/local/sbin")
    sh("umount /usr/local/sbin")


@pytest.fixture
def crio(sbin, host, bins):
    """CRI-O is installed, reads the directory of *host*, and searches that of *bins*."""
    shutil.copy("/bin/true", sbin / "crio")
    folder = Path("/etc/crio")
    folder.mkdir()
    text = f'[crio.network]\nnetwork_dir = "{host.defaults["conf_dir"]}"\nplugin_dirs = ["{bins}"]\n'
    (folder / "crio.conf").write_text(text)
    yield
    shutil.rmtree(folder)
