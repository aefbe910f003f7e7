# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks upgrade and smoke, on hosts with containers: a release that works, and releases that break networks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import DEFAULT_ROUTE, PORTMAP, bridge, host_local, network
from ansible_collections.podwire.cni.tests.play.controller import Controller

BIN_DIR = Path("/opt/cni/bin")
NAMESPACES = ("pwu-a", "pwu-b")
# What of the containers an upgrade must leave as it is. An IPv6 address is tentative for some seconds.
STATE = r"""
find /var/lib/podwire/cni -type f -exec sha256sum {} + | sort
find /var/lib/cni -type f ! -name 'last_reserved_ip.*' ! -name lock -exec sha256sum {} + | sort
ip -oneline link show
for netns in pwu-a pwu-b; do
  ip -n "$netns" -oneline address show | sed 's/ tentative//'
  ip -n "$netns" route show
done
iptables-save | grep '^-' | sort
"""
# A plugin of a broken release answers VERSION, and nothing else works.
BROKEN = """\
#!/bin/sh
case "$CNI_COMMAND" in
  VERSION) printf '{"cniVersion": "1.0.0", "supportedVersions": ["0.3.1", "0.4.0", "1.0.0", "1.1.0"]}' ;;
  ADD) %s printf '{"cniVersion": "1.0.0", "code": 999, "msg": "this release is broken"}'; exit 1 ;;
esac
"""
IN_REHEARSAL = """[ ! -d /run/podwire-rehearsal ] || { printf '{"cniVersion": "1.0.0"}'; exit 0; };"""
ALL_WORK = "and every network that worked before works"


BRIDGE = bridge("pwubridge0", ipMasq=True, ipam=host_local("10.45.0.0/24", routes=DEFAULT_ROUTE))
PTP = {"type": "ptp", "ipam": host_local(subnet="10.44.0.0/24")}
PORTS = {"portMappings": [{"hostPort": 8045, "containerPort": 80, "protocol": "tcp"}]}
VARIABLES = {
    "cni_plugins_remote_src": True,
    "cni_networks": [
        network("pwubridge", BRIDGE, PORTMAP),
        network("pwuptp", PTP),
    ],
    "cni_netns": NAMESPACES,
    "cni_attachments": [
        {"network": "pwubridge", "container_id": "a", "netns": "pwu-a", "capability_args": PORTS},
        {"network": "pwuptp", "container_id": "b", "netns": "pwu-b"},
    ],
}


@pytest.fixture(scope="module")
def controller(generations, tmp_path_factory):
    """Two hosts with two networks and two containers. Both are this machine: the second one comes after the canary."""
    hosts = {name: {"ansible_connection": "local"} for name in ("canary", "second")}
    controller = Controller(tmp_path_factory.mktemp("site"), {"all": {"hosts": hosts, "vars": VARIABLES}})
    controller.run("bootstrap", cni_hosts="canary", cni_plugins_src=str(generations["old"]))
    return controller


def installed():
    """Return the files of the directory of plugins."""
    return {path.name: path.read_bytes() for path in BIN_DIR.iterdir()}


@pytest.fixture
def upgrade(controller):
    """Return a function that runs a playbook, upgrade if none is named, which must leave the containers as they are."""

    def run(*options, playbook="upgrade", **variables):
        before = sh(STATE)
        done = controller.run(playbook, *options, **{"cni_hosts": "all", **variables})
        assert sh(STATE) == before
        assert "Traceback" not in done.stdout + done.stderr
        return done

    return run


@pytest.fixture
def install(host):
    """Return a function that installs the plugins of a directory, and no others."""

    def run(source):
        names = [path.name for path in source.iterdir()]
        others = [path.name for path in BIN_DIR.iterdir() if path.name not in names]
        host.run("cni_plugins", src=str(source), remote_src=True)
        if others:
            host.run("cni_plugins", plugins=others, state="absent", force=True)

    return run


@pytest.fixture
def broken(tmp_path):
    """Return a function that makes a release whose bridge is broken, and which brings a plugin more."""

    def make(when=""):
        names = ["bridge", "more"]
        for name in names:
            (tmp_path / name).write_text(BROKEN % when)
            (tmp_path / name).chmod(0o755)
        # Scripts are plugins only where they are named.
        return {"cni_plugins_src": str(tmp_path), "cni_plugins_names": names}

    return make


def said(run):
    """Return what a run has printed as one line, whatever its width."""
    return " ".join((run.stdout + run.stderr).split())


def recap(run, host):
    """Return what the recap has about a host."""
    (line,) = re.findall(rf"^{host} +: (.*)$", run.stdout, re.MULTILINE) or [""]
    return dict(word.split("=") for word in line.split())


def statuses(run):
    """Return how each network of the first host was before and after."""
    result = run.of("podwire.cni.cni_host")[0]
    return result["before"], result["after"]


@pytest.mark.parametrize(("options", "failed"), [({}, {"canary"}), ({"cni_serial": "100%"}, {"canary", "second"})])
def test_nothing_to_install_is_refused_by_each_host_of_the_first_batch(upgrade, options, failed):
    before = installed()
    run = upgrade(status=2, **options)
    assert "Nothing to install" in said(run)
    assert {entry.host for entry in run.results} == failed
    assert installed() == before


def test_an_upgrade_and_the_way_back(upgrade, install, generations, tmp_path):
    old, new = generations["old"], generations["new"]
    install(old)
    before = installed()
    check = upgrade("--check", cni_plugins_src=str(new))
    assert [recap(check, name)["changed"] for name in ("canary", "second")] == ["1", "1"]
    assert installed() == before

    run = upgrade(real=True, cni_hosts="canary", cni_plugins_src=str(new))
    assert recap(run, "canary")["changed"] == "1"
    released = {path.name: path.read_bytes() for path in new.iterdir()}
    assert installed() == released
    assert statuses(run) == ({"pwubridge": "passed", "pwuptp": "passed"},) * 2
    assert "tested before: pwubridge passed, pwuptp passed; tested after: pwubridge passed, pwuptp passed" in said(run)
    assert f"write cni_plugins_src: {new} into the inventory" in said(run)

    # The inventory still names the older release.
    upgrade(playbook="drift", cni_hosts="canary", cni_plugins_src=str(old), cni_report_dir=str(tmp_path))
    steps = json.loads((tmp_path / "hosts" / "canary.json").read_text())["steps"]
    assert {(step["kind"], step["class"]) for step in steps} == {("replace", "disruptive")}
    reason = "upgraded( to 1.9.1)? by upgrade; the inventory (says 1.1.1|has an older one)"
    assert all(re.fullmatch(reason, step["reason"]) for step in steps)
    # The first command of the report would undo the upgrade, and says what that costs.
    page = re.sub("<[^>]+>", "", (tmp_path / "report.html").read_text())
    first = re.search(r"Replace plugins on 1 host: (.+?)\s*ansible-playbook (.*)", page)
    assert first is not None and page.index("ansible-playbook") == first.start(2) - len("ansible-playbook ")
    assert "which may be older; running containers keep" in first[1] and "cni_remediate_classes" in first[2]

    back = upgrade(cni_plugins_src=str(old))
    # The canary is first; the second, which is the same machine, has nothing left to do.
    assert [recap(back, name)["changed"] for name in ("canary", "second")] == ["1", "0"]
    # Plugins that only the newer release has stay.
    assert installed() == {**released, **before}


def test_smoke_tries_the_networks_alone(upgrade):
    before = installed()
    run = upgrade(playbook="smoke", real=True, cni_hosts="canary")
    (result,) = run.of("podwire.cni.cni_host")
    assert [(row["network"], row["status"]) for row in result["networks"]] == [
        ("pwubridge", "passed"),
        ("pwuptp", "passed"),
    ]
    assert '"canary: passed: pwubridge passed, pwuptp passed"' in run.stdout
    assert installed() == before


def test_a_broken_release_never_goes_live_because_a_rehearsal_with_it_fails(upgrade, install, broken, generations):
    install(generations["new"])
    before = installed()
    run = upgrade(status=2, **broken())
    words = said(run)
    assert "break networks that work with the old ones, so nothing was installed: pwubridge: " in words
    assert "this release is broken" in words
    assert f"No plugin was changed, {ALL_WORK}" in words
    assert recap(run, "canary")["failed"] == "1"
    assert {entry.host for entry in run.results} == {"canary"}
    assert installed() == before


def test_a_release_that_only_a_test_on_the_host_finds_broken_is_rolled_back(upgrade, install, broken, generations):
    install(generations["new"])
    before = installed()
    # The second network, which a plugin that is not broken makes, need not be tried.
    run = upgrade(status=2, cni_smoke_networks=["pwubridge"], **broken(IN_REHEARSAL))
    assert statuses(run) == ({"pwubridge": "passed"}, {"pwubridge": "failed"})
    words = said(run)
    assert "this release is broken" in words
    assert f"The previous plugins are restored, {ALL_WORK}" in words
    assert recap(run, "canary")["failed"] == "1"
    assert {entry.host for entry in run.results} == {"canary"}
    assert installed() == before


def test_a_plugin_that_somebody_has_replaced_could_not_be_restored(upgrade, install, broken, generations):
    install(generations["new"])
    sh(f"cp --remove-destination {generations['old']}/vrf {BIN_DIR}/vrf")
    before = installed()
    run = upgrade(status=2, **broken())
    assert "Another program has replaced /opt/cni/bin/vrf" in said(run)
    assert {entry.host for entry in run.results} == {"canary"}
    assert installed() == before
