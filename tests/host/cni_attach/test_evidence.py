# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What somebody sees who follows the evidence of a code of attachments, namespaces and binaries."""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh

pytestmark = pytest.mark.parametrize("generation", ["new"], indirect=True)

FAILS = None
WEB = {"network": "pwatwo", "container_id": "web", "netns": "pwa-web"}
# The code -> what makes the state, the entry, options, and a command with what it prints, or FAILS.
CASES = {
    "missing_conf_dir": ("true", {}, {"conf_dir": "/nosuch/net.d"}, "ls -d /nosuch/net.d", FAILS),
    "missing_network": ("true", {"network": "nosuch"}, {}, "grep '\"name\"' WORK/net.d/* | grep nosuch", FAILS),
    "missing_netns": ("true", {"netns": "pwa-nosuch"}, {}, "stat -f -c %T /run/netns/pwa-nosuch | grep nsfs", FAILS),
    "host_netns": (
        "true",
        {"netns": "/proc/1/ns/net"},
        {},
        "readlink /proc/1/ns/net /proc/self/ns/net | uniq -d",
        "net:[",
    ),
    "ifname_in_use": (
        "ip -n pwa-web link add eth0 type bridge",
        {},
        {},
        "ip -n pwa-web link show eth0",
        "eth0",
    ),
    "missing_plugin": ("true", {}, {"bin_dirs": ["/nosuch/bin"]}, "test -f /nosuch/bin/bridge", FAILS),
}


def follow(command, wanted):
    done = subprocess.run(
        ["bash", "-c", command], check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    seen = f"{command}: {done.returncode}: {done.stdout}"
    assert (done.returncode != 0) if wanted is FAILS else (done.returncode == 0 and wanted in done.stdout), seen


@pytest.mark.parametrize("code", CASES)
def test_the_evidence_is_what_somebody_sees(host, work, code):
    state, entry, options, command, wanted = CASES[code]
    sh(state.replace("WORK", str(work)))
    attachment = {key: value.replace("WORK", str(work)) for key, value in {**WEB, **entry}.items()}
    refused = host.fail("cni_attach", attachments=[attachment], **options)
    assert refused["code"] == code, refused["msg"]
    follow(command.replace("WORK", str(work)), wanted)


def test_a_file_is_no_namespace(host, work):
    """As `ip netns` leaves it where the namespace was unmounted."""
    sh(f"touch {work}/file")
    assert host.fail("cni_attach", attachments=[{**WEB, "netns": f"{work}/file"}])["code"] == "missing_netns"
    follow(f"stat -f -c %T {work}/file | grep nsfs", FAILS)


def test_a_failed_add_quotes_the_plugin(host, write_network):
    write_network("pwabad", [{"type": "die"}])
    refused = host.fail("cni_attach", attachments=[{**WEB, "network": "pwabad"}])
    (row,) = refused["attachments"]
    assert row["error"]["code"] == "add_failed"
    assert row["error"]["plugin"] == "die" and row["error"]["message"]
    assert "stderr" in row["error"]


def test_a_damaged_entry_of_the_cache_is_no_json(host, cache):
    file = cache / "results" / "pwatwo-junk-eth0"
    file.parent.mkdir(parents=True)
    file.write_text("{")
    found = host.run("cni_info", gather=["attachments"])["problems"]
    (damaged,) = [problem for problem in found if problem["code"] == "cache_damaged"]
    assert damaged["file"] == str(file)
    follow(f"python3 -m json.tool {file}", FAILS)


def test_a_lost_entry_of_the_cache_leaves_its_record(host, attach, cache):
    attach(WEB)
    (cache / "results" / "pwatwo-web-eth0").unlink()
    follow(f"ls {cache}/podwire/pwatwo-web-eth0", "pwatwo-web-eth0")
    follow(f"ls {cache}/results/pwatwo-web-eth0", FAILS)
    (row,) = attach(WEB)["attachments"]
    assert (row["action"], row["reason"]) == ("adopted", "lost")
    attach({**WEB, "state": "absent"})
