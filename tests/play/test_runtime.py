# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The roles runtime and host, and the playbooks drift and remediate, with a real containerd and a real podman.

What cni_conf itself does for runtimes is tested in tests/host/runtime.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import COLLECTION, sh
from ansible_collections.podwire.cni.tests.host.networks import host_local, network
from ansible_collections.podwire.cni.tests.play.controller import Controller

CONFIG = Path("/etc/containerd/config.toml")
# The containerd of the fixture as a service of a host without systemd.
SERVICE = f"""\
#!/bin/sh
### BEGIN INIT INFO
# Provides:          containerd
# Required-Start:
# Required-Stop:
# Default-Start:     2 3 4 5
# Default-Stop:      0 1 6
### END INIT INFO
runtimes() {{ {sys.executable} -B {COLLECTION}/tests/real/runtimes/installed.py "$1"; }}
case $1 in
  start | stop) runtimes "$1" ;;
  restart) runtimes stop && runtimes start ;;
  status) pidof containerd ;;
esac
"""
# systemd is installed here but does not run.
BY_SCRIPTS = {"ansible.builtin.set_fact": {"ansible_service_mgr": "sysvinit", "cacheable": True}}
WHICH_RUNS = {"ansible.builtin.command": "pidof -s containerd"}
PODS = {"type": "bridge", "bridge": "pwrpods0", "ipam": host_local("10.97.0.0/24")}
NETWORK = network("pwrpods", PODS, version="0.4.0")


@pytest.fixture(scope="module")
def controller(runtimes, generations, host, tmp_path_factory):
    """A host with plugins and a network where no runtime looks, and the variables that name both."""
    folder = tmp_path_factory.mktemp("site")
    variables = {"cni_conf_dir": f"{folder}/net.d", "cni_bin_dirs": [str(generations["old"])]}
    hosts = {"here": {"ansible_connection": "local"}}
    host.run("cni_conf", conf_dir=variables["cni_conf_dir"], bin_dirs=variables["cni_bin_dirs"], networks=[NETWORK])
    service = Path("/etc/init.d/containerd")
    service.write_text(SERVICE)
    service.chmod(0o755)
    yield Controller(folder, {"all": {"hosts": hosts, "vars": variables}})
    service.unlink()


def role(name, runtimes=("containerd",), check=False, **variables):
    include = {"name": f"podwire.cni.{name}", "apply": {"check_mode": check}}
    named = {f"cni_runtime_{key}": value for key, value in variables.items()}
    return {"ansible.builtin.include_role": include, "vars": {"cni_runtime": list(runtimes), **named}}


def rescued(*tasks):
    return {"block": tasks, "rescue": [{"ansible.builtin.meta": "noop"}]}


def configured(run):
    """Return what the runs of a role have said of runtimes: whether something changed, steps, and what each reads."""
    found = []
    for entry in run.results:
        if entry.action == "podwire.cni.cni_host" and "plan" in entry.result:
            plan = [{key: value for key, value in step.items() if key != "state"} for step in entry.result["plan"]]
            found.append((entry.result["changed"], plan, entry.result["runtime"]["configured"]))
        elif "Configure the runtimes" in entry.task:
            found.append((entry.result["changed"], entry.result["actions"], entry.result["configured"]))
    return found


def loaded(run):
    """Return the results of looking whether a runtime has loaded the network, by the role host or the role runtime."""
    results = run.of("podwire.cni.cni_host")
    return [row for row in (result.get("loaded", result) for result in results) if "effective" in row or "code" in row]


def restart_due(run):
    return [rows[0]["restart"] for _changed, _steps, rows in configured(run)]


def pids(run):
    return [result["stdout"] for result in run.of("ansible.builtin.command")]


def test_a_runtime_that_is_not_installed_is_refused(controller):
    run = controller.play(role("runtime", ["crio"]), status=2)
    (result,) = run.of("podwire.cni.cni_conf")
    assert result["code"] == "missing_runtime"


def test_directories_that_the_runtime_never_searches_are_said(controller, generations):
    conf_dir = controller.run("bootstrap", "--check", cni_hosts="here", cni_networks=[NETWORK])
    [line] = [line for line in conf_dir.stdout.splitlines() if "conf_dir_unused" in line]
    assert f"{controller.folder}/net.d" in line and "cni_conf_dir" in line and "cni_runtime" in line
    read = {"cni_networks": [NETWORK], "cni_conf_dir": "/etc/cni/net.d"}
    bin_dir = controller.run("bootstrap", "--check", cni_hosts="here", **read)
    lines = [line for line in bin_dir.stdout.splitlines() if "bin_dir_unused" in line]
    assert any("containerd" in line for line in lines)
    assert all("cni_bin_dirs" in line and "cni_runtime" in line for line in lines)
    first = "/etc/cni/net.d/05-first.conflist"
    sh(f"sed s/pwrpods/first/ {controller.folder}/net.d/10-pwrpods.conflist > {first}")
    beside = controller.run("bootstrap", "--check", cni_hosts="here", **read)
    sh(f"rm {first}")
    assert [line for line in beside.stdout.splitlines() if "not_effective" in line and first in line]
    read["cni_report_dir"], release = f"{controller.folder}/seen", {"cni_plugins_remote_src": True}
    release["cni_plugins_src"] = str(generations["old"])
    for playbook in ("drift", "remediate --check", "upgrade --check", "smoke --check"):
        options = release if "upgrade" in playbook else {}
        if "smoke" in playbook:
            sh(f"cp {controller.folder}/net.d/10-pwrpods.conflist /etc/cni/net.d/")
        seen = controller.run(*playbook.split(), cni_hosts="here", **read, **options)
        lines = [line for line in seen.stdout.splitlines() if "bin_dir_unused" in line and "containerd" in line]
        assert lines, seen.stdout
    sh("rm /etc/cni/net.d/10-pwrpods.conflist")


@pytest.mark.parametrize("name", [pytest.param("runtime", marks=pytest.mark.full), "host"])
def test_containerd_is_restarted_once_and_only_when_it_may(controller, host, name):
    original = CONFIG.read_text()
    predicted = role(name, check=True, network="pwrpods")
    wanted = role(name, network="pwrpods")
    expected = rescued(role(name, network="pwrabsent", wait=0.5))
    tasks = [BY_SCRIPTS, WHICH_RUNS, predicted, WHICH_RUNS, wanted, WHICH_RUNS, wanted, WHICH_RUNS, expected]
    run = controller.play(*tasks, real=name == "runtime")
    check, made, again, absent = configured(run)
    assert made == check
    assert [changed for changed, *_others in (made, again, absent)] == [True, False, False]
    assert restart_due(run) == [True, True, False, False]
    before, checked, after, right = pids(run)
    assert (before, after) == (checked, right)
    assert before != after
    first, second, failed = loaded(run)
    for result in (first, second):
        (row,) = result["configured"]
        assert (row["networks"], row["ready"]) == (["pwrpods"], True)
        assert result["effective"][0]["conf_dir"] == f"{controller.folder}/net.d"
    # A network that containerd does not load fails the role, and containerd is configured.
    assert failed["code"] == "not_effective"
    assert run.results[-1].status == "failed"

    # The restart is left to somebody else, and every run says so, until it is allowed. Then all is taken back.
    later = {"network": "pwrpods", "max_conf_num": 2}
    left = role(name, restart=False, **later)
    everything = {"runtimes": ["containerd", "crio", "nomad", "podman"], "state": "absent"}
    undo = [role(name, check=check, **everything) for check in (True, False)]
    tasks = [BY_SCRIPTS, WHICH_RUNS, left, left, WHICH_RUNS, role(name, **later), WHICH_RUNS, *undo, WHICH_RUNS]
    run = controller.play(*tasks)
    *changes, check, undone = configured(run)
    # In the role host, a restart is a change of the one task.
    assert [changed for changed, *_others in changes] == [True, False, name == "host"]
    assert restart_due(run)[:3] == [True] * 3
    assert f" reads {controller.folder}/net.d when it is restarted; cni_runtime_restart is false" in " ".join(
        (run.stdout + run.stderr).split()
    )
    (result,) = loaded(run)
    (row,) = result["configured"]
    assert (row["restart"], row["networks"]) == (False, ["pwrpods"])
    assert undone == check
    assert undone[0]
    before, still, restarted, last = pids(run)
    assert before == still
    assert len({still, restarted, last}) == 3
    assert CONFIG.read_text() == original
    rows = host.run("cni_info", gather=["runtime"])["runtime"]
    assert {row["conf_dir"] for row in rows} == {"/etc/cni/net.d"}
    assert [row["bin_dirs"] for row in rows] == [["/opt/cni/bin"]] * len(rows)


def test_a_configuration_that_is_gone_is_disruptive_drift(controller, host):
    """podman needs no restart, so that none is seen here."""
    variables = {"cni_hosts": "all", "cni_runtime": ["podman"], "cni_report_dir": f"{controller.folder}/report"}
    options = {"networks": [], "runtime": ["podman"], "conf_dir": f"{controller.folder}/net.d"}
    for state in ("present", "absent"):
        result = host.run("cni_conf", configure={"state": state}, **options)
    (file,) = result["configured"][0]["files"]

    def look(playbook, **more):
        controller.run(playbook, **variables, **more)
        (found,) = controller.report()["hosts"]
        return found

    for playbook in ("drift", "remediate"):
        # Left as long as nothing disruptive is allowed.
        steps = [(step["kind"], step["target"], step["class"]) for step in look(playbook)["steps"]]
        assert steps == [("configure", file, "disruptive")]
    repaired = look("remediate", cni_remediate_classes=["safe", "disruptive"])
    assert repaired["status"] == "clean"
    sh(f"rm -f {file}")
