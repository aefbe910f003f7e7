# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import re

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import PORTMAP, host_local, network

APPS = network("apps", {"type": "bridge", "bridge": "apps0", "mtu": 1500, "ipam": host_local("10.55.0.0/24")}, PORTMAP)
SINGLE = '{\n\t"cniVersion": "1.0.0",\n\t"name": "single",\n\t"type": "loopback"\n}\n'
EDGE_WRITTEN = """\
{
  "name": "edge",
  "plugins": [
    {
      "type": "ptp",
      "mtu": 1500.0,
      "ipam": {
        "type": "host-local",
        "subnet": "10.56.0.0/24"
      }
    }
  ],
  "cniVersion": "0.4.0"
}
"""
# The same in another layout, another order, and with the MTU as another number.
EDGE_BY_HAND = (
    '{"cniVersion":"0.4.0","name":"edge",\n'
    '"plugins":[{"mtu":1500,"type":"ptp","ipam":{"subnet":"10.56.0.0/24","type":"host-local"}}]}'
)


def edge(mtu, subnet="10.56.0.0/24", **options):
    ipam = f'{{"type":"host-local","subnet":"{subnet}"}}'
    text = f'{{"plugins":[{{"type":"ptp","mtu":{mtu},"ipam":{ipam}}}],"cniVersion":"0.4.0"}}'
    return {"name": "edge", "content": text, **options}


@pytest.mark.parametrize("generation", ["old", "new"])
def test_networks_are_created_changed_and_removed(host, work, change, monkeypatch):
    # Relative sources are searched in `files`, beside the play.
    (work / "play" / "files").mkdir(parents=True)
    (work / "play" / "files" / "single.conf").write_text(SINGLE)
    monkeypatch.chdir(work / "play")
    conf_dir = work / "net.d"
    path = conf_dir / "05-edge.conflist"

    made = change(
        [APPS, edge("1500.0", priority=5), {"src": "single.conf"}],
        ["make_directory", "create", "create", "create"],
        ["created"] * 3,
    )
    assert {step["class"] for step in made.run["actions"]} == {"safe"}
    assert sh(f"find {conf_dir} -printf '%P %m %u %g\\n' | sort").splitlines() == [
        " 755 root root",
        "05-edge.conflist 644 root root",
        "10-apps.conflist 644 root root",
        "10-single.conflist 644 root root",
    ]
    assert path.read_text() == EDGE_WRITTEN
    assert len(json.loads((conf_dir / "10-single.conflist").read_text())["plugins"]) == 1

    # Another layout is no difference.
    path.write_text(EDGE_BY_HAND)
    assert not host.run("cni_conf", networks=[edge("1500.0")])["changed"]
    assert path.read_text() == EDGE_BY_HAND

    changed = change([edge(1400)], ["write"], ["updated"])
    assert re.search('"mtu". *1500', changed.run["diff"][0]["before"])
    assert re.search('"mtu". *1400', changed.run["diff"][0]["after"])

    path.chmod(0o600)
    os.chown(path, 1, -1)
    inode = path.stat().st_ino
    change([edge(1400)], ["set_attributes"], ["attributes"])
    assert path.stat().st_ino == inode
    change([edge(1300, priority=30)], ["rename", "write"], ["renamed"])

    moved = change([edge(1300, "10.57.0.0/24")], ["write"], ["updated"])
    assert moved.run["actions"][0]["class"] == "disruptive"
    assert moved.run["networks"][0]["path"] == f"{conf_dir}/30-edge.conflist"

    change(
        [{"name": name, "state": "absent"} for name in ("edge", "apps", "never", "single")],
        ["remove"] * 3,
        ["removed", "removed", "none", "removed"],
    )
    assert list(conf_dir.iterdir()) == []


@pytest.mark.parametrize("generation", ["old"])
def test_a_directory_for_another_tool_keeps_its_group_and_mode_and_root_stays_the_owner(
    host, bin_dir, conf_dir, change
):
    """Plugins and networks that two modules install are what the others of them accept."""
    tools = conf_dir.with_name("bin")
    for path in (conf_dir, tools):
        path.mkdir(exist_ok=True)
        path.chmod(0o750)
        os.chown(path, 0, 1)
    host = host.with_defaults(bin_dirs=[str(tools)])
    host.run("cni_plugins", src=str(bin_dir), remote_src=True, group="1", mode="0750")
    change([APPS], ["create"], ["created"], bin_dirs=[str(tools)], group="1", mode="0640")
    listed = sh(
        f"find {conf_dir} {tools}/bridge {tools} -maxdepth 0 -printf '%m %u %G\n'; stat -c '%a %u %g' {conf_dir}/*"
    )
    assert listed.splitlines() == ["750 root 1", "750 root 1", "750 root 1", "640 0 1"]
    assert host.run("cni_info", gather=["conf", "plugins"])["problems"] == []


@pytest.mark.parametrize("options", [{"owner": "nobody"}, {"owner": "no-such-user"}, {"mode": "0664"}], ids=str)
def test_what_others_could_change_is_refused_by_the_module_that_would_set_it(host, bin_dir, conf_dir, files, options):
    words = [*options, "what root runs", "use '"]
    plugins = {"src": str(bin_dir), "remote_src": True, "bin_dir": f"{conf_dir}", **options}
    sections = {"plugins": plugins, "networks": {"networks": [APPS], **options}}
    for name, arguments in (("cni_plugins", plugins), ("cni_conf", sections["networks"])):
        host.refuse(name, files, "unsafe_permissions", words, **arguments)
    refused = host.fail("cni_host", **sections)
    assert [refused[name]["error"]["code"] for name in sections] == ["unsafe_permissions"] * 2


def test_a_host_without_plugins_is_checked_with_warnings_and_left_alone(host, work):
    bridge = {"type": "bridge", "ipam": {"type": "host-local", "subnet": "10.55.0.0/24"}}
    arguments = {"bin_dirs": [f"{work}/no_bin"], "networks": [network("apps", bridge)]}
    predicted = host.run("cni_conf", check_mode=True, **arguments)
    assert predicted["changed"]
    assert [step["kind"] for step in predicted["actions"]] == ["make_directory", "create"]
    assert [entry["code"] for entry in predicted["problems"]] == ["missing_plugin", "missing_plugin"]
    assert [entry["pointer"] for entry in predicted["problems"]] == ["/plugins/0/type", "/plugins/0/ipam/type"]
    assert len(predicted["warnings"]) == 2

    assert host.fail("cni_conf", **arguments)["code"] == "missing_plugin"
    assert not (work / "net.d").exists()
