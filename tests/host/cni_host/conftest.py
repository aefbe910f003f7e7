# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import NETWORK_STATE, Change, sh, wait_until
from ansible_collections.podwire.cni.tests.host.networks import DEFAULT_ROUTE, PORTMAP, bridge, conflist, host_local

BIN_DIR = Path("/opt/cni/bin")
CONF_DIR = Path("/etc/cni/net.d")
NAMES = ["bridge", "host-local", "loopback", "portmap", "tuning"]

# All that a plan can change: files with mode, owner and time of change, namespaces, and NETWORK_STATE.
LOOK = r"""
{
  find /etc/cni /opt/cni /var/lib/cni /var/lib/podwire/cni /run/cni -printf '%p %m %U %G %C@ %i %l\n' || true
} 2>/dev/null | sort
find /run/netns -mindepth 1 -printf '%f %F %y %i %l\n' | sort
"""

REMOVE = r"""
shopt -s nullglob
for path in /run/netns/pwh-*; do umount --lazy $path 2>/dev/null || true; rm -rf $path; done
"""

# Eight of them, each of which is repaired by one step.
BREAKS = r"""
printf garbage >/opt/cni/bin/portmap
rm /opt/cni/bin/loopback
chmod 0700 /opt/cni/bin/tuning
sed -i s/10.41.0/10.43.0/ /etc/cni/net.d/10-pwhapps.conflist
rm /etc/cni/net.d/10-pwhdata.conflist
ip netns delete pwh-idle
ip -n pwh-web link delete eth0
ip -n pwh-job route delete default
"""


@pytest.fixture(autouse=True)
def _empty_host(generation):
    yield
    empty()


def empty():
    """Remove what the tests make on a host."""
    sh(REMOVE)
    wait_until(lambda: not sh("ip link show type veth"))
    sh(
        """
        shopt -s nullglob
        for bridge in /sys/class/net/pwh*; do ip link delete "${bridge##*/}"; done
        nft flush ruleset
        chattr -i -R /var/lib/podwire /etc/cni 2>/dev/null || true
        rm -rf /etc/cni /opt/cni /var/lib/cni /var/lib/podwire /run/podwire-cni
        """
    )


def network(name, number, **more):
    """Return an entry of the section networks: a bridge with host-local, its gateway, masquerading and portmap."""
    ipam = host_local(f"10.{number}.0.0/24", routes=DEFAULT_ROUTE)
    chain = conflist(bridge(f"{name}0", ipMasq=True, forceAddress=True, ipam=ipam), PORTMAP, name=name)
    # As it is rendered.
    return {"name": name, "content": json.dumps(chain, indent=2) + "\n", **more}


@pytest.fixture
def source(generations, generation):
    return str(generations[generation])


@pytest.fixture
def desired(source):
    """The options of a whole host: two networks, three containers."""
    return {
        "plugins": {"src": source, "remote_src": True, "plugins": list(NAMES)},
        "networks": {"networks": [network("pwhapps", 41), network("pwhdata", 42)]},
        "netns": {"names": ["pwh-web", "pwh-db", "pwh-job"]},
        "attachments": {
            "attachments": [
                {"network": "pwhapps", "container_id": "web", "netns": "pwh-web"},
                {"network": "pwhdata", "container_id": "web", "netns": "pwh-web", "ifname": "eth1"},
                {"network": "pwhapps", "container_id": "db", "netns": "pwh-db"},
                {"network": "pwhdata", "container_id": "job", "netns": "pwh-job"},
            ],
            "on_drift": "repair",
        },
    }


@pytest.fixture
def absent(desired):
    """The options that remove all that *desired* makes."""
    options = copy.deepcopy(desired)
    for entry in options["networks"]["networks"]:
        del entry["content"]
        entry["state"] = "absent"
    for entry in options["attachments"]["attachments"]:
        entry["state"] = "absent"
    options["netns"]["state"] = "absent"
    options["plugins"] = {"plugins": list(NAMES), "state": "absent"}
    return options


def look():
    return sh(LOOK + NETWORK_STATE)


def steps(result):
    """Return the plan as data, without what became of its steps."""
    return [{name: value for name, value in step.items() if name != "state"} for step in result["plan"]]


def brief(result):
    """Return section, kind and the last part of the target of each step; attachments have their whole target."""
    return [
        (s["section"], s["kind"], s["target"] if s["section"] == "attachments" else s["target"].rpartition("/")[2])
        for s in result["plan"]
    ]


def states(result):
    return {step["state"] for step in result["plan"]}


def codes(result):
    """Return the error code of each section that failed."""
    return {
        name: result[name]["error"]["code"]
        for name in ("plugins", "networks", "runtime", "netns", "attachments")
        if result.get(name) and result[name]["error"]
    }


@pytest.fixture
def change(host):
    """Return a function that makes one change of state, and returns its results.

    The check predicts the run, as data and without a warning; afterwards there is nothing to do.
    """

    def make(warnings=0, **options):
        before = look()
        check = host.run("cni_host", check_mode=True, diff=True, **options)
        assert look() == before, "the check changed the host"
        run = host.run("cni_host", diff=True, **options)
        after = look()
        again = host.run("cni_host", diff=True, **options)
        check_again = host.run("cni_host", check_mode=True, diff=True, **options)
        assert look() == after, "the second run changed the host"
        assert check["changed"] and run["changed"]
        assert steps(check) == steps(run)
        assert states(check) == {"planned"}
        assert states(run) == {"done"}
        assert warnings is None or len(check.get("warnings", [])) == warnings, check["warnings"]
        assert check["diff"] == run["diff"]
        shown = {entry.get("step") for entry in run["diff"]}
        assert all(number in shown for number, step in enumerate(run["plan"]) if step["section"] != "plugins")
        for result in (again, check_again):
            assert not result["changed"], json.dumps(result["plan"], indent=1)
            assert result["plan"] == result["diff"] == result["left"] == []
            assert result.get("warnings", []) == []
        return Change(check, run, again, check_again)

    return make


@pytest.fixture
def refuse(host):
    """Return a function that expects a refusal of the whole task, which changes nothing, and returns the result."""

    def ask(code, words=(), **options):
        return host.refuse("cni_host", look, code, words, **options)

    return ask


@pytest.fixture
def fail(host):
    """Return a function that expects some sections to fail, in the run as in the check, and returns both results.

    *sections* has the code of each, *tolerated* those that fail in the run only, because the check takes for granted
    that what is missing will be there. With *planned*, the check predicts what the run does in the other sections; it
    also shows what would change in those that fail.
    """

    def ask(sections, planned=True, tolerated=(), **options):
        before = look()
        is_sound = set(sections) <= set(tolerated)
        check = (host.run if is_sound else host.fail)("cni_host", check_mode=True, diff=True, **options)
        assert look() == before, "the check changed the host"
        run = host.fail("cni_host", diff=True, **options)
        assert codes(run) == sections, (codes(run), run["msg"])
        assert codes(check) == {name: code for name, code in sections.items() if name not in tolerated}
        if planned:
            for key in ("plan", "left"):
                check_sound, run_sound = (
                    [dict(step, state="") for step in found[key] if step["section"] not in sections]
                    for found in (check, run)
                )
                assert check_sound == run_sound
            assert states(run) <= {"done"}
        return check, run

    return ask
