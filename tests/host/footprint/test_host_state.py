# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What the host had before the first ADD, and what others add later, is theirs: never recorded, changed or removed."""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.upkeep import put_back_all
from ansible_collections.podwire.cni.tests.host.footprint.chains import BOTH, BRIDGE_NAME, PARENT
from ansible_collections.podwire.cni.tests.host.footprint.facts import read_facts
from ansible_collections.podwire.cni.tests.host.footprint.site import links
from ansible_collections.podwire.cni.tests.host.footprint.test_site import repair, rules, targets_of
from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.records import shared_file

OWN = f"""
ip link add {BRIDGE_NAME} address 02:00:00:00:00:07 mtu 1400 type bridge stp_state 1 ageing_time 12345 mcast_snooping 0
ip link set {BRIDGE_NAME} mtu 1400 txqueuelen 555 up
ip address add 10.88.0.1/16 dev {BRIDGE_NAME}
ip address add 10.88.0.250/32 dev {BRIDGE_NAME}
ip route add default via 10.88.0.9 dev {BRIDGE_NAME} metric 7
ip route add 198.51.100.0/24 via 10.88.0.9
iptables -A INPUT -i {BRIDGE_NAME} -p tcp --dport 22 -j DROP
iptables -A INPUT -i {BRIDGE_NAME} -m comment --comment CNI-like -j ACCEPT
iptables -A FORWARD -s 10.88.0.2 -j ACCEPT
"""
MAC = "$(ip netns exec pwf-ctr cat /sys/class/net/eth0/address)"
# What the administrator does later: a virtual address goes to another host, a port is closed, routes change.
LATER = f"""
ip address delete 10.88.0.250/32 dev {BRIDGE_NAME}
ip address add 10.88.0.251/32 dev {BRIDGE_NAME}
ip route replace default via 10.88.0.8 dev {BRIDGE_NAME} metric 7
ip route delete 198.51.100.0/24
ip route add 203.0.113.0/24 via 10.88.0.9
ip link set {BRIDGE_NAME} txqueuelen 556 type bridge stp_state 0 ageing_time 23456
iptables -D INPUT -i {BRIDGE_NAME} -m comment --comment CNI-like -j ACCEPT
iptables -D INPUT -i {BRIDGE_NAME} -p tcp --dport 22 -j DROP
iptables -D FORWARD -s 10.88.0.2 -j ACCEPT
sysctl -q -w net.ipv4.conf.{BRIDGE_NAME}.rp_filter=2
"""


@pytest.fixture
def on_own_bridge(new_site):
    """Return a function that attaches containers to a bridge of the host's administrator."""

    def make(chain, *names, generation="new"):
        site = new_site(chain, generation)
        sh(OWN)
        for name in names or ("ctr",):
            site.add_container(name)
        site.attach()
        return site

    return make


def expect_nothing_to_do(site):
    """Expect that neither a repair nor the unattended service changes anything."""
    before = read_facts()
    for options in ({"on_drift": "repair"}, {"on_drift": "fail"}):
        result = site.run(**options)
        assert not result["changed"]
        assert [text for text in result.get("warnings", []) if "drifted" in text] == []
    assert put_back_all(str(site.cache)) == 0
    after = read_facts()
    assert before.missing_in(after) == after.missing_in(before) == []


@pytest.mark.parametrize("generation", BOTH)
@pytest.mark.parametrize("chain", ["bridge", "firewall"])
def test_a_bridge_of_the_host_stays_its_own(on_own_bridge, chain, generation):
    site = on_own_bridge(chain, generation=generation)
    recorded = [*site.shared(f"pwf-{chain}"), site.containers[0].footprint()]
    named = [key for one in recorded for key in one.host if "INPUT" in key or "10.88.0.250" in map(str, key)]
    assert named == []
    assert [key for key in recorded[0].host if key[0] in ("link", "addr", "route")] == []
    sh(LATER)
    expect_nothing_to_do(site)
    # A second attachment finds it as it is now.
    site.add_container("more")
    site.run()
    sh(f"ip address add 10.99.0.1/24 dev {BRIDGE_NAME}; ip link set {BRIDGE_NAME} txqueuelen 557")
    expect_nothing_to_do(site)


@pytest.mark.parametrize("generation", BOTH)
def test_the_gateway_that_an_add_has_given_to_a_bridge_of_the_host_is_put_back(new_site, generation):
    site = new_site("bridge", generation)
    sh(f"ip link add {BRIDGE_NAME} type bridge stp_state 1; ip link set {BRIDGE_NAME} txqueuelen 555")
    site.add_container("ctr")
    site.attach()
    before = read_facts()
    sh(f"ip address flush dev {BRIDGE_NAME}; ip link set {BRIDGE_NAME} down")
    repair(site, ["pwf-bridge"], ["10.88.0.1/16", f"{BRIDGE_NAME} is down"])
    assert before.missing_in(read_facts()) == []
    sh(f"ip link delete {BRIDGE_NAME}")
    left = site.call(on_drift="repair")
    assert left["code"] == "repair_failed" and BRIDGE_NAME not in links()
    assert any(f"{BRIDGE_NAME} was there before the attachment" in text for text in left["warnings"])


@pytest.mark.parametrize("generation", BOTH)
def test_what_others_add_is_never_removed(attached, generation):
    site = attached("full", generation=generation)
    sh(
        f"""
        ip address add 10.88.0.250/32 dev {BRIDGE_NAME}
        ip route add 203.0.113.0/24 via 10.88.0.2
        ip route add 203.0.113.128/25 dev {BRIDGE_NAME} proto static
        """
    )
    added = read_facts()
    assert not site.run(on_drift="repair")["changed"]
    # Others go on while addresses and links are put back.
    sh(f"ip address delete 10.88.0.1/16 dev {BRIDGE_NAME}; ip address add 10.88.0.251/32 dev {BRIDGE_NAME}")
    sh(f"ip route replace 203.0.113.0/24 via 10.88.0.2 dev {BRIDGE_NAME} onlink")
    repair(site, ["pwf-full"])
    assert [text for text in added.missing_in(read_facts()) if "203.0.113.0/24" not in text] == []
    assert "10.88.0.251/32" in sh(f"ip address show dev {BRIDGE_NAME}")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"ip address add 10.88.7.7/16 dev {BRIDGE_NAME}", "address 10.88.7.7/16"),
        ("ip -n pwf-ctr address add 10.88.7.7/16 dev eth0", "address 10.88.7.7/16"),
        (
            "ip -n pwf-ctr -6 route add default via fd00:88::1 metric 1",
            "route to ::/0 through fd00:88::1 on eth0 was added",
        ),
        # Both halves together are as good as a default route, and each takes its half.
        ("ip -n pwf-ctr route add 0.0.0.0/1 via 10.88.0.99", "route to 0.0.0.0/1 through 10.88.0.99 on eth0 was added"),
        ("ip -n pwf-ctr route add blackhole 128.0.0.0/1", "blackhole route to 128.0.0.0/1 was added"),
        ("ip -n pwf-ctr route add 128.0.0.0/1 dev eth0", "route to 128.0.0.0/1 on eth0 was added"),
        (
            "ip -n pwf-ctr -6 route add 2000::/3 via fd00:88::99",
            "route to 2000::/3 through fd00:88::99 on eth0 was added",
        ),
        # Where the kernel sends packets, whatever makes it do so.
        ("ip -n pwf-ctr rule add prohibit pref 100", "the way to 10.88.0.1 is prohibit, want eth0"),
        ("ip -n pwf-ctr -6 rule add blackhole pref 100", "the way to fd00:88::1 is blackhole, want eth0"),
        ("ip -n pwf-ctr route add unreachable 10.88.0.1", "the way to 10.88.0.1 is unreachable, want eth0"),
        ("ip -n pwf-ctr route add 10.88.0.0/30 dev lo", "the way to 10.88.0.1 is lo, want eth0"),
        ("ip address add 10.88.0.2/32 dev pwf-ext0", f"the host's way to 10.88.0.2 is local, want {BRIDGE_NAME}"),
        ("ip route add 10.88.0.0/24 via 192.0.2.2", f"the host's way to 10.88.0.2 is pwf-ext0, want {BRIDGE_NAME}"),
        ("ip rule add to 10.88.0.2 prohibit pref 9", f"the host's way to 10.88.0.2 is prohibit, want {BRIDGE_NAME}"),
        ("ip route add blackhole fd00:88::2", f"the host's way to fd00:88::2 is blackhole, want {BRIDGE_NAME}"),
        ("ip -n pwf-ctr neighbour replace 10.88.0.1 lladdr 2:0:0:0:0:9 dev eth0", "entry 10.88.0.1 on eth0 was added"),
        (f"ip neighbour replace 10.88.0.2 lladdr 2:0:0:0:0:9 dev {BRIDGE_NAME}", f"on {BRIDGE_NAME} was added"),
        (f"bridge fdb replace {MAC} dev {PARENT} master static sticky", f"on {PARENT} was added"),
    ],
)
def test_an_addition_that_does_harm_is_reported_and_left(attached, command, words):
    site = attached("bridge-dual-masq")
    sh(f"ip link set {PARENT} master {BRIDGE_NAME}")
    sh(command)
    try:
        before = site.picture()
        for options in ({}, {"check_mode": True}, {"on_drift": "repair"}):
            result = site.run(**options)
            assert not result["changed"]
            assert words in " ".join(result["warnings"])
            steps = [step["class"] for step in result["actions"]]
            assert steps == (["foreign"] if options.get("on_drift") else [])
        failing = site.call(on_drift="fail")
        assert failing["failed"] and failing["code"] == "drifted"
        assert site.picture() == before
    finally:
        sh(command.replace(" add ", " delete ").replace(" replace ", " delete "))


def test_a_route_before_a_recorded_one(attached):
    """IPv4 takes the first of equal ones. One that was put in its place comes behind, that of an address is told."""
    site = attached("bridge")
    sh("ip route replace 10.88.0.0/16 via 192.0.2.2")
    result = site.run(on_drift="repair")
    assert [step["class"] for step in result["actions"]] == ["disruptive"]
    assert site.dead() == []
    assert not site.run(check_mode=True, on_drift="fail").get("warnings")

    move = f"ip address delete 10.88.0.1/16 dev {BRIDGE_NAME}; ip address add 10.88.0.1/16 dev pwf-ext0"
    sh(f"ip route delete 10.88.0.0/16 via 192.0.2.2; {move}")
    site.run(on_drift="repair")
    reported = " ".join(site.run(on_drift="repair")["warnings"])
    assert f"the host's way to 10.88.0.2 is pwf-ext0, want {BRIDGE_NAME}" in reported
    sh("ip address delete 10.88.0.1/16 dev pwf-ext0")
    assert not site.run(check_mode=True, on_drift="fail").get("warnings")
    assert site.dead() == []


@pytest.mark.parametrize("generation", BOTH)
def test_nothing_is_detached_where_its_add_would_fail(attached, generation):
    """A gateway that was put back stands behind an address of others, and plugin bridge looks at the first one."""
    site = attached("bridge", generation=generation)
    sh(f"ip address flush dev {BRIDGE_NAME}; ip address add 10.88.0.250/32 dev {BRIDGE_NAME}")
    repair(site, ["pwf-bridge"])
    conflist = site.chain.conflist(site.leases)
    conflist["plugins"][0]["mtu"] = 1400
    site.write_network(conflist)
    before = site.picture()
    for check_mode in (True, False):
        failed = site.call(check_mode=check_mode)
        assert (failed["code"], failed["changed"]) == ("add_would_fail", False)
        assert "already has an IP address different from" in failed["msg"]
    left = site.host.run("cni_host", attachments={"attachments": [site.containers[0].wanted]}, classes=["safe"])
    assert [step["class"] for step in left["left"]] == ["disruptive"]
    assert site.dead() == []
    assert site.picture() == before
    assert site.call(force=True)["code"] == "add_failed"
    sh(f"ip address delete 10.88.0.250/32 dev {BRIDGE_NAME}")
    assert [row["action"] for row in site.run()["attachments"]] == ["added"]


@pytest.mark.parametrize("generation", BOTH)
def test_ipv6_that_the_host_has_off_stays_off(attached, generation):
    """The rest is put back, and so are the addresses when it is on again."""
    site = attached("bridge-dual-masq", generation=generation)
    sh("sysctl -q -w net.ipv6.conf.all.disable_ipv6=1")
    try:
        sh("ip -n pwf-ctr route delete default")
        assert [step["class"] for step in site.run(on_drift="repair")["actions"]] == ["foreign", "safe"]
        result = site.run(on_drift="repair")
        assert (result["changed"], [step["class"] for step in result["actions"]]) == (False, ["foreign"])
        assert "disable_ipv6 is 1, want 0; others did that, so it is left" in " ".join(result["warnings"])
        conflist = site.chain.conflist(site.leases)
        conflist["plugins"][0]["mtu"] = 1400
        site.write_network(conflist)
        assert site.call()["code"] == "add_would_fail"
    finally:
        sh("sysctl -q -w net.ipv6.conf.all.disable_ipv6=0")
    site.run(on_drift="repair")
    assert not site.run(check_mode=True, on_drift="fail")["changed"]


@pytest.mark.parametrize("generation", BOTH)
def test_an_interface_has_no_more_mtu_than_the_one_below_it(attached, generation):
    """The kernel lowers both, and raises only one."""
    site = attached("macvlan", generation=generation)
    sh(f"ip link set {PARENT} mtu 1400")
    expect_nothing_to_do(site)
    sh(f"ip link set {PARENT} mtu 1500")
    repair(site, targets_of(*site.containers), ["the MTU 1400 instead of 1500"])
    sh(f"ip link set {PARENT} mtu 1400; ip -n pwf-ctr link delete eth0")
    assert [step["class"] for step in site.run(on_drift="repair")["actions"]] == ["disruptive"]
    expect_nothing_to_do(site)


@pytest.mark.parametrize("end", ["link set $(basename /sys/class/net/pwf0/brif/veth*)", "-n pwf-ctr link set eth0"])
def test_a_pair_of_which_one_end_is_elsewhere_is_made_by_an_add(attached, end):
    site = attached("bridge")
    sh(f"ip {end} netns pwf-ext name moved")
    assert [step["class"] for step in site.run(on_drift="repair")["actions"]] == ["disruptive"]
    assert not site.run(check_mode=True, on_drift="fail").get("warnings")


@pytest.mark.parametrize(
    "command",
    [
        "for verb in delete add; do ip -n pwf-ctr address $verb 10.88.0.2/16 dev eth0; done",
        "ip netns exec pwf-ctr sysctl -q -w net.ipv6.conf.all.disable_ipv6=1",
    ],
)
def test_an_address_is_put_back_where_it_was_changed_or_refused(attached, command):
    site = attached("bridge-dual-masq")
    sh(command)
    repair(site, targets_of(*site.containers))


@pytest.mark.parametrize("generation", BOTH)
@pytest.mark.parametrize("chain", ["bridge-dual-masq", "ptp-masq"])
def test_the_host_forwards_what_comes_from_an_interface(attached, chain, generation):
    site = attached(chain, generation=generation)
    bridge, (end, *_others) = BRIDGE_NAME in links(), [name for name in links() if name.startswith("veth")]
    names = [f"net.{family}.conf.{BRIDGE_NAME}" for family in ("ipv4", "ipv6")] if bridge else [f"net.ipv4.conf.{end}"]
    sh("".join(f"sysctl -q -w {name}.forwarding=0\n" for name in names))
    repair(
        site,
        [f"pwf-{chain}"] if bridge else targets_of(*site.containers),
        [f"{name}.forwarding is 0" for name in names],
    )
    # The switch tells it of all.
    sh("sysctl -q -w net.ipv4.ip_forward=0")
    repair(site, ["shared firewall rules and forwarding"])


def test_a_rule_that_leads_the_packets_of_a_port_elsewhere_is_reported_and_left(attached):
    """The chain is the container's alone. The rule that it took the place of is put back."""
    site = attached("portmap")
    chain = next(word for word in sh("iptables -t nat -S").split() if word.startswith("CNI-DN-"))
    rules = sh(f"iptables -t nat -S {chain}").splitlines()
    number = next(number for number, line in enumerate(rules) if "-j DNAT" in line)
    rule = "-p tcp -m tcp --dport 18080 -j DNAT --to-destination 10.88.0.99:80"
    sh(f"iptables -t nat -R {chain} {number} {rule}")
    for _time in range(2):
        result = site.run(on_drift="repair")
        assert f"rule of the chain {chain} " in " ".join(result["warnings"])
    assert [step["class"] for step in result["actions"]] == ["foreign"]
    assert "10.88.0.99:80" in sh(f"iptables -t nat -S {chain}")
    sh(f"iptables -t nat -D {chain} {rule}")
    assert not site.run(check_mode=True, on_drift="fail")["changed"]
    # An attachment without its interface is made again in any case.
    for on_drift in ("report", "fail"):
        sh(f"iptables -t nat -A {chain} {rule}; ip -n pwf-ctr link delete eth0")
        result = site.run(on_drift=on_drift)
        assert [(row["action"], row["reason"]) for row in result["attachments"]] == [("repaired", "interface")]
        assert f"rule of the chain {chain} " in " ".join(result["warnings"])


@pytest.mark.parametrize("generation", BOTH)
def test_what_another_program_sets_during_an_add_is_not_recorded(new_site, generation):
    site = new_site("full", generation)
    container = site.add_container("ctr")
    plugin = site.plugins / "bridge"
    comment = 'name: "{}" id: "{}"'.format(*container.key)
    # The other program: it comes with the plugin, and leaves when the ADD is done.
    folder = site.work / "bin"
    shutil.copytree(site.plugins, folder)
    (folder / "bridge").write_text(
        f"#!/bin/sh\n{plugin} || exit\n[ $CNI_COMMAND = ADD ] || exit 0\nexec >/dev/null\n"
        f"sysctl -w net.ipv4.tcp_fin_timeout=33 net.ipv4.conf.{BRIDGE_NAME}.rp_filter=2\n"
        "sysctl -w net.ipv4.conf.lo.log_martians=1\n"
        "for name in /proc/sys/net/ipv4/conf/veth*; do echo 2 >$name/rp_filter; done\n"
        f"ip address add 10.99.0.1/24 dev {BRIDGE_NAME}\nip route add 198.51.100.0/24 via 10.88.0.77\n"
        f"iptables -A INPUT -i {BRIDGE_NAME} -j ACCEPT\n"
        # Next to a rule of the attachment.
        + "".join(
            f"{tool} -P FORWARD DROP\n{tool} -A FORWARD -m comment --comment '{comment}'\n"
            for tool in ("iptables", "ip6tables")
        )
    )
    sh("ip6tables -A FORWARD -s 2001:db8:9::/48 -j ACCEPT")
    before = sh("sysctl net.ipv4.tcp_fin_timeout net.ipv4.conf.lo.log_martians")
    try:
        site.host = site.host.with_defaults(bin_dirs=[str(folder)])
        site.attach()
        recorded = [container.footprint(), *site.shared("pwf-full")]
        text = " ".join(str(key) for one in recorded for key in one.host)
        for word in ("tcp_fin_timeout", "rp_filter", "log_martians", "10.99.0", "198.51.100.0", "INPUT"):
            assert word not in text
        assert not [key for one in recorded for key in one.host if key[0] == "chain" and key[4:] == ("FORWARD",)]
        assert ("sysctl", "ipv4/ip_forward") in recorded[2].host
        assert ("addr", BRIDGE_NAME, "10.88.0.1", 16) in recorded[1].host
        sh(
            f"""
            sysctl -q -w net.ipv4.tcp_fin_timeout=44 net.ipv4.conf.lo.log_martians=0
            for name in /proc/sys/net/ipv4/conf/veth*; do echo 0 >$name/rp_filter; done
            ip address delete 10.99.0.1/24 dev {BRIDGE_NAME}
            iptables -P FORWARD ACCEPT
            ip6tables -P FORWARD ACCEPT
            """
        )
        expect_nothing_to_do(site)
    finally:
        sh("sysctl -q -w " + " ".join(f"'{line.replace(' = ', '=')}'" for line in before.splitlines()))


@pytest.mark.parametrize("generation", BOTH)
def test_the_default_routing_rules_of_a_container_are_put_back(attached, generation):
    site = attached("bridge", generation=generation)
    before = site.picture()
    for numbers in ("0", "32766", "32767", "0 32766 32767"):
        for family in ("-4", "-6") if "32767" not in numbers else ("-4",):
            sh(f"for number in {numbers}; do ip -n pwf-ctr {family} rule delete pref $number; done")
            repair(site, targets_of(*site.containers), ["the routing rule to table 25"])
            assert site.picture() == before


@pytest.mark.parametrize("generation", BOTH)
def test_a_port_forwards(attached, generation):
    site = attached("bridge", generation=generation)
    (end,) = [name for name in links() if name.startswith("veth")]
    sh(f"bridge link set dev {end} state 0")
    repair(site, targets_of(*site.containers), [f"other settings as a port of {BRIDGE_NAME}"])
    assert "state forwarding" in sh(f"bridge link show dev {end}")
    # With a spanning tree, and for some time after it, a port listens and learns first.
    for stp in (1, 0):
        sh(f"ip link set {BRIDGE_NAME} type bridge stp_state {stp}")
        assert "as a port of" not in str(site.run(check_mode=True))


# ---- what attachments share


@pytest.mark.parametrize("generation", BOTH)
def test_renewing_the_only_attachment_forgets_nothing(attached, generation):
    site = attached("firewall", generation=generation)
    before = rules("FORWARD", "filter")
    sh(f"ip link set {BRIDGE_NAME} txqueuelen 77; iptables -D FORWARD 1")
    sh("ip -n pwf-ctr link delete eth0; ip netns delete pwf-ctr; ip netns add pwf-ctr; ip -n pwf-ctr link set lo up")
    renewed = site.run()
    assert [row["action"] for row in renewed["attachments"]] == ["repaired"]
    reported = site.run(check_mode=True)
    assert "the queue length 77 instead of" in " ".join(reported["warnings"])
    site.run(on_drift="repair")
    assert sh(f"cat /sys/class/net/{BRIDGE_NAME}/tx_queue_len") == "1000"
    assert rules("FORWARD", "filter") == before


@pytest.mark.parametrize("generation", BOTH)
def test_attaching_again_keeps_what_is_still_so(attached, generation):
    """Others may have changed what no attachment needed, and that is accepted."""
    site = attached("firewall", generation=generation)
    site.run(attachments=[container.absent for container in site.containers])
    sh(f"ip link set {BRIDGE_NAME} txqueuelen 77")
    site.run()
    expect_nothing_to_do(site)
    sh(f"ip address delete 10.88.0.1/16 dev {BRIDGE_NAME}; iptables -F FORWARD")
    site.put_other_rules()
    reported = " ".join(site.run(check_mode=True)["warnings"])
    assert "address 10.88.0.1/16" in reported and "the rule of the chain FORWARD" in reported


@pytest.mark.parametrize("generation", BOTH)
def test_an_adopted_attachment_knows_what_it_shares(attached, generation):
    site = attached("firewall", generation=generation)
    shared_file(site.cache).unlink()
    shutil.rmtree(site.cache)
    adopted = site.run()
    assert [row["action"] for row in adopted["attachments"]] == ["adopted"]
    assert not site.run(check_mode=True, on_drift="fail")["changed"]
    before = site.picture()
    sh(f"iptables -D FORWARD 1; ip address flush dev {BRIDGE_NAME}; sysctl -q -w net.ipv4.ip_forward=0")
    repair(site, ["shared firewall rules and forwarding", "pwf-firewall"])
    assert site.picture()["iptables"] == before["iptables"]
