# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Nomad's client, in both modes: ``cni/NAME`` reads files, ``bridge`` builds its own network.

The agent's command line names its configuration: HCL or JSON, files or directories, a later one over an earlier one.
The agent says by its API which networks it has. It reads their directory only when it starts, and on SIGHUP, which
containers do not notice (Nomad client/fingerprint/cni.go: a reloadable fingerprint).
"""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from http.client import HTTPException
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from .. import nomad_api
from ..errors import HostError
from ..json_text import parse_json
from ..kinds import HOST_LOCAL
from ..plan import SAFE, Step
from ..problems import WARNING, obstacle
from ..processes import Process
from ..trust import check_trusted
from . import reading
from .cri import CriStatus
from .profiles import PROFILES, BuiltIn
from .runtime import Keys, Runtime
from .settings import FileChange, RuntimeSettings, forget_restart, note_restart, restart_pending
from .toml import rendered

# The directory that the units of the packages pass to the agent as an option.
_CONFIG = "/etc/nomad.d"
_API = 4646
_NODE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TOKEN = re.compile(
    r"""(?:[\s,]|\#[^\n]*|//[^\n]*|/\*.*?\*/)+
    |(?P<heredoc><<-?(?P<tag>[A-Za-z_][A-Za-z0-9_]*)[ \t]*\n(?:.*?\n)??[ \t]*(?P=tag)(?=\n|\Z))
    |(?P<text>"(?:[^"\\\n]|\\.)*")
    |(?P<number>-?[0-9][0-9A-Za-z.+-]*)
    |(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)
    |(?P<opens>[{\[])|(?P<closes>[}\]])|(?P<assigns>[=:])
    |(?P<unknown>.)""",
    re.DOTALL | re.VERBOSE,
)
_CLOSES = {"{": "}", "[": "]"}
_MODE = "cni/"
_ADMIN_CHAIN = "NOMAD-ADMIN"
_LISTENS = "0A"
# The name of the note that a signal has to be sent.
_NOTE = "nomad.reload"


class Nomad(Runtime):
    """The agent's networks by name. ``port`` is that of its API."""

    answer = "the fingerprint of its node"
    # The agent tells its servers of a new fingerprint, which answer for it.
    settles = 8.0
    port = 0
    drop_ins = _CONFIG
    keys = Keys(
        "cni_config_dir",
        "cni_path",
        separator=":",
        options=[["-cni-config-dir", "--cni-config-dir"], ["-cni-path", "--cni-path"]],
    )

    @classmethod
    def find(cls, running: Sequence[Process]) -> List[Runtime]:
        """Return both modes of Nomad if its agent runs, or is installed with a configuration."""
        agents = [process for process in running if process.name == "nomad" and "agent" in process.argv[1:3]]
        named = cls.evident("nomad", agents, "nomad", version="version")
        if named is None or not (agents or os.path.isdir(_CONFIG)):
            return []
        if not agents:
            named.process = Process(argv=["nomad", "agent", "-config", _CONFIG])
        named.config = next((path for path in reversed(named._configs()) if os.path.isdir(path)), "")
        if named.release >= (2, 0):
            named.bin_dirs = ["/opt/cni/bin", "/usr/libexec/cni"]
        bridge = Runtime("nomad-bridge", named.version, named.evidence)
        with named.read_settings():
            client = named._read()
            bridge.bin_dirs = list(named.bin_dirs)
            bridge.profile = bridge.profile._replace(built_in=network_of_bridge(client))
        bridge.notes, bridge.reads, bridge.pid = list(named.notes), named.reads, named.pid
        bridge.findings, bridge.config, bridge.default_network = named.findings, named.config, "nomad"
        return [named, bridge]

    def _read(self) -> Dict[str, Any]:
        client: Dict[str, Any] = {}
        ports: Dict[str, Any] = {}
        for config in self._configs():
            for path in _files(config):
                tables = reading.parsed(path, settings_in) or {}
                client.update(reading.section(tables, "client"))
                ports.update(reading.section(tables, "ports"))
        agent, self.port = self.process, reading.number(ports, "http", _API)
        enabled = client.get("enabled") is True or any(word.lstrip("-") in ("dev", "client") for word in agent.argv[2:])
        if not enabled:
            self.reads = False
            self.notes.append("this agent is not a client, so it has no networks")
        else:
            self.take(client)
        return client

    def resolved(self, settings: Dict[str, Any]) -> Dict[str, Any]:
        for key in ("cni_config_dir", "cni_path"):
            paths = [path for path in str(settings.get(key) or "").split(":") if path]
            relative = [path for path in paths if not os.path.isabs(path)]
            if relative:
                text = f"{key} of nomad is relative ({relative[0]}), and depends on where its agent was started"
                evidence, remedy = f"that is {self.process.cwd} now", "write an absolute path"
                self.findings.append(obstacle("relative_path", text, evidence, remedy, WARNING, self.config))
                joined = [os.path.join(self.process.cwd, path) for path in paths]
                settings = {**settings, key: ":".join(map(os.path.normpath, joined))}
        return settings

    def _configs(self) -> List[str]:
        return self.process.paths("-config", "--config")

    @property
    def can_be_asked(self) -> bool:
        return bool(self.pid and self.port)

    def ask(self, networks: Sequence[str], timeout: float) -> CriStatus:
        """Ask the agent for the fingerprint of its own node (client/fingerprint/cni.go)."""
        end = time.monotonic() + timeout
        what = f"the API of Nomad's agent (process {self.pid})"
        try:
            address = _listener(self.pid, self.port)
            agent = _get(address, self.port, "/v1/agent/self", end)
            node = str(agent["stats"]["client"]["node_id"])
            if not _NODE.fullmatch(node):
                raise ValueError("it names no node")
            answer = _get(address, self.port, f"/v1/node/{node}", end)["NodeResources"]["Networks"] or []
            modes = [entry["Mode"] for entry in answer if isinstance(entry.get("Mode"), str)]
        except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError) as error:
            why = "they are not in its answer" if isinstance(error, (LookupError, TypeError, AttributeError)) else error
            raise HostError(f"{what} does not tell its networks: {why}", code="not_answered") from error
        names = sorted({mode[len(_MODE) :] for mode in modes if mode.startswith(_MODE)})
        return CriStatus(bool(names), "" if names else "its node has no CNI network", names)

    def changes(self, desired: RuntimeSettings) -> List[FileChange]:
        """Raises HostError ``not_ours``, ``no_drop_in``."""
        if self.evidence and not self.config:
            raise HostError(
                "Nomad reads single configuration files, not a directory; set cni_config_dir and cni_path in their "
                "client block, or pass a directory to the agent with -config",
                code="no_drop_in",
            )
        text = (
            "client {\n"
            f"  cni_config_dir = {rendered(desired.conf_dir)}\n"
            f"  cni_path       = {rendered(':'.join(desired.bin_dirs))}\n"
            "}\n"
        )
        return self.drop_in(desired, text, ".hcl")


def network_of_bridge(client: Mapping[str, Any]) -> Optional[BuiltIn]:
    """Return the network of jobs in bridge mode for a client's settings, as its networking_bridge_linux.go makes it."""
    built_in = PROFILES["nomad-bridge"].built_in
    bridge = reading.text_of_key(client, "bridge_network_name") or "nomad"
    first = reading.text_of_key(client, "bridge_network_subnet") or "172.26.64.0/20"
    second = reading.text_of_key(client, "bridge_network_subnet_ipv6")
    # The tool, the subnet and the default route of each family.
    families = [("iptables", first, "0.0.0.0/0"), ("ip6tables", second, "::/0")][: 2 if second else 1]
    ipam = {
        "type": HOST_LOCAL,
        "ranges": [[{"subnet": subnet}] for _tool, subnet, _all in families],
        "routes": [{"dst": everything} for _tool, _subnet, everything in families],
    }
    hairpin = client.get("bridge_network_hairpin_mode") is True
    flags = {"ipMasq": True, "isGateway": True, "forceAddress": True, "hairpinMode": hairpin}
    chain = (
        {"type": "loopback"},
        {"type": "bridge", "bridge": bridge, **flags, "ipam": ipam},
        {"type": "firewall", "backend": "iptables", "iptablesAdminChainName": _ADMIN_CHAIN},
        {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True},
    )
    rules = [[tool, "-N", _ADMIN_CHAIN] for tool, _subnet, _all in families]
    rules += [[tool, "-A", _ADMIN_CHAIN, "-o", bridge, "-d", subnet, "-j", "ACCEPT"] for tool, subnet, _all in families]
    return built_in and built_in._replace(chain=chain, rules=rules)


def _files(path: str) -> List[str]:
    """Return the files of a -config: itself, or those of the directory (command/agent/config.go:LoadConfigDir)."""
    check_trusted(path)
    if not os.path.isdir(path):
        return [path]
    paths = [*reading.listed(path, ".hcl"), *reading.listed(path, ".json")]
    names = sorted(paths, key=os.fsencode)
    return [name for name in names if not os.path.basename(name).startswith((".#", "#"))]


def settings_in(text: str) -> Dict[str, Dict[str, Any]]:
    """Return the settings in the blocks at the top level of HCL or JSON, by block and key; lists and heredocs are None.

    Nothing is evaluated. Raises HostError ``not_understood`` with the line.
    """
    settings: Dict[str, Dict[str, Any]] = {}
    blocks: List[Tuple[str, str]] = []
    words: List[str] = []
    assigned, place = False, 0
    try:
        for match in _TOKEN.finditer(text):
            kind, word, place = match.lastgroup, match.group(), match.start()
            if kind == "opens":
                # The whole of a JSON text, and an object in a list, have no name.
                blocks.append((_CLOSES[word], words[0].strip('"') if words else ""))
                words, assigned = [], False
            elif kind == "closes":
                if assigned or blocks.pop()[0] != word:
                    raise ValueError
                words = []
            elif kind == "assigns" and words:
                assigned = True
            elif assigned and kind is not None:
                names = [name for _end, name in blocks if name]
                value = _value(kind, word)
                if len(names) == 1:
                    settings.setdefault(names[0], {})[words[-1].strip('"')] = value
                words, assigned = [], False
            elif kind in ("text", "name", "number"):
                words.append(word)
            elif kind is not None:
                raise ValueError
        if assigned or words or blocks:
            raise ValueError
    except (ValueError, LookupError) as error:
        line = text.count("\n", 0, place) + 1
        raise HostError(f"line {line} is not understood", code="not_understood") from error
    return settings


def _value(kind: str, word: str) -> Any:
    if kind == "name":
        return {"true": True, "false": False, "null": None}[word]
    if kind == "text":
        return parse_json(word)
    if kind not in ("number", "heredoc"):
        raise ValueError
    return int(word) if word.isdigit() and len(word) < 40 else None


# --- its API


def _listener(pid: int, port: int) -> str:
    """Return the address where the process itself listens on *port*: nobody else's socket is asked."""
    sockets = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            sockets.add(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
    for family, path in ((socket.AF_INET, "/proc/self/net/tcp"), (socket.AF_INET6, "/proc/self/net/tcp6")):
        for address, local, inode in _listening(path):
            if local == port and f"socket:[{inode}]" in sockets:
                return _reached(family, address)
    raise ValueError(f"it does not listen on TCP port {port} here")


def _listening(path: str) -> Iterator[Tuple[bytes, int, str]]:
    try:
        with open(path, encoding="ascii") as stream:
            lines = stream.read(nomad_api.ANSWER_LIMIT).splitlines()[1:]
    except FileNotFoundError:
        return
    for line in lines:
        words = line.split()
        if len(words) > 9 and words[3] == _LISTENS:
            address, local = words[1].split(":")
            # The kernel prints words of 32 bits in the order of the machine.
            packed = b"".join(bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8))
            yield packed, int(local, 16), words[9]


def _reached(family: socket.AddressFamily, address: bytes) -> str:
    if any(address):
        return socket.inet_ntop(family, address)
    return "127.0.0.1" if family == socket.AF_INET else "::1"


def _get(address: str, port: int, path: str, end: float) -> Dict[str, Any]:
    secure = os.environ.get("NOMAD_ADDR", "").startswith("https:")
    status, body = nomad_api.get(address, port, path, secure, max(0.1, end - time.monotonic()))
    if status != 200:
        hint = " (it has ACLs; set NOMAD_TOKEN in the task's environment)" if status == 403 else ""
        raise ValueError(f"the answer to GET {path} has the status {status}{hint}")
    document = parse_json(body.decode("utf-8", "replace"))
    if not isinstance(document, dict):
        raise ValueError(f"GET {path}: the answer is not an object")
    return document


# --- its signal


def reload_step(pid: int, changes: bool) -> Optional[Step]:
    """Return the last step of a plan, which tells the agent with the process *pid*; None if nothing is to be told.

    It is told if the plan *changes* the directory that it reads, or an earlier run was interrupted before it did so.
    """
    if not (changes or restart_pending(_NOTE, pid)):
        return None

    def send() -> None:
        # An agent that has started since has read the directory.
        if restart_pending(_NOTE, pid):
            os.kill(pid, signal.SIGHUP)
        forget_restart(_NOTE)

    reason = "Nomad reads its networks only when it starts and on SIGHUP"
    return Step("reload", "nomad", SAFE, None, {"signal": "SIGHUP", "process": pid}, send, reason=reason)


def note_reload(step: Step) -> None:
    """Record, before the first change, that the agent has to be told."""
    note_restart(_NOTE, step.after["process"])
