# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The reasons of the steps of cni_plugins."""

from __future__ import annotations

import os
import re

from ansible_collections.podwire.cni.plugins.module_utils._host.files import Attributes
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.binaries.plugin_host import NEW, OLD
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.explained import reasons

BRIDGE = {"bridge": OLD["bridge"]}
NEWER = {"bridge": NEW["bridge"]}


def test_what_is_missing(plugin_host):
    assert reasons(plugin_host.present(BRIDGE)) == ["does not exist", "not installed"]


def test_another_content(plugin_host):
    plugin_host.put("bridge", OLD["bridge"])
    assert reasons(plugin_host.present(NEWER)) == ["content differs; not known to be newer"]
    text = "sha256 differs from 1.9.1; not known to be newer"
    assert reasons(plugin_host.present(NEWER, release="1.9.1")) == [text]


def test_another_release(plugin_host, monkeypatch):
    plugin_host.apply(plugin_host.present(BRIDGE))
    manifest = plugin_host.manifest()
    (known,) = manifest.versions.values()
    known["release"] = "1.6.2"
    manifest.save()
    assert reasons(plugin_host.present(NEWER, release="1.9.1")) == ["1.6.2 to 1.9.1"]
    assert reasons(plugin_host.present(NEWER, release="1.6.2")) == ["sha256 differs from 1.6.2"]
    assert reasons(plugin_host.present(NEWER)) == ["content differs; not known to be newer"]
    # What is known is about the file that was there.
    plugin_host.put("bridge", OLD["ptp"])
    text = "sha256 differs from 1.9.1; not known to be newer"
    assert reasons(plugin_host.present(NEWER, release="1.9.1")) == [text]


def test_a_diff_names_plugin_and_release(plugin_host):
    def contents(release):
        [entry] = plugin_host.present(NEWER, release=release).diff()
        return entry["before"], entry["after"]

    plugin_host.apply(plugin_host.present(BRIDGE))
    (old, new), digest = contents(""), "bridge: version unknown, sha256 [0-9a-f]{12}\n"
    assert re.fullmatch(digest, old) and re.fullmatch(digest, new) and old != new
    manifest = plugin_host.manifest()
    (known,) = manifest.versions.values()
    known["release"] = "1.6.2"
    manifest.save()
    assert contents("1.9.1") == ("bridge: 1.6.2\n", "bridge: 1.9.1\n")
    [removal] = plugin_host.absent("bridge").diff()
    assert (removal["before"], removal["after"]) == ("bridge: 1.6.2\n", "")
    # The same release with another content.
    assert contents("1.6.2") == (old.replace("version unknown", "1.6.2"), new.replace("version unknown", "1.6.2"))


def test_a_directory_has_one_diff_with_a_line_for_each_plugin(plugin_host):
    directory, new = plugin_host.present(OLD).diff()
    assert directory["before"] == "" and directory["after"]["mode"] == "0755"
    assert (new["before_header"], new["after_header"]) == (plugin_host.bin_dir, "install: not installed")
    assert (new["before"], new["after"]) == ("", "bridge: version unknown\nptp: version unknown\n")
    plugin_host.apply(plugin_host.present(OLD, release="1.1.1"))
    plugin_host.put("ptp", OLD["ptp"], 0o700)
    os.remove(os.path.join(plugin_host.bin_dir, "bridge"))
    [entry] = plugin_host.present({**OLD, "tap": NEW["tap"]}, release="1.1.1").diff()
    assert entry["after_header"] == "install: not installed; set_attributes: mode 0700, want 0755"
    assert entry["before"] == "ptp: mode 0700\n"
    assert entry["after"] == "bridge: 1.1.1\nptp: mode 0755\ntap: 1.1.1\n"


def test_a_link(plugin_host, tmp_path):
    os.makedirs(plugin_host.bin_dir)
    os.symlink(str(tmp_path / "away"), os.path.join(plugin_host.bin_dir, "bridge"))
    assert reasons(plugin_host.present(BRIDGE)) == ["is a symbolic link; not known to be newer"]


def test_mode_and_owner(plugin_host):
    plugin_host.apply(plugin_host.present(BRIDGE))
    plugin_host.put("bridge", OLD["bridge"], 0o700)
    plan = plugin_host.present(BRIDGE)
    assert reasons(plan) == ["mode 0700, want 0755"]
    (entry,) = plan.diff()
    assert (entry["before"], entry["after"]) == ("bridge: mode 0700\n", "bridge: mode 0755\n")
    uid, gid = os.geteuid(), os.getegid()
    plan = plugin_host.present(BRIDGE, attributes=Attributes(0o755, uid + 1, gid))
    assert reasons(plan) == [f"mode 0700, want 0755; owner {uid}:{gid}, want {uid + 1}:{gid}"]


def test_a_removal_and_a_restoration(plugin_host):
    plugin_host.apply(plugin_host.present(BRIDGE))
    plugin_host.apply(plugin_host.present(dict(NEWER, tap=NEW["tap"])))
    assert reasons(plugin_host.absent("bridge")) == ["state is absent"]
    text = "the previous file is wanted; it no longer supports CNI 1.1.0, a downgrade"
    assert reasons(plugin_host.restored()) == [text, "it replaced no file"]
