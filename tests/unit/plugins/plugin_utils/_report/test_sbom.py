# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._report import sbom as module
from ansible_collections.podwire.cni.plugins.plugin_utils._report.attention import Limits
from ansible_collections.podwire.cni.plugins.plugin_utils._report.fleet import fleet
from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build, unusable
from ansible_collections.podwire.cni.plugins.plugin_utils._report.sbom import sbom

A, B = "a" * 64, "b" * 64
GO = {
    "version": "go1.26.5 X:nocoverageredesign",
    "path": "github.com/x/plugins/plugins/main/bridge",
    "module": "github.com/x/plugins@v1.9.1",
    "modules": ["github.com/y/netlink@v1.3.1+incompatible", "golang.org/x/sys@v0.1.0 => github.com/z/sys@v0.2.0"],
}


def plugin(name, digest, go=None, **more):
    return {"name": name, "path": f"/opt/cni/bin/{name}", "kind": "elf", "sha256": digest, "go": go, **more}


def bill(*hosts):
    records = [build(name, {}, {"plugins": rows}) for name, rows in hosts]
    return json.loads(sbom(fleet([*records, unusable("gone", "no route")], Limits("2026-11-25T00:00:00Z"))))


def test_a_binary_is_there_once_with_its_files_and_modules():
    found = bill(
        ("h1", [plugin("bridge", A, GO)]),
        ("h2", [plugin("bridge", A, GO), plugin("debian", B, {"version": "go1.19.8"})]),
    )
    assert (found["bomFormat"], found["specVersion"], found["metadata"]["timestamp"]) == (
        "CycloneDX",
        "1.5",
        "2026-11-25T00:00:00Z",
    )
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", found["serialNumber"])
    bridge, debian, *libraries = found["components"]
    assert bridge == {
        "type": "application",
        "bom-ref": f"sha256:{A}",
        "name": "bridge",
        "version": "v1.9.1",
        "purl": "pkg:golang/github.com/x/plugins@v1.9.1#plugins/main/bridge",
        "hashes": [{"alg": "SHA-256", "content": A}],
        "properties": [
            {"name": "podwire.cni:file", "value": "h1:/opt/cni/bin/bridge"},
            {"name": "podwire.cni:file", "value": "h2:/opt/cni/bin/bridge"},
        ],
    }
    assert "purl" not in debian
    purls = [
        "pkg:golang/github.com/y/netlink@v1.3.1%2Bincompatible",
        "pkg:golang/github.com/z/sys@v0.2.0",
        "pkg:golang/stdlib@1.19.8",
        "pkg:golang/stdlib@1.26.5",
    ]
    assert [library["purl"] for library in libraries] == [library["bom-ref"] for library in libraries] == purls
    assert found["dependencies"] == [
        {"ref": "fleet", "dependsOn": [f"sha256:{A}", f"sha256:{B}"]},
        {"ref": f"sha256:{A}", "dependsOn": [purls[0], purls[1], purls[3]]},
        {"ref": f"sha256:{B}", "dependsOn": [purls[2]]},
    ]


def test_the_same_plugins_make_the_same_bill():
    rows = [plugin("bridge", A, GO), plugin("ptp", B)]
    one, other = bill(("h", rows)), bill(("h", rows[::-1]))
    assert one == other
    assert one["serialNumber"] != bill(("h", rows[:1]))["serialNumber"]


@pytest.mark.parametrize(
    "row",
    [
        plugin("x", "A" * 64),
        plugin("x", "a" * 63),
        plugin("README", A, kind=""),
        plugin("x", None),
        "no row",
    ],
)
def test_what_is_no_plugin_with_a_digest_is_left_out(row):
    assert bill(("h", [row]))["components"] == []


@pytest.mark.parametrize(
    "go",
    [
        "text",
        {"version": 7, "module": [], "modules": {"a": "b"}},
        {
            "version": "devel",
            "module": "x@(devel)",
            "modules": ["a", "@v1", "a@", "../x@v1.0.0", "a b@v1.0.0", "a@v1.0.0\n"],
        },
        {"version": "go1", "module": "a@v1\x1b[31m", "modules": ["a@v" + "1" * 200, "\ud800@v1.0.0", 7, None]},
    ],
)
def test_a_record_that_is_none_leaves_the_binary_with_its_digest(go):
    (component,) = bill(("h", [plugin("x", A, go)]))["components"]
    assert set(component) == {"type", "bom-ref", "name", "hashes", "properties"}


def test_what_a_host_returns_stays_text():
    found = bill(("h\x1b[31m", [plugin("a\u202eb\x00", A, path="/x\ny")]))
    said = json.dumps(found, ensure_ascii=False)
    assert not re.search("[\x00-\x1f\u202e]", said)
    assert len(bill(("h", [plugin("a" * 5000, A)]))["components"][0]["name"]) == 300


def test_the_bill_is_bounded(monkeypatch):
    for name, most in (("MOST_BINARIES", 3), ("MOST_LIBRARIES", 4), ("MOST_HOSTS", 2)):
        monkeypatch.setattr(module, name, most)
    go = {"version": "go1.26.5", "modules": [f"m{index}@v1.0.0" for index in range(9)]}
    rows = [plugin(f"p{index}", f"{index:064x}", go) for index in range(5)]
    found = bill(*((f"h{index}", rows) for index in range(4)))
    kinds = [component["type"] for component in found["components"]]
    assert (kinds.count("application"), kinds.count("library")) == (3, 4)
    assert {len(one["properties"]) for one in found["components"] if one["type"] == "application"} == {2}
    assert int(found["properties"][0]["value"]) > 0
