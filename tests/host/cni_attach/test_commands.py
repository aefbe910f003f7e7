# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The module and other commands: the library's command line, which knows the same attachments, iptables and nft."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import COLLECTION, PYTHON, sh

# Runs a module, and notes each command that it starts itself.
RECORDING = """\
#!{python}
import sys
def note(event, args):
    if event == "os.posix_spawn":
        with open({log!r}, "a") as log:
            print(*args[1], file=log)
sys.addaudithook(note)
code = sys.argv[2]
sys.argv = ["-c", *sys.argv[3:]]
exec(compile(code, "<module>", "exec"), {{"__name__": "__main__"}})
"""

pytestmark = pytest.mark.parametrize("generation", ["new"], indirect=True)


@pytest.fixture
def libcni(host, plugins):
    """Return a function that runs the library's command line."""
    conf_dir, cache_dir = host.defaults["conf_dir"], host.defaults["cache_dir"]

    def run(arguments):
        return sh(
            f"PYTHONPATH={COLLECTION}/plugins/module_utils PYTHONDONTWRITEBYTECODE=1 NETCONFPATH={conf_dir}"
            f" CNI_PATH={plugins} CNI_CACHE_DIR={cache_dir} {PYTHON} -m libcni {arguments}"
        )

    return run


def test_the_command_line_sees_and_makes_the_same_attachments(libcni, attach):
    present = [
        {"network": "pwatwo", "netns": "pwa-web"},
        {"network": "pwamap", "netns": "pwa-db", "args": {"IgnoreUnknown": True}},
    ]
    absent = [{**attachment, "state": "absent"} for attachment in present]

    libcni("add pwatwo /run/netns/pwa-web")
    ran = attach(*present)["attachments"]
    assert [row["action"] for row in ran] == ["none", "added"]
    found = sorted(json.loads(libcni("list-attachments")), key=lambda entry: entry["network"])
    assert [entry["network"] for entry in found] == ["pwamap", "pwatwo"]
    assert found[0]["cni_args"] == [["IgnoreUnknown", "true"]]
    assert sorted(entry["container_id"] for entry in found) == sorted(row["container_id"] for row in ran)

    # The record of the one that the command line detaches is removed, after a DEL.
    libcni("del pwamap /run/netns/pwa-db")
    gone = attach(*absent)["attachments"]
    assert [row["action"] for row in gone] == ["deleted", "deleted"]
    assert [row["reason"] for row in gone] == ["", "lost"]
    assert not attach(*absent)["changed"]


@contextmanager
def hidden_tools():
    """Make iptables and nft files that nobody can execute."""
    # Both kinds of iptables may be one file.
    paths = {Path(shutil.which(tool)).resolve() for tool in ("iptables", "iptables-legacy", "nft")}
    try:
        for path in paths:
            sh(f"mount --bind /dev/null {path}")
        yield
    finally:
        for path in paths:
            sh(f"umount {path}", check=False)


def test_the_firewall_is_read_once_for_all_attachments(work, attach, bridge, networks, write_network, namespaces):
    gateway = bridge("pwacount0", "10.64.0.0/24", isGateway=True, ipMasq=True)
    write_network("pwacount", [gateway, networks["pwamap"][1]])
    log, python = work / "commands", work / "python"
    python.write_text(RECORDING.format(python=PYTHON, log=str(log)))
    python.chmod(0o755)
    names = [f"pwa-{number}" for number in range(6)]
    namespaces(*names)
    wanted = [{"network": "pwacount", "container_id": name, "netns": name} for name in names]
    for number, attachment in enumerate(wanted):
        ports = [{"hostPort": 18090 + number, "containerPort": 80, "protocol": "tcp"}]
        attachment["capability_args"] = {"portMappings": ports}

    def commands(*attachments):
        log.write_text("")
        attach(*attachments, python=str(python))
        return [line for line in log.read_text().splitlines() if "tables" in line or "nft" in line]

    added = commands(*wanted)
    unchanged = commands(*wanted)
    namespaces()
    deleted = commands(*({**attachment, "state": "absent"} for attachment in wanted))
    # A reading is a command of nft and two of iptables; what is removed is read once more, and written.
    assert 0 < len(added) <= 4, added
    assert 0 < len(unchanged) <= 3, unchanged
    assert 0 < len(deleted) <= 5, deleted


def test_without_iptables_nothing_runs_and_its_package_is_named(host, attach, bridge, networks, write_network):
    portmap = networks["pwamap"][1]
    gateway = bridge("pwatool0", "10.65.0.0/24", isGateway=True, ipMasq=True)
    write_network("pwatool", [gateway, portmap, {"type": "firewall"}])
    web = {"network": "pwatool", "container_id": "web", "netns": "pwa-web", "ifname": "tool0"}
    db = {"network": "pwatool", "container_id": "db", "netns": "pwa-db", "ifname": "tool0"}
    ports = {"portMappings": [{"hostPort": 18089, "containerPort": 80, "protocol": "tcp"}]}
    attach(web)
    before = sh("ip -n pwa-web -brief address show tool0")
    wanted = [{**web, "capability_args": ports}, db]
    with hidden_tools():
        check = attach(*wanted, check_mode=True)
        ran = host.fail("cni_attach", attachments=wanted)
        tried = host.fail("cni_smoke", networks=["pwatool"])
        after = sh("ip -n pwa-web -brief address show tool0")
    attach({**web, "state": "absent"})

    assert {warning["code"] for row in check["attachments"] for warning in row["warnings"]} == {"missing_tool"}
    assert not ran["changed"]
    assert [row["error"]["code"] for row in ran["attachments"]] == ["missing_tool", "missing_tool"]
    assert "install it (package iptables)" in ran["msg"]
    assert tried["networks"][0]["error"]["code"] == "missing_tool"
    assert after == before
