# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugins of the collection keep the specification, by the suite's own verdict."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import bundle
from ansible_collections.podwire.cni.tests.integration.conformance.conftest import ROOT

CONFIGS = {
    "debug": {},
    "route": {"addroutes": [{"dst": "192.0.2.0/24"}]},
    "hooks": {"add": [{"command": ["/bin/true"]}]},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_plugin_of_the_collection_keeps_the_specification(conformance, tmp_path, name):
    path = tmp_path / f"podwire-{name}"
    source = ROOT / "plugins" / "module_utils" / "_plugins" / f"{name}.py"
    bundle.write(bundle.bundle(str(source)), str(path))
    config = tmp_path / "conf.json"
    config.write_text(json.dumps({"type": path.name, **CONFIGS[name]}))
    judged = conformance(path, "--config", str(config), "--versions", "0.4.0", "1.1.0", "--parallel", "5")
    # As with Go's skel, VERSION answers with the newest version, whichever was asked with.
    assert judged.clauses("failed") == {"version.echo"}, judged.stdout
    assert judged.status == 0, judged.stderr
    assert len(judged.clauses("passed")) > 30
