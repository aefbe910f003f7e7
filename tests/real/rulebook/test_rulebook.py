# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The rulebook podwire.cni.repair and that of docs/events.md with ansible-rulebook, on a host in private namespaces."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

BIN = Path(sys.executable).parent
ENVIRONMENT = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "ANSIBLE_NOCOLOR": "1"}
PAGE = Path(__file__).resolve().parents[3] / "docs" / "events.md"
JOBS = re.compile(r"^```yaml\n(?P<rulebook># jobs\.yml.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^```text\n(?P<lines>bootstrap .*?)^```$", re.MULTILINE | re.DOTALL)
NETWORK, PLUGIN = Path("/etc/cni/net.d/10-pods.conflist"), Path("/opt/cni/bin/portmap")
VARIABLES = {
    "cni_plugins_names": ["bridge", "host-local", "loopback", "portmap"],
    "cni_plugins_remote_src": True,
    "cni_networks": [
        {
            "name": "pods",
            "conflist": {
                "cniVersion": "1.0.0",
                "plugins": [
                    {"type": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/24"}]]}},
                    {"type": "portmap", "capabilities": {"portMappings": True}},
                ],
            },
        }
    ],
}


def wait_until(condition, what, seconds=240):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)


class Site:
    """The host, its inventory, and what ansible-rulebook prints."""

    def __init__(self, directory, plugins):
        self.inventory, self.log = directory / "inventory", directory / "rulebook.log"
        (self.inventory / "group_vars").mkdir(parents=True)
        host = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"}
        self.write("hosts.yml", {"all": {"hosts": {"node1": host}}})
        self.write("group_vars/all.yml", {**VARIABLES, "cni_plugins_src": str(plugins)})

    def write(self, name, data):
        (self.inventory / name).write_text(yaml.safe_dump(data))

    def says(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def good(self):
        return (
            NETWORK.exists()
            and "10.88.0.0/24" in NETWORK.read_text()
            and PLUGIN.exists()
            and os.access(PLUGIN, os.X_OK)
        )

    def runs(self):
        return self.says().count("PLAY RECAP")

    def settled(self):
        """Wait until the host is repaired and no run follows."""
        wait_until(self.good, self.says)
        before = -1
        while before != self.runs():
            before = self.runs()
            time.sleep(8)


@contextmanager
def listening(site, rulebook, variables):
    """Have ansible-rulebook run a rulebook with these variables of it; it prints into the log of the site."""
    path = site.inventory.parent / "variables.yml"
    path.write_text(yaml.safe_dump(variables))
    command = [BIN / "ansible-rulebook", "-i", site.inventory, "-r", rulebook, "--vars", path, "--verbose"]
    with site.log.open("wb") as log:
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=log, stderr=log)
    try:
        wait_until(lambda: "Waiting for actions on events" in site.says() or process.poll() is not None, site.says)
        # The source has looked, or listens, for the first time.
        time.sleep(3)
        assert process.poll() is None, site.says()
        yield
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """The host before anything is installed."""
    return Site(tmp_path_factory.mktemp("site"), os.environ["PODWIRE_PLUGINS"])


@pytest.fixture(scope="module")
def site(fleet):
    subprocess.run(
        [BIN / "ansible-playbook", "-i", fleet.inventory, "podwire.cni.bootstrap", "-e", "cni_hosts=all"],
        check=True,
        env=ENVIRONMENT,
    )
    variables = {"cni_eda_host": "node1", "cni_eda_report_dir": str(fleet.inventory.parent / "report")}
    with listening(fleet, "podwire.cni.repair", variables):
        yield fleet


def ask(port, job, token="secret"):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", json.dumps({"job": job}).encode())
    request.add_header("Authorization", f"Bearer {token}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.status


def test_the_jobs_of_the_page(fleet):
    """Bootstrap, drift and remediate by the rulebook of docs/events.md, on a host that has nothing yet."""
    rulebook = fleet.inventory.parent / "jobs.yml"
    rulebook.write_text(JOBS.search(PAGE.read_text(encoding="utf-8"))["rulebook"])
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    report = fleet.inventory.parent / "report"
    said = []

    def job(name):
        before, start = fleet.runs(), len(fleet.says())
        ask(port, name)
        wait_until(lambda: fleet.runs() > before and "failed=" in fleet.says().rpartition("PLAY RECAP")[2], fleet.says)
        lines = fleet.says()[start:]
        found = re.findall(r'(?:\(item=|^ +")(node1: .*?)(?:\)|",?)$', lines, re.MULTILINE)
        said.append((name, found, "failed=0" in lines.rpartition("PLAY RECAP")[2]))

    with listening(fleet, rulebook, {"job_port": port, "job_token": "secret", "job_report_dir": str(report)}):
        with pytest.raises(urllib.error.HTTPError):
            ask(port, "bootstrap", token="guessed")
        job("bootstrap")
        assert fleet.good(), fleet.says()
        PLUGIN.unlink()
        job("drift")
        assert not fleet.good(), fleet.says()
        job("remediate")
        assert fleet.good(), fleet.says()
    assert all(good for _name, _found, good in said), said
    shown = SHOWN.search(PAGE.read_text(encoding="utf-8"))["lines"].splitlines()
    for line, (name, found, _good) in zip(shown, said, strict=True):
        job_name, _space, what = line.partition(" ")
        assert job_name == name and any(text.startswith(what.strip()) for text in found), (line, said)


CHANGES = {
    "mode": lambda: NETWORK.chmod(0o600),
    "edited": lambda: NETWORK.write_text(NETWORK.read_text() + " "),
    "deleted": NETWORK.unlink,
    "plugin": PLUGIN.unlink,
    "several": lambda: (NETWORK.unlink(), PLUGIN.unlink()),
    "directory": lambda: shutil.rmtree(NETWORK.parent),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_repaired(site, change):
    mode, before = NETWORK.stat().st_mode, site.runs()
    CHANGES[change]()
    wait_until(lambda: site.runs() > before, site.says)
    site.settled()
    assert NETWORK.stat().st_mode == mode
    assert "failed=0" in site.says().rpartition("PLAY RECAP")[2]


def test_a_change_during_a_repair(site):
    """It is repaired by the same run or by the next one, and no run fails for it."""
    before = len(site.says())
    NETWORK.unlink()
    wait_until(NETWORK.exists, site.says)
    PLUGIN.unlink()
    site.settled()
    recaps = [text.partition("\n\n")[0] for text in site.says()[before:].split("PLAY RECAP")[1:]]
    assert recaps and all("failed=0" in recap for recap in recaps), site.says()[before:]
    assert "Traceback" not in site.says()
