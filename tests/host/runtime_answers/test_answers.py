# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What cni_conf and cni_info make of the answers of CRI-O, by CRI and by `crio status`, and of Nomad's agent."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh, wait_until
from ansible_collections.podwire.cni.tests.host.networks import host_local, network

SOCKET = Path("/run/podwire-answers.sock")
PORT = 4747
# Nomad reads its directory every few seconds; the stand-in does at once.
AT_ONCE = {"_host.runtimes.nomad:Nomad.settles": 0.0}
APPS = network("pwaapps", {"type": "ptp", "ipam": host_local("10.96.0.0/24")}, version="0.4.0")
# crio is a copy of bash here, which runs the program that its first argument names.
STATUS = """#!/bin/bash
echo "status $*" >>FOLDER/asked
cat FOLDER/config
"""
CONFIG = '[crio]\n[crio.network]\nnetwork_dir = "%s/"\nplugin_dirs = [\n  "%s",\n]\n'


class Daemon:
    """A stand-in with its *folder*; ``answer`` replaces what it says."""

    def __init__(self, folder, name, *words):
        self.folder = folder
        self.program = folder / name
        self.words = words

    def start(self):
        # A script is known by its name.
        shutil.copy(Path(__file__).parent / "standins.py", self.program)
        command = [sys.executable, str(self.program), *self.words]
        tools = str(Path(__file__).parents[2] / "tools")
        self.process = subprocess.Popen(command, env={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": tools})
        wait_until((self.folder / "started").exists, 30)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def answer(self, text):
        (self.folder / "answer").write_text(text)

    def asked(self):
        path = self.folder / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines


@pytest.fixture
def place(tmp_path, generations):
    """The directory of networks, and that of the plugins, which only root can write to."""
    sh("mount -t tmpfs -o mode=0755 podwire-answers /usr/local/sbin")
    nets = Path("/run/podwire-answers.d")
    nets.mkdir()
    yield nets, generations["old"]
    shutil.rmtree(nets)
    SOCKET.unlink(missing_ok=True)
    sh("umount /usr/local/sbin; rm -rf /var/lib/podwire")


@pytest.fixture
def crio(place, tmp_path):
    nets, bins = place
    shutil.copy("/bin/bash", "/usr/local/sbin/crio")
    status = Path("/usr/local/sbin/status")
    status.write_text(STATUS.replace("FOLDER", str(tmp_path)))
    status.chmod(0o755)
    (tmp_path / "config").write_text(CONFIG % (nets, bins))
    etc = Path("/etc/crio")
    etc.mkdir()
    (etc / "crio.conf").write_text(CONFIG % (nets, bins))
    daemon = Daemon(tmp_path, "crio", "--listen", str(SOCKET), str(tmp_path))
    daemon.start()
    yield daemon
    daemon.stop()
    shutil.rmtree(etc)


@pytest.fixture
def nomad(place, tmp_path):
    nets, bins = place
    etc = Path("/etc/nomad.d")
    etc.mkdir()
    client = f'client {{\n  enabled = true\n  cni_config_dir = "{nets}"\n  cni_path = "{bins}"\n}}\n'
    (etc / "nomad.hcl").write_text(f"ports {{\n  http = {PORT}\n}}\n{client}")
    yield Daemon(tmp_path, "nomad", "agent", "-config", str(etc), str(tmp_path), str(PORT), str(nets))
    shutil.rmtree(etc)


@pytest.fixture
def write(host, place):
    nets, bins = place

    def run(name, **more):
        return host.run("cni_conf", networks=[APPS], conf_dir=str(nets), bin_dirs=[str(bins)], runtime=[name], **more)

    return run


@pytest.fixture
def readiness(host, place):
    nets, bins = place

    def of(name):
        found = host.run("cni_info", gather=["readiness"], conf_dir=str(nets), bin_dirs=[str(bins)])["readiness"]
        [row] = [one for one in found["runtimes"] if one["runtime"] == name]
        return row, [one["code"] for one in found["obstacles"] if one["runtime"] == name]

    return of


def test_crio_is_confirmed_by_cri_and_by_its_status(write, readiness, crio):
    written = write("crio")
    assert (written["confirmed"], written.get("warnings", [])) == (True, [])
    assert set(crio.asked()) == {"Status 0801 unix", f"status --socket {SOCKET} config"}
    row, codes = readiness("crio")
    assert (row["ready"], row["unknown"], codes) == (True, "", [])
    assert row["reported"] == {"ready": True, "message": "", "networks": None}


def test_a_crio_that_is_not_ready_is_not_confirmed(write, readiness, crio):
    crio.answer('{"ready": false, "message": "Network plugin returns error: no CNI configuration file"}')
    written = write("crio")
    assert written["confirmed"] is False
    assert "no CNI configuration file" in written["warnings"][0]
    assert readiness("crio")[1] == ["not_loaded"]


def test_a_crio_that_was_not_restarted_is_not_confirmed(write, readiness, crio):
    (crio.folder / "config").write_text(CONFIG % ("/srv/other", "/opt/cni/bin"))
    written = write("crio")
    assert written["confirmed"] is False
    assert "it runs with network_dir /srv/other" in written["warnings"][0]
    row, codes = readiness("crio")
    assert (row["ready"], codes) == (False, ["not_loaded"])


@pytest.mark.parametrize("config", ["nonsense", ""])
def test_a_crio_status_that_is_none_is_not_known(write, readiness, crio, config):
    (crio.folder / "config").write_text(config)
    written = write("crio")
    assert written["confirmed"] is None
    assert "config prints no" in written["warnings"][0]
    row, codes = readiness("crio")
    assert (row["ready"], row["reported"], codes) == (None, None, ["not_answered"])
    assert "config prints no" in row["unknown"]


def test_a_crio_that_hangs_is_not_known(write, crio):
    crio.answer("hang")
    written = write("crio")
    assert written["confirmed"] is None
    assert "no complete answer within" in written["warnings"][0]


def test_a_socket_of_another_user_is_not_asked(write, crio):
    shutil.chown(SOCKET, "nobody")
    written = write("crio")
    assert written["confirmed"] is None
    assert "belongs to user" in written["warnings"][0]
    assert crio.asked() == []


def test_nomad_is_told_and_its_fingerprint_confirms(write, readiness, nomad):
    nomad.start()
    try:
        written = write("nomad")
        assert (written["confirmed"], written.get("warnings", [])) == (True, [])
        assert "GET /v1/agent/self" in nomad.asked()
        row, codes = readiness("nomad")
        assert (row["reported"]["networks"], row["unknown"]) == (["pwaapps"], "")
        assert "not_loaded" not in codes
    finally:
        nomad.stop()


def test_a_nomad_that_does_not_read_its_directory_again_is_not_confirmed(write, readiness, nomad):
    (nomad.folder / "deaf").touch()
    nomad.start()
    try:
        written = write("nomad", patched=AT_ONCE)
        assert written["confirmed"] is False
        assert "nomad has not loaded pwaapps" in written["warnings"][0]
        assert "not_loaded" in readiness("nomad")[1]
    finally:
        nomad.stop()


def test_a_nomad_with_acls_is_not_known(write, readiness, nomad):
    nomad.answer("403")
    nomad.start()
    try:
        written = write("nomad", patched=AT_ONCE)
        assert written["confirmed"] is None
        assert "it has ACLs" in written["warnings"][0]
        row, codes = readiness("nomad")
        assert (row["ready"], codes[-1]) == (None, "not_answered")
    finally:
        nomad.stop()


def test_a_nomad_without_its_api_is_not_known(write, nomad):
    nomad.start()
    Path("/etc/nomad.d/port.hcl").write_text("ports {\n  http = 4646\n}\n")
    try:
        written = write("nomad", patched=AT_ONCE)
        assert written["confirmed"] is None
        assert "does not listen on TCP port 4646" in written["warnings"][0]
        assert nomad.asked() == []
    finally:
        nomad.stop()
