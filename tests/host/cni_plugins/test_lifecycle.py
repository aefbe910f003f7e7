# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import re

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh


@pytest.mark.parametrize("generation", ["old", "new"])
def test_all_plugins_are_installed_and_removed(host, change, bin_dir, generations, generation):
    source = str(generations[generation])
    names = sorted(os.listdir(source))
    made = change(["make_directory"] + ["install"] * len(names), ["installed"] * len(names), names, src=source)
    assert sh(f"diff -r {source} {bin_dir}") == ""
    assert sh(f"find {bin_dir} -not '(' -perm 0755 -user root -group root ')'") == ""
    (bridge,) = [plugin for plugin in made.run["plugins"] if plugin["name"] == "bridge"]
    assert "1.0.0" in bridge["cni_versions"]

    removed = host.run("cni_plugins", state="restored")
    assert [plugin["action"] for plugin in removed["plugins"]] == ["removed"] * len(names)
    again = host.run("cni_plugins", state="restored")
    assert not again["changed"]
    assert again["plugins"] == []
    assert sh(f"find {bin_dir} -type f") == ""


def test_an_upgrade_is_undone_one_version_back_and_no_further(host, change, bin_dir, old, new):
    host.run("cni_plugins", src=old, plugins=["bridge", "host-local", "ptp"])
    upgraded = change(
        ["replace", "install", "replace"],
        ["replaced", "installed", "replaced"],
        ["bridge", "dummy", "host-local", "ptp"],
        src=new,
        plugins=["bridge", "dummy", "host-local"],
    )
    assert "1.1.0" in upgraded.run["plugins"][0]["cni_versions"]
    before, after = (upgraded.run["diff"][0][side] for side in ("before", "after"))
    digest = "version unknown, sha256 [0-9a-f]{12}\n"
    assert re.fullmatch(f"bridge: {digest}host-local: {digest}", before)
    assert re.fullmatch(f"bridge: {digest}dummy: version unknown\nhost-local: {digest}", after)

    back = host.run("cni_plugins", state="restored", plugins=["bridge", "dummy", "host-local"])
    assert [plugin["action"] for plugin in back["plugins"]] == ["restored", "removed", "restored"]
    assert not host.run("cni_plugins", state="restored", plugins=["bridge", "dummy", "host-local"])["changed"]
    assert not host.run("cni_plugins", src=old, plugins=["bridge", "host-local", "ptp"])["changed"]

    all_the_way = host.run("cni_plugins", state="restored", force=True)
    assert [plugin["action"] for plugin in all_the_way["plugins"]] == ["removed"] * 3
    assert sh(f"find {bin_dir} /var/lib/podwire/state/objects -type f") == ""


def test_what_somebody_has_changed_is_repaired(host, change, bin_dir, new):
    names = ["bandwidth", "bridge", "host-local", "loopback", "portmap", "ptp"]
    host.run("cni_plugins", src=new, plugins=names)
    inode = (bin_dir / "portmap").stat().st_ino
    sh(
        f"""
        cd {bin_dir}
        cp /bin/true bandwidth
        truncate --size 1000 bridge
        ln -sf /bin/false host-local
        rm loopback
        chmod 0700 portmap
        chown 1:1 ptp
        """
    )
    repaired = change(
        ["replace", "replace", "replace", "install", "set_attributes", "set_attributes"],
        ["replaced", "replaced", "replaced", "installed", "attributes", "attributes"],
        names,
        src=new,
        plugins=names,
    )
    assert {step["class"] for step in repaired.run["actions"]} == {"safe"}
    lines = [repaired.run["diff"][0][side].splitlines() for side in ("before", "after")]
    assert [side[-2:] for side in lines] == [
        ["portmap: mode 0700", "ptp: owner 1:1"],
        ["portmap: mode 0755", "ptp: owner 0:0"],
    ]
    assert sh(f"find {bin_dir} -not -perm 0755 -o -not -user root -o -not -group root") == ""
    assert (bin_dir / "portmap").stat().st_ino == inode, "only its mode was wrong"

    # What was in the place of a plugin does not come back, and is kept.
    away = host.run("cni_plugins", state="restored")
    assert {plugin["action"] for plugin in away["plugins"]} == {"removed"}
    assert os.listdir(bin_dir) == []
    assert sh("sha256sum < /bin/true").split()[0] in os.listdir("/var/lib/podwire/state/objects")
