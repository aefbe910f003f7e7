# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Garbage collection beside real namespaces, whatever keeps them, whose containers' addresses cannot be seen."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import leases, netns
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import caches
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import owners
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.owners import FoundRules
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage import planner
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage.candidate import DELETED, SCOPES, GcSettings
from ansible_collections.podwire.cni.plugins.module_utils.libcni.cache import Entry
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.records import write_record

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces")

BRIDGE, HOST_END, NAME = "pwgbr", "pwgveth", "pwg-kept"
IP = "10.1.0.5"

# Enters the namespace, opens a socket or a tap device there, and keeps it where it came from.
KEEP_SOCKET = """
import ctypes, fcntl, os, socket, struct, sys
libc, home, there = ctypes.CDLL(None), os.open("/proc/self/ns/net", 0), os.open(sys.argv[1], 0)
libc.setns(there, 0x40000000)
if sys.argv[2] == "tap":
    kept = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(kept, 0x400454CA, struct.pack("16sH14x", b"tap0", 0x1002))
else:
    kept = socket.socket()
libc.setns(home, 0x40000000)
os.close(there)
print("ready", flush=True)
sys.stdin.read()
"""
KEEP_FILE = "import os, sys; there = os.open(sys.argv[1], 0); print('ready', flush=True); sys.stdin.read()"
KEEP_PROCESS = "import sys; print('ready', flush=True); sys.stdin.read()"


def run(*words):
    subprocess.run(words, check=True)


class Host:
    """A network with a bridge, one container, and a lease of it."""

    def __init__(self, path, monkeypatch):
        self.path = path
        self.ours, self.libcni = str(path / "ours"), str(path / "libcni")
        self.conf_dir, self.bin_dir = path / "net.d", path / "bin"
        for folder in (self.conf_dir, self.bin_dir, path / "leases" / "demo"):
            folder.mkdir(parents=True)
        for name in ("bridge", "host-local"):
            (self.bin_dir / name).touch()
        ipam = {"type": "host-local", "dataDir": str(path / "leases"), "subnet": "10.1.0.0/24"}
        plugins = [{"type": "bridge", "bridge": BRIDGE, "ipam": ipam}]
        self.config = json.dumps({"cniVersion": "1.0.0", "name": "demo", "plugins": plugins}).encode()
        (self.conf_dir / "demo.conflist").write_bytes(self.config)
        self.lease = path / "leases" / "demo" / IP
        self.lease.write_bytes(b"web\r\neth0")
        monkeypatch.setattr(caches, "_MANAGED_DIR", self.ours)
        monkeypatch.setattr(caches.cache, "DEFAULT_DIR", self.libcni)
        monkeypatch.setattr(leases.lease_stores, "__defaults__", (str(path / "default"),))
        monkeypatch.setattr(owners, "read_rules", FoundRules)

    def make(self, veth=True):
        """Make the container; its address was flushed, so that nobody sees it."""
        run("ip", "netns", "add", NAME)
        if veth:
            run("ip", "link", "add", BRIDGE, "type", "bridge")
            run("ip", "link", "add", HOST_END, "type", "veth", "peer", "name", "eth0", "netns", NAME)
            run("ip", "link", "set", HOST_END, "master", BRIDGE)

    def cached(self, path, cache_dir=None, veth=True):
        """Cache the attachment as libcni does."""
        interfaces = [{"name": BRIDGE}, {"name": HOST_END}] if veth else []
        interfaces.append({"name": "eth0", "sandbox": path})
        result = {"cniVersion": "1.0.0", "interfaces": interfaces, "ips": [{"address": f"{IP}/24"}]}
        folder = os.path.join(cache_dir or self.libcni, "results")
        os.makedirs(folder)
        # An old libcni has the path in the result only.
        entry = Entry("web", self.config, "eth0", "demo", path if veth else "", result=result)
        Path(folder, "demo-web-eth0").write_bytes(entry.to_bytes())

    def recorded(self, path):
        """Cache the attachment as this collection does."""
        self.cached(path, self.ours)
        write_record(self.ours, Key("demo", "web", "eth0"), netns.inspect_path(path, "eth0").identity)

    def settings(self, **options):
        made = GcSettings(str(self.conf_dir), [str(self.bin_dir)], self.ours, scope=list(SCOPES))
        return made._replace(min_age=0, allow_empty=True, **options)

    def collected(self, **options):
        plan = planner.plan_gc(self.settings(**options))
        return sorted(candidate.ident for candidate in plan.candidates if candidate.action == DELETED)

    def collected_elsewhere(self, *words):
        """Return what a process in other namespaces of the kinds *words* would collect, or the code of its refusal."""
        script = (
            "import json, sys; sys.path[:0] = json.loads(sys.argv[1])\n"
            "from ansible_collections.podwire.cni.plugins.module_utils._host import errors\n"
            "from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import caches\n"
            "from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import owners\n"
            "from ansible_collections.podwire.cni.plugins.module_utils._host.garbage import planner\n"
            "from ansible_collections.podwire.cni.plugins.module_utils._host.garbage import candidate\n"
            "caches.cache.DEFAULT_DIR, owners.read_rules = sys.argv[2], owners.FoundRules\n"
            "options = json.loads(sys.argv[3])\n"
            "try:\n"
            "    found = planner.plan_gc(candidate.GcSettings(*options)).candidates\n"
            "    print(' '.join(sorted(one.ident for one in found if one.action == candidate.DELETED)))\n"
            "except errors.HostError as error:\n"
            "    print(error.code)\n"
        )
        options = json.dumps(self.settings())
        argv = ["unshare", *words, sys.executable, "-c", script, json.dumps(sys.path), self.libcni, options]
        done = subprocess.run(argv, check=True, stdout=subprocess.PIPE)
        return done.stdout.decode().strip()


class Keeper:
    """A process that keeps a namespace until the test ends."""

    def __init__(self, *argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"

    def end(self):
        self.process.communicate()


@pytest.fixture
def real_host(tmp_path, monkeypatch):
    yield Host(tmp_path, monkeypatch)
    if os.path.exists(f"/run/netns/{NAME}"):
        run("ip", "netns", "delete", NAME)
    for name in (BRIDGE, HOST_END):
        if os.path.exists(f"/sys/class/net/{name}"):
            subprocess.run(["ip", "link", "delete", name], check=False)


@pytest.fixture
def keep():
    kept = []

    def start(*argv):
        kept.append(Keeper(*argv))
        return kept[-1]

    yield start
    for keeper in kept:
        keeper.end()


def keep_by(holder, keep):
    """Keep the namespace by *holder* alone; return a path that leads or has led to it."""
    path = f"/run/netns/{NAME}"
    if holder == "name":
        return path
    if holder == "process":
        keeper = keep("ip", "netns", "exec", NAME, sys.executable, "-c", KEEP_PROCESS)
        path = f"/proc/{keeper.process.pid}/ns/net"
    elif holder == "mount":
        # As Apptainer has it: the path leads nowhere but in a mount namespace of its own.
        inside = "mount --make-rprivate / && mount -t tmpfs t /mnt && touch /mnt/netns && mount --bind $0 /mnt/netns"
        keep("unshare", "--mount", "sh", "-c", f'{inside} && exec "$@"', path, sys.executable, "-c", KEEP_PROCESS)
        path = "/mnt/netns"
    else:
        keep(sys.executable, "-c", KEEP_FILE if holder == "fd" else KEEP_SOCKET, path, holder)
    run("ip", "netns", "delete", NAME)
    return path


# Not every chroot has the device.
SOCKETS = ["socket", "tap"] if os.path.exists("/dev/net/tun") else ["socket"]
HOLDERS = ["name", "process", "mount", "fd", *SOCKETS]


@pytest.mark.parametrize("holder", HOLDERS)
def test_an_entry_of_another_cache_whose_namespace_exists_protects(real_host, keep, holder):
    real_host.make()
    real_host.cached(keep_by(holder, keep))
    assert real_host.collected() == []
    assert real_host.collected(keep_from=["netns"]) == []


@pytest.mark.parametrize("folder", ["", "/multus", "/cache"])
def test_every_known_cache_directory_is_read_and_none_is_written(real_host, folder):
    real_host.make(veth=False)
    real_host.cached(f"/run/netns/{NAME}", real_host.libcni + folder, veth=False)
    plan = planner.plan_gc(real_host.settings())
    assert [(one.kind, one.action, one.reason) for one in plan.candidates] in ([], [("lease", "left", "live")])
    plan.apply()
    assert real_host.lease.exists() and os.listdir(f"{real_host.libcni}{folder}/results") == ["demo-web-eth0"]
    run("ip", "netns", "delete", NAME)
    assert real_host.collected() == [IP]


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("keep_from", [None, [], ["netns"], ["cache"]])
def test_our_own_record_of_a_live_attachment_is_evidence_whatever_keep_from_says(real_host, keep, holder, keep_from):
    real_host.make()
    path = f"/run/netns/{NAME}"
    real_host.recorded(path)
    keep_by(holder, keep)
    assert real_host.collected(keep_from=keep_from) == []


def test_what_really_died_is_collected_all_the_same(real_host):
    real_host.make()
    real_host.recorded(f"/run/netns/{NAME}")
    real_host.cached(f"/run/netns/{NAME}")
    run("ip", "netns", "delete", NAME)
    assert real_host.collected() == [IP, "web/eth0"]


@pytest.mark.parametrize("holder", SOCKETS)
def test_a_namespace_that_only_a_socket_keeps_is_found_without_any_interface(real_host, keep, holder):
    real_host.make(veth=False)
    run("ip", "-n", NAME, "address", "add", f"{IP}/24", "dev", "lo")
    keep_by(holder, keep)
    assert real_host.collected() == []


def test_in_another_pid_namespace_hidden_processes_are_a_refusal(real_host, keep):
    real_host.make()
    real_host.recorded(f"/run/netns/{NAME}")
    nested = ("--pid", "--fork", "--mount-proc")
    # All that lives has a name, which can be seen there, too.
    assert real_host.collected_elsewhere(*nested) == ""
    keep_by("process", keep)
    assert real_host.collected_elsewhere(*nested) == "processes_hidden"
    assert real_host.collected_elsewhere("--mount") == ""


def test_a_runtime_that_only_the_first_process_sees_makes_the_set_incomplete(tmp_path):
    trace = tmp_path / "state" / "crio"
    trace.mkdir(parents=True)
    script = (
        "import json, sys; sys.path[:0] = json.loads(sys.argv[1])\n"
        "from ansible_collections.podwire.cni.plugins.module_utils._host.containers import sources\n"
        "sources._OTHERS = {'CRI-O': (sys.argv[2],)}\n"
        "print(sources._why_incomplete(set(), {}))\n"
    )
    hide = 'mount --make-rprivate / && mount -t tmpfs t "$0" && exec "$@"'
    argv = [sys.executable, "-c", script, json.dumps(sys.path), str(trace)]
    command = ["unshare", "--mount", "sh", "-c", hide, str(trace.parent), *argv]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    assert done.stdout.decode() == f"found {trace} of CRI-O, which cannot be asked\n"


def test_a_cached_path_of_a_process_that_cannot_be_seen_is_a_refusal(real_host, keep):
    real_host.make(veth=False)
    real_host.cached(keep_by("process", keep), veth=False)
    assert real_host.collected_elsewhere("--pid", "--fork", "--mount-proc") == "processes_hidden"
    assert real_host.collected() == []


def test_the_hosts_network_in_a_pid_namespace_that_is_not_the_hosts_is_a_refusal(real_host, monkeypatch, tmp_path):
    from ansible_collections.podwire.cni.plugins.module_utils._host.containers import namespaces

    # What the kernel has in the first network namespace only.
    monkeypatch.setattr(namespaces, "_INITIAL_NETWORK_NAMESPACE", str(tmp_path))
    monkeypatch.setattr(namespaces, "_INITIAL_PID_NAMESPACE", 1)
    with pytest.raises(HostError) as caught:
        real_host.collected()
    assert caught.value.code == "processes_hidden" and "--pid=host" in caught.value.msg
    monkeypatch.setattr(namespaces, "_INITIAL_PID_NAMESPACE", netns.pid_namespace())
    assert real_host.collected() == [IP]


@pytest.mark.parametrize("holder", ["process", "fd", "socket"])
def test_a_veth_whose_peer_is_in_a_namespace_that_exists_is_not_collected(real_host, keep, holder, monkeypatch):
    from ansible_collections.podwire.cni.plugins.module_utils._host.containers import namespaces

    real_host.make()
    real_host.lease.unlink()
    keep_by(holder, keep)
    assert real_host.collected(scope=["links"]) == []
    if holder == "socket":
        # As on a kernel that does not tell the namespaces of sockets.
        monkeypatch.setattr(namespaces, "_kept_by_sockets", lambda *arguments: iter(()))
        monkeypatch.setattr(namespaces, "_INITIAL_PID_NAMESPACE", netns.pid_namespace())
        assert real_host.collected(scope=["links"]) == []


def test_an_entry_with_an_empty_container_id_goes_as_a_damaged_file(real_host):
    folder = os.path.join(real_host.ours, "results")
    os.makedirs(folder)
    path = os.path.join(folder, "demo--eth0")
    Path(path).write_bytes(Entry("", real_host.config, "eth0", "demo", "/run/netns/gone").to_bytes())
    real_host.lease.unlink()
    plan = planner.plan_gc(real_host.settings())
    assert [(one.kind, one.ident, one.reason) for one in plan.candidates] == [("cache", path, "damaged")]
    plan.apply()
    assert os.listdir(folder) == [] and real_host.collected() == []


@pytest.mark.parametrize(
    "path", ["/run/netns/\0", "/run/\ud800", "/" + "x" * 5000, "relative", "/proc/1", "/dev/null", [], {}, 5, None]
)
def test_any_path_may_stand_in_an_entry_of_another_cache(real_host, path):
    interfaces = [{"name": path, "sandbox": path}, {"name": path}, path]
    result = {"cniVersion": "1.0.0", "interfaces": interfaces, "ips": path}
    text = path if isinstance(path, str) else ""
    folder = os.path.join(real_host.libcni, "results")
    os.makedirs(folder)
    data = {
        "kind": "cniCacheV1",
        "containerId": "web",
        "ifName": "eth0",
        "networkName": "demo",
        "netns": text,
        "config": base64.b64encode(real_host.config).decode(),
        "result": result,
    }
    Path(folder, "demo-web-eth0").write_text(json.dumps(data))
    try:
        assert real_host.collected() == [IP]
    except HostError as error:
        # A path of a process that is not there.
        assert error.code == "processes_hidden" and str(path).startswith("/proc/")
