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
    "exec[lv]p?e?|posix_spawnp?|spawn[lv]p?e?|system|popen|Popen|run_program|Executor|fork(pty)?"
    "|create_subprocess_(exec|shell)"
)
RUNS = re.compile("run|call|check_call|check_output|getoutput|getstatusoutput")
# What is not in this text is a place of its own: it may execute, load or write something, as pickle and logging do.
MODULES = re.compile(
    r"__future__|ansible\.module_utils\.basic|argparse|ast|atexit|base64|binascii|bisect|bz2|collections"
    r"|common|contextlib|copy|copyreg|dataclasses|difflib|errno|fcntl|fnmatch|functools|glob|grp|gzip"
    r"|hashlib|http\.client|io|ipaddress|itertools|json|lzma|os|pwd|random|re|repository|select|shlex"
    r"|shutil|signal|socket|ssl|stat|struct|sys|tarfile|tempfile|threading|time|tomllib|types|typing"
    r"|urllib\.error|urllib\.parse|urllib\.request|zlib"
)
# Of paths.py: the namespace of this process, and of this thread.
NAMESPACES = ("OWN_NETNS", "THREAD_NETNS")
BY_TEXT = ("exec", "eval", "compile", "__import__")
# The directory itself may be given, as {}/proc or as a part of a path.
IN_PROC = re.compile(r"(\{\}|/\w+)*/+proc\b|proc(/|$)")
SIGNALS = re.compile(r"kill|killpg|pidfd_send_signal")

# (files, why they may) -> what; files of _host without that name. "/proc/{}" is the directory of any process.
_NAMESPACES = "every network namespace counts, whoever runs a process in it: a doubt is life, never a path to use"
_OWN = "of this process"
_CHILD = "a child of this process"
_PULLED = "the one place of this program: git, gpg and ansible, by the paths of root's configuration"
_KERNEL = "a setting or a table of the kernel"
ALLOWED = {
    ("processes.py", "which programs root runs: the one place"): ["/proc", "/proc/{}"],
    ("processes.py", "when a process of it started, which tells it from a later one of its number"): ["/proc/{}/stat"],
    ("processes.py", "which directories a process of it has: the one place"): ["/proc/{}/mountinfo"],
    ("process_root.py files.py", _OWN): ["/proc/self/fd/{}"],
    ("processes.py", "the user namespace in which root is root"): ["/proc/1/ns/user"],
    ("processes.py", _OWN): ["/proc/self/ns/mnt"],
    ("runtimes/nomad.py", "where a process of the one place listens"): ["/proc/{}/fd", "/proc/{}/fd/{}"],
    ("runtimes/nomad.py", _KERNEL): ["/proc/self/net/tcp", "/proc/self/net/tcp6"],
    ("runtimes/nomad.py", "the agent, a process of the one place that has started when it was noted"): ["kill"],
    ("containers/containerd.py", "sockets; only those that root made where only root can are used"): ["/proc/net/unix"],
    ("containers/containerd.py libcni/skel.py libcni/validate.py", _OWN): ["/proc/self/ns/net"],
    ("containers/namespaces.py", _NAMESPACES): [
        "/proc",
        "/proc/{}/fd",
        "/proc/{}/ns/mnt",
        "/proc/{}/ns/net",
        "/proc/{}/root{}",
    ],
    ("containers/namespaces.py", "threads, which may each be in one"): ["/proc/{}/task", "/proc/{}/task/{}/ns/net"],
    ("containers/namespaces.py", "words for people, who see the process ID as well"): ["/proc/{}/comm"],
    ("containers/namespaces.py", _OWN): ["/proc/self/fd/{}", "/proc/self/ns/net"],
    ("containers/namespaces.py", _KERNEL): ["/proc/sys/net/core/netdev_budget"],
    ("containers/sources.py", "words for people"): ["/proc and the named network namespaces"],
    ("containers/sources.py trials/audit.py", "paths of attachments that begin so are compared, not opened"): [
        "/proc/"
    ],
    ("containers/sources.py", "whether the host has traces of a runtime, seen from a container"): ["/proc/1/root{}"],
    ("attachments/verbs.py", _OWN): ["/proc/{}/fd/{}", "THREAD_NETNS"],
    ("attachments/verbs.py", "its fourth argument is an executor"): ["CNIConfig"],
    ("host_routes.py", _KERNEL): ["/proc/sys/net/ipv6/conf/{}/accept_ra", "/proc/sys/net/ipv6/conf/all/forwarding"],
    ("netns.py", "the host's own namespace, which is never entered"): ["/proc/1/ns/net"],
    ("paths.py", _OWN): ["/proc/thread-self/ns/net", "/proc/self/ns/net", "OWN_NETNS", "THREAD_NETNS"],
    ("netns.py", _OWN): ["/proc/thread-self/fd/{}", "OWN_NETNS", "THREAD_NETNS"],
    ("netlink.py kernel/links.py", "descriptors of both"): ["OWN_NETNS", "THREAD_NETNS"],
    ("netns.py", "which PID namespace /proc shows"): ["/proc/1/ns/pid"],
    ("trials/private_host.py", "mounted for the PID namespace of a private host"): ["/proc"],
    ("trials/private_host.py", "whether /proc is already that of the private host"): ["/proc/self"],
    ("trials/private_host.py", "words for people: what has not ended"): ["/proc/{}/comm"],
    ("trials/private_host.py", _OWN): ["/proc/self/fd/{}", "/proc/thread-self/ns/net"],
    ("trials/private_host.py", _CHILD): ["kill", "fork"],
    ("trials/private_host.py containers/namespaces.py libcni/kernel.py", "system calls that Python does not have"): [
        "ctypes"
    ],
    ("libcni/__init__.py", "its own modules, when they are first used"): ["importlib"],
    ("libcni/bundle.py", "its own modules, for a plugin that somebody builds"): [
        "importlib.util",
        "marshal",
        "compile",
    ],
    ("modules/cni_netns.py", "whether pyroute2 is installed"): ["importlib.util"],
    ("named_netns.py", "makes and removes namespaces by their names"): ["pyroute2.netns"],
    ("files.py", "the labels of a file, as the host's policy has them"): ["selinux"],
    ("firewall/chains.py", _KERNEL): ["/proc/net/ip6_tables_names", "/proc/net/ip_tables_names"],
    ("trials/packets.py", _KERNEL): ["/proc/sys/net/ipv4/conf"],
    ("checks/causes.py kernel/sysctls.py", _KERNEL): ["/proc/sys/net"],
    ("netns.py pull/__main__.py", _KERNEL): ["/proc/sys/kernel/random/boot_id"],
    ("trials/rehearsal.py", _KERNEL): ["/proc/sys/net/{}"],
    ("commands.py", "commands of the host: after check_executable"): ["run_program"],
    ("binaries/packages.py", "a plugin, asked for its release: after check_executable"): ["run_program"],
    ("firewall/tools.py", "iptables and nft, found as plugins find them: after check_trusted"): ["run_program"],
    ("checks/state.py", "asks only what kind of file there is"): ["pathlib"],
    ("attachments/watch.py", "the repair service itself, again, with the same interpreter"): ["run_program"],
    ("executor.py", "the executor that checks plugins"): ["Executor"],
    ("attachments/verbs.py", "passes everything to the executor that checks plugins"): ["Executor"],
    ("trials/private_host.py", "the kind of file system that is mounted"): ["proc"],
    ("libcni/process.py", "the one place; _host calls it after a check"): ["posix_spawn"],
    ("libcni/process.py", _CHILD): ["killpg"],
    ("libcni/process.py", _OWN): ["/proc/self/fd"],
    ("libcni/netns.py", _OWN): ["/proc/thread-self/ns/net"],
    ("libcni/validate.py", "the host's own namespace, which is refused"): ["/proc/1/ns/net"],
    ("libcni/invoke.py", "as Go's libcni; modules pass an executor that checks plugins"): ["run_program"],
    ("libcni/invoke.py libcni/types.py", "what is passed"): ["Executor"],
    ("libcni/api.py", "a plain one, as Go's libcni has; modules pass their own, see CNIConfig here"): ["Executor"],
    ("libcni/cli.py", "the command line of libcni, which modules do not use"): ["Executor"],
    ("libcni/delegate.py", "a plugin that calls another, as in Go"): ["Executor"],
    ("libcni/multi/runner.py", "part of a plugin, which calls others of its directory"): ["Executor"],
    ("pull/common.py", _PULLED): ["subprocess", "Popen"],
    ("pull/common.py", _CHILD): ["killpg"],
    ("pull/__main__.py pull/repository.py", "what the one place of this program returns"): ["subprocess"],
}


def places(tree):
    """Yield what a file does, as the table has it."""
    names = called_as(tree)
    joined = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
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
        of_system = name == "getattr" and _of_system(called.get(id(node)))
        if name in NAMESPACES or (isinstance(node, ast.Name) and (name in BY_TEXT or of_system)):
            yield name
        # Without an executor, libcni has one that checks nothing.
        call = node if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "CNIConfig" else None
        if call and "executor" not in [keyword.arg for keyword in call.keywords]:
            yield "CNIConfig"
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
        yield from (module for module in modules if not MODULES.fullmatch(module))


def _of_system(call):
    """Tell whether a call of getattr gets a function of the system by its name."""
    return call is None or getattr(call.args[0], "id", "") in ("os", "shutil", "subprocess")


def test_every_place_is_known():
    found = {(name.removeprefix("_host/"), what) for name, tree in trees() for what in places(tree)}
    allowed = {
        (name, what) for (names, _reason), places in ALLOWED.items() for name in names.split() for what in places
    }
    assert found - allowed == set(), "go through processes, commands or SafeExecutor, or explain it in ALLOWED"
    assert allowed - found == set()


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ('open(f"/proc/{pid}/cmdline")', "/proc/{}/cmdline"),
        ('os.path.join("/proc", str(pid), "environ")', "/proc"),
        ("os.kill(pid, 9)", "kill"),
        ("from os import execvpe", None),
        ('open(f"{root}/proc/1/exe")', "{}/proc/1/exe"),
        ('os.path.join(root, "proc", str(pid))', "proc"),
        ("from os import execv as start\nstart(path, argv)", "execv"),
        ("module.run_command(argv)", "run_command"),
        ("commands.run_command(argv)", None),
        ("subprocess.run(argv)", "subprocess.run"),
        ("from subprocess import run", "subprocess"),
        ('open(b"//proc/1/environ")', "//proc/1/environ"),
        ('os.listdir("/host/proc")', "/host/proc"),
        ("from .libcni.process import run_program as start\nstart(path, argv)", "run_program"),
        ("import os as system\nsystem.execv(path, argv)", "execv"),
        ("start = os.posix_spawn", "posix_spawn"),
        ('getattr(os, "execv")(path, argv)', "getattr"),
        ("exec(text)", "exec"),
        ('__import__("subprocess").run(argv)', "__import__"),
        ("import importlib.util", "importlib.util"),
        ("from concurrent.futures import ProcessPoolExecutor", "concurrent.futures"),
        ("import pickle", "pickle"),
        ("from . import processes", None),
        ("CNIConfig(bin_dirs)", "CNIConfig"),
        ("CNIConfig(bin_dirs, executor=SafeExecutor())", None),
        ('raise HostError(f"cannot read /proc/stat: {error}")', None),
    ],
)
def test_a_new_place_is_found(source, what):
    assert list(places(ast.parse(source))) == ([what] if what else [])
