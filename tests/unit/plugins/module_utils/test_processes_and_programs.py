# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which files read /proc, execute programs, or signal processes as root, and why each may.

Which programs root runs is asked only in processes.py, and a program is executed only after a check of who can change
it. A place that is not listed here fails: use `processes`, `commands` or `SafeExecutor`, or explain it.
"""

from __future__ import annotations

import ast
import re

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils.shipped import called_as, text_of, trees

EXECUTES = re.compile(
    "exec[lv]p?e?|posix_spawnp?|spawn[lv]p?e?|system|popen|Popen|run_program|Executor|run_path"
    "|create_subprocess_(exec|shell)"
)
RUNS = re.compile("run|call|check_call|check_output|getoutput|getstatusoutput")
MODULES = {"subprocess", "multiprocessing", "pty"}
# The directory itself may be given, as {}/proc or as a part of a path.
IN_PROC = re.compile(r"(\{\})*/proc\b|proc(/|$)")
SIGNALS = re.compile(r"kill|killpg|pidfd_send_signal")

# (file, what) -> why it may; files of _host without it. "/proc/{}" is the directory of any process.
_NAMESPACES = "every network namespace counts, whoever runs a process in it: a doubt is life, never a path to use"
_OWN = "of this process"
_CHILD = "a child of this process"
_PULLED = "the one place of this program: git, gpg and ansible, by the paths of root's configuration"
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
    ("trials/private_host.py", "proc"): "the kind of file system that is mounted",
    ("libcni/process.py", "posix_spawn"): "the one place; _host calls it after a check",
    ("libcni/process.py", "killpg"): _CHILD,
    ("libcni/process.py", "/proc/self/fd"): _OWN,
    ("libcni/netns.py", "/proc/thread-self/ns/net"): _OWN,
    ("libcni/skel.py", "/proc/self/ns/net"): _OWN,
    ("libcni/validate.py", "/proc/self/ns/net"): _OWN,
    ("libcni/validate.py", "/proc/1/ns/net"): "the host's own namespace, which is refused",
    ("libcni/invoke.py", "run_program"): "as Go's libcni; modules pass an executor that checks plugins",
    ("libcni/invoke.py", "Executor"): "what is passed",
    ("libcni/types.py", "Executor"): "the type of what is passed",
    ("libcni/api.py", "Executor"): "a plain one, as Go's libcni has; modules pass their own, see CNIConfig here",
    ("libcni/cli.py", "Executor"): "the command line of libcni, which modules do not use",
    ("libcni/delegate.py", "Executor"): "a plugin that calls another, as in Go",
    ("libcni/multi/runner.py", "Executor"): "part of a plugin, which calls others of its directory",
    ("pull/common.py", "subprocess"): _PULLED,
    ("pull/common.py", "Popen"): _PULLED,
    ("pull/common.py", "killpg"): _CHILD,
    ("pull/__main__.py", "subprocess"): "what the one place of this program returns",
    ("pull/repository.py", "subprocess"): "the same",
    ("pull/__main__.py", "/proc/sys/kernel/random/boot_id"): _KERNEL,
}


def places(tree):
    """Yield what a file does, as the table has it."""
    names = called_as(tree)
    joined = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        text = text_of(node) if id(node) not in joined else None
        if text is not None and IN_PROC.match(text):
            yield text
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        name = names.get(name, name).rpartition(".")[2] if isinstance(node, ast.Name) else name
        owner = getattr(node.value, "id", "") if isinstance(node, ast.Attribute) else ""
        # That of commands.py checks, and that of AnsibleModule does not.
        unchecked = name == "run_command" and isinstance(node, ast.Attribute) and owner != "commands"
        if unchecked or EXECUTES.fullmatch(name) or SIGNALS.fullmatch(name):
            yield name
        if names.get(owner, owner) == "subprocess" and RUNS.fullmatch(name):
            yield f"subprocess.{name}"
        # Without an executor, libcni has one that checks nothing.
        call = node if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "CNIConfig" else None
        if call and "executor" not in [keyword.arg for keyword in call.keywords]:
            yield "CNIConfig"
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from MODULES.intersection([*modules, getattr(node, "module", None) or ""])


def test_every_place_is_known():
    found = {(name.removeprefix("_host/"), what) for name, tree in trees() for what in places(tree)}
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
        ('open(f"{root}/proc/1/exe")', "{}/proc/1/exe"),
        ('os.path.join(root, "proc", str(pid))', "proc"),
        ("from os import execv as start\nstart(path, argv)", "execv"),
        ("module.run_command(argv)", "run_command"),
        ("commands.run_command(argv)", None),
        ("subprocess.run(argv)", "subprocess.run"),
        ("from subprocess import run", "subprocess"),
        ("run_program(path, argv, b'', {})", "run_program"),
        ("CNIConfig(bin_dirs)", "CNIConfig"),
        ("CNIConfig(bin_dirs, executor=SafeExecutor())", None),
        ('raise HostError(f"cannot read /proc/stat: {error}")', None),
    ],
)
def test_a_new_place_is_found(source, what):
    assert list(places(ast.parse(source))) == ([what] if what else [])
