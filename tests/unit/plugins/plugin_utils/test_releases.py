# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.checksum import parse_checksum
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.trust import MACHINES
from ansible_collections.podwire.cni.plugins.plugin_utils import releases


def test_every_entry_is_a_release_with_different_sha256_of_known_architectures():
    seen = []
    for version, archives in releases.digests().items():
        assert releases.parse_version(version) == version
        assert {"amd64", "arm64"} <= set(archives) <= set(releases.ARCHITECTURES.values())
        seen += archives.values()
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in seen)
    assert len(seen) == len(set(seen)) == 66
    assert set(releases.ARCHITECTURES) <= set(MACHINES.values())


def test_a_release_by_machine():
    assert releases.checksums("1.9.1")["x86_64"].endswith(
        "b98f74a0f8522f0a83867178729c1aa70f2158f90c45a2ca8fa791db1c76b303"
    )
    assert parse_checksum(releases.checksums("1.9.1")["aarch64"])[0] == "sha256"
    assert "arm" not in releases.checksums("1.9.0") and "s390x" not in releases.checksums("1.9.1")
    assert releases.checksums("9.9.9") == {}
    assert releases.urls("1.9.1")["aarch64"] == (
        "https://github.com/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-linux-arm64-v1.9.1.tgz"
    )


@pytest.mark.parametrize("text", ["1.9.1", "v1.9.1", " 1.9.1\n"])
def test_a_leading_v_does_not_matter(text):
    assert releases.parse_version(text) == "1.9.1"


@pytest.mark.parametrize("text", ["1.0", "1", "", "latest", "1.9.1-rc1", "vv1.9.1", "1.9.1/../x", "\u0661.0.0"])
def test_what_is_no_number_of_a_release_is_refused(text):
    with pytest.raises(HostError) as caught:
        releases.parse_version(text)
    assert caught.value.code == "bad_version"


@pytest.mark.parametrize("text, remedy", [("1.6.1", "1.6.2"), ("v1.7.0", "1.7.1"), ("0.7.5", "src")])
def test_bad_releases_are_refused_with_a_remedy(text, remedy):
    with pytest.raises(HostError) as caught:
        releases.parse_version(text)
    assert caught.value.code == "refused_version" and remedy in caught.value.msg
