# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rulebook podwire.cni.repair with ansible-rulebook, on a host that is a namespace of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

BIN = Path(sys.executable).parent
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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("site"), os.environ["PODWIRE_PLUGINS"])
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "ANSIBLE_NOCOLOR": "1"}
    subprocess.run(
        [BIN / "ansible-playbook", "-i", made.inventory, "podwire.cni.bootstrap", "-e", "cni_hosts=all"],
        check=True,
        env=environment,
    )
    variables = made.inventory.parent / "variables.yml"
    report = made.inventory.parent / "report"
    variables.write_text(yaml.safe_dump({"cni_eda_host": "node1", "cni_eda_report_dir": str(report)}))
    command = [
        BIN / "ansible-rulebook",
        "-i",
        made.inventory,
        "-r",
        "podwire.cni.repair",
        "--vars",
        variables,
        "--verbose",
    ]
    with made.log.open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        wait_until(lambda: "Waiting for actions on events" in made.says() or process.poll() is not None, made.says)
        # The source has looked for the first time.
        time.sleep(3)
        assert process.poll() is None, made.says()
        yield made
    finally:
        process.terminate()
        process.wait(60)


def edit():
    NETWORK.write_text(NETWORK.read_text().replace("10.88.0.0/24", "10.99.0.0/24"))


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
