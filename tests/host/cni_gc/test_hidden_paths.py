# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

"""Containers whose namespaces are at no path of this mount namespace, and whose addresses cannot be seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ansible_collections.podwire.cni.tests.host.host import COLLECTION, sh, wait_until
from ansible_collections.podwire.cni.tests.host.networks import PORTMAP, bridge

IPAM = {"type": "host-local", "subnet": "10.89.0.0/24"}
CHAINS = {
    "bridge": [bridge("pwghide0", ipMasq=True, ipam=IPAM), PORTMAP, {"type": "firewall"}],
    "macvlan": [{"type": "macvlan", "master": "pwgpar0", "ipam": IPAM}],
    "host-device": [{"type": "host-device", "device": "pwgpar0", "ipam": IPAM}],
}
SCOPE = ["attachments", "leases", "rules", "cache", "links"]


pytestmark = pytest.mark.parametrize("generation", ["old", "new"])


class Hidden:
    """Processes that are attached by libcni alone, as a runtime does it, at a path that only the ADD sees."""

    def __init__(self, gc, work, chain, version):
        config = {"cniVersion": version, "name": "pwghide", "plugins": CHAINS[chain]}
        (work / "net.d" / "10-pwghide.conflist").write_text(json.dumps(config))
        sh("ip link add pwgpar0 type veth peer name pwgpar1; ip link set pwgpar0 up; ip link set pwgpar1 up")
        self.processes = []
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(COLLECTION / "plugins" / "module_utils"),
            "CNI_PATH": ":".join(gc.defaults["bin_dirs"]),
            "NETCONFPATH": str(work / "net.d"),
        }
        self.path = work / "netns"

    def start(self):
        """Start a container, whose ID is the number of its process."""
        process = subprocess.Popen(["unshare", "--net", "sleep", "1000"])
        self.processes.append(process)
        here = os.readlink("/proc/self/ns/net")
        wait_until(lambda: os.readlink(f"/proc/{process.pid}/ns/net") != here)
        self.path.touch()
        sh(f"mount --bind /proc/{process.pid}/ns/net {self.path}")
        try:
            subprocess.run(
                [sys.executable, "-m", "libcni", "add", "pwghide", str(self.path)],
                env={**self._environment, "CNI_CONTAINERID": str(process.pid), "CNI_IFNAME": "eth0"},
                check=True,
                stdout=subprocess.DEVNULL,
            )
        finally:
            sh(f"umount {self.path}; rm {self.path}")
        sh(f"nsenter --target {process.pid} --net ip address flush dev eth0")
        return process

    @staticmethod
    def kill(process):
        process.kill()
        process.wait()


@pytest.fixture
def hide(gc, work):
    made = []

    def make(chain, version):
        made.append(Hidden(gc, work, chain, version))
        return made[0]

    yield make
    for process in made[0].processes:
        Hidden.kill(process)


@pytest.mark.parametrize(
    ("chain", "version"),
    [
        ("bridge", "1.0.0"),
        ("macvlan", "1.0.0"),
        ("host-device", "1.0.0"),
        # Such results name no interface.
        ("macvlan", "0.2.0"),
    ],
)
@pytest.mark.parametrize("cache_dir", ["/var/lib/cni", "/var/lib/podwire/cni"])
def test_a_living_container_at_a_path_that_cannot_be_seen_is_left_alone(gc, hide, look, chain, version, cache_dir):
    containers = hide(chain, version)
    process = containers.start()
    before = look()
    options = {"cache_dir": cache_dir, "min_age": "0", "scope": SCOPE, "allow_empty": True}
    for keep_from in ({}, {"keep_from": []}, {"keep_from": ["netns"]}):
        alive = gc.run("cni_gc", **options, **keep_from)
        assert [one for one in alive["collected"] if one["action"] != "left"] == []
        assert look() == before

    # Neither is it lost to those who look, or to those who attach it again at a path that leads there.
    (row,) = gc.run("cni_info", cache_dir="/var/lib/cni", gather=["attachments"])["attachments"]
    assert (row["netns_state"], row["interface"]) == ("hidden", True)
    if version != "0.2.0":
        wanted = {"network": "pwghide", "container_id": str(process.pid), "netns": f"/proc/{process.pid}/ns/net"}
        again = gc.run("cni_attach", cache_dir="/var/lib/cni", attachments=[wanted], check_mode=True)
        assert again["actions"] == []

    containers.kill(process)
    # The kernel ends the namespace in the background.
    wait_until(lambda: "veth" not in sh("ip -brief link"))
    dead = gc.run("cni_gc", **{**options, "cache_dir": "/var/lib/cni"})
    gone = {one["kind"] for one in dead["collected"] if one["action"] == "deleted"}
    assert {"attachment", "lease"} <= gone, dead
    assert sh("ls /var/lib/cni/results /var/lib/cni/networks/pwghide | grep -e pwghide- -e '^10[.]' || true") == ""


def test_one_of_two_containers_with_one_path_dies(gc, hide, look):
    containers = hide("macvlan", "1.0.0")
    dead, alive = containers.start(), containers.start()
    containers.kill(dead)
    wait_until(lambda: not os.path.exists(f"/proc/{dead.pid}"))
    collected = gc.run("cni_gc", cache_dir="/var/lib/cni", min_age="0", scope=SCOPE)["collected"]
    assert {one["container_id"] for one in collected} == {str(dead.pid)}
    assert {one["action"] for one in collected} == {"deleted"}
    (evidence,) = (one["evidence"][0] for one in collected if one["kind"] == "attachment")
    assert "has an interface of it with the MAC" in evidence
    assert sh("ls /var/lib/cni/results") == f"pwghide-{alive.pid}-eth0"
