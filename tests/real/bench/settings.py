# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Measures playbooks with several settings of Ansible, on the hosts of settings.sh: settings.py DIRECTORY HOSTS"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections import defaultdict
from importlib.metadata import version
from importlib.util import find_spec
from statistics import median

ROUNDS = 3
PIPELINING = {"ANSIBLE_PIPELINING": "true"}
NO_PERSIST = {"ANSIBLE_SSH_ARGS": "-o ControlMaster=no"}
FORKS = {"ANSIBLE_FORKS": "10"}
DEFAULT = "10 forks"


def mitogen(strategy: str) -> dict[str, str]:
    places = find_spec("ansible_mitogen").submodule_search_locations  # type: ignore[union-attr]
    # Of the arguments for SSH, Mitogen does not read those about the keys of hosts.
    keys = {"ANSIBLE_HOST_KEY_CHECKING": "false"}
    return {"ANSIBLE_STRATEGY_PLUGINS": f"{next(iter(places))}/plugins/strategy", "ANSIBLE_STRATEGY": strategy, **keys}


SETTINGS = {
    "5 forks, Ansible's default": {},
    DEFAULT: FORKS,
    "10 forks, no ControlPersist": {**FORKS, **NO_PERSIST},
    "10 forks, no ControlPersist, pipelining": {**FORKS, **NO_PERSIST, **PIPELINING},
    "10 forks, pipelining": {**FORKS, **PIPELINING},
    "10 forks, pipelining, strategy free": {**FORKS, **PIPELINING, "ANSIBLE_STRATEGY": "free"},
    "20 forks, pipelining": {**PIPELINING, "ANSIBLE_FORKS": "20"},
    "10 forks, mitogen_linear": {**FORKS, **mitogen("mitogen_linear")},
    "10 forks, mitogen_free": {**FORKS, **mitogen("mitogen_free")},
}


class Fleet:
    """The hosts, and the commands that are measured on them."""

    def __init__(self, directory: str, hosts: int) -> None:
        self._directory, self._hosts, self._runs = directory, hosts, 0
        self._commands = {
            "ping": (["ansible", "all", "-m", "ansible.builtin.ping"], '"ping": "pong"', hosts),
            "bootstrap": (
                ["ansible-playbook", "podwire.cni.bootstrap", "-e", "cni_hosts=all"],
                f"{hosts} hosts: {hosts} unchanged",
                1,
            ),
            "drift": (["ansible-playbook", "podwire.cni.drift"], f"All {hosts} hosts are clean", 1),
        }

    def names(self) -> list[str]:
        return list(self._commands)

    def run(self, name: str, settings: dict[str, str], first: bool = False) -> float:
        """Return the seconds of a run, which begins without a connection to any host."""
        command, says, times = self._commands[name]
        self._runs += 1
        environment = {**os.environ, **settings, "ANSIBLE_SSH_CONTROL_PATH_DIR": f"/run/cp{self._runs}"}
        command = [command[0], "-i", f"{self._directory}/inventory", *command[1:]]
        begun = time.monotonic()
        done = subprocess.run(
            command,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        seconds = time.monotonic() - begun
        if done.returncode or (not first and done.stdout.count(says) < times):
            sys.exit(f"{done.stdout}\n{name} with {settings} ended with {done.returncode}; expected {says!r}")
        return seconds


def main() -> None:
    hosts = int(sys.argv[2])
    fleet = Fleet(sys.argv[1], hosts)
    fleet.run("bootstrap", FORKS, first=True)
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _round in range(ROUNDS):
        for label, settings in SETTINGS.items():
            for name in fleet.names():
                seconds[label, name].append(fleet.run(name, settings))
    versions = (
        f"ansible-core {version('ansible-core')}, mitogen {version('mitogen')}, Python {platform.python_version()}"
    )
    print(f"{versions}, {os.cpu_count()} CPUs, {hosts} hosts, seconds, medians of {ROUNDS} alternating runs\n")
    print(f"  {'':<40} {'ping':>6} {'bootstrap':>10} {'drift':>6}   drift / that with {DEFAULT}")
    for label in SETTINGS:
        took = {name: median(seconds[label, name]) for name in fleet.names()}
        ratio = took["drift"] / median(seconds[DEFAULT, "drift"])
        print(f"  {label:<40} {took['ping']:6.2f} {took['bootstrap']:10.2f} {took['drift']:6.2f}   {ratio:.2f}")
    print(
        """
Hosts are minimal Debian systems on this machine, reached by SSH on loopback, so that hosts and controller share the
processors. Bootstrap and drift change nothing. Each run opens its own connections."""
    )


if __name__ == "__main__":
    main()
