# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a DEL leaves in the firewall: after a switch of the backend of iptables, of dead and of replaced containers."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import commands
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.verbs import Verbs
from ansible_collections.podwire.cni.tests.host.footprint.chains import BOTH, CHAINS, HOST_PORT, NEW
from ansible_collections.podwire.cni.tests.host.host import delete_netns, sh, with_iptables

OF_CONTAINERS = "^-A .*(id:|/32|CNI-DN)|^:CNI-(DN-|[0-9a-f]{24})"
SAVE = f"{{ iptables-legacy-save; ip6tables-legacy-save; }} 2>/dev/null | grep -E '{OF_CONTAINERS}' || true"


@pytest.fixture
def switched(new_site, tmp_path):
    """Return a function that attaches a container with iptables-legacy and switches to nft."""

    def make(generation):
        site = new_site("full", generation, {"PATH": with_iptables("legacy", tmp_path / "legacy")})
        site.add_container("ctr")
        site.attach()
        assert str(HOST_PORT) in sh(SAVE)
        site._environment = {"PATH": with_iptables("nft", tmp_path / "nft")}
        return site

    return make


@pytest.mark.parametrize("generation", BOTH)
def test_a_del_after_a_switch_leaves_nothing(switched, generation):
    site = switched(generation)
    (container,) = site.containers
    checked = site.call(attachments=[container.absent], check_mode=True)
    assert checked["changed"] and str(HOST_PORT) in sh(SAVE)
    result = site.run(attachments=[container.absent])
    assert sh(SAVE) == ""
    assert "rules_left" not in str(result)
    assert not site.run(attachments=[container.absent])["changed"]


@pytest.mark.parametrize("generation", BOTH)
def test_drift_names_a_switch_and_a_repair_follows_it(switched, generation):
    site = switched(generation)
    text = "the backend of its rules was iptables-legacy, and is now iptables-nft"
    assert text in str(site.run(check_mode=True)["warnings"])
    assert text in site.call(check_mode=True, on_drift="fail")["attachments"][0]["error"]["message"]
    checked = site.run(check_mode=True, on_drift="repair")
    assert [(step["kind"], step["class"]) for step in checked["actions"]] == [("repair", "disruptive")]
    site.run(on_drift="repair")
    assert sh(SAVE) == ""
    assert str(HOST_PORT) in sh("iptables-nft-save")
    assert not site.run(on_drift="fail")["changed"]


def test_a_switch_of_ip6tables_is_no_drift_of_rules_of_ipv4(new_site, tmp_path):
    site = new_site("portmap-dual", environment={"PATH": with_iptables("nft", tmp_path / "nft")})
    conflist = CHAINS["static"].conflist(site.leases)
    site.write_network({**conflist, "plugins": [*conflist["plugins"], {"type": "firewall"}]})
    site.add_container("dual")
    site.add_container("four", network=conflist["name"], capability_args={})
    site.attach()
    (tmp_path / "nft/ip6tables").unlink()
    (tmp_path / "nft/ip6tables").symlink_to("/usr/sbin/ip6tables-legacy")
    drifted = [attachment.get("error") for attachment in site.call(check_mode=True, on_drift="fail")["attachments"]]
    assert "is now iptables-legacy" in drifted[0]["message"] and not drifted[1]


def test_gc_after_a_switch_leaves_nothing(switched):
    site = switched("new")
    # Its sockets keep the namespace alive.
    site._echo.close()
    site._echo = None
    delete_netns("pwf-ctr")
    site.containers.clear()
    site.host.run("cni_gc", min_age=0, allow_empty=True, scope=["attachments"], environment=site._environment)
    assert sh(SAVE) == ""


def test_dels_of_six_dead_containers_read_the_firewall_once(new_site, monkeypatch):
    site = new_site("bridge-masq-nft")
    containers = [site.add_container(f"c{number}") for number in range(6)]
    site.attach()
    sh("".join(f"ip netns delete {container.namespace}\n" for container in containers))
    site.containers.clear()
    calls, run = [], commands.run_command
    monkeypatch.setattr(commands, "run_command", lambda argv, *more: calls.append(argv) or run(argv, *more))
    verbs = Verbs([str(site.plugins)], str(site.cache), 60)
    for container in containers:
        key = Key(*container.key)
        assert verbs.delete(verbs.store.read(key).attached, "", later=True) == ""
        assert verbs.store.read(key).state
    dropped = verbs.finish_deletions()
    assert len(dropped.rows) == 6
    assert [dropped.kept(key) for key in dropped.rows] == [""] * 6
    assert "pwf-c" not in sh("nft list ruleset")
    assert [verbs.store.read(Key(*container.key)).state for container in containers] == [""] * 6
    # Tests before may have made tables of legacy, which are read as well.
    assert len([argv for argv in calls if "legacy" not in argv[0]]) <= 5, calls


@pytest.fixture
def fixed(new_site):
    """Return a function that attaches a container whose address is fixed and known to its rules in CNI-FORWARD."""

    def make(generation=NEW, *networks):
        site = new_site("static", generation)
        for name in (site.chain.network, *networks):
            conflist = site.chain.conflist(site.leases)
            site.write_network({**conflist, "name": name, "plugins": [*conflist["plugins"], {"type": "firewall"}]})
        old = site.add_container("old")
        site.attach()
        assert forwarded() == 2
        return site, old

    return make


def forwarded():
    return int(sh("iptables-save | grep -c 'CNI-FORWARD.*10.88.0.9/32' || true"))


@pytest.mark.parametrize("generation", BOTH)
@pytest.mark.parametrize("network", ["pwf-static", "pwf-other"])
@pytest.mark.parametrize(("parallel", "order"), [(1, 1), (1, -1), (4, 1)])
def test_the_container_that_gets_an_address_keeps_its_rules(fixed, generation, network, parallel, order):
    site, old = fixed(generation, network)
    new = site.add_container("new", network=network)
    wanted = {"attachments": [old.absent, new.wanted][::order], "parallel": parallel}
    checked = site.run(check_mode=True, **wanted)
    assert sorted(step["kind"] for step in checked["actions"]) == ["add", "del"] and forwarded() == 2
    result = site.run(**wanted)
    assert result["actions"] == checked["actions"]
    assert forwarded() == 2
    assert len([place for place in new.footprint().host if "10.88.0.9/32" in place[-1]]) == 2
    for options in ({}, {"check_mode": True}):
        assert not site.run(on_drift="fail", **wanted, **options)["changed"]
    sh("iptables -D CNI-FORWARD -s 10.88.0.9/32 -j ACCEPT")
    site.run(on_drift="repair", classes=["safe"], **wanted)
    assert forwarded() == 2


@pytest.mark.parametrize("network", ["pwf-static", "pwf-other"])
def test_an_address_that_another_program_gives_meanwhile_keeps_its_rules(fixed, network):
    site, old = fixed(NEW, network)
    verbs, key = Verbs([str(site.plugins)], str(site.cache), 60), Key(*old.key)
    assert verbs.delete(verbs.store.read(key).attached, old.path, later=True) == ""
    assert forwarded() == 0
    site.run(attachments=[site.add_container("new", network=network).wanted])
    assert verbs.finish_deletions().rows == {}
    assert forwarded() == 2
