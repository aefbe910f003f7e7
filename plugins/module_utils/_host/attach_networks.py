# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The networks that ``cni_attach`` is asked for, and whether their plugins are there to run them."""

from __future__ import annotations

import os
from typing import Dict, List, Sequence, Union

from ..libcni.conf import NetworkConfigList, load_network_conf
from ..libcni.errors import CNIError, ConfigError, NoConfigsFoundError, NotFoundError, PluginNotFoundError
from ..libcni.invoke import find_in_path
from .attach_verbs import Verbs
from .errors import HostError
from .plugintypes import types_of
from .secrets import mask_text


class Networks:
    """Loads every network once and asks every plugin once; what failed fails again with the same error."""

    def __init__(self, conf_dir: str, bin_dirs: Sequence[str], verbs: Verbs) -> None:
        self._conf_dir = conf_dir
        self._bin_dirs = list(bin_dirs)
        self._verbs = verbs
        self._loaded: Dict[str, Union[NetworkConfigList, HostError]] = {}
        self._tested: Dict[str, Union[bool, HostError]] = {}
        self._versions: Dict[str, List[str]] = {}

    def load(self, name: str) -> NetworkConfigList:
        """Return the network. Raises HostError ``missing_network``, ``missing_conf_dir`` or ``bad_config``."""
        if name not in self._loaded:
            try:
                self._loaded[name] = load_network_conf(self._conf_dir, name)
            except (NotFoundError, NoConfigsFoundError):
                self._loaded[name] = self._not_there(name)
            except CNIError as error:
                self._loaded[name] = _bad_config(name, error)
        found = self._loaded[name]
        if isinstance(found, HostError):
            raise found
        return found

    def _not_there(self, name: str) -> HostError:
        if not os.path.isdir(self._conf_dir):
            return HostError(
                f"the network {name} is not configured: there is no directory {self._conf_dir}; cni_conf makes it",
                code="missing_conf_dir",
            )
        return HostError(
            f"no file in {self._conf_dir} configures the network {name}; write one with cni_conf",
            code="missing_network",
        )

    def test_plugins(self, config: NetworkConfigList) -> None:
        """Test that every plugin of the network is there and speaks its version.

        Raises HostError ``bad_config``, ``missing_plugin``, ``unsupported_version`` or what Verbs.versions raises.
        """
        if config.name not in self._tested:
            try:
                self._test(config)
                self._tested[config.name] = True
            except HostError as error:
                self._tested[config.name] = error
        tested = self._tested[config.name]
        if isinstance(tested, HostError):
            raise tested

    def _test(self, config: NetworkConfigList) -> None:
        where = f"network {config.name}"
        for plugin in types_of([plugin.network for plugin in config.plugins]):
            if "/" in plugin:
                raise HostError(
                    f"{where}: the plugin type {plugin!r} contains '/'; a type is the plain name of a file in bin_dirs",
                    code="bad_config",
                )
            try:
                find_in_path(plugin, self._bin_dirs)
            except PluginNotFoundError:
                raise HostError(
                    f"{where}: the plugin {plugin} is not in {', '.join(self._bin_dirs)}; install it with cni_plugins, "
                    "or add its directory to bin_dirs",
                    code="missing_plugin",
                ) from None
        version = config.cni_version or "0.1.0"
        # A delegate gets a configuration of its own, so its version is not the list's.
        own = {plugin.type for plugin in config.plugins} | {plugin.ipam_type for plugin in config.plugins}
        for plugin in sorted(own - {""}):
            if plugin not in self._versions:
                self._versions[plugin] = self._verbs.versions(plugin)
            if version not in self._versions[plugin]:
                raise HostError(
                    f"{where}: its cniVersion is {version}, and the plugin {plugin} supports "
                    f"{', '.join(self._versions[plugin])}; change cniVersion to one of these, or install another "
                    "release of the plugin",
                    code="unsupported_version",
                )


def _bad_config(name: str, error: CNIError) -> HostError:
    path = error.path if isinstance(error, ConfigError) else ""
    text = mask_text(str(error))
    where = f"{path}: " if path and path not in text else ""
    return HostError(
        f"the network {name} cannot be loaded: {where}{text}; mend or remove the file, runtimes cannot load it either",
        code="bad_config",
        file=path,
    )
