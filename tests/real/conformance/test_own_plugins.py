# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The plugin of the collection and the examples keep the specification, by the suite's own verdict."""

from __future__ import annotations

import json
import shutil

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import bundle
from ansible_collections.podwire.cni.tests.real.conformance.conftest import ROOT

CONFIGS = {
    "debug": {},
    "route": {"addroutes": [{"dst": "192.0.2.0/24"}]},
    "hooks": {"add": [{"command": ["/bin/true"]}]},
}


@pytest.fixture
def judge(conformance, tmp_path):
    """Return a function that judges a plugin with a configuration; the words are further options."""

    def run(name, conf, *words):
        path = tmp_path / f"podwire-{name}"
        example = ROOT / "examples" / "plugins" / f"podwire-{name}.py"
        source = example if name in CONFIGS else ROOT / "plugins" / "module_utils" / "_plugins" / f"{name}.py"
        bundle.write(bundle.bundle(str(source)), str(path))
        config = tmp_path / "conf.json"
        config.write_text(json.dumps({"type": path.name, **conf}))
        options = ("--config", str(config), "--versions", "0.4.0", "1.1.0", "--parallel", "5")
        judged = conformance(path, *options, *words)
        # As with Go's skel, VERSION answers with the newest version, whichever was asked with.
        assert judged.clauses("failed") == {"version.echo"}, judged.stdout
        assert judged.status == 0, judged.stderr
        return judged.clauses("passed")

    return run


@pytest.mark.parametrize("name", CONFIGS)
def test_an_example_keeps_the_specification(judge, name):
    assert len(judge(name, CONFIGS[name])) > 30


@pytest.mark.parametrize("generation, version", [("old", "1.0.0"), ("new", "1.1.0")])
def test_podwire_multinet_in_front_of_a_bridge_keeps_the_specification(judge, tmp_path, releases, generation, version):
    """GC collects, which the bridge alone does not: each container has a record."""
    plugins = tmp_path / "plugins"
    shutil.copytree(releases[generation], plugins)
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/16"}]]}
    bridge = {"type": "bridge", "bridge": "pods0", "isGateway": True, "ipam": ipam}
    delegate = {"cniVersion": version, "name": "pods", "plugins": [bridge]}
    passed = judge("multinet", {"delegates": [delegate]}, "--cni-path", str(plugins))
    assert {"gc.collects", "gc.keeps", "del.remains", "check.damage"} <= passed
    assert len(passed) == 39
