# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dns of a real result, as ``ip netns exec`` shows it to a program in the namespace."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh

LINES = "nameserver 10.67.0.53\nsearch a.example b.example\noptions ndots:2\n"
WEB = {"network": "pwadns", "container_id": "web", "netns": "pwa-web"}
FOLDER = Path("/etc/netns/pwa-web")
FILE = FOLDER / "resolv.conf"


@pytest.fixture
def dns(host, work, bridge, write_network):
    """Write a network whose IPAM plugin reads this resolv.conf."""
    (work / "resolv.conf").write_text(LINES)
    plugin = bridge("pwadns0", "10.67.0.0/24")
    plugin["ipam"]["resolvConf"] = str(work / "resolv.conf")
    write_network("pwadns", [plugin])
    yield
    sh("rm -rf /etc/netns")


@pytest.fixture
def states(host, state):
    """Return a function that makes a change of an attachment in all four states, with what is in /etc/netns."""

    def look():
        return state(), sh("find /etc/netns -printf '%p %m %U %G %C@ %i\\n' | sort", check=False)

    def make(kinds, actions, **entry):
        results = host.change("cni_attach", look, attachments=[{**WEB, **entry}])
        assert [step["kind"] for step in results.run["actions"]] == kinds
        assert [row["action"] for row in results.run["attachments"]] == actions
        return results.run

    return make


def inside():
    return sh("ip netns exec pwa-web cat /etc/resolv.conf")


@pytest.mark.parametrize("generation", ["new"], indirect=True)
def test_it_is_written_kept_and_removed(dns, states):
    before = inside()
    states(["add", "resolv_conf"], ["added"], resolv_conf=True)
    assert inside().partition("\n")[2] == LINES.strip()
    assert sh("stat -c '%a %U' /etc/netns/pwa-web /etc/netns/pwa-web/resolv.conf") == "755 root\n644 root"

    turned_off = states(["resolv_conf"], ["updated"])
    assert turned_off["attachments"][0]["reason"] == "resolv_conf"
    assert not FOLDER.exists()
    assert inside() == before

    states(["resolv_conf"], ["updated"], resolv_conf=True)
    assert inside().partition("\n")[2] == LINES.strip()
    states(["del", "resolv_conf"], ["deleted"], state="absent")
    assert not FOLDER.exists()
    assert inside() == before


@pytest.mark.parametrize("generation", ["new"], indirect=True)
def test_the_file_of_another_origin_stays(dns, host, attach):
    FOLDER.mkdir(parents=True)
    FILE.write_text("nameserver 192.0.2.1\n")
    before = FILE.stat()
    added = attach({**WEB, "resolv_conf": True})["attachments"][0]
    assert [warning["code"] for warning in added["warnings"]] == ["resolv_conf_foreign"]
    assert not attach({**WEB, "resolv_conf": True})["changed"]
    assert attach({**WEB, "state": "absent"})["attachments"][0]["action"] == "deleted"
    after = FILE.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)

    # Root runs what reads it, so nobody else may be able to write to it.
    FILE.unlink()
    FOLDER.chmod(0o777)
    refused = host.fail("cni_attach", attachments=[{**WEB, "resolv_conf": True}])
    assert refused["code"] == "unsafe_permissions"
    assert not FILE.exists()
    assert not attach({**WEB, "state": "absent"})["changed"]
