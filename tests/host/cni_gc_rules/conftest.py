# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest
from pyroute2.netns import setns

from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import change, owners
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import CNIError
from ansible_collections.podwire.cni.tests.host.cni_gc_rules.world import Container, World, firewall
from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.tools import sample

# Counts down, and kills whoever calls it when there is nothing left to count.
TOOL = """\
#!/bin/sh
read left <{counter}
echo $((left - 1)) >{counter}
[ "$left" -ne 0 ] || {{ kill -KILL $PPID; exit 1; }}
exec {folder}/real/{name} "$@"
"""


@pytest.fixture
def own_namespace():
    """A network namespace for this process. Tables of iptables end only with their namespace."""
    sh("ip netns add pwg-host; ip -n pwg-host link set lo up")
    setns("/run/netns/pwg-host")
    yield
    setns("/proc/1/ns/net")
    sh("for name in $(ls -A /run/netns); do ip netns delete $name; done; rm -rf /var/lib/cni")


@pytest.fixture
def tools(backend, work, monkeypatch):
    """The directory of what plugins take for iptables."""
    tools = work / "tools"
    tools.mkdir()
    if backend.startswith("iptables"):
        multi = f"/usr/sbin/xtables-{backend.partition('-')[2]}-multi"
        for name in ("iptables", "ip6tables"):
            (tools / name).symlink_to(multi)
    monkeypatch.setenv("PATH", f"{tools}:/usr/sbin:/usr/bin:/sbin:/bin")
    return tools


@pytest.fixture
def world(own_namespace, tools, generations, generation, backend):
    return World(generations[generation], backend)


@pytest.fixture
def allow(tools):
    """Return a function that lets plugins call iptables so many times before they are killed; -1 is for ever."""
    (tools / "real").mkdir()
    counter = tools / "calls"
    for name in ("iptables", "ip6tables"):
        tool = tools / name
        tool.rename(tools / "real" / name)
        tool.write_text(TOOL.format(counter=counter, folder=tools, name=name))
        tool.chmod(0o755)
    counter.write_text("-1\n")
    return lambda calls: counter.write_text(f"{calls}\n")


@pytest.fixture
def kill_everywhere(world, allow):
    """Return a function that kills ADD or DEL at calls of iptables, and returns how many there were.

    All that a killed plugin has left is removed before the next try.
    """

    def run(verb):
        conf = world.network("both", "cnia", ["10.81.0.0/24", "fd81::/64"], {"snat": True})
        # The first container's ADD makes what containers share.
        live = Container(world, conf, "live", 8081)
        before = firewall()
        calls = 0
        while is_killed(world, conf, allow, verb, calls):
            check_and_remove(f"dead-{calls}")
            assert firewall() == before, f"after {calls} calls"
            calls += sample.STEP
        assert firewall() == before
        live.delete()
        return calls

    return run


def is_killed(world, conf, allow, verb, calls):
    """Tell whether the verb of a new container was killed; if not, it made fewer calls."""
    allow(calls if verb == "ADD" else -1)
    try:
        container = Container(world, conf, f"dead-{calls}", 8080)
    except CNIError:
        assert verb == "ADD"
        return True
    finally:
        allow(-1)
    allow(calls if verb == "DEL" else -1)
    try:
        container.delete()
    except CNIError:
        assert verb == "DEL"
        return True
    finally:
        allow(-1)
    return False


def check_and_remove(name):
    """Remove what a killed plugin left; all of it must be in sets whose comment or hash tells the container."""
    found = owners.read_rules()
    assert not found.problems
    unknown = [one for one in found.sets if one.owner.container_id is None]
    assert [one.text for one in unknown if not one.inert] == []
    found.sets = owners.attribute(found.sets, ["both"], [name, "live", "another"])
    assert [one.text for one in found.sets if one.owner.container_id is None] == []
    assert change.drop_rules([one for one in found.sets if one.owner.container_id == name]) == {}
    sh(f"ip netns delete {name}")
    # The address is given back, so that every try has the same one.
    for lease in Path("/var/lib/cni/networks/both").iterdir():
        if lease.read_bytes().startswith(f"{name}\r\n".encode()):
            lease.unlink()
