# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The rule engine: what a runtime does with the files of a directory, current or planned.

It loads them with its release of libcni. The port here is of libcni 1.3. libcni 1.1 knows neither ``cniVersions`` nor
``disableGC``, and accepts only a boolean for ``disableCheck``, where later releases also accept a string. Drop-in
folders, ``loadOnlyInlinedPlugins`` and conflists without ``plugins`` are new in 1.3.
(Go: libcni/conf.go of v1.1.2, v1.2.3 and v1.3.0.)
"""

from __future__ import annotations

import os
import re
from typing import Callable, Iterator, List, Optional, Sequence

from ...libcni import conf, gojson
from ...libcni.errors import ConfigError
from ..binaries.types import types_of
from ..confdir import ConfFile, read_go_json
from ..errors import HostError
from ..json_text import parse_json
from ..kinds import text_of
from .profiles import ENDS, FIRST, OWN, SKIPPED, SPOILS
from .runtime import Network, Runtime, Verdict

_PODMAN_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")
_LIST = "error parsing configuration list: "
# All releases load a text without any of these in the same way.
_MARKS = (b"cniVersions", b"disableCheck", b"disableGC", b"loadOnlyInlinedPlugins", b"valid-attachments", b"\\u")
# Codes of a plugin that a runtime does not find.
_ABSENT = ("missing_plugin", "bad_type")

Ask = Callable[[str], Sequence[str]]
"""Returns the versions that a plugin supports, or raises HostError ``missing_plugin`` and others."""


def judge(runtime: Runtime, files: Sequence[ConfFile], ask: Ask) -> Verdict:
    """Return what *runtime* does with *files*, which Effective.files_of has found for it, in order.

    *ask* is called for runtimes that ask their plugins.
    """
    judge_of = _Judge(runtime, files, ask)
    verdict = judge_of.verdict
    if runtime.profile.choice == OWN:
        verdict.network, verdict.reason = runtime.default_network or None, runtime.profile.own
    else:
        judge_of.judge()
    verdict.not_chosen.sort(key=lambda entry: os.fsencode(str(entry["file"])))
    return verdict


class _Judge:
    def __init__(self, runtime: Runtime, files: Sequence[ConfFile], ask: Ask) -> None:
        self.runtime = runtime
        self.rules = runtime.profile
        self.newest = runtime.libcni == "1.3"
        self.files = files
        self.ask = ask
        self.verdict = Verdict()
        self.by_order = self.rules.choice == FIRST and not runtime.default_network
        self.labelled: Optional[Network] = None

    def judge(self) -> None:
        verdict, rules = self.verdict, self.rules
        candidates = self._candidates()
        broken = self._walk(candidates)
        if broken and (rules.choice == FIRST or rules.broken == SPOILS):
            why_not = "it is valid, but no network is loaded while that file is broken"
            for network in verdict.networks:
                verdict.leave(network.file, why_not, network.name)
            verdict.networks = []
            verdict.fail(broken)
        elif self.by_order:
            self._choose_first(bool(candidates))
        else:
            self._choose_named(broken)

    # ---- which files are read

    def _candidates(self) -> List[ConfFile]:
        rules, candidates = self.rules, []
        for file in self.files:
            if "." + file.kind not in rules.extensions:
                self.verdict.leave(file, f"it reads {' and '.join(rules.extensions)} only")
            elif rules.ignored and file.name.startswith(rules.ignored):
                self.verdict.leave(file, f"it ignores its own files, {rules.ignored}*")
            else:
                candidates.append(file)
        if rules.lists_first:
            candidates.sort(key=lambda file: file.kind != "conflist")
        return candidates

    def _walk(self, candidates: Sequence[ConfFile]) -> str:
        """Sort the candidates into networks and others. Return the error that ends or prevents loading, "" if none."""
        rules, verdict = self.rules, self.verdict
        # A network that is chosen by name can be in any file.
        most = self.runtime.max_networks if self.by_order else 0
        broken = ""
        for file in candidates:
            if broken and rules.broken == ENDS:
                verdict.leave(file, "it is not read after the error")
                continue
            if most and len(verdict.networks) >= most:
                verdict.leave(file, f"{verdict.networks[-1].file.name} sorts before it")
                continue
            network = self._load(file)
            if network.error and rules.broken != SKIPPED and not (rules.untyped and network.untyped):
                what = "CNI config list file" if file.kind == "conflist" else "CNI config file"
                broken = broken or f"failed to load {what} {file.path}: {network.error}"
                verdict.leave(file, f"it cannot be loaded: {network.error}")
                verdict.broken = verdict.broken or file.path
                continue
            why_not = self._why_not(network)
            if why_not:
                verdict.leave(file, why_not, network.name)
                continue
            verdict.networks.append(network)
            for kind in self._missing(network) if rules.notes_missing else ():
                where = ", ".join(self.runtime.bin_dirs)
                verdict.notes.append(f"the network {network.name!r} needs the plugin {kind}, which is not in {where}")
            if self.labelled is None and _is_labelled(file, rules.label):
                self.labelled = network
        return broken

    def _why_not(self, network: Network) -> str:
        """Return why the runtime does not use a network, "" if it does."""
        refusal = network.error or self._refusal(network)
        if refusal:
            return f"it is skipped: {refusal}"
        same = [other for other in self.verdict.networks if other.name == network.name]
        return f"{same[0].file.name} has the network {network.name!r} already" if same and self._counts_once() else ""

    def _missing(self, network: Network) -> Iterator[str]:
        """Yield the plugins of a network that the runtime does not find."""
        for kind in types_of(list(network.plugins)):
            try:
                self.ask(kind)
            except HostError as error:
                if error.code in _ABSENT:
                    yield kind

    def _counts_once(self) -> bool:
        # go-cni attaches a container to the network of every file that it has loaded, even if names are equal.
        return not (self.rules.choice == FIRST and self.rules.broken == ENDS)

    def _refusal(self, network: Network) -> str:
        """Return why a runtime with more rules than libcni's skips a network that loads, "" if it does not."""
        rules = self.rules
        if rules.converts and not _PODMAN_NAME.fullmatch(network.name):
            return f"the name {network.name!r} is not valid"
        if rules.finds:
            missing = next(self._missing(network), "") if network.name else ""
            return self._nowhere(missing) if missing else "" if network.name else "it has no name"
        refusals = (self._refused_by(kind, network) for kind in network.types if rules.validates)
        refusal = next(filter(None, refusals), "")
        if rules.converts and network.plugins and not refusal:
            from .podman import unconvertible

            refusal = unconvertible(network.plugins[0])
        return refusal

    def _nowhere(self, kind: str) -> str:
        return f"the plugin {kind} is not in {', '.join(self.runtime.bin_dirs)}"

    def _refused_by(self, kind: str, network: Network) -> str:
        try:
            versions = self.ask(kind)
        except HostError as error:
            if error.code in _ABSENT:
                return self._nowhere(kind)
            if error.code == "plugin_failed":
                return f"the plugin {kind} does not answer VERSION"
            text = f"the plugin {kind} of {network.file.name} was not asked ({error.msg}) and is assumed to work"
            self.verdict.notes.append(text)
            return ""
        version = network.version or "0.1.0"
        return "" if version in versions else f"the plugin {kind} does not support the version {version}"

    # ---- how a file is loaded

    def _load(self, file: ConfFile) -> Network:
        """Load *file* as the runtime does: as a conflist, or as the configuration of a single plugin."""
        as_list = file.kind == "conflist" if self.rules.all_lists is None else self.rules.all_lists
        network = Network(file, file.network or "", file.cni_version, file.plugins, file.error)
        # An unmanaged file may not have been read, or a file is known without its text.
        if file.text is not None:
            depends = not self.newest and any(mark in file.text for mark in _MARKS)
            if as_list != (file.kind == "conflist") or file.error or depends:
                network = self._parse(file, file.text, as_list)
            if as_list and not network.error:
                network = self._with_drop_ins(network)
        if self.rules.named_by_file and not network.error and not network.name:
            return network._replace(name=file.name)
        return network

    def _parse(self, file: ConfFile, text: bytes, as_list: bool) -> Network:
        try:
            if not self.newest:
                text = self._without_later_keys(text)
            if as_list:
                loaded = conf.network_conf_from_bytes(text)
                plugins = [plugin.network for plugin in loaded.plugins]
                return Network(file, loaded.name, loaded.cni_version, plugins)
            plugin = conf.network_plugin_conf_from_bytes(text)
        except ConfigError as error:
            data = read_go_json(text)
            return Network(file, error=str(error), untyped=isinstance(data, dict) and not text_of(data, "type"))
        return Network(file, plugin.name, plugin.cni_version, [plugin.network])

    def _without_later_keys(self, text: bytes) -> bytes:
        """Return *text* without the keys that this release ignores. ConfigError for what only later ones accept."""
        data = read_go_json(text)
        if not isinstance(data, dict):
            return text
        data.pop("loadOnlyInlinedPlugins", None)
        if self.runtime.libcni == "1.1":
            check = data.get("disableCheck", False)
            if not isinstance(check, bool):
                raise ConfigError(f"{_LIST}invalid disableCheck type {gojson.type_name(check)}")
            data.pop("cniVersions", None)
            data.pop("disableGC", None)
            plugins = data.get("plugins")
            for plugin in [data, *(plugins if isinstance(plugins, list) else [])]:
                if isinstance(plugin, dict):
                    for key in [key for key in plugin if key.lower() == "cni.dev/valid-attachments"]:
                        del plugin[key]
        return gojson.dumps(data)

    def _with_drop_ins(self, network: Network) -> Network:
        appends, file = self.runtime.appends_drop_ins, network.file
        if appends and not file.inlined_only:
            # Joined with an empty name, the path is the directory itself.
            extras = file.drop_ins if network.name else [other for other in self.files if other.kind == "conf"]
            broken = next((extra for extra in extras if extra.error), None)
            if broken is not None:
                return Network(network.file, error=f"{broken.error} (in {broken.path})")
            plugins = [*network.plugins, *(part for extra in extras for part in extra.plugins)]
            network = network._replace(plugins=plugins)
        if not network.plugins and not self.newest:
            return Network(network.file, error=_LIST + "no 'plugins' key")
        if not network.plugins and appends:
            return Network(network.file, error="no plugin configs found")
        return network

    # ---- which of the networks is chosen

    def _choose_first(self, any_candidate: bool) -> None:
        verdict = self.verdict
        if not verdict.networks:
            where = self.runtime.conf_file or self.runtime.conf_dir
            words = f"no file in {where} can be used" if any_candidate else self.rules.nothing.format(where)
            verdict.fail(words)
            return
        first = verdict.networks[0]
        reason = f"{first.file.name} is the first file" + (" that can be used" if self.rules.broken != ENDS else "")
        if self.runtime.conf_file:
            reason = f"it reads {self.runtime.conf_file} only"
        if len(verdict.networks) > 1 and not self._counts_once():
            others = [f"{network.name!r} as eth{index}" for index, network in enumerate(verdict.networks)][1:]
            reason += f"; containers also get {', '.join(others)}"
        verdict.choose(first, reason)

    def _choose_named(self, broken: str) -> None:
        verdict, runtime = self.verdict, self.runtime
        default = runtime.default_network
        chosen = self.labelled or next((network for network in verdict.networks if network.name == default), None)
        if chosen is not None and chosen is self.labelled:
            verdict.choose(chosen, f"it has the label {self.rules.label}")
        elif chosen is not None:
            verdict.choose(chosen, f"{default!r} is the name of the default network")
        elif broken and not verdict.networks:
            verdict.fail(broken)
        elif default and runtime.profile.own:
            verdict.network = default
            verdict.reason = f"no file has the default network {default!r}; {runtime.profile.own}"
        elif default:
            verdict.fail(f"it waits for the default network {default!r}, which no file has")
        elif verdict.networks:
            names = ", ".join(repr(network.name) for network in verdict.networks[:20])
            verdict.reason = f"it has no default network; available by name: {names}"
        else:
            verdict.fail(self.rules.nothing.format(runtime.conf_dir))
        if broken and not verdict.failed:
            verdict.notes.append(broken)
        for name in runtime.allowed.get("networks", ()):
            if not verdict.can_use(name):
                verdict.notes.append(f"'allow net networks' names {name!r}, which no file that it can load has")
        for network in verdict.networks:
            if network.file.path != verdict.file:
                why_not = f"it is used only when the network {network.name!r} is requested by name"
                verdict.leave(network.file, why_not, network.name)


def _is_labelled(file: ConfFile, label: str) -> bool:
    if not label or label.encode() not in (file.text or b""):
        return False
    try:
        labels = parse_json(file.text or b"").get("nerdctlLabels")
    except (ValueError, AttributeError):
        return False
    return isinstance(labels, dict) and label in labels
