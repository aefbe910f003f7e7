# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a runtime can execute a plugin: what the kernel, the loader and the plugin itself would say."""

from __future__ import annotations

import os
import stat
import struct
from typing import Iterator, Optional, Sequence

from ..binaries.types import why_no_type
from ..binaries.usable import Binaries
from ..errors import HostError
from ..problems import WARNING, Finding, obstacle
from ..trust import elf_machine, host_machine
from .state import mount_point

# The kernel of the machine also runs these.
_ALSO = {"x86_64": ("i386",), "aarch64": ("arm",)}
_SELINUX = "/sys/fs/selinux/enforce"
# Types that containers' runtimes may not execute, of files that were moved or unpacked without a new label.
_UNLABELLED = {"unlabeled_t", "default_t", "tmp_t", "user_tmp_t", "user_home_t", "admin_home_t", "nfs_t"}
_INTERPRETER = 3


def plugin_obstacles(kind: str, cni_version: str, binaries: Binaries, other_dirs: Sequence[str]) -> Iterator[Finding]:
    """Yield why a runtime that searches the directories of *binaries* cannot execute the plugin *kind*."""
    path = found_plugin(kind, binaries.bin_dirs)
    if not path:
        yield why_not_there(kind, binaries.bin_dirs, other_dirs)
        return
    seen = why_not_executed(path)
    if seen is not None:
        # A label alone is no proof.
        yield seen._replace(level=WARNING, decides=False) if seen.code == "selinux_label" else seen
        return
    try:
        _path, versions = binaries.ask(kind)
    except HostError as error:
        # One that cni_plugins would replace is missing to other users of the answer.
        if "plugin_failed" in (error.code, getattr(error.__cause__, "code", "")):
            text = f"the plugin {kind} ({path}) does not work"
            yield obstacle("plugin_failed", text, error.msg, "install it again (podwire.cni.cni_plugins)")
        else:
            text = f"the plugin {kind} ({path}) was not asked for its versions, because root must not run it"
            remedy = "install it as root, in a directory of root"
            yield obstacle(error.code, text, error.msg, remedy, WARNING)._replace(decides=False)
        return
    if cni_version not in versions:
        text = f"the plugin {kind} ({path}) does not support the version {cni_version} of the network"
        yield obstacle("unsupported_by_plugin", text, f"{kind} supports {', '.join(versions)}", "")


def missing_file(path: str, code: str, what: str, remedy: str) -> Iterator[Finding]:
    """Yield what is wrong if a file that a plugin needs, or waits for, does not exist."""
    if path and not os.path.exists(path):
        yield obstacle(code, what, f"{path} does not exist", remedy)


def found_plugin(name: str, bin_dirs: Sequence[str]) -> str:
    """Return the path that a runtime executes for a plugin, as Go's libcni finds it; "" if there is none."""
    paths = [os.path.join(directory, name) for directory in bin_dirs] if name and "/" not in name else []
    return next((path for path in paths if os.path.isfile(path)), "")


def why_not_there(name: str, bin_dirs: Sequence[str], other_dirs: Sequence[str]) -> Finding:
    """Return the obstacle of a plugin that is in none of *bin_dirs*; *other_dirs* are where else it may be."""
    what, remedy = why_no_type(name)
    if what:
        return obstacle("bad_type", what, f"a runtime looks for it in {', '.join(bin_dirs)} by its name", remedy)
    searched = ", ".join(bin_dirs) or "no directory"
    message = f"the plugin {name!r} is not in {searched}"
    for directory in bin_dirs:
        path = os.path.join(directory, name)
        if os.path.islink(path):
            evidence = f"{path} is a link to {os.readlink(path)}, which does not exist"
            return obstacle("missing_plugin", message, evidence, "install it again (podwire.cni.cni_plugins)")
    elsewhere = next((path for path in other_dirs if path not in bin_dirs and found_plugin(name, [path])), "")
    if elsewhere:
        remedy = f"install it in {searched}, or configure the runtime to search {elsewhere}"
        return obstacle("missing_plugin", message, f"{os.path.join(elsewhere, name)} exists", remedy)
    missing = [path for path in bin_dirs if not os.path.isdir(path)]
    evidence = f"the directory {', '.join(missing)} does not exist" if missing else f"no file {name} in {searched}"
    return obstacle("missing_plugin", message, evidence, f"install it (podwire.cni.cni_plugins) in {searched}")


def why_not_executed(path: str) -> Optional[Finding]:
    """Return why the kernel would not execute the file at *path*, None if it would."""
    try:
        status = os.stat(path)
        mount = os.statvfs(path)
        with open(path, "rb") as stream:
            head = stream.read(4096)
            stream.seek(0)
            machine = elf_machine(stream)
    except OSError as error:
        return obstacle("plugin_failed", f"{path} cannot be read", str(error), "install it again")
    if not status.st_mode & 0o111:
        mode = f"its mode is {stat.S_IMODE(status.st_mode):04o}"
        return obstacle("not_executable", f"{path} is not executable", mode, f"chmod 0755 {path}")
    if mount.f_flag & os.ST_NOEXEC:
        point = mount_point(path)
        text = f"the kernel executes no plugin in {os.path.dirname(path)}"
        evidence = f"the mount {point} has the option noexec"
        return obstacle("noexec_mount", text, evidence, f"mount -o remount,exec {point}")
    if machine is None and not head.startswith(b"#!"):
        text = f"{path} is not a program"
        return obstacle("not_a_program", text, f"it has {status.st_size} bytes", "install it again")
    native = host_machine()
    if machine is not None and machine != native and machine not in _ALSO.get(native, ()):
        text = f"{path} is built for another machine"
        evidence = f"it is for {machine}, and this host is {native}"
        return obstacle("wrong_machine", text, evidence, f"install it for {native}")
    loader = _loader(head) if machine is not None else _shebang(head)
    if loader and not os.path.exists(loader):
        text = f"{path} needs the program {loader} to start, which does not exist"
        return obstacle("missing_loader", text, f"{loader} does not exist", "install a static build of the plugin")
    return _denied(path)


def _loader(head: bytes) -> str:
    """Return the dynamic loader that an ELF file names, "" for a static one."""
    order = "<" if head[5] == 1 else ">"
    # Offsets and sizes have 8 bytes in a file of 64 bits (class 2), and 4 in one of 32.
    word, table, counts, place, length = ("Q", 32, 54, 8, 32) if head[4] == 2 else ("I", 28, 42, 4, 16)
    try:
        start = struct.unpack_from(order + word, head, table)[0]
        size, count = struct.unpack_from(order + "HH", head, counts)
        for index in range(min(count, 64)):
            entry = start + index * size
            if struct.unpack_from(order + "I", head, entry)[0] == _INTERPRETER:
                first = struct.unpack_from(order + word, head, entry + place)[0]
                end = first + struct.unpack_from(order + word, head, entry + length)[0]
                return head[first:end].rstrip(b"\0").decode("utf-8", "replace")
    except (struct.error, OverflowError):
        # The table is beyond what was read, or nonsense: its own VERSION tells.
        return ""
    return ""


def _shebang(head: bytes) -> str:
    if not head.startswith(b"#!"):
        return ""
    words = head[2:].split(b"\n", 1)[0].split()
    return os.fsdecode(words[0]) if words else ""


def _denied(path: str) -> Optional[Finding]:
    """Return whether SELinux is likely to deny the execution: only its label can be seen from here."""
    try:
        with open(_SELINUX, encoding="ascii") as stream:
            enforcing = stream.read().strip() == "1"
        label = os.getxattr(path, "security.selinux").rstrip(b"\0").decode("utf-8", "replace") if enforcing else ""
    except OSError:
        return None
    kind = label.split(":")[2] if label.count(":") >= 2 else ""
    if kind not in _UNLABELLED:
        return None
    text = f"SELinux probably does not let a runtime execute {path}"
    evidence = f"SELinux enforces, and the label of the file is {label}"
    return obstacle("selinux_label", text, evidence, f"restorecon {path}")
