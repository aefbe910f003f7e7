# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook remediate: what it repairs, what it leaves, what it says, and when it stops."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host import networks
from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.play.controller import INTERPRETER, Controller, steps

NET_D = Path("/etc/cni/net.d")
ALL = {"cni_remediate_classes": ["safe", "disruptive"]}
# Containers in namespaces that no playbook makes, each named for what it loses.
CONTAINERS = ["if", "route", "address", "mac", "mtu", "port", "map"]
NETWORKS = ["edited", "mode", "owner", "gone", "subnet", "bridge", "name"]

LOSSES = {
    """
    sed -i s/1400/1500/ /etc/cni/net.d/40-edited.conflist
    chmod 0600 /etc/cni/net.d/40-mode.conflist
    chown 1:1 /etc/cni/net.d/40-owner.conflist
    rm /etc/cni/net.d/40-gone.conflist
    """: [
        f"write {NET_D}/40-edited.conflist safe",
        f"set_attributes {NET_D}/40-mode.conflist safe",
        f"set_attributes {NET_D}/40-owner.conflist safe",
        f"create {NET_D}/40-gone.conflist safe",
    ],
    """
    rm /opt/cni/bin/firewall
    cp /opt/cni/bin/loopback /opt/cni/bin/tuning
    chmod 0700 /opt/cni/bin/static
    ln -sf loopback /opt/cni/bin/ptp
    """: [
        "install /opt/cni/bin/firewall safe",
        "replace /opt/cni/bin/tuning safe",
        "set_attributes /opt/cni/bin/static safe",
        "replace /opt/cni/bin/ptp safe",
    ],
    """
    inside() { nsenter --net="netns/$1" ip "${@:2}"; }
    inside if link delete eth0
    inside route route delete default
    inside address address flush dev eth0 scope global
    inside mac link set eth0 address 02:00:00:00:88:01
    inside mtu link set eth0 mtu 1300
    port=$(inside port -o link show eth0 | sed -nE 's/.*eth0@if([0-9]+):.*/\\1/p')
    ip link set "$(ip -o link show | sed -nE "s/^$port: ([^@]+)@.*/\\1/p")" nomaster
    iptables --table nat --flush CNI-HOSTPORT-DNAT
    ip netns delete rem-kept
    """: ["create /run/netns/rem-kept safe", *(f"repair apps/{name}/eth0 safe" for name in CONTAINERS)],
}
# The first one is as safe as before, but with networks that depend on each other it waits for the others.
DISRUPTED = {
    """
    chmod 0600 40-mode.conflist
    sed -i s/10.88.15.0/10.88.77.0/ 40-subnet.conflist
    sed -i s/rembridge/remother/ 40-bridge.conflist
    sed -i 's/"name": "name"/"name": "renamed"/' 40-name.conflist
    sed -i s/10.88.2.0/10.88.3.0/ 10-small.conflist
    sed -e 's/"name": "edited"/"name": "theirs"/' -e s/remedited/remtheirs/ -e s/88.11/88.66/ \\
      40-edited.conflist >00-theirs.conflist
    """: [
        f"set_attributes {NET_D}/40-mode.conflist safe",
        f"write {NET_D}/40-subnet.conflist disruptive",
        f"write {NET_D}/40-bridge.conflist disruptive",
        f"write {NET_D}/40-name.conflist disruptive",
        f"write {NET_D}/10-small.conflist disruptive",
        f"set_aside {NET_D}/00-theirs.conflist disruptive",
    ],
    "umount /run/netns/rem-gone; rm /run/netns/rem-gone": ["repair apps/gone/eth0 disruptive"],
}


def network(name, bridge, number, *plugins, priority=10, **options):
    ipam = {"type": "host-local", "subnet": f"10.88.{number}.0/24"}
    chain = [{"type": "bridge", "bridge": bridge, **options, "ipam": ipam}, *plugins]
    return networks.network(name, *chain, priority=priority)


def attachment(name, netns, network="apps", **options):
    return {"network": network, "container_id": name, "netns": netns, **options}


def site(plugins, folder):
    """Return an inventory: ``plain`` has one of everything that can drift, the others have directories of their own."""
    local = {"ansible_connection": "local"}
    ports = {"portMappings": [{"hostPort": 18085, "containerPort": 80, "protocol": "tcp"}]}
    plain = {
        **local,
        "cni_networks_exclusive": True,
        "cni_networks": [
            network("apps", "remapps0", 1, networks.PORTMAP, mtu=1450, isDefaultGateway=True, ipMasq=True),
            network("small", "remsmall0", 2, isGateway=True),
            *(network(name, f"rem{name}", 11 + at, priority=40, mtu=1400) for at, name in enumerate(NETWORKS)),
        ],
        "cni_netns": ["rem-kept", "rem-gone", "rem-small"],
        "cni_attachments": [
            *(attachment(name, f"{folder}/netns/{name}") for name in CONTAINERS if name != "map"),
            attachment("map", f"{folder}/netns/map", capability_args=ports),
            attachment("gone", "rem-gone"),
            attachment("small", "rem-small", "small"),
        ],
    }
    batch = {
        name: {
            **local,
            "cni_conf_dir": f"{folder}/{name}/net.d",
            "cni_bin_dirs": ["/opt/cni/bin"],
            "cni_cache_dir": f"{folder}/{name}/cache",
            "cni_networks": [networks.network("own")],
        }
        for name in ("one", "two", "three")
    }
    batch["two"]["cni_attachments"] = "{{ impossible | default([]) }}"
    away = {"ansible_connection": "ssh", "ansible_host": "192.0.2.1"}
    variables = {
        "cni_report_dir": str(folder / "report"),
        "cni_plugins_src": str(plugins),
        "cni_plugins_remote_src": True,
        "cni_plugins_names": ["bridge", "firewall", "host-local", "loopback", "portmap", "ptp", "static", "tuning"],
    }
    return {"all": {"hosts": {"plain": plain, **batch, "away": away}, "vars": variables}}


@pytest.fixture(scope="module")
def plain(generations, tmp_path_factory):
    """A controller that has bootstrapped the host ``plain``."""
    folder = tmp_path_factory.mktemp("remediate")
    controller = Controller(folder, site(generations["new"], folder))
    (folder / "netns").mkdir()
    for name in CONTAINERS:
        sh(f"cd {folder}/netns; touch {name}; unshare --net={name} true")
    controller.run("bootstrap", cni_hosts="plain")
    yield controller
    gone = {"cni_teardown_netns": ["rem-kept", "rem-gone", "rem-small"], "cni_teardown_force": True}
    controller.run("teardown", real=True, cni_hosts="plain", **gone)
    sh(f"umount {folder}/netns/*")
    # No container has left rules behind, whatever was repaired.
    assert sh("iptables-save | grep -E -e '-j CNI-(DN-)?[0-9a-f]' || true") == ""


@pytest.fixture
def batches(generations, tmp_path):
    """A controller whose hosts ``one``, ``two`` and ``three`` have no network yet."""
    return Controller(tmp_path, site(generations["new"], tmp_path))


def before(run):
    """Return the steps that the first look at the only host of a run has found."""
    return steps({"steps": run.of("podwire.cni.cni_report")[0]["before"]})


def written(controller):
    """Return for which hosts the network was written."""
    hosts = ("one", "two", "three")
    return [name for name in hosts if (controller.folder / name / "net.d" / "10-own.conflist").exists()]


def test_what_is_safe_is_repaired(plain):
    expected = []
    for script, lost in LOSSES.items():
        sh(f"cd {plain.folder}; {script}")
        expected += lost

    run = plain.run("remediate", "--check", cni_hosts="plain")
    assert sorted(before(run)) == sorted(expected)
    assert sorted(steps(plain.reported()["plain"])) == sorted(expected)
    # All of it would be repaired.
    assert "item=plain: would repair: " in run.stdout
    assert "would leave" not in run.stdout

    run = plain.run("remediate", real=True, cni_hosts="plain")
    assert sorted(before(run)) == sorted(expected)
    assert re.search(r"item=plain: repaired: .*, and [0-9]+ more \([0-9]+ safe\)\)\n", run.stdout)
    assert "left" not in run.stdout
    host = plain.reported()["plain"]
    assert (host["status"], host["steps"]) == ("clean", [])
    sh("iptables --table nat --list-rules CNI-HOSTPORT-DNAT | grep -q 18085")
    for name in CONTAINERS:
        sh(f"nsenter --net={plain.folder}/netns/{name} ip route show default | grep -q 10.88.1.1")


def test_what_is_disruptive_is_left_unless_it_is_allowed(plain):
    address = "ip -n rem-small -o addr show eth0"
    small = sh(address)
    left = []
    for script, lost in DISRUPTED.items():
        sh(f"cd {NET_D}; {script}")
        left += lost
    sh("rm /opt/cni/bin/firewall")

    check = plain.run("remediate", "--check", cni_hosts="plain")
    assert re.search("item=plain: would repair: .*firewall.*; would leave: .*disruptive", check.stdout)
    run = plain.run("remediate", cni_hosts="plain")
    safe = ["install /opt/cni/bin/firewall safe", "create /run/netns/rem-gone safe"]
    assert sorted(before(run)) == sorted([*safe, *left])
    assert re.search("item=plain: repaired: .*; left: .*disruptive", run.stdout)
    # With the command for it.
    assert re.search("to repair what is left: .* podwire.cni.remediate --limit plain .*disruptive", run.stdout)
    host = plain.reported()["plain"]
    assert host["status"] == "drift"
    assert sorted(steps(host)) == sorted(left)

    plain.run("remediate", cni_hosts="plain", **ALL)
    host = plain.reported()["plain"]
    assert (host["status"], host["steps"]) == ("clean", [])
    # What was theirs is kept, and a container that fits the network again was not touched.
    assert (NET_D / "00-theirs.conflist.podwire-aside").exists()
    assert sh(address) == small


# An interpreter of modules, of which a run inspects the host, repairs it, and so on.
MEANWHILE = """\
#!/bin/sh
echo >>{log}
{interpreter} "$@"
status=$?
case $(wc -l <{log}) in {after}) chmod 0600 {path} ;; esac
exit $status
"""


@pytest.mark.parametrize("after", ["2", "2|4"])
def test_what_changes_meanwhile_is_repaired_once(batches, after):
    """Somebody hides a network after the first repair, or after each of two."""
    path, log = batches.folder / "one" / "net.d" / "10-own.conflist", batches.folder / "calls"
    interpreter = batches.folder / "python"
    interpreter.write_text(MEANWHILE.format(log=log, interpreter=INTERPRETER, after=after, path=path))
    interpreter.chmod(0o755)
    failed = after != "2"
    run = batches.run(
        "remediate", "--limit", "one", status=2 if failed else 0, ansible_python_interpreter=str(interpreter)
    )
    # Inspected, repaired, inspected, repaired, inspected.
    assert len(log.read_text().splitlines()) == 5
    if failed:
        assert f"a run would now set attributes {path}" in run.stdout
        assert "no further batch starts" in run.stdout
        assert batches.reported()["one"]["status"] == "drift"
    else:
        assert "item=one: repaired: " in run.stdout
        assert batches.reported()["one"]["status"] == "clean"


def test_a_host_that_cannot_be_repaired_stops_the_rollout_and_one_that_is_away_does_not(batches):
    impossible = [{"network": "own", "container_id": "none", "netns": "/run/netns/rem-none"}]
    hosts = {"cni_hosts": "away,one,two,three", "cni_serial": 1}
    run = batches.run("remediate", status=2, impossible=impossible, **hosts)
    assert "rem-none" in run.stdout
    assert written(batches) == ["one", "two"]
    reported = batches.reported()
    assert reported["away"]["status"] == "error"
    assert reported["one"]["status"] == "clean"
    assert steps(reported["two"]) == ["add own/none/eth0 safe"]
    assert "three" not in reported

    batches.run("remediate", cni_hosts="two,three", cni_serial=2)
    assert written(batches) == ["one", "two", "three"]
    reported = batches.reported()
    assert [reported[name]["status"] for name in ("one", "two", "three")] == ["clean"] * 3


def test_nobody_is_named(batches):
    refused = batches.run("remediate", status=4)
    assert "name them: -e cni_hosts=PATTERN" in refused.stderr
