# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What somebody sees who follows the evidence of a code of the directory."""

from __future__ import annotations

import json
import subprocess

import pytest

from ansible_collections.podwire.cni.tests.host.cni_conf.networks import network
from ansible_collections.podwire.cni.tests.host.host import sh

FAILS = None
LOOPBACK = {"type": "loopback"}


def text(name, *plugins):
    return json.dumps({"cniVersion": "1.0.0", "name": name, "plugins": [*plugins] or [LOOPBACK]})


def bridge(subnet, name="base0"):
    ipam = {"type": "host-local", "ranges": [[{"subnet": subnet}]]}
    return {"type": "bridge", "bridge": name, "isGateway": True, "ipam": ipam}


# The code -> what is in the directory (DIR), what is on the host, the network of the task, and what the evidence shows:
# words of the message, and commands, each with what it prints; FAILS: its exit status is not 0.
CASES = {
    "duplicate_name": (
        {"80-a.conflist": text("twice"), "90-b.conflist": text("twice")},
        "",
        LOOPBACK,
        [],
        [('grep -l \'"name": *"twice"\' DIR/*', "80-a.conflist\nDIR/90-b.conflist")],
    ),
    "broken_file": ({"90-cut.conflist": "{"}, "", LOOPBACK, ["90-cut.conflist"], []),
    "list_in_conf": (
        {"90-list.conf": text("listed")},
        "",
        LOOPBACK,
        ["90-list.conf"],
        [("grep -c plugins DIR/90-list.conf", "1")],
    ),
    "stray_json": (
        {"90-stray.json": '{"a": 1}'},
        "",
        LOOPBACK,
        ["90-stray.json"],
        [("grep -E 'name|type|plugins' DIR/90-stray.json", FAILS)],
    ),
    "temp_file": ({".ansible_tmpab-x.conflist": "{}"}, "", LOOPBACK, [], [("ls -A DIR", ".ansible_tmpab-x.conflist")]),
    "hidden_file": ({".90-x.conflist": text("hidden")}, "", LOOPBACK, [], [("ls -A DIR", ".90-x.conflist")]),
    "backup_file": ({"90-x.bak.conflist": text("saved")}, "", LOOPBACK, [], [("ls -A DIR", "90-x.bak.conflist")]),
    "single_plugin": (
        {"90-one.conf": '{"cniVersion": "1.0.0", "name": "one", "type": "loopback"}'},
        "",
        LOOPBACK,
        ["90-one.conf"],
        [("grep -c type DIR/90-one.conf", "1"), ("grep plugins DIR/90-one.conf", FAILS)],
    ),
    "master_missing": (
        {},
        "",
        {"type": "macvlan", "master": "nowhere0"},
        ["nowhere0"],
        [("ip link show nowhere0", FAILS)],
    ),
    "bridge_address": (
        {},
        "ip link add base0 type bridge; ip address add 10.66.0.1/24 dev base0",
        bridge("10.62.0.0/24"),
        ["base0"],
        [("ip address show dev base0", "10.66.0.1/24")],
    ),
    "host_overlap": (
        {},
        "ip link add other0 type bridge; ip address add 10.62.0.9/24 dev other0; ip link set other0 up",
        bridge("10.62.0.0/24"),
        ["10.62.0"],
        [("ip address; ip route", "10.62.0.9/24")],
    ),
    "subnet_overlap": (
        {"90-a.conflist": text("other", bridge("10.62.0.0/16", "other0"))},
        "",
        bridge("10.62.0.0/24"),
        ["'other'", "10.62.0.0/24", "10.62.0.0/16"],
        [],
    ),
    "bridge_shared": (
        {"90-a.conflist": text("other", {"type": "bridge", "bridge": "base0"})},
        "",
        bridge("10.62.0.0/24"),
        ["'base'", "base0"],
        [],
    ),
}


@pytest.mark.parametrize("code", CASES)
def test_the_evidence_is_what_somebody_sees(host, conf_dir, code):
    files, state, plugin, words, commands = CASES[code]
    for name, content in files.items():
        (conf_dir / name).write_text(content)
    sh(state)
    result = host.attempt("cni_conf", networks=[network("base", plugin)], check_mode=True)
    found = [problem for problem in result["problems"] if problem["code"] == code]
    assert found, json.dumps(result["problems"], indent=1)
    said = json.dumps(found)
    assert [word for word in words if word not in said] == [], said
    for command, wanted in commands:
        command = command.replace("DIR", str(conf_dir))
        done = subprocess.run(
            ["bash", "-c", command], check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        seen = f"{command}: {done.returncode}: {done.stdout}"
        if wanted is FAILS:
            assert done.returncode != 0, seen
        else:
            assert done.returncode == 0 and wanted.replace("DIR", str(conf_dir)) in done.stdout, seen
