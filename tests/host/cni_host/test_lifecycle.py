# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A host from nothing to its desired state, and back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.cni_host.conftest import (
    BIN_DIR,
    BREAKS,
    CONF_DIR,
    NAMES,
    brief,
    network,
)
from ansible_collections.podwire.cni.tests.host.host import delete_netns, sh

new_plugins = pytest.mark.parametrize("generation", ["new"], indirect=True)
KEYS = ["pwhapps/web/eth0", "pwhdata/web/eth1", "pwhapps/db/eth0", "pwhdata/job/eth0"]


def test_an_empty_host_and_back(change, desired, absent):
    made = change(**desired)
    assert brief(made.run) == [
        ("plugins", "make_directory", "bin"),
        *(("plugins", "install", name) for name in NAMES),
        ("networks", "make_directory", "net.d"),
        ("networks", "create", "10-pwhapps.conflist"),
        ("networks", "create", "10-pwhdata.conflist"),
        *(("netns", "create", name) for name in ("pwh-web", "pwh-db", "pwh-job")),
        *(("attachments", "add", key) for key in KEYS),
    ]
    assert {step["class"] for step in made.run["plan"]} == {"safe"}
    assert [row["action"] for row in made.run["plugins"]["plugins"]] == ["installed"] * len(NAMES)
    assert [row["action"] for row in made.run["networks"]["networks"]] == ["created"] * 2
    assert [row["action"] for row in made.run["netns"]["netns"]] == ["created"] * 3
    assert [row["action"] for row in made.run["attachments"]["attachments"]] == ["added"] * 4
    assert made.run["info"] is None
    # Containers are attached at the same time, so the addresses of a network may have either order.
    found = {address for row in made.run["attachments"]["attachments"] for address in row["ips"]}
    assert found == {f"10.{number}.0.{last}/24" for number in (41, 42) for last in (2, 3)}
    first = made.run["attachments"]["attachments"][0]["ips"][0]
    assert f" {first} " in sh("ip -n pwh-web -oneline address show eth0")
    sh(f"ip netns exec pwh-web ping -c1 -W5 10.41.0.1; ip netns exec pwh-db ping -c1 -W5 {first.partition('/')[0]}")

    gone = change(**absent)
    assert brief(gone.run) == [
        *(("attachments", "del", key) for key in ("pwhdata/web/eth1", "pwhapps/web/eth0", *KEYS[2:])),
        *(("netns", "remove", name) for name in ("pwh-web", "pwh-db", "pwh-job")),
        ("networks", "remove", "10-pwhapps.conflist"),
        ("networks", "remove", "10-pwhdata.conflist"),
        *(("plugins", "remove", name) for name in NAMES),
    ]
    assert os.listdir(BIN_DIR) == os.listdir(CONF_DIR) == os.listdir("/run/netns") == []
    assert sh("ip link show type veth") == ""
    assert list(Path("/var/lib/podwire/cni").rglob("*pwh*")) == []


@new_plugins
def test_each_section_alone(change, desired, absent):
    """In the order of the plan and then back, with the same steps as in one task."""
    found = [step for section in desired for step in brief(change(**{section: desired[section]}).run)]
    assert len(found) == 1 + len(NAMES) + 3 + 3 + 4
    for section in reversed(list(absent)):
        ran = change(**{section: absent[section]}).run
        assert {step["section"] for step in ran["plan"]} == {section}
        assert [name for name in desired if name in ran] == [section]


@new_plugins
def test_nothing_given(host):
    result = host.run("cni_host")
    assert (result["changed"], result["plan"], result["left"], result["problems"]) == (False, [], [], [])
    assert {"plugins", "networks", "runtime", "netns", "attachments"} & set(result) == set()
    assert not os.path.exists("/run/podwire-cni")


@new_plugins
def test_an_edited_subnet_is_one_step_with_its_attachments(host, change, desired):
    host.run("cni_host", **desired)
    path = CONF_DIR / "10-pwhapps.conflist"
    path.write_text(path.read_text().replace("10.41.", "10.43."))
    # Made with the desired network, to which the file returns: nothing is attached again.
    ran = change(**desired).run
    assert brief(ran) == [("networks", "write", "10-pwhapps.conflist")]
    assert {row["action"] for row in ran["attachments"]["attachments"]} == {"none"}


@new_plugins
def test_a_new_subnet_renews_the_attachments_of_the_request(host, change, fail, desired):
    host.run("cni_host", **desired)
    desired["networks"]["networks"][0] = network("pwhapps", 43)
    alone = {"networks": desired["networks"], "netns": {"names": ["pwh-new"]}}
    check, run = fail({"networks": "attachments_exist"}, **alone)
    for result in (check, run):
        assert "web/eth0" in result["msg"] and "db/eth0" in result["msg"]
    # Check mode shows what the run refuses, too.
    assert brief(check) == [("networks", "write", "10-pwhapps.conflist"), *brief(run)]
    assert brief(run) == [("netns", "create", "pwh-new")]
    assert run["changed"] and run["plan"][0]["state"] == "done"
    assert "10.41." in (CONF_DIR / "10-pwhapps.conflist").read_text()

    # One of its two attachments is not in the request.
    part = {**desired["attachments"], "attachments": desired["attachments"]["attachments"][:2]}
    _check, run = fail({"networks": "attachments_exist"}, networks=desired["networks"], attachments=part)
    assert "db/eth0" in run["msg"] and "web/eth0" not in run["msg"]
    assert run["plan"] == []

    ran = change(**desired).run
    assert brief(ran) == [
        ("networks", "write", "10-pwhapps.conflist"),
        ("attachments", "repair", "pwhapps/web/eth0"),
        ("attachments", "repair", "pwhapps/db/eth0"),
    ]
    assert " 10.43.0." in sh("ip -n pwh-web -oneline address show eth0")
    assert " 10.42.0." in sh("ip -n pwh-web -oneline address show eth1")


def test_eight_breaks_are_eight_steps(host, change, desired):
    desired["netns"]["names"].append("pwh-idle")
    host.run("cni_host", **desired)
    sh(BREAKS)
    results = change(warnings=None, **desired)
    assert [f"{section} {target}" for section, _kind, target in brief(results.run)] == [
        "plugins loopback",
        "plugins portmap",
        "plugins tuning",
        "networks 10-pwhapps.conflist",
        "networks 10-pwhdata.conflist",
        "netns pwh-idle",
        "attachments pwhapps/web/eth0",
        "attachments pwhdata/job/eth0",
    ]
    kinds = [kind for section, kind, _target in brief(results.run) if section == "plugins"]
    assert kinds == ["install", "replace", "set_attributes"]
    sh("ip netns exec pwh-web ping -c1 -W5 10.41.0.1; ip -n pwh-job route | grep '^default via 10.42.0.1 '")
    codes = {line.split("]")[0].strip("[") for line in results.check["warnings"]}
    assert codes <= {"drifted"}


@new_plugins
def test_what_a_network_shares_is_put_back(host, change, desired):
    host.run("cni_host", **desired)
    sh("ip address flush dev pwhapps0; sysctl -qw net.ipv4.ip_forward=0; rm /opt/cni/bin/bridge")
    results = change(warnings=None, **desired)
    assert brief(results.run) == [
        ("plugins", "install", "bridge"),
        ("attachments", "repair", "shared firewall rules and forwarding"),
        ("attachments", "repair", "pwhapps"),
    ]
    assert {step["class"] for step in results.run["plan"]} == {"safe"}
    assert "10.41.0.1/24" in sh("ip -oneline address show pwhapps0")


@new_plugins
def test_a_namespace_that_was_lost_takes_its_attachments_along(host, change, desired):
    host.run("cni_host", **desired)
    delete_netns("pwh-db")
    ran = change(**desired).run
    assert brief(ran) == [("netns", "create", "pwh-db"), ("attachments", "repair", "pwhapps/db/eth0")]
    assert [row["reason"] for row in ran["attachments"]["attachments"]] == ["", "", "netns", ""]
