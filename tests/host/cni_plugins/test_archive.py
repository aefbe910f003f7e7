# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import os
import shutil

import pytest

OTHERS = ["bridge", "vlan", "vrf"]


PACKED = {"old": ["bandwidth", "bridge", "vlan"], "new": ["bandwidth", "bridge", "dummy", "tap"]}  # each is megabytes


@pytest.fixture(scope="module")
def archives(tmp_path_factory, pack, old, new):
    folder = tmp_path_factory.mktemp("archives")
    kinds = {"old": (old, folder / "old.tar.xz", "xz -0"), "new": (new, folder / "new.tgz", "gzip -1")}
    return {kind: pack(*how, PACKED[kind]) for kind, how in kinds.items()}


@pytest.fixture(scope="module")
def sha512(archives):
    return f"sha512:{hashlib.sha512(archives['new'].read_bytes()).hexdigest()}"


@pytest.fixture(scope="module")
def sha256(archives):
    return f"sha256:{hashlib.sha256(archives['new'].read_bytes()).hexdigest()}"


def test_all_plugins_of_an_archive_are_installed_without_a_checksum(change, archives):
    names = PACKED["old"]
    kinds = ["make_directory"] + ["install"] * len(names)
    change(kinds, ["installed"] * len(names), names, src=str(archives["old"]))


def test_some_plugins_of_an_archive_are_installed_with_a_checksum(host, change, archives, sha512, old):
    host.run("cni_plugins", src=old, plugins=OTHERS)
    change(
        ["replace", "install"],
        ["replaced", "installed"],
        [*OTHERS, "tap"],
        src=str(archives["new"]),
        checksum=sha512,
        plugins=["tap", "bridge"],
    )


def test_an_archive_is_not_read_if_its_checksum_is_known(host, work, archives, bin_dir, sha512, sha256):
    archive = work / "new.tgz"
    shutil.copy(archives["new"], archive)
    host.run("cni_plugins", src=str(archive), checksum=sha512, plugins=["tap", "bridge"])
    archive.write_text("no archive\n")
    # The other checksum is known as well, since the archive has been read.
    assert not host.run("cni_plugins", src=str(archive), checksum=sha256, plugins=["tap", "bridge"])["changed"]
    # For one more plugin, it is read.
    refused = host.fail("cni_plugins", src=str(archive), checksum=sha256, plugins=["tap", "bridge", "dummy"])
    assert refused["code"] == "checksum_mismatch"
    assert sorted(os.listdir(bin_dir)) == ["bridge", "tap"]


def test_a_plugin_that_is_not_in_the_archive_is_named_with_those_that_are(host, refuse, archives, bin_dir):
    host.run("cni_plugins", src=str(archives["new"]), plugins=["tap"])
    words = ["'flannel'", "bandwidth, bridge, dummy"]
    refuse("missing_member", words, src=str(archives["new"]), plugins=["tap", "flannel"])
    assert os.listdir(bin_dir) == ["tap"]


def test_an_archive_and_a_directory_on_the_host(host, change, archives, old, new):
    host.run("cni_plugins", src=old, plugins=OTHERS)
    change(["install"], ["installed"], [*OTHERS, "dummy"], src=str(archives["new"]), plugins=["dummy"], remote_src=True)
    change(
        ["replace", "replace"],
        ["replaced", "replaced"],
        [*OTHERS, "dummy"],
        src=new,
        plugins=["vlan", "vrf"],
        remote_src=True,
    )
