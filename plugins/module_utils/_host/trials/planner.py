# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Planning of ``cni_smoke``: which networks to test, and what to undo of an interrupted run."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ...libcni.conf import NetworkConfigList
from ..attachments.caches import read_cache, remove_files
from ..attachments.request import Networks
from ..attachments.store import CachedAttachment, check_cache_dir
from ..binaries.types import types_of
from ..checks.state import state_obstacles
from ..confdir import ConfFile, network_files, scan_conf_dir
from ..errors import HostError
from ..firewall.tools import tool_obstacles
from ..host_routes import explain_uplinks, uplinks_of_routers
from ..hostview import HostView
from ..kinds import kind_named, kind_of, member_of, object_of, set_or_default, text_of
from ..plan import SAFE, Step
from ..secrets import mask_text
from ..trust import check_directory
from .trial import TAKE_BACK, SmokePlan, SmokeSettings, Trial, Trier

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtimes.runtime import Runtime

Reason = Tuple[str, str]


def load(file: ConfFile, networks: Networks) -> NetworkConfigList:
    """Return the network with its drop-ins. Raises HostError ``bad_config`` or ``unsafe_permissions``."""
    if file.error:
        text = f"{file.path} cannot be loaded: {mask_text(file.error).replace(f'{file.path}: ', '')}"
        raise HostError(f"{text}; fix or remove the file, runtimes cannot load it either", code="bad_config")
    return networks.load(file.network or "")


def reason_against(config: NetworkConfigList) -> Optional[Reason]:
    """Return (word, sentence) for why the network is tested only if it is requested by name, None if nothing is."""
    plugins = [plugin.network for plugin in config.plugins]
    unknown = [name for name in types_of(plugins) if not (kind_named(name).reference or kind_named(name).takes_device)]
    if unknown:
        names = ", ".join(unknown)
        return "third_party", f"it is not known whether {names} works outside of a runtime, and what it leaves behind"
    uplinks = uplinks_of_routers(plugins)
    if uplinks:
        return "host_route_lost", explain_uplinks(uplinks)
    return next((reason for plugin in plugins for reason in _reasons(plugin)), None)


def why_alone(config: NetworkConfigList) -> str:
    """Return a clause on why only one container can have the network, "" if several can."""
    reasons = (reason for plugin in config.plugins for reason in _reasons(plugin.network))
    return next((why for word, why in reasons if word in ("takes_device", "fixed_address")), "")


def _reasons(plugin: Mapping[str, Any]) -> Iterator[Reason]:
    kind, ipam = text_of(plugin, "type"), object_of(plugin, "ipam")
    if kind_of(plugin).takes_device or (kind == "macvlan" and text_of(plugin, "mode") == "passthru"):
        yield "takes_device", f"{kind} takes a device that a container may have or need"
    if text_of(ipam, "type") == "static":
        yield "fixed_address", "its address is fixed, and a container may have it"
    asked = object_of(object_of(plugin, "args"), "cni")
    if (kind == "tuning" and member_of(plugin, "mac")) or member_of(asked, "mac") or member_of(asked, "ips"):
        yield "fixed_address", "its address or MAC is fixed, and a container may have it"
    if text_of(ipam, "type") == "dhcp":
        path = set_or_default(ipam, "daemonSocketPath")
        if not os.path.exists(path):
            yield "no_dhcp_daemon", f"its addresses come from the CNI DHCP daemon, whose socket {path} does not exist"


def choose(conf_dir: str, names: Optional[Sequence[str]]) -> Tuple[List[ConfFile], List[str]]:
    """Return the files of the networks *names* (None: of all), and the *names* without a file."""
    files = network_files(conf_dir)
    chosen = [file for file in files if names is None or file.network in names]
    return chosen, [name for name in names or () if name not in {file.network for file in files}]


# Below cache_dir: a cache of its own, so that no other module takes these attachments for those of containers.
_CACHE = "smoke"


class SmokePlanner:
    """Makes one plan. Reads files, asks plugins (VERSION), and changes nothing."""

    def __init__(self, settings: SmokeSettings) -> None:
        self._settings = settings
        self._cache_dir = os.path.join(settings.cache_dir, _CACHE)
        self._plan = SmokePlan(self._cache_dir)
        self._triers: Dict[Tuple[str, ...], Trier] = {}

    def make(self) -> SmokePlan:
        """Return the plan.

        Raises HostError ``bad_pod``, ``missing_network``, ``unsafe_permissions``, and the errors of reading the
        directories.
        """
        # What the pod becomes is refused before anything runs.
        self._settings.conventions(_CACHE)
        check_directory(self._settings.conf_dir, self._plan.refuse, self._settings.check_mode)
        check_cache_dir(self._settings.cache_dir)
        check_cache_dir(self._cache_dir)
        # Imported late: what is refused does not need it.
        from ..runtimes.effective import Effective

        conf_dir, view = self._settings.conf_dir, HostView()
        self._effective = Effective(None, conf_dir, self._settings.bin_dirs, scan_conf_dir(conf_dir), view)
        for entry in read_cache(self._cache_dir).entries:
            self._add_take_back(entry)
        asked = "its test was requested" if self._settings.networks is not None else "its test does no harm"
        files, missing = choose(self._settings.conf_dir, self._settings.networks)
        if missing:
            self._tell_missing(missing)
        elif not files and not os.path.isdir(self._settings.conf_dir):
            text = f"there is no directory {self._settings.conf_dir}, so there is no network to test"
            self._plan.warn("missing_conf_dir", text)
        self._plan.runtimes = self._runtimes({file.network for file in files})
        for file in files:
            trier = self._trier(file.network or "")
            trial = self._trial(file, trier)
            self._plan.trials.append(trial)
            if not (trial.error or trial.reason):
                run = partial(trier.run, trial)
                self._plan.add(Step("try", trial.network, SAFE, None, None, run, item=trial.network, reason=asked))
        return self._plan

    def _trier(self, network: str) -> Trier:
        """Return what tests *network* with the plugins of the runtime that uses it, or else with those of bin_dirs.

        Of several, a runtime counts first that uses it by default, then one that can use it, then one that runs.
        """
        readers = [runtime for runtime in self._effective.runtimes if self._effective.reads_here(runtime)]
        readers = [runtime for runtime in readers if runtime.name != "multus"]

        def rank(runtime: Runtime) -> Tuple[bool, bool, bool]:
            return runtime.verdict.network != network, not runtime.verdict.can_use(network), not runtime.pid

        dirs = tuple(min(readers, key=rank).bin_dirs if readers else self._settings.bin_dirs)
        if dirs not in self._triers:
            self._triers[dirs] = Trier(self._settings._replace(bin_dirs=dirs), self._cache_dir, self._plan)
        return self._triers[dirs]

    def _runtimes(self, networks: Set[Optional[str]]) -> List[Dict[str, Any]]:
        """Return a row for each runtime of the host whose network is one of *networks*, and warn of what they lack."""
        effective, rows = self._effective, []
        for runtime in effective.runtimes:
            network = runtime.verdict.network
            if not effective.reads_here(runtime) or network is None or network not in networks:
                continue
            needs = effective.requirements_of(runtime)
            rows.append({"runtime": runtime.name, "network": network, "running": bool(runtime.pid), "requires": needs})
        for finding in [*effective.unmet(), *effective.unused()]:
            # Attachments of this collection may use networks that no runtime reads.
            if finding.code != "conf_dir_unused" or not read_cache(self._settings.cache_dir).entries:
                self._plan.warn(finding.code, finding.sentence)
        return rows

    def _tell_missing(self, names: List[str]) -> None:
        text = f"no file in {self._settings.conf_dir} configures {', '.join(names)}; write one with cni_conf"
        if not self._settings.check_mode:
            raise HostError(text, code="missing_network")
        self._plan.warn("missing_network", text)

    def _trial(self, file: ConfFile, trier: Trier) -> Trial:
        trial = Trial(file.network or "", file.path, trier.bin_dirs)
        try:
            trial.config = load(file, trier.networks)
            trial.alone = why_alone(trial.config)
            against = reason_against(trial.config) if self._settings.networks is None else None
            if against:
                trial.skip(*against)
            else:
                trier.networks.test_plugins(trial.config)
                plugins = [plugin.network for plugin in trial.config.plugins]
                obstacles = [*tool_obstacles(plugins, {}, trier.bin_dirs)]
                for obstacle in obstacles or state_obstacles(trial.network, plugins, self._cache_dir):
                    raise obstacle.error(f"cannot test {trial.network}")
        except HostError as error:
            if self._settings.check_mode and error.code in ("missing_plugin", "missing_tool"):
                self._plan.warn(error.code, error.msg)
            else:
                trial.fail(error)
        return trial

    # ---- leftovers of a killed run

    def _add_take_back(self, entry: CachedAttachment) -> None:
        trier = self._trier(entry.key.network if entry.key else "")
        target = str(entry.key or entry.name)
        before = {"ips": entry.ips, "files": [file.path for file in entry.files]}
        undo, item = partial(self._take_back, trier, entry), (TAKE_BACK, target)
        self._plan.add(Step(TAKE_BACK, target, SAFE, before, None, undo, item=item, reason="its test was interrupted"))

    def _take_back(self, trier: Trier, entry: CachedAttachment) -> None:
        try:
            if entry.attached is not None:
                trier.take_back(entry.attached)
            remove_files(entry.files)
        except HostError as error:
            self._plan.warn(error.code, f"could not remove what an earlier run left: {error.msg}")
            raise
