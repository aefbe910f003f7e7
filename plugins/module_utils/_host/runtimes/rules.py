# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The rule engine: what a runtime does with the files of a directory, current or planned."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

from ..binaries.types import types_of
from ..confdir import ConfFile, drop_ins
from ..errors import HostError
from .loading import Loaded, Loader, unconvertible
from .profiles import ENDS, FIRST, OWN, SPOILS
from .runtime import Runtime

_PODMAN_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")
_LIST_WORDS = "failed to load CNI config list file %s: %s"
_SINGLE_WORDS = "failed to load CNI config file %s: %s"

Ask = Callable[[str], Sequence[str]]
"""Returns the versions that a plugin supports, or raises HostError ``missing_plugin`` and others."""


class Network(NamedTuple):
    """A network that a runtime can use, its file, and what the runtime makes of it."""

    name: str
    file: ConfFile
    loaded: Loaded = Loaded()


class Verdict:
    """What a runtime does: the ``network`` and ``file`` it uses (None: none), the ``reason`` in a sentence.

    ``failed``: why it loads no network at all, "" if it loads any. ``broken``: the files that cannot be loaded, and
    prevent others from being loaded. ``networks``: all that it uses at once or that
    can be requested by name. ``not_chosen``: the other files, ``{file, network, reason}``. ``notes``: assumptions.
    ``through``: what every pod gets if the network is Multus, see :func:`.through.networks_through`.
    """

    def __init__(self) -> None:
        self.network: Optional[str] = None
        self.file: Optional[str] = None
        self.reason = ""
        self.failed = ""
        self.broken: List[str] = []
        self.networks: List[Network] = []
        self.not_chosen: List[Dict[str, Any]] = []
        self.notes: List[str] = []
        self.through: List[Dict[str, Any]] = []

    def choose(self, network: Network, reason: str) -> None:
        self.network, self.file, self.reason = network.name, network.file.path, reason

    def leave(self, file: ConfFile, reason: str, network: Optional[str] = None) -> None:
        self.not_chosen.append({"file": file.path, "network": network or file.network, "reason": reason})

    def fail(self, why: str) -> None:
        self.network, self.file, self.reason, self.failed = None, None, f"no network: {why}", why

    @property
    def names(self) -> List[str]:
        """The networks to ask the runtime for: its own, or the default one that it creates itself."""
        names = list(dict.fromkeys(network.name for network in self.networks))
        return names or ([self.network] if self.network else [])

    def can_use(self, name: str) -> bool:
        """Tell whether containers get the network *name*, by default or on request."""
        return self.network == name or any(network.name == name for network in self.networks)


def judge(
    runtime: Runtime,
    files: Sequence[ConfFile],
    ask: Ask,
    folder_of: Callable[[str, str], List[ConfFile]] = drop_ins,
) -> Verdict:
    """Return what *runtime* does with *files*, which are all of its directory, in order.

    *ask* is called for runtimes that ask their plugins. *folder_of* returns the drop-ins of a network.
    """
    verdict = Verdict()
    if runtime.profile.choice == OWN:
        verdict.network, verdict.reason = runtime.default_network or None, runtime.profile.own
        for file in files:
            verdict.leave(file, "it reads no files")
    else:
        _Judge(runtime, files, ask, folder_of, verdict).judge()
    verdict.not_chosen.sort(key=lambda entry: os.fsencode(str(entry["file"])))
    return verdict


class _Judge:
    def __init__(
        self,
        runtime: Runtime,
        files: Sequence[ConfFile],
        ask: Ask,
        folder_of: Callable[[str, str], List[ConfFile]],
        verdict: Verdict,
    ) -> None:
        self.runtime = runtime
        self.rules = runtime.profile
        self.files = files
        self.ask = ask
        self.verdict = verdict
        self.loader = Loader(runtime.libcni, files, self.rules.drop_ins, folder_of)
        # A network that is chosen by name can be in any file.
        by_order = self.rules.choice == FIRST and not runtime.default_network
        self.most = runtime.max_networks if by_order and runtime.max_networks > 0 else len(files) + 1
        self.labelled: Optional[Network] = None

    def judge(self) -> None:
        verdict, rules = self.verdict, self.rules
        candidates = self._candidates()
        broken = self._walk(candidates)
        if broken and (rules.choice == FIRST or rules.broken == SPOILS):
            for network in verdict.networks:
                verdict.leave(
                    network.file, "it is valid, but no network is loaded while that file is broken", network.name
                )
            verdict.networks = []
            verdict.fail(broken)
        elif rules.choice == FIRST and not self.runtime.default_network:
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
            elif self.runtime.conf_file and file.path != self.runtime.conf_file:
                self.verdict.leave(file, f"it reads {self.runtime.conf_file} only")
            else:
                candidates.append(file)
        if rules.lists_first:
            candidates.sort(key=lambda file: file.kind != "conflist")
        return candidates

    def _walk(self, candidates: Sequence[ConfFile]) -> str:
        """Sort the candidates into networks and others. Return the error that ends or prevents loading, "" if none."""
        rules, verdict = self.rules, self.verdict
        broken = ""
        for file in candidates:
            if broken and rules.broken == ENDS:
                verdict.leave(file, "it is not read after the error")
                continue
            if len(verdict.networks) >= self.most:
                verdict.leave(file, f"{os.path.basename(verdict.networks[-1].file.name)} sorts before it")
                continue
            as_list = not rules.all_single and (rules.all_lists or file.kind == "conflist")
            loaded = self.loader.load(file, as_list)
            untyped = rules.untyped and loaded.untyped
            if loaded.error and rules.broken in (ENDS, SPOILS) and not untyped:
                words = _LIST_WORDS if file.kind == "conflist" else _SINGLE_WORDS
                broken = broken or words % (file.path, loaded.error)
                verdict.leave(file, f"it cannot be loaded: {loaded.error}")
                verdict.broken.append(file.path)
            else:
                self._sort_in(file, loaded)
        return broken

    def _sort_in(self, file: ConfFile, loaded: Loaded) -> None:
        verdict = self.verdict
        name = loaded.name
        if not loaded.error and not name and self.rules.named_by_file:
            name = file.name
        reason = loaded.error or self._refusal(file, name, loaded)
        same = [network for network in verdict.networks if network.name == name]
        if reason:
            verdict.leave(file, f"it is skipped: {reason}", name)
        elif same and self._counts_once():
            verdict.leave(file, f"{same[0].file.name} has the network {name!r} already", name)
        else:
            network = Network(name, file, loaded)
            verdict.networks.append(network)
            for kind in self._missing(loaded) if self.rules.notes_missing else ():
                where = ", ".join(self.runtime.bin_dirs)
                verdict.notes.append(f"the network {name!r} needs the plugin {kind}, which is not in {where}")
            if self.labelled is None and _is_labelled(file, self.rules.label):
                self.labelled = network

    def _missing(self, loaded: Loaded) -> Iterator[str]:
        """Yield the plugins of a network that the runtime does not find."""
        for kind in types_of(list(loaded.plugins)):
            try:
                self.ask(kind)
            except HostError as error:
                if error.code == "missing_plugin":
                    yield kind

    def _counts_once(self) -> bool:
        # go-cni attaches a container to the network of every file that it has loaded, even if names are equal.
        return not (self.rules.choice == FIRST and self.rules.broken == ENDS)

    def _refusal(self, file: ConfFile, name: str, loaded: Loaded) -> str:
        """Return why a runtime with more rules than libcni's skips a network that loads, "" if it does not."""
        if self.rules.valid_names and not _PODMAN_NAME.fullmatch(name):
            return f"the name {name!r} is not valid"
        if self.rules.validates:
            version = loaded.version or "0.1.0"
            for kind in loaded.types:
                refusal = self._ask(kind, version, file)
                if refusal:
                    return refusal
        if self.rules.finds:
            missing = next(self._missing(loaded), "") if name else ""
            return self._nowhere(missing) if missing else "" if name else "it has no name"
        return unconvertible(loaded.plugins[0]) if self.rules.converts and loaded.plugins else ""

    def _searched(self, loaded: Loaded) -> List[str]:
        return self.runtime.searched(loaded.types[0] if loaded.types else "")

    def _nowhere(self, kind: str) -> str:
        return f"the plugin {kind} is not in {', '.join(self.runtime.bin_dirs)}"

    def _ask(self, kind: str, version: str, file: ConfFile) -> str:
        try:
            versions = self.ask(kind)
        except HostError as error:
            if error.code == "missing_plugin":
                return self._nowhere(kind)
            if error.code == "plugin_failed":
                return f"the plugin {kind} does not answer VERSION"
            self.verdict.notes.append(
                f"the plugin {kind} of {file.name} was not asked ({error.msg}) and is assumed to work"
            )
            return ""
        if version not in versions:
            return f"the plugin {kind} does not support the version {version}"
        return ""

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
        if self.rules.vendor_dirs:
            verdict.notes.append(f"it searches {', '.join(self._searched(first.loaded))} for the network's plugins")

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
            verdict.network, verdict.reason = (
                default,
                f"no file has the default network {default!r}; {runtime.profile.own}",
            )
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
                verdict.leave(
                    network.file,
                    f"it is used only when the network {network.name!r} is requested by name",
                    network.name,
                )


def _is_labelled(file: ConfFile, label: str) -> bool:
    if not label or label.encode() not in (file.text or b""):
        return False
    try:
        labels = json.loads((file.text or b"").decode("utf-8")).get("nerdctlLabels")
    except (ValueError, AttributeError, RecursionError):
        return False
    return isinstance(labels, dict) and label in labels
