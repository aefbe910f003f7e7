# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nomad's client, in both modes: ``cni/NAME`` reads files, ``bridge`` builds its own network.

The agent's command line names its configuration: HCL or JSON, files or directories, a later one over an earlier one.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Sequence

from ..errors import HostError
from ..processes import Process
from ..trust import check_trusted
from . import reading
from .profiles import Runtime

# The option that the units of the packages pass to the agent.
_CONFIG = "/etc/nomad.d"
_API = 4646


def find_nomad(running: Sequence[Process]) -> List[Runtime]:
    """Return both modes of Nomad if its agent runs, or is installed with a configuration."""
    agents = [process for process in running if process.name == "nomad" and "agent" in process.argv[1:3]]
    agent = agents[0] if agents else Process(argv=["nomad", "agent", "-config", _CONFIG])
    program = agent.program or reading.installed("nomad")
    if not agents and not (program and os.path.isdir(_CONFIG)):
        return []
    evidence = "a running nomad" if agents else program
    notes: List[str] = []
    version = reading.version(program, "version", notes) if program else ""
    named, bridge = Runtime("nomad", version, evidence), Runtime("nomad-bridge", version, evidence)
    named.notes, bridge.notes = notes, list(notes)
    named.config = next((path for path in reversed(_configs(agent)) if os.path.isdir(path)), "")
    named.pid = agent.pid
    if version and int(version.split(".")[0]) >= 2:
        named.bin_dirs = ["/opt/cni/bin", "/usr/libexec/cni"]
    try:
        _configure(named, bridge, agent)
    except HostError as error:
        for runtime in (named, bridge):
            runtime.notes.append(
                f"its configuration is not understood ({error.msg}), so its default directories are assumed"
            )
    return [named, bridge]


def _configure(named: Runtime, bridge: Runtime, agent: Process) -> None:
    # Imported here because few hosts run Nomad, and compiling it takes time.
    from . import hcl

    client: Dict[str, Any] = {}
    ports: Dict[str, Any] = {}
    for given in _configs(agent):
        for path in _files(given):
            tables = reading.parsed(path, hcl.load_hcl) or {}
            client.update(reading.section(tables, "client"))
            ports.update(reading.section(tables, "ports"))
    named.port = reading.number(ports, "http", _API)
    enabled = client.get("enabled") is True or any(word.lstrip("-") in ("dev", "client") for word in agent.argv[2:])
    if not enabled:
        for runtime in (named, bridge):
            runtime.reads = False
            runtime.notes.append("this agent is not a client, so it has no networks")
        return
    named.set_conf(_directory(agent, client, "cni_config_dir") or named.conf_dir)
    path = agent.option("-cni-path", "--cni-path") or reading.text_of_key(client, "cni_path")
    if path:
        named.bin_dirs = [reading.plain_path(part, "cni_path") for part in path.split(":") if part]
    bridge.bin_dirs = list(named.bin_dirs)
    bridge.default_network = "nomad"


def _configs(agent: Process) -> List[str]:
    return agent.paths("-config", "--config")


def _directory(agent: Process, client: Dict[str, Any], key: str) -> str:
    name = "-" + key.replace("_", "-")
    given = agent.option(name, "-" + name)
    return reading.plain_path(given, name) if given else reading.directory(client, key)


def _files(path: str) -> List[str]:
    """Return the files of a -config: itself, or those of the directory (command/agent/config.go:LoadConfigDir)."""
    check_trusted(path)
    if not os.path.isdir(path):
        return [path]
    found = [*reading.listed(path, ".hcl"), *reading.listed(path, ".json")]
    names = sorted(found, key=os.fsencode)
    return [name for name in names if not os.path.basename(name).startswith((".#", "#"))]
