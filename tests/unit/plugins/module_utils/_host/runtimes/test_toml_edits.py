# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import toml
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.toml import (
    with_import,
    with_setting,
    without_managed_lines,
)

CNI = ["plugins", "io.containerd.grpc.v1.cri", "cni"]
LAYOUTS = [
    "version = 2\n",
    "version = 2",
    '[plugins]\n  [plugins."io.containerd.grpc.v1.cri".cni]\n    bin_dir = "/usr/lib/cni"  # theirs\n[grpc]\nuid = 1\n',
    "[plugins.'io.containerd.grpc.v1.cri'.cni]  # x\n\tconf_dir = '/a'\n\t\"bin_dir\"='b'\n",
    'version = 2\r\n[plugins."io.containerd.grpc.v1.cri".cni]\r\n  bin_dir = "/usr/lib/cni"\r\n',
    '# [plugins."io.containerd.grpc.v1.cri".cni]\ntext = """\n[grpc]\n"""\n',
]


@pytest.mark.parametrize("text", LAYOUTS)
def test_a_setting_comes_in_and_goes_out_again(text):
    changed = with_setting(text, CNI, "bin_dir", "/opt/cni/bin")
    changed = with_setting(changed, CNI, "max_conf_num", 2)
    cni = toml.load_toml(changed)["plugins"]["io.containerd.grpc.v1.cri"]["cni"]
    assert (cni["bin_dir"], cni["max_conf_num"]) == ("/opt/cni/bin", 2)
    assert without_managed_lines(changed).rstrip("\n") == text.rstrip("\n")


def test_the_line_that_was_there_is_kept_beside_ours():
    changed = with_setting(LAYOUTS[2], CNI, "bin_dir", "/b")
    assert '    bin_dir = "/b"  # podwire.cni, before:     bin_dir = "/usr/lib/cni"  # theirs\n' in changed
    assert with_setting(changed, CNI, "bin_dir", "/b") == changed


@pytest.mark.parametrize(
    "text",
    [
        '[plugins."io.containerd.grpc.v1.cri"]\ncni = { bin_dir = "/a" }\n',
        '[plugins."io.containerd.grpc.v1.cri"]\ncni.bin_dir = "/a"\n',
        "plugins = 1\n",
        '[plugins."io.containerd.grpc.v1.cri".cni]\nbin_dir = """\n/a"""\n',
    ],
)
def test_a_layout_that_cannot_be_changed_is_said_with_what_to_write(text):
    with pytest.raises(HostError) as caught:
        with_setting(text, CNI, "bin_dir", "/b")
    assert caught.value.code == "not_understood"
    if text.startswith("["):
        assert 'set bin_dir = "/b" in [plugins."io.containerd.grpc.v1.cri".cni]' in caught.value.msg


@pytest.mark.parametrize(
    ("text", "imports"),
    [
        ("version = 2\n[grpc]\nuid = 1\n", ["/d"]),
        ("version = 2\nimports = ['/a', \"/b\"] # x\n", ["/a", "/b", "/d"]),
        ('imports = [\n  "/a",\n  "/b",\n]\n', ["/a", "/b", "/d"]),
        # The last entry has no comma, and a line of ours goes as a whole.
        ('imports = [ # x\n  "/a",\n  "/b"\n]\n', ["/d", "/a", "/b"]),
        ("imports = [\n]\n", ["/d"]),
    ],
)
def test_an_import_comes_in_and_goes_out_again(text, imports):
    changed = with_import(text, "/d")
    assert toml.load_toml(changed) == dict(toml.load_toml(text), imports=imports)
    assert without_managed_lines(changed) == text


def test_imports_in_another_layout_are_said():
    with pytest.raises(HostError, match="imports = "):
        with_import('imports = ["/a",\n "/b"]\n', "/d")
