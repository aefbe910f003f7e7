# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The path of a container's namespace leads elsewhere in the middle of a run, such as to the host's own namespace."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import PYTHON, sh, wait_until
from ansible_collections.podwire.cni.tests.tools import sample

WEB = {"network": "pwatwo", "container_id": "web"}

# A host whose uplink is called as containers' interfaces are.
UPLINK = """
ip link add eth0 type veth peer name pwaup1
for name in eth0 pwaup1; do ip link set $name addrgenmode none; ip link set $name up; done
ip address add 192.0.2.2/24 dev eth0
ip address add 2001:db8::2/64 dev eth0 nodad
ip route add default via 192.0.2.1
ip -6 route add default via 2001:db8::1
"""

OWN = """
{ ip -json link show dev eth0; ip -json address show dev eth0; } | tr ',' '\n' | grep -v -e carrier -e operstate
ip route show table all dev eth0 && ip -6 route show table all dev eth0
ip rule; ip -6 rule; ip neighbour show dev eth0 nud permanent
cat /proc/sys/net/ipv4/conf/eth0/* /proc/sys/net/ipv4/neigh/eth0/* 2>/dev/null
"""

# Runs a module, and makes the path of the container lead elsewhere at its *number*-th socket, or when it opens it.
STOPPING = """\
#!{python}
import os, signal, sys
number, swap, path = {number}, {swap!r}, {path!r}
state = {{"left": number}}
def stop(event, args):
    if state["left"] and (event == "socket.__new__" or (event == "open" and args[0] == path)):
        state["left"] -= 1
        if not state["left"]:
            if os.system(swap):
                os._exit(9)
            open({done!r}, "w").close()
sys.addaudithook(stop)
code = sys.argv[2]
sys.argv = ["-c", *sys.argv[3:]]
exec(compile(code, "<module>", "exec"), {{"__name__": "__main__"}})
"""

# A process of a container, which goes to another namespace when it is told to, as if its PID were used again.
MOVING = """\
import ctypes, os, signal, sys
libc = ctypes.CDLL(None)
own = os.open("/proc/self/ns/net", os.O_RDONLY)
inside = os.open(sys.argv[1], os.O_RDONLY)
signal.signal(signal.SIGUSR1, lambda *_: libc.setns(own, 0))
signal.signal(signal.SIGUSR2, lambda *_: libc.setns(inside, 0))
libc.setns(inside, 0)
print("inside", flush=True)
while True:
    signal.pause()
"""


@pytest.fixture
def own(host):
    """Return a function that shows what belongs to the host alone."""
    sh(UPLINK)
    try:
        # An address has its routes when the kernel has seen the carrier, a moment after the link is up.
        wait_until(lambda: "local 2001:db8::2" in sh("ip -6 route show table local dev eth0"))
        yield lambda: sh(OWN)
    finally:
        sh("ip link delete eth0")


@pytest.fixture
def places(host, work):
    """Other names of the namespaces: ``kept`` is that of the container, ``host`` the host's own."""
    names = {"kept": work / "kept", "host": work / "own"}
    for name, source in (("kept", "/run/netns/pwa-web"), ("host", "/proc/self/ns/net")):
        names[name].touch()
        sh(f"mount --bind {source} {names[name]}")
    yield {**names, "other": Path("/run/netns/pwa-db")}
    for name in ("kept", "host"):
        sh(f"umount {names[name]}")


@pytest.fixture
def process(places):
    """The PID of a process of the container."""
    moving = subprocess.Popen([sys.executable, "-c", MOVING, str(places["kept"])], stdout=subprocess.PIPE)
    try:
        assert moving.stdout.readline() == b"inside\n"
        yield moving.pid
    finally:
        moving.kill()
        moving.wait()
        moving.stdout.close()


@pytest.fixture(params=["host", "other", "gone", "process"])
def swap(request, places, process):
    """The path of a container's namespace, and commands that make it lead elsewhere, and back."""
    path = "/run/netns/pwa-web"
    back = f"umount -l {path} || true; mount --bind {places['kept']} {path}"
    if request.param == "process":
        path = f"/proc/{process}/ns/net"
        wait = "until [ {path} -ef {target} ]; do :; done"
        there, back = (
            f"kill -{name} {process}; {wait.format(path=path, target=places[target])}"
            for name, target in (("USR1", "host"), ("USR2", "kept"))
        )
        yield path, there, back
    elif request.param == "gone":
        yield path, f"umount -l {path}", back
    else:
        yield path, f"umount -l {path}; mount --bind {places[request.param]} {path}", back


@pytest.fixture
def stopped(host, work):
    """Return a function that runs the module with a swap at its n-th step; None if it has fewer steps."""

    def run(number, path, there, **options):
        done, python = work / "swapped", work / "python"
        done.unlink(missing_ok=True)
        python.write_text(STOPPING.format(python=PYTHON, number=number, swap=there, path=path, done=str(done)))
        python.chmod(0o755)
        result = host.attempt("cni_attach", python=str(python), **options)
        assert "Traceback" not in json.dumps(result), result
        return result if done.exists() else None

    return run


def inside(places):
    return sh(f"nsenter --net={places['kept']} ip -oneline address show dev eth0 scope global")


def each_step(run, restore):
    """Run with a swap at each step, and check what *restore* finds."""
    number = 1
    while run(number) is not None:
        restore()
        number += sample.STEP
    assert number > 5


def in_each_step(test):
    """Mark a test that takes long; the chain's own tests have all swaps."""
    test = pytest.mark.parametrize("generation", ["old"], indirect=True)(test)
    return pytest.mark.parametrize("swap", ["host", "process"], indirect=True)(test)


@in_each_step
def test_a_repair_stays_in_the_namespace_that_it_began_in(attach, swap, stopped, own, places, networks, write_network):
    path, there, back = swap
    networks["pwatwo"][0]["ipam"]["routes"] = [{"dst": "0.0.0.0/0", "gw": "10.67.0.1"}]
    write_network("pwatwo", networks["pwatwo"])
    web = {**WEB, "netns": path}
    before = own()
    attach(web)

    def broken(number):
        sh(f"nsenter --net={places['kept']} ip address flush dev eth0")
        return stopped(number, path, there, attachments=[web], on_drift="repair")

    def restore():
        assert own() == before
        sh(back)
        attach(web)

    each_step(broken, restore)
    (row,) = attach(web, on_drift="repair")["attachments"]
    assert row["ips"][0] in inside(places)
    assert attach({**web, "state": "absent"})["changed"]


@in_each_step
def test_an_add_whose_path_leads_elsewhere_is_taken_back(attach, swap, stopped, own, places, files):
    path, there, back = swap
    web = {**WEB, "netns": path}
    before = own()

    def add(number):
        return stopped(number, path, there, attachments=[web])

    def restore():
        assert own() == before
        sh(back)
        attach({**web, "state": "absent"})
        assert not sh(f"nsenter --net={places['kept']} ip -oneline link show | grep eth0", check=False)
        assert not [file for file in files() if file.name.startswith("10.67.")]

    each_step(add, restore)
    attach({**web, "state": "absent"})


@pytest.mark.parametrize("generation", ["old"], indirect=True)
@pytest.mark.parametrize("position", ["before", "after"])
def test_a_plugin_of_the_chain_that_sees_the_path_change(
    host, attach, swap, own, places, fakes, networks, write_network, position, files
):
    """The old generation does not refuse the host's own namespace by itself."""
    path, there, back = swap
    (fakes / "swap.sh").write_text(there)
    (fakes / "swap").symlink_to("/bin/bash")
    tuning = {"type": "tuning", "sysctl": {"net.ipv4.conf.eth0.arp_filter": "1"}}
    chain = [{"type": "swap"}, tuning] if position == "before" else [tuning, {"type": "swap"}]
    write_network("pwatwo", [*networks["pwatwo"], *chain])
    before = own()
    refused = host.fail("cni_attach", attachments=[{**WEB, "netns": path}])
    assert refused["attachments"][0]["error"]["code"] == "netns_replaced"
    assert path in refused["msg"]
    assert own() == before
    assert not sh(f"nsenter --net={places['kept']} ip -oneline link show | grep eth0", check=False)
    assert [file.name for file in files() if file.name.startswith("10.67.") or "web" in file.name] == []
    sh(back)


@pytest.mark.parametrize("generation", ["old"], indirect=True)
def test_a_del_reaches_the_namespace_of_its_add(attach, swap, own, places, fakes, networks, write_network):
    path, there, back = swap
    (fakes / "swapdel.sh").write_text(there)
    (fakes / "swapdel").symlink_to("/bin/bash")
    write_network("pwatwo", [*networks["pwatwo"], {"type": "swapdel"}])
    before = own()
    attach({**WEB, "netns": path})
    attach({**WEB, "netns": path, "state": "absent"})
    assert own() == before
    assert not sh(f"nsenter --net={places['kept']} ip -oneline link show | grep eth0", check=False)
    sh(back)
