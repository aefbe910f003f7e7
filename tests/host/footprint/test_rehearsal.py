# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Attachments of others, known only from libcni's cache: their footprints by rehearsal, compared with recorded ones.

The attachments are made with a recorded footprint, which tells what there is to break. The audit sees only a copy of
their cache entries in /var/lib/cni, as a runtime leaves them.
"""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.caches import HostStores
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.drift import Present
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import Attached
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.object_kinds import HOST
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.state import Drift, compare
from ansible_collections.podwire.cni.plugins.module_utils._host.trials import private_host
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.audit import Audit, plan_audit
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.rehearsal import rehearse
from ansible_collections.podwire.cni.tests.host.footprint import damage, pictures
from ansible_collections.podwire.cni.tests.host.footprint.chains import BOTH, BRIDGE_NAME, CHAINS, Chain
from ansible_collections.podwire.cni.tests.host.footprint.facts import read_facts
from ansible_collections.podwire.cni.tests.host.footprint.site import give, links
from ansible_collections.podwire.cni.tests.host.footprint.test_host_state import LATER, OWN
from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.tools import sample

CACHE = Path("/var/lib/cni")
MEMORY = Path("/run/podwire-cni/rehearsals")
ALL = os.environ.get("PODWIRE_BREAKS") == "all"
SAMPLE = sample.number("REHEARSED", 4, 2)
# What only one container can have.
ALONE = ("host-device", "loopback", "static", "vlan", "vrf")
# Not part of a rehearsal: entries of the parent's forwarding table, what the device of host-device is set to, settings
# of a bridge, which may be the host's own, and how addresses are generated, which the host chooses, too.
NOT_REHEARSED = {"host-device": ("txqlen", "mtu", "alias", "mac")}
OF_A_BRIDGE = tuple(f"link {BRIDGE_NAME} {how}" for how in ("txqlen", "mtu", "settings"))
# The host forwards IPv6 of a bridge that has it off, and its IPv4 not.
OF_A_BRIDGE += (f"conf6 {BRIDGE_NAME} forwarding",)
FORWARDING = f"conf4 {BRIDGE_NAME} forwarding changed"
NONE = "/run/home/none"


@pytest.fixture
def owned(new_site):
    """Return a function that makes a site whose attachments look as if a runtime had made them."""

    def make(chain, generation="new", connect=True, first=""):
        site = new_site(chain, generation)
        sh(first)
        for name in ("ctr",) if chain in ALONE else ("more", "ctr"):
            more = {} if name == "ctr" or "portMappings" not in site.chain.capability_args else {"capability_args": {}}
            site.add_container(name, **more)
        site.containers.reverse()
        site.attach()
        shutil.copytree(site.cache / "results", CACHE / "results")
        if connect:
            site.connect()
        return site

    yield make
    shutil.rmtree(CACHE, ignore_errors=True)
    shutil.rmtree(MEMORY, ignore_errors=True)


def audit(site):
    found = Audit([str(site.plugins)], HostStores(NONE))
    found.run()
    assert found.problems == []
    assert [one.why for one in found.drifts.attachments if one.why] == []
    return found


def drift(found):
    """Return the phrases of everything that differs."""
    rows = found.rows()
    return [text for row in [*rows["attachments"], *rows["shared"]] for text in row["differences"]]


CASES = [(generation, name) for name, chain in CHAINS.items() for generation in chain.generations]
# test_breaks.py has all chains in the gate, too.
CASES = CASES[:: sample.STEP]


@pytest.mark.parametrize(("generation", "name"), CASES)
def test_a_rehearsal_shows_what_was_recorded_and_its_loss(owned, generation, name, record_property):
    site = owned(name, generation)
    container = site.containers[0]
    mine = tuple(container.key)
    look_before = host_traces()
    found = audit(site)
    assert drift(found) == []
    assert host_traces() == look_before
    assert len(found.drifts.attachments) == len(site.containers)
    one = found.drifts.of(mine)
    recorded, rehearsed = container.footprint(), one.footprint
    assert missing(recorded.inside, rehearsed.inside) == []
    assert missing(recorded.host, rehearsed.host) == []

    breaks = [one for one in damage.breaks(container) if is_rehearsed(name, one)]
    chosen = breaks if ALL else random.Random(name).sample(breaks, min(SAMPLE, len(breaks)))
    wrong = [text for one_break in chosen for text in trial(site, one_break)]
    record_property("rehearsed", (generation, name, len(rehearsed.host) + len(rehearsed.inside), len(chosen)))
    assert wrong == []


def host_traces():
    """Return what a rehearsal could leave."""
    listed = sh("ls -A /run/netns /var/lib/cni /run; cat /proc/mounts; ip -o link")
    return [line for line in listed.splitlines() if line != "podwire-cni"]


def missing(recorded, rehearsed):
    """Return the recorded objects that a rehearsal lacks."""
    return [key for key in recorded if key not in rehearsed and key[0] != "fdb"]


def is_rehearsed(chain, one):
    if one.what.startswith(OF_A_BRIDGE) or one.what.startswith(f"vlan {BRIDGE_NAME} "):
        return False
    return "fdb" not in one.kind and not one.kind.endswith((*NOT_REHEARSED.get(chain, ()), "addrgenmode"))


def trial(site, one):
    """Break one thing; return what is wrong about the audit of it and the repair."""
    before, indexes = site.picture(), links()
    one.do()
    found = audit(site)
    if not drift(found):
        return [f"{one.what}: not seen"]
    plan = plan_audit([str(site.plugins)], NONE)
    foreign = [step for step in plan.steps if step.step_class == "foreign"]
    plan.apply()
    if one.others:
        site.put_other_rules()
    problems = []
    if foreign:
        # Only who made the interface can make it again, and who has a bridge chooses whether it forwards.
        if one.what != FORWARDING and "deleted" not in one.kind and "back" not in one.kind:
            problems.append(f"{one.what}: {[step.reason for step in foreign]}")
        site.run(on_drift="repair")
    left = drift(audit(site))
    if left:
        problems.append(f"{one.what}: left {left}")
    dead = [] if foreign else site.dead()
    if dead:
        problems.append(f"{one.what}: {dead}")
    # A rehearsal does not tell the index of an interface that has to be made again.
    made_again = one.kind == "host link deleted"
    if not foreign and not made_again and links() != indexes:
        problems.append(f"{one.what}: other indexes")
    if not foreign:
        changes = pictures.differences(unordered(before, made_again), unordered(site.picture(), made_again))
        problems += [f"{one.what}: {text}" for text in changes]
    return problems


def unordered(picture, made_again=False):
    """Leave out which of two containers' rules comes first, which a rehearsal does not tell, and perhaps indexes."""
    sections = ("iptables", "nftables")
    found = {name: {key: sorted(map(str, rules)) for key, rules in picture[name].items()} for name in sections}
    for name in (name for name in picture if made_again and name.endswith(" links")):
        settings = picture[name].items()
        found[name] = {link: {**all_, "ifindex": 0, "link_index": 0} for link, all_ in settings}
    return {**picture, **found}


@pytest.mark.parametrize("generation", BOTH)
def test_the_modules_report_and_repair_it(owned, generation):
    """cni_info and cni_host, in check mode and in a run."""
    site = owned("full", generation)
    host = site.host.with_defaults(cache_dir=NONE)
    names = {"/".join(container.key) for container in site.containers}

    clean = host.run("cni_info", gather=["audit"])["audit"]
    assert [row["compared"] for row in clean["attachments"]] == ["fully", "fully"]
    assert [row["differences"] for row in clean["attachments"]] == [[], []]
    assert clean["shared"] == []
    nothing = host.run("cni_host", audit=True)
    assert not nothing["changed"] and nothing["plan"] == []

    before, indexes = site.picture(), links()
    sh(f"nft flush ruleset; ip address flush dev {BRIDGE_NAME} scope global; ip -n pwf-ctr route delete default")
    rows = host.run("cni_info", gather=["audit"])["audit"]
    texts = [text for row in rows["attachments"] for text in row["differences"]]
    assert "its masquerading rules are gone" in texts
    assert "the rules of its port mappings are gone" in texts
    assert any("route to 0.0.0.0/0" in text for text in texts)
    shared = [text for row in rows["shared"] for text in row["differences"]]
    assert any("address 10.88.0.1/16" in text and "is gone" in text for text in shared)

    checked = host.run("cni_host", audit=True, check_mode=True, diff=True)
    assert checked["changed"]
    assert {(step["section"], step["class"]) for step in checked["plan"]} == {("audit", "safe")}
    assert {step["target"] for step in checked["plan"]} == {*names, "pwf-full", "shared firewall rules and forwarding"}
    left = host.run("cni_host", audit=True, classes=["disruptive"])
    assert not left["changed"] and len(left["left"]) == 4
    ran = host.run("cni_host", audit=True)
    assert [step["target"] for step in ran["plan"]] == [step["target"] for step in checked["plan"]]
    assert {step["state"] for step in ran["plan"]} == {"done"}
    assert not host.run("cni_host", audit=True)["changed"]
    site.put_other_rules()
    assert site.dead() == []
    assert links() == indexes
    assert pictures.differences(unordered(before), unordered(site.picture())) == []


def test_what_is_shared_with_attachments_is_repaired_as_their_section_says(owned):
    site = owned("bridge", connect=False)
    attached, audited = (container.key for container in site.containers)
    sh(f"rm {CACHE}/results/*{attached[1]}*; rm {site.cache}/results/*{audited[1]}*")
    sh(f"ip address delete 10.88.0.1/16 dev {BRIDGE_NAME}; ip -n pwf-more route delete default")

    def run(**options):
        attachments = {"attachments": [site.containers[0].wanted], **options}
        plan = site.host.run("cni_host", attachments=attachments, audit=True)["plan"]
        return [(step["section"], step["target"]) for step in plan]

    assert run() == [("audit", "/".join(audited))]
    assert run() == []
    assert run(on_drift="repair") == [("attachments", "pwf-bridge")]
    assert run(on_drift="repair") == []


@pytest.mark.parametrize("generation", BOTH)
def test_a_bridge_of_the_host_is_not_reconfigured(owned, generation):
    """Nor what others set it to later; an ADD would set only what it needs."""
    site = owned("bridge", generation, connect=False, first=OWN)
    host = site.host.with_defaults(cache_dir=NONE)
    for script in ("", LATER):
        sh(script)
        before = read_facts()
        found = audit(site)
        assert [row["compared"] for row in found.rows()["attachments"]] == ["fully", "fully"]
        assert drift(found) == []
        assert not host.run("cni_host", audit=True)["changed"]
        assert before.missing_in(read_facts()) == []
    sh(f"ip link set {BRIDGE_NAME} down; ip address delete 10.88.0.1/16 dev {BRIDGE_NAME}")
    ran = host.run("cni_host", audit=True)
    assert [(step["target"], step["class"]) for step in ran["plan"]] == [("pwf-bridge", "safe")]
    left = before.missing_in(read_facts())
    # The routes of the administrator went with the interface, and the address is the one that an ADD makes.
    assert [text for text in left if not any(word in text for word in ("10.88.0.8", "203.0.113.0", '10.88.0.1"'))] == []
    off = f"sysctl -q -w net.ipv4.conf.{BRIDGE_NAME}.forwarding=0 net.ipv6.conf.{BRIDGE_NAME}.forwarding=0"
    for script in (off, f"ip address add 10.88.7.7/16 dev {BRIDGE_NAME}"):
        sh(script)
        before = read_facts()
        ran = host.run("cni_host", audit=True)
        assert [(step["target"], step["class"]) for step in ran["plan"]] == [("pwf-bridge", "foreign")]
        assert f"net.ipv4.conf.{BRIDGE_NAME}.forwarding is 0, want 1" in ran["plan"][0]["reason"]
        assert not ran["changed"] and before.missing_in(read_facts()) == []
    sh("sysctl -q -w net.ipv4.ip_forward=0")
    (text,) = [text for text in drift(audit(site)) if "forward" in text]
    assert text == "the host's sysctl net.ipv4.ip_forward is 0, want 1"


def test_what_only_a_runtime_can_make_again_is_left(owned):
    site = owned("bridge", connect=False)
    host = site.host.with_defaults(cache_dir=NONE)
    sh("ip -n pwf-ctr link delete eth0")
    before = site.picture()
    result = host.run("cni_host", audit=True)
    assert not result["changed"]
    (step,) = result["plan"]
    assert step["class"] == "foreign" and "only a new ADD can make it again" in step["reason"]
    assert site.picture() == before


def test_our_own_attachments_are_not_audited(new_site):
    site = new_site("bridge")
    site.add_container("ctr")
    site.attach()
    shutil.rmtree(CACHE, ignore_errors=True)
    assert audit(site).drifts.attachments == []
    assert not MEMORY.exists()


def test_a_dead_container_is_not_audited(owned):
    site = owned("bridge", connect=False)
    sh("ip netns delete pwf-more")
    found = audit(site)
    assert [drift.owner for drift in found.drifts.attachments] == [tuple(site.containers[0].key)]
    assert found.rows()["shared"] == []


def test_a_container_that_dies_after_the_plan_is_left(owned):
    """Its lease would never be freed."""
    site = owned("bridge", connect=False)
    lease = next(path for path in (site.leases / "pwf-bridge").glob("10.*") if "pwf-ctr" in path.read_text())
    lease.unlink()
    plan = plan_audit([str(site.plugins)], NONE)
    assert [step.kind for step in plan.steps] == ["repair"]
    sh("ip netns delete pwf-ctr")
    plan.apply()
    assert [step.state for step in plan.left] == ["left"]
    assert not lease.exists()


def test_the_lease_of_a_runtime_that_names_a_dead_container_is_put_back(owned):
    site = owned("bridge")
    host = site.host.with_defaults(cache_dir=NONE)
    lease = next(path for path in (site.leases / "pwf-bridge").glob("10.*") if "pwf-ctr" in path.read_text())
    text = lease.read_bytes()
    give(lease, "starting", age=0)
    assert [step["class"] for step in host.run("cni_host", audit=True)["plan"]] == ["foreign"]
    give(lease, "gone")
    ran = host.run("cni_host", audit=True)
    assert [(step["target"], step["class"]) for step in ran["plan"]] == [("/".join(site.containers[0].key), "safe")]
    assert lease.read_bytes() == text
    assert not host.run("cni_host", audit=True)["changed"]


def test_rehearsals_are_remembered_until_the_container_dies(owned):
    site = owned("bridge", connect=False)
    audit(site)
    known = {path.name: path.stat().st_mtime_ns for path in MEMORY.iterdir()}
    assert len(known) == 2
    audit(site)
    assert {path.name: path.stat().st_mtime_ns for path in MEMORY.iterdir()} == known
    for path in MEMORY.iterdir():
        path.write_bytes(b"{")
    assert drift(audit(site)) == []
    sh("ip netns delete pwf-more")
    audit(site)
    assert len(list(MEMORY.iterdir())) == 1


def test_a_default_route_that_multus_gave_to_another_network_is_not_put_back(owned):
    """Multus takes it out of the cached result as well."""
    site = owned("bridge-dual-masq", connect=False)
    (entry,) = (CACHE / "results").glob("*-pwf-ctr-*")
    cached = json.loads(entry.read_text())
    cached["result"]["routes"] = [route for route in cached["result"]["routes"] if route["dst"] != "0.0.0.0/0"]
    entry.write_text(json.dumps(cached))
    sh("ip -n pwf-ctr route delete default; ip -n pwf-ctr -6 route delete default")
    assert drift(audit(site)) == ["the route to ::/0 through fd00:88::1 on eth0 is gone"]
    # It keeps what it has delegated in a cache of its own, and the runtime has an entry of Multus itself.
    multus = {"cniVersion": "1.0.0", "name": "multus", "plugins": [{"type": "multus", "delegates": []}]}
    config = base64.b64encode(json.dumps(multus).encode()).decode()
    sh(f"mkdir {CACHE}/multus; mv {CACHE}/results {CACHE}/multus; mkdir {CACHE}/results")
    entry = {**cached, "networkName": "multus", "config": config}
    (CACHE / "results/multus-pwf-ctr-0001-eth0").write_text(json.dumps(entry))
    files = sh(f"find {CACHE} -type f -exec sha256sum {{}} +")
    found = audit(site)
    assert {attachment.owner for attachment in found.drifts.attachments} == {tuple(c.key) for c in site.containers}
    assert drift(found) == ["the route to ::/0 through fd00:88::1 on eth0 is gone"]
    ran = site.host.with_defaults(cache_dir=NONE).run("cni_host", audit=True)
    assert [(step["target"], step["class"]) for step in ran["plan"]] == [("/".join(site.containers[0].key), "safe")]
    assert drift(audit(site)) == [] and sh(f"find {CACHE} -type f -exec sha256sum {{}} +") == files


def test_plugins_that_were_replaced_later_are_not_rehearsed(owned):
    site = owned("bridge", connect=False)
    bridge = site.plugins / "bridge"
    shutil.copy2(bridge, site.work / "bridge")
    bridge.unlink()
    shutil.copy2(site.work / "bridge", bridge)
    found = Audit([str(site.plugins)], HostStores(NONE))
    found.run()
    partly = ("partly", "the plugin bridge was replaced after the attachment was made")
    assert [(row["compared"], row["why"]) for row in found.rows()["attachments"]] == [partly] * 2
    # The results of the ADDs are compared, as without rehearsals.
    sh("ip -n pwf-ctr route delete default")
    found.run()
    assert any("0.0.0.0/0" in text for text in drift(found))
    plan = plan_audit([str(site.plugins)], NONE)
    assert {step.step_class for step in plan.steps} == {"foreign"}
    assert [code for code, _text in plan.warnings] == ["partly_compared"]
    assert "pwf-bridge/pwf-ctr-0001/eth0 and 1 more could be compared only partly" in next(iter(plan.warnings))[1]


def test_a_killed_audit_leaves_nothing(owned, tmp_path):
    site = owned("bridge", connect=False)
    before, picture = host_traces(), site.picture()
    slow = tmp_path / "slow.py"
    slow.write_text(
        f"""\
import os, sys, time
from ansible_collections.podwire.cni.plugins.module_utils._host.trials import private_host

def work():
    private_host.new_netns("left")
    os.makedirs("/run/left")
    os.posix_spawn("/bin/sleep", ["podwire-sleeps", "600"], os.environ)
    print("works", flush=True)
    time.sleep(600)

private_host._EACH = float(sys.argv[1])
print(private_host.work_apart([work], [{str(site.plugins)!r}], 600)[0].msg, flush=True)
"""
    )
    command = [sys.executable, str(slow)]
    run = subprocess.Popen([*command, "600"], stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "works\n"
    assert sh("pgrep -f '^podwire-sleeps'")
    run.kill()
    run.wait()
    gone = "until ! pgrep -f '^podwire-sleeps'; do sleep 0.05; done"
    sh(f'timeout 30 bash -c "{gone}" >/dev/null')
    assert host_traces() == before
    done = subprocess.run([*command, "1"], check=True, capture_output=True, text=True)
    assert done.stdout == "works\nit took longer than 1 s, in sleep\n"
    assert sh("pgrep -f '^podwire-sleeps' || true") == ""
    assert host_traces() == before
    assert site.picture() == picture


def test_the_recorded_and_the_rehearsed_footprint_are_equal(owned):
    """Not only the keys: what is recorded compares as equal with the state that the rehearsal expects."""
    site = owned("full", connect=False)
    found = audit(site)
    for container in site.containers:
        one, recorded = found.drifts.of(tuple(container.key)), container.footprint()
        drifted = Drift(tuple(container.key), recorded, container.path)
        compare(found.drifts.reading, drifted)
        assert drifted.differences == []
        assert {key: value.value for key, value in one.footprint.host.items() if key[0] != "link"} == {
            key: value.value for key, value in recorded.host.items() if key[0] != "link"
        }
        assert HOST == ""


STORE = Path("/opt/podwire-leases")
RANGES = [[{"subnet": "10.88.0.0/16"}]]
LEASED = {"type": "host-local", "ranges": RANGES}
# Of several spellings, plugins take the last one in the order of bytes; two objects are one.
SPELLINGS = {
    "lower": {"ipam": {**LEASED, "datadir": str(STORE)}},
    "upper": {"ipam": {**LEASED, "DATADIR": str(STORE)}},
    "last wins": {"ipam": {**LEASED, "dataDir": "/nowhere", "dataDIR": "/nowhere", "datadir": str(STORE)}},
    "all": {"IPAM": {"TYPE": "host-local", "Ranges": [[{"Subnet": "10.88.0.0/16"}]], "DataDir": str(STORE)}},
    "long s": {"ipam": {"type": "host-local", "range\u017f": RANGES, "datadir": str(STORE)}},
    "two objects": {"IPAM": {"DataDir": str(STORE), "type": "static"}, "ipam": LEASED},
    "null": {"ipam": {**LEASED, "DATADIR": str(STORE), "dataDir": None}},
}


class Spelled(Chain):
    def conflist(self, leases):
        return {"cniVersion": "1.0.0", "name": self.network, "plugins": self.plugins}


@pytest.mark.parametrize("generation", BOTH)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_of_a_key_leads_a_rehearsal_to_the_leases_of_the_host(owned, monkeypatch, generation, spelling):
    # As kernels before 5.12 do, which cannot make the whole file system read-only.
    monkeypatch.setattr(private_host, "_MOUNT_SETATTR", 1 << 20)
    bridge = {"type": "bridge", "BRIDGE": BRIDGE_NAME, "isgateway": True, **SPELLINGS[spelling]}
    monkeypatch.setitem(CHAINS, "spelled", Spelled("spelled", [bridge]))
    try:
        site = owned("spelled", generation, connect=False)
        leases = stored()
        assert len([name for name in leases if "/10.88." in name]) == 2
        found = audit(site)
        assert drift(found) == []
        assert stored() == leases
        for container in site.containers:
            assert "lease" in {key[0] for key in container.footprint().host}
            assert "lease" in {key[0] for key in found.drifts.of(tuple(container.key)).footprint.host}
        # A new container gets the next address, and keeps none.
        network = site.chain.network
        config = found._lives[0].present.attached.config
        new = Attached(Key(network, "new", "eth0"), config, "/run/netns/new", [], {}, None)
        owned_by = rehearse([Present(new, {}, None)], [str(site.plugins)], earlier=[])[new.key].owned
        places = [key for objects in owned_by.values() for key in objects if key[0] == "lease"]
        assert places == [("lease", str(STORE), network, "10.88.0.4")]
        assert stored() == leases
    finally:
        shutil.rmtree(STORE, ignore_errors=True)


def stored():
    return {str(path): (path.read_text(), path.stat().st_mtime_ns) for path in STORE.rglob("*") if path.is_file()}
