# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Running ADD, CHECK and DEL for one attachment, including the duties that libcni leaves to the runtime.

These are: undoing a failed ADD, removing secrets from the output of plugins, keeping the record beside the cache entry,
and keeping plugins in the namespace of the container, which may be gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import re
import socket
import struct
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, NoReturn, Optional, Sequence, Set, Union

from ...libcni import cache
from ...libcni.api import CNIConfig, RuntimeConf
from ...libcni.conf import NetworkConfigList
from ...libcni.errors import ERR_TRY_AGAIN_LATER, ERR_UNKNOWN, CNIError, PluginError, PluginNotFoundError
from ...libcni.invoke import Executor
from ...libcni.kernel import unshare
from ...libcni.version import is_at_least
from ..binaries.types import types_of
from ..errors import HostError
from ..executor import SafeExecutor
from ..kernel.sysctls import interface_sysctl
from ..kinds import IFNAME, REFERENCE, tuned_sysctls
from ..netns import Netns, Seen, apart, inspect_path, inspect_paths, same
from ..paths import THREAD_NETNS
from ..secrets import one_line, scrub, secrets_of
from .remains import Departed, Dropped, Objects, drop_remains, leased_before, remove_inside
from .request import Key
from .store import ADDING, ATTACHED, Attached, AttachmentStore

Failure = Union[CNIError, HostError]
MoveRoutes = Callable[[Attached, Netns], Attached]
"""Changes the default routes of an attachment, and returns it as it is then; see default_routes."""

# Errors of plugins that collide with others at the same time: two make the same chain (iptables-nft has no lock; its
# exit status 4 is "resource problem"), rule or bridge address, or a lock is taken.
_RACE = re.compile(
    r"ip6?tables\b.*: exit status 4\b|holding the xtables lock|Chain already exists|Resource temporarily unavailable|"
    r"Could not process rule: (?:File exists|Device or resource busy)|failed to \w+ (?:the )?(?:file )?lock\b|"
    r"could not add IP address to .*file exists",
    re.IGNORECASE | re.DOTALL,
)
AUTO, ALWAYS, NEVER = "auto", "always", "never"
"""When CHECK runs: AUTO is where the objects of a footprint are not all that the plugins make."""
_TRIES = 5
_FIRST_PAUSE = 0.1
_SIOCSIFNAME = 0x8923

_WAY_OUT = (
    ". Fix the cause and run again, or set state: absent and force: true, which removes the entry, the leases and the "
    "firewall rules even if DEL fails"
)


class Failed:
    """The error of the plugin that failed in a CHECK, without secrets."""

    __slots__ = ("code", "message", "plugin", "stderr")

    def __init__(self, error: PluginError, known: Set[str]) -> None:
        self.plugin = error.plugin
        self.code = error.code
        self.message = one_line(scrub(str(error), known))
        self.stderr = scrub(error.stderr, known)

    @property
    def crashed(self) -> bool:
        """Whether the plugin reported no error of its own: it panicked, was killed, or wrote something else.

        That proves nothing about the container. libcni gives such failures, including those of delegates, the code 0.
        """
        return self.code == ERR_UNKNOWN

    def is_same(self, kept: Optional[Mapping[str, Any]]) -> bool:
        """Tell whether *kept* is a failure of the same plugin and code. The message may differ from run to run."""
        return kept is not None and (kept["plugin"], kept["code"]) == (self.plugin, self.code)

    def kept(self) -> Dict[str, Any]:
        """Return what is recorded of a CHECK that never worked."""
        return {"plugin": self.plugin, "code": self.code, "message": self.message}

    def facts(self) -> Dict[str, Any]:
        return {"plugin": self.plugin, "plugin_code": self.code, "stderr": self.stderr}

    def unusable(self, key: Key, known: bool) -> str:
        """Return the warning about a CHECK that proves nothing. *known*: what the attachment needs is known."""
        what, said = "CHECK cannot pass here: it has failed since the attachment was made", str(self)
        if self.crashed:
            what = "CHECK crashed, which proves nothing about the container"
            # libcni quotes all lines of a panic; the first one gives the reason.
            said = said.partition("\\n")[0]
        rest = "drift that only this plugin or a later one could detect goes unreported"
        return f"{key}: {what} ({said}); {'its footprint shows drift nevertheless' if known else rest}"

    def __str__(self) -> str:
        return f"plugin {self.plugin}: {self.message}"


class Added(NamedTuple):
    """What an ADD made, with its result, and the failure of the CHECK that followed."""

    attached: Attached
    check: Optional[Failed]


class AddWatch:
    """Told of each ADD that is tried, in the thread that runs it; a module that only detaches ships no recording."""

    def before(self, given: Attached, container: Netns) -> None:
        """The ADD is about to begin. *container* is its namespace, which is kept open."""

    def after(self, given: Attached, container: Netns) -> None:
        """The ADD has succeeded, and *given* has its result. It is recorded afterwards."""


class Verbs:
    """The verbs on one host. Threads may share the object.

    *timeout* is in seconds for each run of a plugin. *checks*: when CHECK runs, one of the constants above.
    """

    def __init__(
        self,
        bin_dirs: Sequence[str],
        cache_dir: str,
        timeout: float,
        executor: Optional[Executor] = None,
        checks: str = ALWAYS,
    ) -> None:
        self._checks = checks
        self.store = AttachmentStore(cache_dir)
        self._departed: List[Departed] = []
        self._cni = CNIConfig(bin_dirs, cache_dir=cache_dir, timeout=timeout, executor=executor or DeadNetnsExecutor())

    def _cni_in(self, container: Netns, tolerated: Optional[List[str]] = None) -> CNIConfig:
        """Return libcni for verbs in one namespace, which is kept open. *tolerated*: see ContainerExecutor."""
        cni = self._cni
        executor = ContainerExecutor(cni.executor, container, tolerated)
        return CNIConfig(cni.path, cni.cache_dir, cni.timeout, executor)

    def wants_check(self, config: NetworkConfigList) -> bool:
        """Tell whether CHECK runs on a network."""
        if self._checks == NEVER or not can_check(config):
            return False
        return self._checks == ALWAYS or not _is_whole_truth(config)

    def check_new(self, attached: Attached, container: Netns) -> Optional[Failed]:
        """Run CHECK, if it is wanted, of what was just made; what fails then can never pass."""
        return self.check(attached, container) if self.wants_check(attached.config) else None

    def check(self, attached: Attached, container: Netns) -> Optional[Failed]:
        """Run CHECK in *container*, which is kept open; None if it passed. Raises HostError if it could not run."""
        known = _secrets(attached)
        try:
            self._cni_in(container).check_network_list(attached.config, _runtime(attached, container.path))
        except PluginError as error:
            return Failed(error, known)
        except CNIError as error:
            _refuse(f"cannot check {attached.key}", "check_failed", error, known)
        return None

    def add(
        self, given: Attached, force: bool, recording: Optional[AddWatch] = None, moved: Optional[MoveRoutes] = None
    ) -> Added:
        """Run ADD, then CHECK if the network has it. Raises HostError after a failed ADD has been undone.

        *recording*: what records its footprint. *moved*: what changes the default routes of this network after its
        ADD, as part of it. An ADD that collided with others at the same time is tried again a few times.
        """
        number = 0
        while True:
            try:
                with Netns(given.netns) as container:
                    return self._add(given, container, force, recording, moved)
            except HostError as error:
                number += 1
                if number == _TRIES or error.code != "add_failed" or not lost_race(error):
                    raise
            # Those that collided must not collide again.
            time.sleep(random.uniform(0, _FIRST_PAUSE * 2**number))

    def _add(
        self, given: Attached, container: Netns, force: bool, recording: Optional[AddWatch], moved: Optional[MoveRoutes]
    ) -> Added:
        key = given.key
        before = container.inspect((key.ifname,))
        require_container(key, given.netns, before if before.identity else inspect_path(given.netns, key.ifname))
        # True only with force, or for lo.
        existed = key.ifname in before.links
        if existed and key.ifname != "lo" and not force:
            raise HostError(ifname_in_use(key, given.netns), code="ifname_in_use")
        given = given.changed(state=ADDING, identity=before.identity, interface=existed)
        self.store.write(given)
        if recording is not None:
            recording.before(given, container)
        began = time.time()
        try:
            result = self._cni_in(container).add_network_list(given.config, _runtime(given, given.netns)).to_dict()
            given = given.changed(result=result)
            if moved is not None:
                given = moved(given, container)
        except (CNIError, HostError) as error:
            self._take_back(given, container, existed, error, began)
        if recording is not None:
            recording.after(given, container)
        given.state, given.interface = ATTACHED, key.ifname in container.inspect((key.ifname,)).links
        try:
            check = self.check_new(given, container)
        except HostError as error:
            if error.code == "netns_replaced":
                self._take_back(given, container, existed, error)
            raise
        given.check = check.kept() if check else None
        self.store.write(given)
        return Added(given, check)

    def adopt(self, attached: Attached) -> Optional[Failed]:
        """Write the cache entry of an attachment that exists without one, and a record if there is none.

        Without a record, CHECK runs; its failure is returned. Raises HostError ``adopt_failed``.
        """
        try:
            self.store.write_entry(attached)
        except CNIError as error:
            text = f"cannot restore the cache entry of {attached.key}: {error}"
            raise HostError(text, code="adopt_failed") from error
        if attached.state == ATTACHED:
            return None
        with Netns(attached.netns) as container:
            identity = container.inspect(()).identity
            check = self.check_new(attached, container)
        kept = check.kept() if check else None
        self.store.write(attached.changed(state=ATTACHED, identity=identity, interface=True, check=kept))
        return check

    def _take_back(
        self, given: Attached, container: Netns, existed: bool, error: Failure, began: float = 0
    ) -> NoReturn:
        """Run DEL after an ADD that *began* then and failed with *error*, and report both.

        DEL does not run if the interface *existed* before the ADD, because it would remove that interface.
        """
        known = _secrets(given)
        what = f"cannot attach {given.key}"
        if existed:
            self.store.remove(given.key)
            why = f"; DEL did not run, because {given.key.ifname} existed before and DEL would remove it"
            _refuse(what, "add_failed", error, known, why)
        try:
            departed = self._departing(given.key, given, {})
            leased = leased_before(departed, began)
            self._delete(given, container)
        except (CNIError, HostError) as second:
            # The record stays as it is: the next run begins with a DEL.
            _refuse(what, "cleanup_failed", error, known, f"; the DEL that followed failed, too: {second}{_WAY_OUT}")
        self._drop_remains([departed])
        freed = "; the DEL that followed has freed it: run again" if leased else ""
        _refuse(what, "add_failed", error, known, leased + freed)

    def delete(self, attached: Attached, netns: str, later: bool = False) -> str:
        """Run DEL, and remove what it left. *later*: what is left, and the record, stay until :meth:`finish_deletions`.

        Returns what is left and could not be removed, "" for nothing. Raises as :meth:`detach` does.
        """
        departed = self.detach(attached, netns)
        if later:
            self._departed.append(departed)
            return ""
        return self._drop_remains([departed]).kept(attached.key)

    def detach(self, attached: Attached, netns: str) -> Departed:
        """Run DEL with what the ADD was given. *netns* is the namespace of the request, "" if it names none.

        A namespace that is no longer the one of the ADD, or that is the host's own, is not passed on, so that no plugin
        acts in the wrong one.

        Returns what may have left something; the record stays. Raises HostError ``del_failed``; the cache entry stays
        then.
        """
        try:
            departed = self._departing(attached.key, attached)
            with living_netns(attached, netns) as container:
                self._delete(attached, container)
        except (CNIError, HostError) as error:
            what, more = f"cannot detach {attached.key}", f"; its cache entry is kept{_WAY_OUT}"
            _refuse(what, "del_failed", error, _secrets(attached), more)
        return departed

    def _departing(self, key: Key, attached: Optional[Attached], made: Optional[Objects] = None) -> Departed:
        """Return an attachment that is about to go; *attached* is None if it is not known what was attached."""
        footprint = attached.footprint if attached is not None else None
        objects = made if made is not None else footprint.host if footprint is not None else {}
        others = self._cni.get_cached_attachments(key.container_id)
        shares = any(other.network == key.network and other.if_name != key.ifname for other in others)
        config, ips = (attached.config, attached.ips) if attached is not None else (None, ())
        return Departed(key, time.time(), objects, config, ips, shares)

    def finish_deletions(self) -> Dropped:
        """Remove what DELs have left, with one reading of the host for all."""
        departed, self._departed = self._departed, []
        return self._drop_remains(departed)

    def _drop_remains(self, departed: Sequence[Departed]) -> Dropped:
        dropped = drop_remains(departed, self._cni.cache_dir)
        # The record goes last: a run that is killed before is continued by the next, which knows what was made by it.
        for attachment in departed:
            self.store.remove(attachment.key)
        return dropped

    def _delete(self, attached: Attached, container: Netns) -> None:
        """Run DEL in *container*, which is kept open if it is there, and again if it fails.

        bridge and ptp remove the interface first and then fail if their masquerading rules were flushed, or if rules
        of lost addresses refer to their chain. The second DEL finds no interface and does not look for rules, which
        are left then.
        """
        cni, runtime = self._cni_in(container), _runtime_of_del(attached, container)
        try:
            cni.del_network_list(attached.config, runtime)
        except PluginError:
            cni.del_network_list(attached.config, runtime)

    def remove(self, key: Key, attached: Optional[Attached], netns: str) -> str:
        """Remove an attachment whose DEL fails: interface, firewall rules, leases, cache entry and record.

        Every plugin runs, whether those before it failed or not. *attached*: None if it is not known what was attached.
        Returns the errors of DEL and what is left, or "".
        """
        container, known = Netns(""), set()
        said: List[str] = []
        if attached is not None:
            with contextlib.suppress(HostError):
                container = living_netns(attached, netns)
            known = _secrets(attached)
        try:
            departed = self._departing(key, attached)
            with container:
                if attached is not None:
                    try:
                        cni, runtime = self._cni_in(container, said), _runtime_of_del(attached, container)
                        cni.del_network_list(attached.config, runtime)
                    except CNIError as error:
                        said.append(str(error))
                    if (attached.state or attached.made_interface) and key.ifname != "lo":
                        moves = any(plugin.type == "host-device" for plugin in attached.config.plugins)
                        said += remove_inside(key.ifname, container, moves)
            cache.remove_entry(self._cni.cache_dir, *key)
        except CNIError as error:
            raise HostError(f"cannot remove {key}: {error}", code="del_failed") from error
        if departed.shares and departed.may_have_rules:
            said.append("its firewall rules were kept, because another interface of the container shares their chains")
        dropped = self._drop_remains([departed])
        said += [*dropped.problems, dropped.kept(key)]
        return scrub("; ".join(dict.fromkeys(filter(None, said))), known)

    def is_there(self, attached: Attached, netns: str) -> bool:
        """Tell whether the interface of *attached* is in the namespace of its ADD or in *netns*."""
        paths = [path for path in (living_netns(attached, netns).path, netns) if path]
        inspected = inspect_paths(dict.fromkeys(paths, (attached.key.ifname,)))
        return any(attached.key.ifname in seen.links and not seen.host for seen in inspected.values())

    def attached_as(self, ifname: str, netns: str) -> bool:
        """Tell whether the cache has an attachment whose interface in *netns* is called *ifname*."""
        try:
            cached = self._cni.get_cached_attachments()
            return any((other.if_name, other.net_ns) == (ifname, netns) for other in cached)
        except CNIError as error:
            raise HostError(f"{error}; fix that, or set another cache_dir", code="cache_unreadable") from error


def lost_race(error: HostError) -> bool:
    """Tell whether a plugin failed for a reason that passes in a moment."""
    # What the plugin says; it has no code for it.
    said = str(error.__cause__)
    return error.facts.get("plugin_code") == ERR_TRY_AGAIN_LATER or _RACE.search(said) is not None


def require_container(key: Key, netns: str, seen: Seen) -> None:
    """Raise HostError ``missing_netns`` or ``host_netns`` unless a container's namespace was seen at *netns*."""
    if seen.identity is None:
        raise HostError(f"cannot attach {key}: there is no network namespace {netns}; create it first", "missing_netns")
    if seen.host:
        raise HostError(
            f"cannot attach {key}: {netns} is the host's own network namespace, whose addresses and routes the plugins "
            "would change; give the namespace of a container",
            code="host_netns",
        )


def living_netns(attached: Attached, netns: str) -> Netns:
    """Return the namespace of the ADD; one without a path if none leads there or it is the host's own.

    So it is if an interrupted ADD found the interface there: DEL must not remove what this ADD did not make.
    """
    if attached.state == ADDING and attached.interface:
        return Netns("")
    paths = [path for path in (attached.netns, netns) if path]
    seen = inspect_paths(dict.fromkeys(paths, ()))
    identity = attached.identity
    for path in paths:
        present = None if seen[path].host else seen[path].identity
        if same(present, identity) or (present and identity is None and path == attached.netns):
            return Netns(path, present)
    return Netns("")


def can_check(config: NetworkConfigList) -> bool:
    """Tell whether the network has a CHECK: its version is 0.4.0 or later, and it does not set disableCheck."""
    return not config.disable_check and is_at_least(config.cni_version, "0.4.0")


def _is_whole_truth(config: NetworkConfigList) -> bool:
    """Tell whether the objects of a footprint are all that the plugins of a network make.

    Of plugins that are not known, nobody knows. dhcp keeps leases in a daemon, firewall may keep rules in firewalld,
    and tuning may set sysctls of other interfaces and of neighbours.
    """
    plugins = [plugin.network for plugin in config.plugins]
    types = types_of(plugins)
    if not REFERENCE.issuperset(types) or "dhcp" in types:
        return False
    for path in tuned_sysctls(plugins):
        kind, interface, _name = interface_sysctl(path)
        if interface and (interface != IFNAME or not kind):
            return False
    if "firewall" not in types:
        return True
    # Imported late: few networks have the plugin.
    from ..firewall.kinds import is_in_firewalld

    return not any(map(is_in_firewalld, plugins))


def ifname_in_use(key: Key, netns: str) -> str:
    return (
        f"cannot attach {key}: {netns} already has an interface {key.ifname}, and no record, cache entry or lease "
        "shows that this attachment made it; choose another ifname, or remove the interface with the program that "
        "made it"
    )


def _runtime(attached: Attached, netns: str) -> RuntimeConf:
    arguments = attached.args or None, attached.capability_args or None
    return RuntimeConf(attached.key.container_id, netns, attached.key.ifname, *arguments)


def _runtime_of_del(attached: Attached, container: Netns) -> RuntimeConf:
    """Return what DEL is given in *container*, which is kept open if it is there."""
    runtime = _runtime(attached, container.path if container.fd >= 0 else "")
    if runtime.capability_args:
        from .capability_args import sound

        runtime.capability_args = sound(runtime.capability_args)
    return runtime


def _secrets(attached: Attached) -> Set[str]:
    configs = [plugin.network for plugin in attached.config.plugins]
    return secrets_of([configs, attached.capability_args, dict(attached.args)])


def _refuse(what: str, code: str, error: Failure, known: Set[str], more: str = "") -> NoReturn:
    """Raise the HostError for *error*, without the secrets that the plugin was given."""
    facts: Dict[str, Any] = {}
    if code != "cleanup_failed":
        if isinstance(error, HostError):
            code = error.code or code
        elif isinstance(getattr(error, "cause", error), PluginNotFoundError):
            code = "missing_plugin"
    if isinstance(error, PluginError):
        facts = {"plugin": error.plugin, "plugin_code": error.code, "stderr": scrub(error.stderr, known)}
    raise HostError(one_line(scrub(f"{what}: {error}{more}", known)), code=code, **facts) from error


# ---- how plugins are run


class DeadNetnsExecutor(SafeExecutor):
    """Runs plugins as usual; a DEL that fails without a namespace is tried once more, with an empty one.

    The specification allows an empty CNI_NETNS after the namespace is gone and requires that DEL succeeds. ``sbr``
    (1.1.1 to 1.9.1) fails nevertheless, and the plugins before it in the chain would never release what they hold.
    """

    __slots__ = ()

    def exec_plugin(self, path: str, stdin: bytes, env: Mapping[str, str], timeout: Optional[float] = None) -> bytes:
        try:
            return super().exec_plugin(path, stdin, env, timeout)
        except PluginError as error:
            if env.get("CNI_COMMAND") != "DEL" or env.get("CNI_NETNS"):
                raise
            try:
                with empty_netns(env["CNI_IFNAME"]) as netns:
                    return super().exec_plugin(path, stdin, dict(env, CNI_NETNS=netns), timeout)
            except (PluginError, OSError):
                # The first failure is not affected by this workaround.
                raise error from None


class ContainerExecutor(Executor):
    """Runs plugins with another executor, each only while their path leads to the namespace that is kept open.

    Plugins get the path of the attachment, not that of the descriptor: results and cache entries hold it as those of
    Go's libcni do, plugins and their daemons keep it beyond this process, and some (sbr, tuning's CHECK) find the
    interfaces of a result by it. So it is compared directly before and after each plugin. A DEL has no result and must
    not leave anything in the namespace of its ADD: where the path leads elsewhere, it gets that of the descriptor.

    *tolerated*: a list that gets the errors of plugins, so that each runs, whether those before it failed or not.
    """

    __slots__ = ("_container", "_executor", "_tolerated")

    def __init__(self, executor: Executor, container: Netns, tolerated: Optional[List[str]] = None) -> None:
        super().__init__()
        self._executor = executor
        self._container = container
        self._tolerated = tolerated

    def find_in_path(self, plugin: str, paths: Sequence[str]) -> str:
        try:
            return self._executor.find_in_path(plugin, paths)
        except PluginNotFoundError as error:
            if self._tolerated is None:
                raise
            self._tolerated.append(str(error))
            return ""

    def exec_plugin(self, path: str, stdin: bytes, env: Mapping[str, str], timeout: Optional[float] = None) -> bytes:
        try:
            return self._exec_inside(path, stdin, env, timeout) if path else b""
        except (CNIError, HostError) as error:
            if self._tolerated is None:
                raise
            self._tolerated.append(f"plugin {os.path.basename(path)}: {error}")
            return b""

    def _exec_inside(self, path: str, stdin: bytes, env: Mapping[str, str], timeout: Optional[float]) -> bytes:
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


@contextlib.contextmanager
def empty_netns(ifname: str = "") -> Iterator[str]:
    """Make a network namespace without a name, which lives as long as the block, and give a path to it.

    Its only interface, loopback, is called *ifname* if that is given: sbr 1.1.1 fails where there is none of that name.
    Raises OSError.
    """

    def make() -> int:
        unshare()
        if ifname:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                fcntl.ioctl(probe, _SIOCSIFNAME, struct.pack("16s16s8x", b"lo", os.fsencode(ifname)))
        return os.open(THREAD_NETNS, os.O_RDONLY | os.O_CLOEXEC)

    fd = apart(make)
    try:
        yield f"/proc/{os.getpid()}/fd/{fd}"
    finally:
        os.close(fd)
