# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode on a host where the earlier tasks of the play have not made anything yet."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import COLLECTION
from ansible_collections.podwire.cni.tests.host.networks import network

NETWORKS = {"networks": [network("apps", {"type": "ptp", "ipam": {"type": "static"}})]}
WEB = {"attachments": [{"network": "apps", "container_id": "web", "netns": "web"}]}
CONTAINERD = {"runtime": ["containerd"], "configure": {}, "ensure_effective": "apps"}
PACKAGE = {"src": "/usr/lib/no-package", "remote_src": True}
NO_PLUGINS, NO_RUNTIME = ["missing_plugin"] * 2, ["missing_runtime"]
# Each module with its options, and the codes of its warnings. Nobody has the group, only somebody else the directory.
CASES = [
    ("cni_plugins", {**PACKAGE}, ["bad_source"]),
    ("cni_plugins", {**PACKAGE, "src": "/var/cache/no-archive.tgz", "plugins": ["ptp"]}, ["bad_source"]),
    ("cni_plugins", {"src": "{new}", "group": "no-such-group"}, ["bad_group"]),
    ("cni_plugins", {"src": "{new}", "bin_dir": "{theirs}"}, ["unsafe_permissions"]),
    ("cni_plugins", {"state": "absent", "plugins": ["ptp"]}, []),
    ("cni_plugins", {"state": "restored"}, []),
    ("cni_conf", {**NETWORKS, "group": "no-such-group"}, ["bad_group", *NO_PLUGINS]),
    ("cni_conf", {**NETWORKS, **CONTAINERD}, [*NO_RUNTIME, *NO_PLUGINS, "missing_plugin"]),
    ("cni_conf", {"networks": [], **CONTAINERD}, [*NO_RUNTIME, "missing_network"]),
    ("cni_conf", {"networks": [], "ensure_effective": "apps"}, NO_RUNTIME),
    ("cni_conf", {**NETWORKS, "conf_dir": "{theirs}"}, [*NO_PLUGINS, "unsafe_permissions"]),
    ("cni_netns", {"names": ["web"]}, []),
    ("cni_attach", WEB, ["missing_conf_dir", "missing_netns"]),
    ("cni_attach", {**WEB, "conf_dir": "{theirs}"}, ["unsafe_permissions", "missing_network", "missing_netns"]),
    ("cni_smoke", {"networks": ["apps"]}, ["missing_network"]),
    ("cni_smoke", {"conf_dir": "{theirs}"}, ["unsafe_permissions"]),
    ("cni_gc", {"keep_from": ["containerd", "podman"]}, ["missing_source"] * 2),
    ("cni_info", {}, []),
    ("cni_host", {"plugins": PACKAGE, "networks": NETWORKS}, ["bad_source", *NO_PLUGINS]),
    (
        "cni_host",
        {
            "plugins": {"src": "{new}", "bin_dir": "{theirs}", "group": "no-such-group"},
            "networks": {**NETWORKS, "group": "no-such-group"},
            "runtime": CONTAINERD,
            "attachments": WEB,
            "bin_dirs": ["{theirs}"],
        },
        ["unsafe_permissions", "bad_group", *NO_RUNTIME, "missing_netns"],
    ),
]


def filled(value, words):
    """Return *value* with the paths of this test."""
    if isinstance(value, dict):
        return {name: filled(part, words) for name, part in value.items()}
    if isinstance(value, list):
        return [filled(part, words) for part in value]
    return words.get(value, value) if isinstance(value, str) else value


@pytest.mark.parametrize(("module", "options", "codes"), CASES)
def test_what_an_earlier_task_makes_is_a_warning_in_check_mode(host, work, generations, module, options, codes):
    theirs = work / "theirs"
    theirs.mkdir()
    os.chown(theirs, 1, 1)
    words = {"{new}": str(generations["new"]), "{theirs}": str(theirs)}
    places = {"conf_dir": f"{work}/net.d", "bin_dirs": [f"{work}/bin"], "cache_dir": f"{work}/cache"}
    options = filled({**(places if module != "cni_netns" else {}), **options}, words)
    check = host.run(module, check_mode=True, **options)
    assert [row["code"] for row in check.get("findings", [])] == codes
    assert len(check.get("warnings", [])) == len(codes)
    # A run would fail, and the report of a host says so.
    fatal = {"bad_source", "bad_group", "unsafe_permissions"}
    assert {row["code"] for row in check.get("findings", []) if row["level"] == "error"} <= fatal
    assert sorted(path.name for path in work.iterdir()) == ["theirs"]


def test_every_module_is_checked():
    """But for cni_report, which works on the controller."""
    modules = {path.stem for path in Path(COLLECTION, "plugins", "modules").glob("cni_*.py")}
    assert {module for module, _options, _codes in CASES} == modules - {"cni_report"}
