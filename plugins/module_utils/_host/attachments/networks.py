# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The networks of a request, and whether their plugins can run."""

from __future__ import annotations

import os
from typing import Dict, List, Optional, Sequence, Union

from ...libcni.conf import (
    NetworkConfigList,
    PluginConfig,
    conf_list_from_conf,
    network_conf_from_file,
    network_plugin_conf_from_bytes,
    network_plugin_conf_from_file,
)
from ...libcni.errors import CNIError, ConfigError
from ..confdir import paths_of
from ..errors import HostError
from ..hostview import HostView
from ..secrets import mask_text
from ..trust import check_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..binaries.usable import Binaries


class Networks:
    """Loads each network once and asks each plugin once; later calls raise the same error again."""

    def __init__(self, conf_dir: str, bin_dirs: Sequence[str], view: HostView) -> None:
        self._view = view
        self._conf_dir = conf_dir
        self._bin_dirs = list(bin_dirs)
        self._files: Dict[str, Union[NetworkConfigList, ConfigError]] = {}
        self._loaded: Dict[str, Union[NetworkConfigList, HostError]] = {}
        # By configuration: networks of pods may have the same name.
        self._tested: Dict[bytes, Union[bool, HostError]] = {}
        self._binaries: Optional[Binaries] = None

    def load(self, name: str) -> NetworkConfigList:
        """Return the network.

        Raises HostError ``missing_network``, ``missing_conf_dir``, ``bad_config`` or ``unsafe_permissions``.
        """
        if name not in self._loaded:
            try:
                self._loaded[name] = self._find(name)
            except CNIError as error:
                self._loaded[name] = _bad_config(name, error)
            except HostError as error:
                self._loaded[name] = error
        loaded = self._loaded[name]
        if isinstance(loaded, HostError):
            raise loaded
        return loaded

    def _find(self, name: str) -> Union[NetworkConfigList, HostError]:
        """Return the network. Files that cannot be loaded count only if no other has it. Raises CNIError, HostError."""
        broken: List[ConfigError] = []
        for path in self._view.conf_paths(self._conf_dir, (".conflist",)):
            loaded = self._read(path)
            if isinstance(loaded, ConfigError):
                broken.append(loaded)
            elif loaded.name == name:
                return self._trusted(loaded, [path])
        singles = self._view.conf_paths(self._conf_dir, (".conf", ".json"))
        for path in singles:
            single = network_plugin_conf_from_file(path)
            if single.name == name:
                # Each file before it decides, too, whether it is found.
                return self._trusted(conf_list_from_conf(single), singles)
        return self._broken(name, broken) if broken else self._not_there(name)

    def _trusted(self, config: NetworkConfigList, paths: Sequence[str]) -> NetworkConfigList:
        """Return *config*. Raises HostError if users other than root can change its file, which is one of *paths*."""
        for path in paths:
            for part in paths_of(self._conf_dir, path, config.name):
                # What the plan writes gets the owner and mode of the request.
                if part not in self._view.written:
                    check_trusted(part)
        return config

    def _read(self, path: str) -> Union[NetworkConfigList, ConfigError]:
        if path not in self._files:
            try:
                self._files[path] = network_conf_from_file(path, self._view.written.get(path), self._drop_ins)
            except ConfigError as error:
                self._files[path] = error
        return self._files[path]

    def _drop_ins(self, network: str) -> Optional[List[PluginConfig]]:
        """Return the drop-ins that a step of the plan gives to a network, None if none does."""
        folder = self._view.folder_of(self._conf_dir, network)
        return None if folder is None else [network_plugin_conf_from_bytes(file.text or b"") for file in folder]

    def _broken(self, name: str, errors: Sequence[ConfigError]) -> HostError:
        """Return why there is no network *name*; *errors* come from the files that cannot be loaded."""
        # cni_conf and cni_plugins report a damaged manifest.
        managed = self._view.manifest.networks
        # A file named after the network probably belongs to it.
        unmanaged = sorted(
            (error for error in errors if error.path not in managed),
            key=lambda error: not error.path.endswith(f"{name}.conflist"),
        )
        for error in errors:
            if managed.get(error.path, {}).get("network") == name:
                text = f"the file of the network {name} cannot be loaded: {_told(error)}; write it again with cni_conf"
                return HostError(text, code="missing_network", file=error.path)
        return _bad_config(name, unmanaged[0]) if unmanaged else self._not_there(name)

    def _not_there(self, name: str) -> HostError:
        if not os.path.isdir(self._conf_dir):
            what = f"the network {name} is not configured: there is no directory {self._conf_dir}"
            return HostError(f"{what}; create both with cni_conf", code="missing_conf_dir")
        what = f"no file in {self._conf_dir} configures the network {name}"
        return HostError(f"{what}; write one with cni_conf", code="missing_network")

    def test_plugins(self, config: NetworkConfigList) -> None:
        """Test that every plugin of the network is installed and supports its version.

        Raises HostError ``bad_config``, ``unsupported_by_plugin`` or what Binaries.ask raises.
        """
        key = config.expanded_bytes()
        if key not in self._tested:
            try:
                self._test(config)
                self._tested[key] = True
            except HostError as error:
                self._tested[key] = error
        tested = self._tested[key]
        if isinstance(tested, HostError):
            raise tested

    def _test(self, config: NetworkConfigList) -> None:
        # Imported late: what stays attached is tested by its CHECK.
        from ..binaries.usable import Binaries, check_uses, uses_of

        uses = [
            use
            for index, plugin in enumerate(config.plugins)
            for use in uses_of("", f"/plugins/{index}", plugin.network)
        ]
        for use in uses:
            if "/" in use.plugin:
                raise HostError(
                    f"network {config.name}: {use.pointer} names the plugin {use.plugin!r}, which contains '/'; a type "
                    "is the plain name of a file in bin_dirs",
                    code="bad_config",
                )
        if self._binaries is None:
            self._binaries = Binaries(self._bin_dirs, self._view)
        problems = check_uses(self._binaries, config.name, config.cni_version, uses, tolerate_missing=False)
        # A missing plugin may be installed before the run; other problems stay.
        problems.sort(key=lambda finding: finding.code == "missing_plugin")
        if problems:
            raise HostError(problems[0].message, code=problems[0].code)


def _bad_config(name: str, error: CNIError) -> HostError:
    return HostError(
        f"the network {name} cannot be loaded: {_told(error)}; fix or remove the file, runtimes cannot load it either",
        code="bad_config",
        file=_path(error),
    )


def _told(error: CNIError) -> str:
    path, text = _path(error), mask_text(str(error))
    return f"{path}: {text}" if path and path not in text else text


def _path(error: CNIError) -> str:
    return error.path if isinstance(error, ConfigError) else ""
