# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks drift and report: what they print and write, and that nothing changes on the hosts."""

from __future__ import annotations

import html
import json
import re
import shlex
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh, wait_until
from ansible_collections.podwire.cni.tests.host.networks import bridge, network
from ansible_collections.podwire.cni.tests.play.controller import Controller, steps

# All that these playbooks must leave as it is. Not among it is whether a bridge is up, which the kernel notices later.
STATE = r"""
find /etc/cni /opt/cni /var/lib/cni /var/lib/podwire -printf '%p %m %U %G %T@\n' | sort
find /etc/cni /opt/cni /var/lib/cni /var/lib/podwire -type f -exec sha256sum {} + | sort
ip -oneline link show | sed 's/ <.*>//; s/ state [A-Z]*//'
ip netns list
"""
NETWORK, ODD = Path("/etc/cni/net.d/10-drift.conflist"), "o dd/../name"
BRIDGE = bridge("drift0", "10.87.0.0/24", mtu=1400)
DAMAGE = f"""
sed -i s/1400/1500/ {NETWORK}
rm /opt/cni/bin/firewall
cp /etc/hostname /opt/cni/bin/bridge
ip -n drift-a link delete eth0
"""
STEPS = [
    "replace /opt/cni/bin/bridge safe",
    "install /opt/cni/bin/firewall safe",
    f"write {NETWORK} safe",
    "repair drift/a/eth0 safe",
]


def site(plugins, folder):
    """Return an inventory in which all hosts but one are this machine; they differ in what they are to be."""
    local = {"ansible_connection": "local"}
    drift = network("drift", BRIDGE)
    hosts = {
        "plain": local,
        ODD: local,
        "more": {**local, "cni_networks": [drift, network("second", {"type": "loopback"})]},
        "refused": {**local, "cni_networks": [network("bad", {"type": "bridge", "mtu": "many"})]},
        "undefined": {**local, "cni_attachments": "{{ nobody_knows }}"},
        # Tests have no network.
        "away": {"ansible_connection": "ssh", "ansible_host": "192.0.2.1"},
    }
    variables = {
        "cni_report_dir": str(folder / "report"),
        "cni_plugins_src": str(plugins),
        "cni_plugins_remote_src": True,
        "cni_plugins_names": ["bridge", "firewall", "host-local", "loopback"],
        "cni_networks": [drift],
        "cni_netns": ["drift-a"],
        "cni_attachments": [{"network": "drift", "container_id": "a", "netns": "drift-a"}],
    }
    return {"all": {"hosts": hosts, "vars": variables}}


@pytest.fixture(scope="module")
def plugins(generations):
    return generations["new"]


@pytest.fixture(scope="module")
def bootstrapped(plugins, tmp_path_factory):
    """This machine as the host ``plain`` shall be."""
    folder = tmp_path_factory.mktemp("bootstrap")
    Controller(folder, site(plugins, folder)).run("bootstrap", cni_hosts="plain")


@pytest.fixture
def fleet(bootstrapped, plugins, tmp_path):
    """A controller without a report."""
    return Controller(tmp_path, site(plugins, tmp_path))


@pytest.fixture(scope="module")
def inspected(bootstrapped, plugins, tmp_path_factory):
    """A controller with the report of all hosts, and the run that has made it."""
    folder = tmp_path_factory.mktemp("fleet")
    controller = Controller(folder, site(plugins, folder))
    return controller, look(controller, status=2)


@pytest.fixture
def report(inspected, tmp_path):
    """A copy of the report of all hosts."""
    return shutil.copytree(inspected[0].folder / "report", tmp_path / "report")


def look(controller, *options, **more):
    """Run the playbook, which must leave all hosts as they are, and say so."""
    before = sh(STATE)
    run = controller.run("drift", *options, **more)
    assert sh(STATE) == before
    assert " changed=0 " in run.stdout
    assert not re.search(" changed=[1-9]", run.stdout)
    return run


@contextmanager
def damage(controller):
    """Damage this machine, and let bootstrap repair it."""
    sh(DAMAGE)
    try:
        yield
    finally:
        sh("rmdir /opt/cni/bin/loopback /run/netns/drift-bad", check=False)
        controller.run("bootstrap", cni_hosts="plain", cni_attachments_on_drift="repair")


def recap(run):
    """Return whether each host of the play failed."""
    return {host: failed != "0" for host, failed in re.findall(r"(?m)^(.+?) +: ok=.* failed=([0-9]+) ", run.stdout)}


# ---- one host


def test_a_clean_host(fleet):
    run = look(fleet, real=True, cni_hosts="plain", cni_drift_fail="drift")
    report = fleet.report()
    assert report["status"] == "clean"
    assert report["counts"] == {"hosts": 1, "clean": 1, "drift": 0, "error": 0, "attention": 0}
    (plain,) = report["hosts"]
    assert (plain["steps"], [row["network"] for row in plain["info"]["conf"]]) == ([], ["drift"])
    assert "missing_runtime" in [row["code"] for row in plain["info"]["readiness"]["obstacles"]]
    assert f'"The host is clean",\n        "{fleet.folder}/report/report.html"' in run.stdout
    assert re.search(r"(?m)^ok: \[plain\] => \(item=plain: clean\)$", run.stdout)
    # Nobody else reads a report.
    assert sh(f"find {fleet.folder}/report -perm /077") == ""


def test_drift_of_each_kind_until_it_is_repaired(fleet):
    with damage(fleet):
        run = look(fleet, "--diff", cni_hosts="plain")
        (plain,) = fleet.report()["hosts"]
        # Although a plugin that all need cannot run, nothing is an error.
        assert (plain["status"], plain["error"]) == ("drift", None)
        assert steps(plain) == STEPS
        reasons = ["content differs", "not installed", "bridge: mtu 1500, want 1400", "eth0 is gone"]
        assert [step["reason"] for step in plain["steps"]] == reasons
        # Plugins share a diff, and their reasons say as much.
        assert all(("after" in step) == (step["module"] != "cni_plugins") for step in plain["steps"])
        # With --diff, all that a run would change is printed.
        for text in ('"steps": [', f'"target": "{NETWORK}"', '"after": '):
            assert text in run.stdout

        sh("rm /opt/cni/bin/loopback; mkdir /opt/cni/bin/loopback /run/netns/drift-bad")
        look(fleet, cni_hosts="plain", cni_netns=["drift-a", "drift-bad"], status=2)
        (plain,) = fleet.report()["hosts"]
        assert plain["status"] == "error"
        plugin, netns = plain["error"].splitlines()
        assert plugin.startswith("/opt/cni/bin/loopback is a directory ")
        assert netns.startswith("/run/netns/drift-bad is neither ")
        assert steps(plain) == STEPS

    look(fleet, "--check", cni_hosts="plain")
    (plain,) = fleet.report()["hosts"]
    assert (plain["status"], plain["steps"]) == ("clean", [])


def test_what_a_daemon_has_added_is_no_drift(fleet):
    desired = NETWORK.read_text()
    plugin = NETWORK.with_name("install-cni")
    istio = Path("/opt/cni/bin/istio-cni")
    shutil.copy("/opt/cni/bin/loopback", istio)
    shutil.copy("/bin/sleep", fleet.folder / plugin.name)
    added = json.loads(desired)
    added["plugins"].append({"type": "istio-cni", "log_level": "info"})
    NETWORK.write_text(json.dumps(added))
    with subprocess.Popen([fleet.folder / plugin.name, "600"]) as daemon:
        try:
            wait_until(lambda: Path(f"/proc/{daemon.pid}/comm").read_text() == "install-cni\n")
            look(fleet, cni_hosts="plain", cni_drift_fail=True)  # as drift
        finally:
            daemon.kill()
            NETWORK.write_text(desired)
            istio.unlink()
    (plain,) = fleet.report()["hosts"]
    assert plain["status"] == "clean"
    # The attachment was made without it.
    assert steps(plain) == [f"leave {NETWORK} foreign", "leave drift/a/eth0 foreign"]


# ---- a fleet


def test_a_fleet_of_which_some_hosts_cannot_be_inspected(inspected):
    controller, run = inspected
    report, hosts = controller.report(), controller.reported()
    assert report["status"] == "error"
    assert report["counts"] == {"hosts": 6, "clean": 2, "drift": 1, "error": 3, "attention": 4}
    assert hosts["plain"]["status"] == hosts[ODD]["status"] == "clean"
    assert hosts["more"]["status"] == "drift"
    assert steps(hosts["more"]) == ["create /etc/cni/net.d/10-second.conflist safe"]
    assert "loopback" in hosts["more"]["steps"][0]["after"]
    assert "/plugins/0/mtu" in hosts["refused"]["error"]
    assert "nobody_knows" in hosts["undefined"]["error"]
    # What is declared wrongly does not hide the state of a host.
    for name in ("refused", "undefined"):
        assert [row["network"] for row in hosts[name]["info"]["conf"]] == ["drift"]
    assert "unreachable" in hosts["away"]["error"]
    assert "Network is unreachable" in hosts["away"]["error"]
    # Each has its line, and no result is printed.
    assert re.search(r"(?m)item=more: drift: create 10-second.conflist\)$", run.stdout)
    assert re.search("item=away: error: unreachable: .*Network is unreachable", run.stdout)
    assert re.search("item=refused: error: .*/plugins/0/mtu", run.stdout)
    said = "4 of 6 hosts need attention: 3 with an error (away, refused, undefined), 1 with drift (more)"
    assert said in run.stdout
    assert "cni_versions" not in run.stdout
    # What could not be inspected is no success.
    assert recap(run) == {
        **dict.fromkeys(("plain", ODD, "more"), False),
        **dict.fromkeys(("away", "refused", "undefined"), True),
    }


@pytest.mark.parametrize("level", ["never", False])
def test_a_host_that_is_away_does_not_fail_if_told_so(fleet, level):
    assert recap(look(fleet, cni_hosts="away", cni_drift_fail=level)) == {"away": False}


@pytest.mark.usefixtures("report")
def test_hosts_that_are_not_clean_fail_and_the_report_has_those_of_other_slices(fleet):
    run = look(fleet, "--limit", "plain,more,away", cni_drift_fail="drift", status=2)
    assert recap(run) == {"plain": False, "more": True, "away": True}
    assert fleet.report()["counts"]["hosts"] == 6


def test_a_command_of_the_page_runs_for_its_host_only(inspected, fleet):
    controller, _run = inspected
    page = (controller.folder / "report" / "report.html").read_text()

    def command(host):
        section = next(part for part in page.split("<details") if f"<h3><bdi>{host}</bdi></h3>" in part)
        texts = [re.sub("<.*?>", "", code) for code in re.findall("<code>(.*?)</code>", section)]
        found = [shlex.split(html.unescape(text)) for text in texts]
        return next(words for words in found if "podwire.cni.drift" in words)

    # It names the inventory, the folder and the host, so it works from anywhere.
    begin = ["ansible-playbook", "podwire.cni.drift", "--limit"]
    end = ["-i", str(controller.inventory), "-e", f"cni_report_dir={controller.folder}/report"]
    assert command("plain") == [*begin, "plain", *end]
    words = command(ODD)
    assert (words[:3], words[4:]) == (begin, end)
    assert recap(look(fleet, *words[2:4])) == {ODD: False}


# ---- the playbook report


def test_the_report_of_records_of_any_origin_and_a_file_for_prometheus(fleet, report):
    (first,) = (report / "runs").iterdir()
    record = (report / "hosts" / "more.json").read_text()
    (report / "hosts" / "pulled.json").write_text(record.replace('"host":"more"', '"host":"pulled"'))
    (report / "hosts" / "broken.json").write_text("{")
    metrics = fleet.folder / "prometheus"
    outputs = {"cni_report_prometheus": str(metrics)}
    # It has all hosts, whatever the limit.
    run = fleet.run("report", "--limit", "plain", real=True, cni_report_against=str(first), **outputs)
    hosts = fleet.reported()
    assert hosts["away"]["status"] == "error"
    assert hosts["pulled"]["status"] == "drift"
    assert "broken.json is unusable" in hosts["broken"]["error"]
    (shown,) = run.of("ansible.builtin.debug")
    *_notes, totals, path = shown["msg"]
    named = "4 with an error (away, broken, refused and 1 more), 2 with drift (more, pulled)"
    assert totals.startswith(f"6 of 8 hosts need attention: {named}; since 20"), shown
    assert re.search(r"since 20..-..-.. ..:..: new findings on [0-9]+ hosts?", totals)
    assert path == f"{report}/report.html"
    assert 'host_status{host="more",status="drift"} 1' in metrics.read_text()


@pytest.mark.parametrize(
    ("other", "found", "level", "status"),
    [
        (None, None, "attention", 0),
        ("more", "drift", "error", 0),
        ("more", "drift", "drift", 2),
        ("more", "drift", "attention", 2),
        ("away", "error", "error", 2),
    ],
)
def test_a_fleet_that_is_not_as_demanded_fails(report, controller, other, found, level, status):
    """A fleet of a clean host and another one, for which something was *found*."""
    for path in (report / "hosts").iterdir():
        if path.stem not in ("plain", other):
            path.unlink()
    run = controller({}).run("report", status=status, cni_report_dir=str(report), cni_report_fail=level)
    assert bool(re.search('fatal: .*"msg": "1 of 2 hosts needs attention: 1 with .*\\(.*\\)"', run.stdout)) == bool(
        status
    )
    # What was found is in the artifacts of a job of AWX.
    (kept,) = run.of("podwire.cni.cni_report")
    hosts = kept["ansible_stats"]["data"]["cni_drift"]["hosts"]
    assert {name: hosts[name] for name in ("drift", "error") if hosts[name]} == ({found: [other]} if found else {})


def test_a_demand_that_does_not_exist_is_refused(report, controller):
    run = controller({}).run("report", status=2, cni_report_dir=str(report), cni_report_fail="always")
    assert "cni_report_fail: 'always' is not one of its values, which are never, error, drift, attention" in run.stdout


def test_a_folder_without_records_fails(controller):
    controller = controller({})
    run = controller.run("report", status=2, cni_report_dir=f"{controller.folder}/nothing")
    assert f"no host has a record in {controller.folder}/nothing/hosts; inspect hosts with" in run.stdout
