# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which files of _host read /proc, execute programs, or signal processes, and why each may.

Which programs root runs is asked only in processes.py, and a program is executed only after a check of who can change
it. A place that is not listed here fails: use `processes`, `commands` or `SafeExecutor`, or explain it.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HOST = Path(__file__).parents[4] / "plugins" / "module_utils" / "_host"
EXECUTES = re.compile(r"exec[lv]p?e?|posix_spawnp?|spawn[lv]p?e?|system|popen|Popen|run_program|Executor")
SIGNALS = re.compile(r"kill|killpg|pidfd_send_signal")

# (file, what) -> why it may. "/proc/{}" is the directory of any process.
_NAMESPACES = "every network namespace counts, whoever runs a process in it: a doubt is life, never a path to use"
_OWN = "of this process"
_CHILD = "a child of this process"
_KERNEL = "a setting or a table of the kernel"
ALLOWED = {
    ("processes.py", "/proc"): "which programs root runs: the one place",
    ("processes.py", "/proc/{}"): "the same",
    ("processes.py", "/proc/{}/stat"): "when a process of it started, which tells it from a later one of its number",
    ("processes.py", "/proc/{}/mountinfo"): "which directories a process of it has: the one place",
    ("process_root.py", "/proc/self/fd/{}"): _OWN,
    ("processes.py", "/proc/1/ns/user"): "the user namespace in which root is root",
    ("processes.py", "/proc/self/ns/mnt"): _OWN,
    ("runtimes/nomad.py", "/proc/{}/fd"): "where a process of the one place listens",
    ("runtimes/nomad.py", "/proc/{}/fd/{}"): "the same",
    ("runtimes/nomad.py", "/proc/self/net/tcp"): _KERNEL,
    ("runtimes/nomad.py", "/proc/self/net/tcp6"): _KERNEL,
    ("runtimes/nomad.py", "kill"): "the agent, a process of the one place that has started when it was noted",
    ("containers/containerd.py", "/proc/net/unix"): "sockets; only those that root made where only root can are used",
    ("containers/containerd.py", "/proc/self/ns/net"): _OWN,
    ("containers/namespaces.py", "/proc"): _NAMESPACES,
    ("containers/namespaces.py", "/proc/{}/comm"): "words for people, who see the process ID as well",
    ("containers/namespaces.py", "/proc/{}/fd"): _NAMESPACES,
    ("containers/namespaces.py", "/proc/{}/ns/mnt"): _NAMESPACES,
    ("containers/namespaces.py", "/proc/{}/ns/net"): _NAMESPACES,
    ("containers/namespaces.py", "/proc/{}/root{}"): _NAMESPACES,
    ("containers/namespaces.py", "/proc/{}/task"): _NAMESPACES,
    ("containers/namespaces.py", "/proc/{}/task/{}/ns/net"): _NAMESPACES,
    ("containers/namespaces.py", "/proc/self/fd/{}"): _OWN,
    ("containers/namespaces.py", "/proc/self/ns/net"): _OWN,
    ("containers/namespaces.py", "/proc/sys/net/core/netdev_budget"): _KERNEL,
    ("containers/sources.py", "/proc and the named network namespaces"): "words for people",
    ("containers/sources.py", "/proc/"): "paths of attachments that begin so are compared, not opened",
    ("containers/sources.py", "/proc/1/root{}"): "whether the host has traces of a runtime, seen from a container",
    ("trials/audit.py", "/proc/"): "paths of attachments that begin so are compared, not opened",
    ("attachments/executors.py", "/proc/{}/task/{}/ns/net"): _OWN,
    ("attachments/executors.py", "/proc/{}/fd/{}"): _OWN,
    ("attachments/executors.py", "Executor"): "passes everything to the executor that checks plugins",
    ("attachments/verbs.py", "CNIConfig"): "its fourth argument is an executor",
    ("host_routes.py", "/proc/sys/net/ipv6/conf/{}/accept_ra"): _KERNEL,
    ("host_routes.py", "/proc/sys/net/ipv6/conf/all/forwarding"): _KERNEL,
    ("netns.py", "/proc/1/ns/net"): "the host's own namespace, which is never entered",
    ("paths.py", "/proc/thread-self/ns/net"): _OWN,
    ("netns.py", "/proc/thread-self/fd/{}"): _OWN,
    ("files.py", "/proc/self/fd/{}"): _OWN,
    ("paths.py", "/proc/self/ns/net"): _OWN,
    ("netns.py", "/proc/1/ns/pid"): "which PID namespace /proc shows",
    ("trials/private_host.py", "/proc"): "mounted for the PID namespace of a private host",
    ("trials/private_host.py", "/proc/self"): "whether /proc is already that of the private host",
    ("trials/private_host.py", "/proc/{}/comm"): "words for people: what has not ended",
    ("trials/private_host.py", "/proc/self/fd/{}"): _OWN,
    ("trials/private_host.py", "/proc/thread-self/ns/net"): _OWN,
    ("trials/private_host.py", "kill"): _CHILD,
    ("firewall/chains.py", "/proc/net/ip6_tables_names"): _KERNEL,
    ("trials/packets.py", "/proc/sys/net/ipv4/conf"): _KERNEL,
    ("firewall/chains.py", "/proc/net/ip_tables_names"): _KERNEL,
    ("kernel/sysctls.py", "/proc/sys/net"): _KERNEL,
    ("netns.py", "/proc/sys/kernel/random/boot_id"): _KERNEL,
    ("trials/readiness.py", "/proc/sys/net"): _KERNEL,
    ("trials/rehearsal.py", "/proc/sys/net/{}"): _KERNEL,
    ("commands.py", "run_program"): "commands of the host: after check_executable",
    ("binaries/packages.py", "run_program"): "a plugin, asked for its release: after check_executable",
    ("firewall/tools.py", "run_program"): "iptables and nft, found as plugins find them: after check_trusted",
    ("attachments/watch.py", "run_program"): "the repair service itself, again, with the same interpreter",
    ("executor.py", "Executor"): "the executor that checks plugins",
    ("attachments/verbs.py", "Executor"): "the type of what tests pass",
}


def places(tree):
    """Yield what a file does, as the table has it."""
    joined = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and node.values:
            text = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in joined:
            text = node.value
        else:
            text = ""
        if re.match(r"/proc\b", text):
            yield text
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if EXECUTES.fullmatch(name) or SIGNALS.fullmatch(name):
            yield name
        # Without an executor, libcni has one that checks nothing.
        call = node if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "CNIConfig" else None
        if call and "executor" not in [keyword.arg for keyword in call.keywords]:
            yield "CNIConfig"
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if "subprocess" in [*modules, getattr(node, "module", "")]:
            yield "subprocess"


def test_every_place_is_known():
    found = {
        (str(path.relative_to(HOST)), what)
        for path in sorted(HOST.rglob("*.py"))
        for what in places(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found - set(ALLOWED) == set(), "go through processes, commands or SafeExecutor, or explain it in ALLOWED"
    assert set(ALLOWED) - found == set()


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ('open("/proc/1/exe")', "/proc/1/exe"),
        ('open(f"/proc/{pid}/cmdline")', "/proc/{}/cmdline"),
        ('os.path.join("/proc", str(pid), "environ")', "/proc"),
        ("os.execv(path, argv)", "execv"),
        ("os.kill(pid, 9)", "kill"),
        ("from os import execvpe", None),
        ("execvpe(path, argv, {})", "execvpe"),
        ("import subprocess", "subprocess"),
        ("from subprocess import run", "subprocess"),
        ("run_program(path, argv, b'', {})", "run_program"),
        ("CNIConfig(bin_dirs)", "CNIConfig"),
        ("CNIConfig(bin_dirs, executor=SafeExecutor())", None),
        ('raise HostError(f"cannot read /proc/stat: {error}")', None),
    ],
)
def test_a_new_place_is_found(source, what):
    assert list(places(ast.parse(source))) == ([what] if what else [])
