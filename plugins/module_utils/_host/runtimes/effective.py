# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which network each runtime would use: for cni_conf in the planned directory, for cni_info in the current one."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Callable, Collection, Container, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..binaries.types import is_multus, types_of
from ..binaries.usable import Binaries
from ..confdir import ConfFile, scan_conf_dir
from ..errors import HostError
from ..hostview import HostView
from ..problems import ERROR, WARNING, Finding
from ..trust import check_trusted
from . import discover
from .profiles import FIRST, NAMED, OWN, BuiltIn
from .runtime import Network, Runtime, Verdict

Rows = List[Dict[str, Any]]


class Effective:
    """The runtimes of a task, and which network each would use.

    *names* of profiles, or None for the runtimes on this host. *files* are the files that *conf_dir* will contain, in
    order. *prepare* may change the settings of the runtimes before they are judged.
    """

    def __init__(
        self,
        names: Optional[Sequence[str]],
        conf_dir: str,
        bin_dirs: Sequence[str],
        files: Sequence[ConfFile],
        view: HostView,
        tolerate_missing: bool = False,
        prepare: Optional[Callable[[List[Runtime]], None]] = None,
    ) -> None:
        self.names = names
        self.conf_dir = conf_dir
        self.bin_dirs = list(bin_dirs)
        self.files = list(files)
        self.tolerate_missing = tolerate_missing
        self._view = view
        self._binaries: Dict[Tuple[str, ...], Binaries] = {}
        if names is None:
            self.runtimes = discover.runtimes_on_host(conf_dir, view)
        else:
            self.runtimes = discover.named_runtimes(names, conf_dir, bin_dirs, view) if names else []
        if prepare is not None:
            prepare(self.runtimes)
        for runtime in self.runtimes:
            runtime.verdict = self._judge(runtime)

    def users_of(self, file: ConfFile) -> Rows:
        """Return ``{runtime, plugins}`` for each runtime that takes the network in *file*, with the paths that it runs.

        Multus also takes those that pods request from its directory.
        """
        users: Rows = []
        for runtime in self.runtimes:
            verdict = runtime.verdict
            taken = {network.file.path for network in verdict.networks} | {row["file"] for row in verdict.through}
            requested = verdict.multus is not None and _requests(verdict.multus, file)
            if runtime.name != "multus" and (file.path in taken or requested):
                paths = [self._view.plugin_path(name, runtime.bin_dirs) for name in types_of(file.plugins)]
                users.append({"runtime": runtime.name, "plugins": sorted(filter(None, paths))})
        return users

    def declared(self) -> Iterator[Network]:
        """Yield the managed networks of conf_dir, as the newest release of libcni loads them."""
        for file in self.files:
            if file.network and not file.error and self._view.manifest.network_file(file.path, file.text) is not None:
                yield Network(file, file.network, file.cni_version, file.chain)

    def rows(self) -> Rows:
        return [self._row(runtime) for runtime in self.runtimes]

    def _row(self, runtime: Runtime) -> Dict[str, Any]:
        verdict, own = runtime.verdict, runtime.profile.choice == OWN
        sentences = [verdict.reason, *runtime.notes, *dict.fromkeys(verdict.notes)]
        appended = verdict.networks if runtime.appends_drop_ins else []
        return {
            "runtime": runtime.name,
            "version": runtime.version,
            "found": runtime.evidence,
            "conf_dir": runtime.conf_file or ("" if own else runtime.conf_dir),
            "bin_dirs": runtime.bin_dirs,
            "network": verdict.network,
            "file": verdict.file,
            "reason": "; ".join(sentence for sentence in sentences if sentence),
            "networks": [{"network": network.name, "file": network.file.path} for network in verdict.networks],
            "through": verdict.through,
            "not_chosen": verdict.not_chosen,
            "verified": runtime.profile.verified,
            "drop_ins": [extra.path for network in appended for extra in network.file.drop_ins],
            "requires": self.requirements_of(runtime),
        }

    def requirements_of(self, runtime: Runtime) -> Rows:
        """Return ``{plugin, code, problem}`` for each plugin that it executes although no file names it."""
        network = runtime.built_in
        return [self._requirement(runtime, plugin, network) for plugin in network.plugins] if network else []

    def _requirement(self, runtime: Runtime, plugin: str, network: BuiltIn) -> Dict[str, Any]:
        try:
            versions = self.binaries_in(runtime.bin_dirs).ask(plugin)[1]
        except HostError as error:
            return {"plugin": plugin, "code": error.code, "problem": error.msg}
        if network.cni_version in versions:
            return {"plugin": plugin, "code": "", "problem": ""}
        text = f"the plugin {plugin} supports {', '.join(versions)}, but not {network.cni_version}"
        return {"plugin": plugin, "code": "unsupported_by_plugin", "problem": f"{text}; install another release"}

    def unmet(self) -> List[Finding]:
        """Return a problem for each plugin that runtimes need beyond those in files, and that they could not execute.

        That is an error for runtimes that the task names, and a warning for others that read conf_dir.
        """
        level = WARNING if self.names is None else ERROR
        return [finding for runtime in self._counted() if runtime.reads for finding in self._unmet(runtime, level)]

    def _unmet(self, runtime: Runtime, level: str) -> Iterator[Finding]:
        built_in, verdict = runtime.built_in, runtime.verdict
        if built_in is None or verdict.network is None:
            return
        for need in self.requirements_of(runtime):
            if need["problem"]:
                tolerated = self.tolerate_missing and need["code"] == "missing_plugin"
                what = f"{runtime.name} runs the plugin {need['plugin']} for {built_in.purpose}, and would fail"
                file = verdict.file or runtime.conf_dir
                yield Finding(WARNING if tolerated else level, need["code"], f"{what}: {need['problem']}", "", file)

    def unused(self) -> List[Finding]:
        """Return a warning if no runtime reads conf_dir, and one for each that runs other plugins than in bin_dirs."""
        from .unused import unused_directories

        return unused_directories(self.runtimes, self.conf_dir, self.files, self.bin_dirs, self._view)

    def ignored_drop_ins(self, by_network: Mapping[str, Collection[str]]) -> Iterator[Finding]:
        """Yield a warning for each runtime that ignores the drop-ins *by_network*; they do not change it."""
        for runtime in self._counted():
            if not runtime.reads or runtime.appends_drop_ins:
                continue
            why = "reads no drop-in folders, and so"
            if runtime.profile.drop_ins:
                why = f"contains libcni {runtime.libcni}, which is older than 1.3, and so"
            for network in runtime.verdict.networks:
                if network.name in by_network:
                    names = ", ".join(by_network[network.name])
                    what = f"{runtime.name} {why} ignores the drop-ins of the network {network.name!r} ({names})"
                    remedy = "for this runtime, write their plugins into the conflist"
                    yield Finding(WARNING, "drop_in_ignored", what, remedy, network.file.path)

    def ensure(self, network: str) -> List[Finding]:
        """Return the problems if containers of these runtimes would not get *network*.

        If the task names no runtimes, only those that read conf_dir count.
        """
        counted = self._counted()
        if counted:
            effective = [runtime for runtime in counted if self._is_effective(runtime, network)]
            others = [runtime for runtime in counted if runtime not in effective]
            findings = [self.not_effective(runtime, network, "ensure_effective: ") for runtime in others]
            return findings + [finding for runtime in effective for finding in self._unmet(runtime, ERROR)]
        readers = [f"{runtime.name} reads {runtime.conf_dir}" for runtime in self.runtimes if runtime.reads]
        if readers:
            what = f"ensure_effective: no runtime of this host reads {self.conf_dir} ({', '.join(readers)})"
            remedy = "set conf_dir to a directory that a runtime reads"
            return [Finding(ERROR, "not_effective", what, remedy, self.conf_dir)]
        what = "ensure_effective: no runtime that uses CNI was found on this host"
        remedy = "install one, or set 'runtime' to the one that will be installed"
        return [Finding(WARNING if self.tolerate_missing else ERROR, "missing_runtime", what, remedy, self.conf_dir)]

    def displaced(self, networks: Collection[str], managed: Container[str]) -> List[Runtime]:
        """Return the runtimes of this host that use none of *networks*, which this directory has, but one of others.

        *managed* are the paths of files that are there on purpose. Whoever chooses by name can use each.
        """
        present = {str(file.network) for file in self.files}.intersection(networks)
        going_by_order = [r for r in self._counted() if r.evidence and r.profile.choice == FIRST and self.reads_here(r)]
        return [runtime for runtime in going_by_order if present and self._prefers(runtime, present, managed)]

    def _prefers(self, runtime: Runtime, networks: Collection[str], managed: Container[str]) -> bool:
        """Tell whether it certainly uses something else than *networks* and *managed* files."""
        verdict, named = runtime.verdict, bool(runtime.default_network)
        if verdict.network is None:
            # Why no file can be loaded is said elsewhere.
            return named and not verdict.broken
        used = {verdict.network} if named else {network.name for network in verdict.networks}
        if verdict.file in managed or used.intersection(networks):
            return False
        if verdict.multus is None:
            return True
        from .through import runs_only_others

        return runs_only_others(verdict.multus, verdict.through, networks, managed, self.conf_dir)

    def _counted(self) -> List[Runtime]:
        """Return the runtimes that have to use the requested networks."""
        if self.names is None:
            readers = [runtime for runtime in self.runtimes if self.reads_here(runtime)]
            return [runtime for runtime in readers if runtime.name != "multus" and not runtime.conf_file]
        return [runtime for runtime in self.runtimes if runtime in self._best(runtime.name)]

    def _best(self, name: str) -> List[Runtime]:
        # Several can have one name: daemons, and runtime handlers with their own directories. Those that read conf_dir
        # count, else those that read any directory.
        same = [runtime for runtime in self.runtimes if runtime.name == name]
        readers = [runtime for runtime in same if runtime.reads] or same
        return [runtime for runtime in readers if runtime.profile.choice == OWN or self._reads_here(runtime)] or readers

    def _is_effective(self, runtime: Runtime, network: str) -> bool:
        verdict = runtime.verdict
        if not runtime.reads or not (runtime.profile.choice == OWN or self._reads_here(runtime)):
            return False
        if any(row["network"] == network for row in verdict.through[:1]):
            # Multus gives every pod this network as its own.
            return True
        return verdict.can_use(network) if runtime.profile.choice == NAMED else verdict.network == network

    def asked(self, restarting: Collection[str]) -> List[Runtime]:
        """Return the runtimes that read conf_dir and can be asked, without those in *restarting*."""
        readers = [runtime for runtime in self.runtimes if self.reads_here(runtime)]
        return [runtime for runtime in readers if runtime.name not in restarting and runtime.can_be_asked]

    def reads_here(self, runtime: Runtime) -> bool:
        """Tell whether it reads networks from conf_dir."""
        return runtime.reads and runtime.profile.choice != OWN and self._reads_here(runtime)

    def _reads_here(self, runtime: Runtime) -> bool:
        return discover.same_directory(runtime.conf_dir, self.conf_dir)

    def not_effective(self, runtime: Runtime, network: str, because: str = "") -> Finding:
        """Return an error that says which network *runtime* uses instead; it begins with *because*."""
        verdict, remedy = runtime.verdict, ""
        if not runtime.reads:
            text = f"{runtime.name} uses no network: {'; '.join(runtime.notes)}"
        elif not self._reads_here(runtime) and runtime.profile.choice != OWN:
            text = f"{runtime.name} reads {runtime.conf_file or runtime.conf_dir}, not {self.conf_dir}"
            remedy = f"write the network there, or configure the runtime to read {self.conf_dir}"
        else:
            text = self._why_not(runtime, network)
            if self.tolerate_missing and all(file.network != network for file in self.files):
                return Finding(WARNING, "missing_network", f"{because}{text}", "", runtime.conf_dir)
            if runtime.default_network and runtime.keys.default_network:
                remedy = f"set {runtime.keys.default_network} to {network!r} in its configuration, or remove it there"
            elif verdict.through:
                remedy = f"make it a network of Multus in {verdict.file}"
            elif runtime.profile.choice == FIRST:
                remedy = f"set a lower 'priority', or remove or rename {verdict.file or 'the file before it'}"
        return Finding(ERROR, "not_effective", f"{because}{text}", remedy, verdict.file or runtime.conf_dir)

    @staticmethod
    def _why_not(runtime: Runtime, network: str) -> str:
        verdict = runtime.verdict
        others = [entry for entry in verdict.not_chosen if entry["network"] == network]
        text = f"{runtime.name} would not use the network {network!r}"
        if others:
            text += f" in {os.path.basename(others[0]['file'])} ({others[0]['reason']})"
        elif runtime.profile.choice != OWN:
            text += ", which no file has"
        if verdict.network is None:
            return f"{text}: {verdict.reason}"
        reasons = "; ".join([verdict.reason, *(note for note in verdict.notes[-1:] if verdict.through)])
        return f"{text}; it would use {verdict.network!r}: {reasons}"

    # ---- one runtime

    def _judge(self, runtime: Runtime) -> Verdict:
        from .rules import judge

        if not runtime.reads:
            return Verdict()
        try:
            files = self.files_of(runtime)
        except HostError as error:
            verdict = Verdict()
            verdict.fail(f"its directory cannot be read: {error.msg}")
            return verdict
        verdict = judge(runtime, files, partial(self._ask, self.binaries_in(runtime.bin_dirs)))
        loaded = next((network for network in verdict.networks if network.file.path == verdict.file), None)
        if loaded is not None and any(map(is_multus, loaded.plugins[:1])):
            verdict.multus = loaded.plugins[0]
        chosen = next((file for file in files if file.path == verdict.file), None)
        if chosen is not None and any(map(is_multus, chosen.plugins[:1])):
            from .through import in_words, networks_through

            verdict.through = networks_through(chosen, self.conf_dir, self.files, self._view)
            verdict.notes.append(in_words(verdict.through))
        return verdict

    def files_of(self, runtime: Runtime) -> List[ConfFile]:
        """Return the files that it reads, in order. Raises HostError if its directory cannot be read."""
        if runtime.profile.choice == OWN:
            return []
        # The files of a link are not known: no module works in it, and a runtime reads it.
        if self._reads_here(runtime) and not os.path.islink(self.conf_dir):
            files = list(self.files)
        else:
            check_trusted(runtime.conf_dir)
            files = scan_conf_dir(os.path.realpath(runtime.conf_dir))
        if runtime.conf_file:
            files = [file for file in files if file.path == runtime.conf_file]
        if runtime.folder:
            files.extend(scan_conf_dir(os.path.realpath(os.path.join(runtime.conf_dir, runtime.folder))))
            files.sort(key=lambda file: os.fsencode(file.path))
        return files

    def binaries_in(self, bin_dirs: Sequence[str]) -> Binaries:
        return self._binaries.setdefault(tuple(bin_dirs), Binaries(bin_dirs, self._view))

    def _ask(self, binaries: Binaries, plugin: str) -> Sequence[str]:
        try:
            return binaries.ask(plugin)[1]
        except HostError as error:
            if error.code == "missing_plugin" and self.tolerate_missing:
                raise HostError("it is not installed yet", code="tolerated") from error
            raise


def _requests(multus: Mapping[str, Any], file: ConfFile) -> bool:
    from .through import requested_from

    return discover.same_directory(requested_from(multus), os.path.dirname(file.path))
