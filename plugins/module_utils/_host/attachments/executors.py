# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""How plugins are run: in a namespace that is kept open, after it is gone, and although they fail.

The specification allows an empty CNI_NETNS after the namespace is gone and requires that DEL succeeds. ``sbr`` (1.1.1
to 1.9.1) fails nevertheless, and the plugins before it in the chain would never release what they hold, such as an
address. Such a plugin gets an empty namespace that exists only while it runs.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import threading
from typing import List, Mapping, Optional, Sequence

from ...libcni.errors import CNIError, PluginError, PluginNotFoundError
from ...libcni.invoke import Executor
from ...libcni.kernel import unshare
from ..errors import HostError
from ..executor import SafeExecutor
from ..netns import Netns

_SIOCSIFNAME = 0x8923


class DeadNetnsExecutor(SafeExecutor):
    """Runs plugins as usual; a DEL that fails without a namespace is tried once more, with an empty one."""

    __slots__ = ()

    def exec_plugin(self, path: str, stdin: bytes, env: Mapping[str, str], timeout: Optional[float] = None) -> bytes:
        try:
            return super().exec_plugin(path, stdin, env, timeout)
        except PluginError as error:
            if env.get("CNI_COMMAND") != "DEL" or env.get("CNI_NETNS"):
                raise
            try:
                with EmptyNetns(env["CNI_IFNAME"]) as netns:
                    return super().exec_plugin(path, stdin, dict(env, CNI_NETNS=netns), timeout)
            except (PluginError, OSError):
                # The first failure is not affected by this workaround.
                raise error from None


class OneNetnsExecutor(Executor):
    """Runs plugins with another executor, each only while their path leads to the namespace that is kept open.

    Plugins get the path of the attachment, not that of the descriptor: results and cache entries hold it as those of
    Go's libcni do, plugins and their daemons keep it beyond this process, and some (sbr, tuning's CHECK) find the
    interfaces of a result by it. So it is compared directly before and after each plugin. A DEL has no result and must
    not leave anything in the namespace of its ADD: where the path leads elsewhere, it gets that of the descriptor.
    """

    __slots__ = ("_container", "_executor")

    def __init__(self, executor: Executor, container: Netns) -> None:
        super().__init__()
        self._executor = executor
        self._container = container

    def find_in_path(self, plugin: str, paths: Sequence[str]) -> str:
        return self._executor.find_in_path(plugin, paths)

    def exec_plugin(self, path: str, stdin: bytes, env: Mapping[str, str], timeout: Optional[float] = None) -> bytes:
        container, command = self._container, env.get("CNI_COMMAND")
        if not container.path or env.get("CNI_NETNS") != container.path:
            return self._executor.exec_plugin(path, stdin, env, timeout)
        if command == "DEL":
            if not container.at_its_path:
                env = dict(env, CNI_NETNS=f"/proc/{os.getpid()}/fd/{container.fd}" if container.fd >= 0 else "")
            return self._executor.exec_plugin(path, stdin, env, timeout)
        what = f"cannot run {command} of the plugin {os.path.basename(path)}"
        container.require(what)
        answer = self._executor.exec_plugin(path, stdin, env, timeout)
        container.require(what)
        return answer


class TolerantExecutor(Executor):
    """Runs each plugin with another executor, and keeps the errors of failing ones in ``said``."""

    __slots__ = ("_executor", "said")

    def __init__(self, executor: Executor) -> None:
        super().__init__()
        self._executor = executor
        self.said: List[str] = []

    def find_in_path(self, plugin: str, paths: Sequence[str]) -> str:
        try:
            return self._executor.find_in_path(plugin, paths)
        except PluginNotFoundError as error:
            self.said.append(str(error))
            return ""

    def exec_plugin(self, path: str, stdin: bytes, env: Mapping[str, str], timeout: Optional[float] = None) -> bytes:
        try:
            return self._executor.exec_plugin(path, stdin, env, timeout) if path else b""
        except (CNIError, HostError) as error:
            self.said.append(f"plugin {path.rpartition('/')[2]}: {error}")
            return b""


class EmptyNetns:
    """A network namespace without a name, held by a thread; ``with`` gives a path to it.

    Its only interface, loopback, is called *ifname* if that is given: sbr 1.1.1 fails where there is none of that name.
    Raises OSError.
    """

    def __init__(self, ifname: str = "") -> None:
        self._ifname = ifname
        self._ready = threading.Event()
        self._done = threading.Event()
        self._errors: List[OSError] = []
        # A process that is terminated meanwhile must not wait for the thread.
        self._thread = threading.Thread(target=self._hold, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        self._ready.wait()
        if self._errors:
            self._done.set()
            self._thread.join()
            raise self._errors[0]
        return f"/proc/{os.getpid()}/task/{self._thread.native_id}/ns/net"

    def _hold(self) -> None:
        try:
            unshare()
            if self._ifname:
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                    fcntl.ioctl(probe, _SIOCSIFNAME, struct.pack("16s16s8x", b"lo", os.fsencode(self._ifname)))
        except OSError as error:
            self._errors.append(error)
        self._ready.set()
        self._done.wait()

    def __exit__(self, *_exception: object) -> None:
        self._done.set()
        self._thread.join()
