# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The files with footprints: rehearsals take the place of what is missing or damaged, and a DEL leaves nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.footprint import pictures
from ansible_collections.podwire.cni.tests.host.footprint.chains import BOTH, BRIDGE_NAME
from ansible_collections.podwire.cni.tests.host.footprint.test_site import repair
from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.records import lose_footprints, records, shared_file


def files(site):
    return [*records(site.cache), shared_file(site.cache)]


def changed(change):
    """Return what exchanges a part of a file of footprints, which its digest tells."""

    def damage(text):
        data = json.loads(text)
        footprint = data.get("footprint", data)
        footprint.update(change(footprint))
        return json.dumps(data).encode()

    return damage


DAMAGES = {
    "empty": lambda text: b"",
    "truncated": lambda text: text[: len(text) // 2],
    "flipped": lambda text: text[: len(text) // 2] + bytes([text[len(text) // 2] ^ 1]) + text[len(text) // 2 + 1 :],
    "garbage": lambda text: os.urandom(500),
    "changed": changed(lambda footprint: {"text": footprint["text"].replace("1500", "1400")}),
    "without a digest": changed(lambda footprint: {"digest": None}),
    "of wrong types": changed(lambda footprint: {"text": 7}),
    "deeply nested": lambda text: b"[" * 100000,
    "a list": lambda text: b"[1, 2]",
    "huge": lambda text: os.urandom(5 * 1024 * 1024),
}


def damaged_warnings(result):
    return [text for text in result.get("warnings", []) if "footprint_damaged" in text]


def lose(site, how):
    if how == "missing":
        lose_footprints(site.cache)
        return
    for path in files(site):
        path.write_bytes(DAMAGES[how](path.read_bytes()))


@pytest.mark.parametrize("generation", BOTH)
@pytest.mark.parametrize("how", ["missing", "garbage"])
@pytest.mark.parametrize("chain", ["portmap", "bridge-dual-masq"])
def test_what_lost_notes_said_is_found_by_rehearsals(attached, chain, how, generation):
    """Nothing is drift, and all that is lost is seen and put back in place, also what containers share."""
    # Only one container can have the port.
    names = ["ctr"] if chain == "portmap" else ["ctr", "more"]
    site = attached(chain, *names, generation=generation)
    before = site.picture()
    lose(site, how)
    for _time in range(2):
        assert not site.run(on_drift="fail")["changed"]
    sh(f"ip -n pwf-ctr route delete default; ip address flush dev {BRIDGE_NAME} scope global")
    # The next rehearsal finds the host as it is now.
    sh("iptables -t nat -F CNI-HOSTPORT-DNAT || true; rm -r /run/podwire-cni/rehearsals")
    actions = site.run(check_mode=True, on_drift="repair")["actions"]
    assert {step["class"] for step in actions} == {"safe"}
    repair(site, [step["target"] for step in actions], ["0.0.0.0/0", "10.88.0.1/16"])
    assert pictures.differences(before, site.picture()) == []
    assert site.dead() == []
    assert not site.run(check_mode=True, on_drift="fail")["changed"]


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_damaged_notes_are_no_accident(attached, damage):
    site = attached("portmap-nft")
    before = site.picture()
    lose(site, damage)
    for options in ({"check_mode": True}, {"on_drift": "repair"}):
        result = site.run(**options)
        assert {row["action"] for row in result["attachments"]} == {"none"}
        assert result["actions"] == []
        assert len(damaged_warnings(result)) == 2
        assert "Traceback" not in json.dumps(result)
    assert site.picture() == before
    assert site.dead() == []


def test_notes_of_what_cannot_be_rehearsed(attached):
    """What the result tells is seen, until DEL and ADD record all."""
    site = attached("bridge")
    lose(site, "garbage")
    (entry,) = (site.cache / "results").iterdir()
    os.utime(entry, (1, 1))
    for _time in range(2):
        result = site.run()
        assert not result["changed"]
        assert "because the plugin" in damaged_warnings(result)[0]
    sh("ip -n pwf-ctr rule add prohibit pref 9")
    assert "the way to 10.88.0.1 is prohibit, want eth0" in " ".join(site.run(on_drift="repair")["warnings"])
    sh("ip -n pwf-ctr rule delete pref 9; ip -n pwf-ctr route delete default")
    assert any("drifted" in text for text in site.run(check_mode=True)["warnings"])
    result = site.run(on_drift="repair")
    assert [step["class"] for step in result["actions"]] == ["disruptive"]
    assert not site.run(check_mode=True, on_drift="fail")["changed"]
    (container,) = site.containers
    assert container.footprint().inside


@pytest.mark.parametrize("kind", ["folder", "link", "pipe", "unreadable"])
def test_a_note_that_is_no_file_is_no_accident(attached, kind):
    site = attached("bridge")
    victim = site.work / "victim"
    victim.write_text("untouched")
    for path in files(site):
        path.unlink()
        if kind == "folder":
            path.mkdir()
        elif kind == "link":
            path.symlink_to(victim)
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to(path)
    for options in ({"check_mode": True}, {}):
        result = site.run(**options)
        assert {row["action"] for row in result["attachments"]} == {"none"}
        assert damaged_warnings(result)
    assert not site.run(on_drift="fail")["changed"]
    site.host.run("cni_attach", attachments=[container.absent for container in site.containers])
    assert victim.read_text() == "untouched"


@pytest.mark.parametrize("generation", BOTH)
def test_a_del_removes_the_footprint(new_site, generation):
    site = new_site("portmap", generation)
    first, second = site.add_container("ctr"), site.add_container("more", capability_args={})

    def change(*wanted):
        def look():
            return site.picture(), [path.name for path in records(site.cache)]

        return site.host.change("cni_attach", look, attachments=list(wanted))

    change(first.wanted, second.wanted)
    mine = [f"pwf-portmap-{container.container_id}-eth0" for container in (first, second)]
    assert [path.name for path in records(site.cache)] == sorted(mine)
    assert len(site.shared("pwf-portmap")) == 2
    change(first.absent)
    assert [path.name for path in records(site.cache)] == mine[1:]
    change(second.absent)
    assert records(site.cache) == []


def test_notes_of_another_boot_are_not_believed(attached, tmp_path):
    """After a reboot the kernel has none of it, and namespaces and indexes mean others."""
    site = attached("bridge")
    boot = tmp_path / "boot_id"
    boot.write_text("00000000-0000-0000-0000-000000000000\n")
    place = Path("/proc/sys/kernel/random/boot_id")
    sh(f"mount --bind {boot} {place}")
    try:
        result = site.call(check_mode=True)
    finally:
        sh(f"umount {place}")
    assert "Traceback" not in json.dumps(result)
    assert not [text for text in result.get("warnings", []) if "footprint" in text]
