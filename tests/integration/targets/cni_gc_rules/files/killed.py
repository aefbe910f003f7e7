# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ADD and DEL are killed at every call of iptables that they make; what they left is found and removed each time."""

from __future__ import annotations

import os

import world

from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import rules
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import CNIError

COUNTER = "/run/netns/.calls"


def main():
    world.prepare()
    conf = world.network("both", "cnia", ["10.81.0.0/24", "fd81::/64"], {"snat": True})
    live = world.Container(conf, "live", 8081)
    before = world.firewall()
    wrap_tools()
    # The first container's ADD makes what containers share.
    calls = kill_everywhere(conf, before, during_add=True) + kill_everywhere(conf, before, during_add=False)
    world.check(calls > 40, "iptables was called %d times only" % calls)
    live.delete()


def wrap_tools():
    """Let the plugins' iptables kill its caller at the call that the counter says."""
    tools = os.environ["PATH"].partition(":")[0]
    for name in ("iptables", "ip6tables"):
        real = os.readlink(os.path.join(tools, name))
        os.unlink(os.path.join(tools, name))
        os.mkdir(os.path.join(tools, name + ".d"))
        os.symlink(real, os.path.join(tools, name + ".d", name))
        with open(os.path.join(tools, name), "w") as script:
            script.write(
                "#!/bin/sh\n"
                "read left <%s\n"
                "echo $((left - 1)) >%s\n"
                '[ "$left" -ne 0 ] || { kill -KILL $PPID; exit 1; }\n'
                'exec %s/%s.d/%s "$@"\n' % (COUNTER, COUNTER, tools, name, name)
            )
            os.fchmod(script.fileno(), 0o755)
    allow(-1)


def allow(calls):
    """Let the caller be killed at its call after so many more; -1 is never."""
    with open(COUNTER, "w") as counter:
        counter.write("%d\n" % calls)


def kill_everywhere(conf, before, during_add):
    calls = 0
    while kill_at(conf, before, during_add, calls):
        calls += 1
    return calls


def kill_at(conf, before, during_add, calls):
    """Return whether the verb was killed; if not, it made fewer calls."""
    killed = False
    container = None
    name = "dead-%d" % calls
    allow(calls if during_add else -1)
    try:
        container = world.Container(conf, name, 8080)
    except CNIError:
        killed = True
    if container is not None:
        allow(-1 if during_add else calls)
        try:
            container.delete()
        except CNIError:
            killed = True
        allow(-1)
    if killed:
        check_and_remove(name, before)
        world.command("ip", "netns", "delete", name)
        forget_lease(name)
    world.same(before, world.firewall(), "%s after %d calls" % ("ADD" if during_add else "DEL", calls))
    return killed


def check_and_remove(name, before):
    """All that differs from before is in sets that are told, by comment or by hash, to be of the container."""
    found = rules.read_rules()
    world.check(not found.problems, found.problems)
    unknown = [one for one in found.sets if one.container_id is None]
    world.check(not [one for one in unknown if not one.inert], [one.text for one in unknown])
    found.attribute(["both"], [name, "live", "another"])
    world.check(not [one for one in found.sets if one.container_id is None], [one.text for one in unknown])
    outcomes = rules.remove_all_rules([one for one in found.sets if one.container_id == name])
    world.check(not [error for _one, error in outcomes if error], [str(error) for _one, error in outcomes])


def forget_lease(name):
    """The killed container's address is given back, so that every try has the same one."""
    folder = "/var/lib/cni/networks/both"
    for entry in os.listdir(folder):
        path = os.path.join(folder, entry)
        with open(path) as lease:
            mine = lease.read().startswith(name + "\r\n")
        if mine:
            os.unlink(path)


main()
