# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The writes whose way into a runtime is measured, and the tasks that make them.

Everybody makes the same files: three networks, of which the first by name is the one that containerd uses. A write is
one file that appears, changes or goes. A task may make several, in quick succession.
"""

from __future__ import annotations

import json

PLUGINS = "/opt/cni/bin"
PRIORITIES = {"first": 5, "main": 10, "last": 20}
NOTHING = ("", 0)
"""What is loaded of an empty directory. Else it is the name of a network and its number, which every write changes."""

# One round: for each task its networks, and whether they are there afterwards.
_ROUND = (
    (["main"], True),
    (["main"], True),
    (["last", "first"], True),
    (["main", "last", "first"], True),
    (["main", "last", "first"], True),
    (["first"], False),
    (["last", "main"], True),
    (["main"], False),
    (["last"], False),
)


class Call:
    """One task. *files* has the number of each network, None for one that goes; *before* has those that were there."""

    def __init__(self, files, before):
        self.files = files
        self._before = before

    @property
    def after(self):
        return {**self._before, **self.files}

    @property
    def final(self):
        """What is loaded when all of it is done."""
        return _first(self.after)

    def possible(self):
        """Return what can be loaded on the way there if each file is either the old or the new one."""
        states = [self._before]
        for name, number in self.files.items():
            states += [{**state, name: number} for state in states]
        return {_first(state) for state in states}


def _first(state):
    names = [name for name, number in state.items() if number is not None]
    if not names:
        return NOTHING
    name = min(names, key=PRIORITIES.__getitem__)
    return name, state[name]


def calls(writes):
    """Return tasks that make so many writes, rounded up to whole rounds of 15."""
    made, state, number = [], {}, 0
    while number < writes:
        for names, there in _ROUND:
            files = {}
            for name in names:
                number += 1
                files[name] = number if there else None
            made.append(Call(files, state))
            state = made[-1].after
    return made


def conflist(name, number):
    place = list(PRIORITIES).index(name)
    bridge = {"type": "bridge", "bridge": "pwr%d" % place, "mtu": 1000 + number}
    bridge["ipam"] = {"type": "host-local", "ranges": [[{"subnet": "10.%d.0.0/24" % (100 + place)}]]}
    return {"cniVersion": "1.0.0", "name": name, "plugins": [bridge]}


def read(name, source):
    """Return the network and the number of a configuration that a runtime has loaded."""
    return name, json.loads(source)["plugins"][0]["mtu"] - 1000


def with_cni_conf(call, conf_dir):
    networks = [
        {"name": name, "state": "absent"}
        if number is None
        else {"name": name, "priority": PRIORITIES[name], "conflist": conflist(name, number)}
        for name, number in call.files.items()
    ]
    return {"podwire.cni.cni_conf": {"conf_dir": conf_dir, "bin_dirs": [PLUGINS], "networks": networks}}


def with_copy(call, conf_dir):
    """The same by ansible.builtin.copy, and by ansible.builtin.file for a file that goes."""
    path = conf_dir + "/{{ '%02d' % item.priority }}-{{ item.name }}.conflist"
    loop = [{"name": name, "priority": PRIORITIES[name]} for name in call.files]
    if None in call.files.values():
        return {"ansible.builtin.file": {"path": path, "state": "absent"}, "loop": loop}
    for item in loop:
        item["content"] = json.dumps(conflist(item["name"], call.files[item["name"]]), indent=2) + "\n"
    copy = {"content": "{{ item.content }}", "dest": path, "mode": "0644"}
    return {"ansible.builtin.copy": copy, "loop": loop}
