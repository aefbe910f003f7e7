# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Footprints on a site with more than one container, with rules of others, and with damaged notes."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import zlib
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.footprints import comparison, note
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.state import read_look
from ansible_collections.podwire.cni.tests.integration.modules.footprint import pictures
from ansible_collections.podwire.cni.tests.integration.modules.footprint.chains import BOTH, BRIDGE_NAME
from ansible_collections.podwire.cni.tests.integration.modules.footprint.site import links
from ansible_collections.podwire.cni.tests.integration.modules.host import sh

# How often a busy site is read; the documentation tells of 1,000.
LOOKS = int(os.environ.get("PODWIRE_LOOKS", "100"))
CALLS = 10


@pytest.fixture
def attached(new_site):
    """Return a function that makes a site with attached containers and open connections."""

    def make(chain, *names, generation="new", **more):
        site = new_site(chain, generation)
        for name in names or ("ctr",):
            site.add_container(name, **more)
        site.attach()
        site.connect()
        return site

    return make


def repair(site, targets, reasons=()):
    """Expect that what was broken is reported, and put back in place by the steps *targets*; return the results."""
    wanted = [container.wanted for container in site.containers]
    reported = site.run(check_mode=True)
    assert not reported["changed"]
    drift = " ".join(text for text in reported["warnings"] if "drifted" in text)
    assert [word for word in reasons if word not in drift] == [], drift
    results = site.host.change("cni_attach", site.picture, attachments=wanted, on_drift="repair")
    steps = results.run["actions"]
    assert {step["class"] for step in steps} == {"safe"}
    assert [step["target"] for step in steps] == targets
    for result in (results.again, results.check_again):
        assert [text for text in result.get("warnings", []) if "drifted" in text] == []
    assert site.dead() == []
    return results


def targets_of(*containers):
    return ["/".join(container.key) for container in containers]


# ---- no false alarm


class Visitor:
    """Another container that comes and goes on the same bridge, by plugins that somebody else runs."""

    def __init__(self, site):
        self._site = site
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.visits = 0
        self.errors = []

    def __enter__(self):
        sh("ip netns add pwf-visitor")
        self._thread.start()
        return self

    def __exit__(self, *_exception):
        self._stop.set()
        self._thread.join()
        sh("ip netns delete pwf-visitor")

    def _run(self):
        ipam = {"type": "host-local", "dataDir": str(self._site.work / "visits")}
        bridge = {"type": "bridge", "bridge": BRIDGE_NAME, "isGateway": True}
        plugins = [
            {**bridge, "ipMasq": True, "ipam": {**ipam, "subnet": "10.88.0.0/16", "rangeStart": "10.88.9.1"}},
            {"type": "ptp", "ipMasq": True, "ipam": {**ipam, "subnet": "10.99.0.0/24"}},
        ]
        try:
            while not self._stop.is_set():
                for number, plugin in enumerate(plugins):
                    conf = {"cniVersion": "1.0.0", "name": "visits", **plugin}
                    self._call("ADD", conf, number)
                    sh("ip netns exec pwf-visitor ping -c 1 -W 1 10.88.0.2", check=False)
                    self._call("DEL", conf, number)
                    self.visits += 1
        except (AssertionError, subprocess.SubprocessError) as error:
            self.errors.append(error)

    def _call(self, verb, conf, number):
        environment = {
            **os.environ,
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": f"visitor-{number}",
            "CNI_NETNS": "/run/netns/pwf-visitor",
            "CNI_IFNAME": f"eth{number}",
            "CNI_PATH": str(self._site.plugins),
        }
        program = self._site.plugins / conf["type"]
        done = subprocess.run(
            [program], input=json.dumps(conf), env=environment, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("generation", BOTH)
def test_an_untouched_site_is_not_reported(attached, generation):
    site = attached("full", generation=generation)
    (container,) = site.containers
    notes = site.notes()
    footprints = [container.footprint(), notes.network(container.key[0]), notes.host()]
    wanted = comparison.wanted_keys(container.path, footprints)
    with Visitor(site) as visitor:
        for _look in range(LOOKS):
            look = read_look(wanted)
            for footprint in footprints:
                assert comparison.compare(look, footprint, container.path).differences == []
        for _call in range(CALLS):
            result = site.run(check_mode=True, on_drift="fail")
            assert {row["action"] for row in result["attachments"]} == {"none"}
            assert [text for text in result.get("warnings", []) if "drifted" in text] == []
    assert visitor.errors == []
    assert visitor.visits > 2
    assert site.dead() == []


# ---- rules of others


def rules(chain, table="nat"):
    """Return the rules of a chain, those of others as their comment."""
    lines = sh(f"iptables-save -t {table}").splitlines()
    found = [line for line in lines if line.startswith(f"-A {chain} ")]
    return [line.partition("--comment ")[2].split()[0] if "other-" in line else line for line in found]


def put_other(name, chain, table="nat"):
    match = f"-s 203.0.113.9 -m comment --comment other-{name}"
    sh(f"iptables -t {table} -A {chain} {match} -j RETURN -c 5 55")


def test_rules_of_others_between_ours_keep_their_places(attached):
    """Others have put rules between ours before the last ADD, so their order is known."""
    site = attached("full", "ctr")
    put_other("middle", "POSTROUTING")
    put_other("middle", "CNI-FORWARD", table="filter")
    other = site.add_container("more", capability_args={})
    result = site.run(attachments=[other.wanted])
    other.row = result["attachments"][0]
    before = rules("POSTROUTING"), rules("CNI-FORWARD", "filter"), rules("FORWARD", "filter")
    assert "other-middle" in before[0][1:-1] and "other-middle" in before[1][1:-1]
    expected = ["host", *targets_of(*site.containers)]

    # They are flushed, and the others put back theirs first.
    sh("iptables -t nat -F POSTROUTING; iptables -F CNI-FORWARD")
    site.put_other_rules()
    put_other("middle", "POSTROUTING")
    put_other("middle", "CNI-FORWARD", table="filter")
    reported = site.run(check_mode=True, on_drift="repair")
    assert [step["target"] for step in reported["actions"]] == [
        target for target in expected if target in {step["target"] for step in reported["actions"]}
    ]
    repair(site, [step["target"] for step in reported["actions"]])
    assert (rules("POSTROUTING"), rules("CNI-FORWARD", "filter"), rules("FORWARD", "filter")) == before

    # Only ours are lost: the others are not touched, as their counters show.
    for line in before[0]:
        if not line.startswith("other") and "pwf-other" not in line:
            sh(f"iptables -t nat -D{line[2:]}")
    counters = sh("iptables-save -c | grep other-")
    repair(site, [step["target"] for step in site.run(check_mode=True, on_drift="repair")["actions"]])
    assert rules("POSTROUTING") == before[0]
    assert sh("iptables-save -c | grep other-") == counters


@pytest.mark.parametrize("chain", ["portmap-nft", "bridge-masq-nft"])
def test_rules_of_others_in_tables_of_nftables_are_kept(attached, chain):
    site = attached(chain)
    family, table = ("ip", "cni_hostport") if chain == "portmap-nft" else ("inet", "cni_plugins_masquerade")
    name = "masquerading" if chain == "portmap-nft" else "masq_checks"
    sh(f"nft insert rule {family} {table} {name} ip saddr 203.0.113.9 counter packets 5 bytes 55 comment others")
    listed = json.loads(sh(f"nft -j -a list chain {family} {table} {name}"))["nftables"]
    ours = [entry["rule"]["handle"] for entry in listed if "rule" in entry][1:]
    assert ours
    for handle in ours:
        sh(f"nft delete rule {family} {table} {name} handle {handle}")
    actions = site.run(check_mode=True, on_drift="repair")["actions"]
    repair(site, [step["target"] for step in actions])
    assert "packets 5 bytes 55" in sh(f"nft list chain {family} {table} {name}")


# ---- what attachments share


@pytest.mark.parametrize("generation", BOTH)
def test_a_deleted_bridge_comes_back_under_two_attachments(attached, generation):
    site = attached("bridge-dual-masq", "ctr", "more", generation=generation)
    before, indexes = site.picture(), links()
    sh(f"ip link delete {BRIDGE_NAME}")
    repair(site, ["pwf-bridge-dual-masq", *targets_of(*site.containers)], ["pwf0", "is gone"])
    assert links() == indexes
    assert pictures.differences(before, site.picture()) == []


@pytest.mark.parametrize("generation", BOTH)
def test_a_lost_gateway_is_repaired(attached, generation):
    site = attached("bridge", generation=generation)
    before = site.picture()
    sh(f"ip address delete 10.88.0.1/16 dev {BRIDGE_NAME}")
    repair(site, ["pwf-bridge"], ["pwf-bridge has drifted", "10.88.0.1/16"])
    assert pictures.differences(before, site.picture()) == []


@pytest.mark.parametrize("generation", BOTH)
def test_forwarding_is_switched_on_again(attached, generation):
    site = attached("bridge-dual-masq", generation=generation)
    before = site.picture()
    sh("echo 0 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/ipv6/conf/all/forwarding")
    repair(site, ["host"], ["host has drifted", "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"])
    assert pictures.differences(before, site.picture()) == []


def test_what_is_shared_is_not_repaired_without_leave(attached):
    """Without the class safe, a lost gateway stays lost, and is reported."""
    site = attached("bridge")
    sh(f"ip address delete 10.88.0.1/16 dev {BRIDGE_NAME}")
    before = site.picture()
    left = site.run(on_drift="repair", classes=["disruptive"])
    assert not left["changed"]
    assert [step["target"] for step in left["left"]] == ["pwf-bridge"]
    failing = site.call(on_drift="fail")
    assert failing["failed"] and failing["code"] == "drifted"
    assert site.picture() == before


# ---- leases


def test_the_lease_of_a_live_container_is_put_back(attached):
    site = attached("bridge")
    (lease,) = (site.leases / "pwf-bridge").glob("10.*")
    text = lease.read_bytes()
    lease.unlink()
    repair(site, targets_of(*site.containers), ["lease of 10.88.0.2"])
    assert lease.read_bytes() == text


def test_a_lease_is_not_put_over_one_of_another_container(attached):
    site = attached("bridge")
    (lease,) = (site.leases / "pwf-bridge").glob("10.*")
    lease.write_bytes(b"another\r\neth0")
    reported = site.run(check_mode=True)
    assert "belongs to another container" in " ".join(reported["warnings"])
    before = links()
    # Two containers must not keep one address.
    repaired = site.run(on_drift="repair")
    assert lease.read_bytes() == b"another\r\neth0"
    assert [step["class"] for step in repaired["actions"]] == ["disruptive"]
    assert repaired["attachments"][0]["ips"] != [f"{lease.name}/16"]
    assert before[BRIDGE_NAME] == links()[BRIDGE_NAME]
    assert not site.run(check_mode=True, on_drift="fail")["changed"]


# ---- the notes


def files(site):
    root = site.cache / note.FOLDER
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def packed(**content):
    return zlib.compress(json.dumps(content).encode())


def bomb():
    packer = zlib.compressobj()
    return b"".join([*(packer.compress(bytes(1024 * 1024)) for _part in range(100)), packer.flush()])


def other_path(text):
    return packed(**{**json.loads(zlib.decompress(text)), "path": "attachments/other/one-eth0"})


def deep(_text):
    return zlib.compress(b"[" * 100000)


def of_tomorrow(text):
    return packed(**{**json.loads(zlib.decompress(text)), "version": 99})


def of_wrong_types(text):
    data = json.loads(zlib.decompress(text))
    data["host"] = [[[["link", "pwf0"]], None, 7, "no", {}]]
    return packed(**data)


DAMAGES = {
    "empty": lambda text: b"",
    "truncated": lambda text: text[: len(text) // 2],
    "flipped": lambda text: text[:20] + bytes([text[20] ^ 0xFF]) + text[21:],
    "garbage": lambda text: os.urandom(500),
    "not ours": other_path,
    "of another version": of_tomorrow,
    "of wrong types": of_wrong_types,
    "deeply nested": deep,
    "a list": lambda text: zlib.compress(b"[1, 2]"),
    "a bomb": lambda text: bomb(),
    "huge": lambda text: os.urandom(5 * 1024 * 1024),
}


def test_damaged_notes_are_no_accident(attached):
    """The attachment works on, a repair does what it can, and DEL and ADD make everything good."""
    site = attached("portmap-nft")
    before = site.picture()
    contents = {path: path.read_bytes() for path in (site.cache / note.FOLDER / name for name in files(site))}
    assert len(contents) == 4
    for damage in DAMAGES.values():
        for path, content in contents.items():
            path.write_bytes(damage(content))
        for options in ({"check_mode": True}, {"on_drift": "repair"}):
            result = site.run(**options)
            assert not result["changed"]
            assert {row["action"] for row in result["attachments"]} == {"none"}
            assert [text for text in result.get("warnings", []) if "footprint" in text]
            assert "Traceback" not in json.dumps(result)
    assert site.picture() == before
    assert site.dead() == []

    # What CHECK and the result tell is still seen.
    sh("ip -n pwf-ctr route delete default")
    assert any("drifted" in text for text in site.run(check_mode=True)["warnings"])
    assert site.run(on_drift="repair")["attachments"][0]["action"] == "repaired"
    again = site.run(check_mode=True, on_drift="fail")
    assert not again["changed"]
    assert [text for text in again.get("warnings", []) if "footprint" in text] == []
    (container,) = site.containers
    assert container.footprint().inside


@pytest.mark.parametrize("kind", ["folder", "link", "pipe", "unreadable"])
def test_a_note_that_is_no_file_is_no_accident(attached, kind):
    site = attached("bridge")
    victim = site.work / "victim"
    victim.write_text("untouched")
    for name in files(site):
        path = site.cache / note.FOLDER / name
        path.unlink()
        if kind == "folder":
            path.mkdir()
        elif kind == "link":
            path.symlink_to(victim)
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to(path)
    result = site.run(check_mode=True)
    assert {row["action"] for row in result["attachments"]} == {"none"}
    assert [text for text in result["warnings"] if "footprint" in text]
    site.host.run("cni_attach", attachments=[container.absent for container in site.containers])
    assert victim.read_text() == "untouched"


@pytest.mark.parametrize("generation", BOTH)
def test_a_del_removes_the_footprint(new_site, generation):
    site = new_site("portmap", generation)
    first, second = site.add_container("ctr"), site.add_container("more", capability_args={})
    shared = ["host", "networks/pwf-portmap", "order"]

    def change(*wanted):
        def look():
            return site.picture(), files(site)

        return site.host.change("cni_attach", look, attachments=list(wanted))

    change(first.wanted, second.wanted)
    mine = [f"attachments/pwf-portmap/{container.container_id}-eth0" for container in (first, second)]
    assert files(site) == sorted([*mine, *shared])
    change(first.absent)
    assert files(site) == sorted([mine[1], *shared])
    change(second.absent)
    assert files(site) == []
    for container in (first, second):
        assert site.notes().attachment(container.key) is None


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
