# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The networks that ``cni_attach`` is asked for, and whether their plugins are there to run them."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Dict, Optional, Sequence, Union

from ..libcni.conf import NetworkConfigList, load_network_conf, network_conf_from_file
from ..libcni.errors import CNIError, ConfigError, NoConfigsFoundError, NotFoundError
from .errors import HostError
from .manifest import Manifest
from .pluginuse import Binaries, check_uses, uses_of
from .secrets import mask_text


class Networks:
    """Loads every network once and asks every plugin once; what failed fails again with the same error."""

    def __init__(self, conf_dir: str, bin_dirs: Sequence[str]) -> None:
        self._conf_dir = conf_dir
        self._bin_dirs = list(bin_dirs)
        self._read = lru_cache(maxsize=None)(network_conf_from_file)
        self._loaded: Dict[str, Union[NetworkConfigList, HostError]] = {}
        self._tested: Dict[str, Union[bool, HostError]] = {}
        self._binaries: Optional[Binaries] = None

    def load(self, name: str) -> NetworkConfigList:
        """Return the network. Raises HostError ``missing_network``, ``missing_conf_dir`` or ``bad_config``."""
        if name not in self._loaded:
            try:
                self._loaded[name] = load_network_conf(self._conf_dir, name, self._read)
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

        Raises HostError ``bad_config``, ``unsupported_by_plugin`` or what Binaries.ask raises.
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
            self._binaries = Binaries(self._bin_dirs, Manifest())
        problems = check_uses(self._binaries, config.name, config.cni_version, uses, tolerate_missing=False)
        # What is missing may come before the run; what is wrong will not go away.
        problems.sort(key=lambda entry: bool(entry["code"] == "missing_plugin"))
        if problems:
            raise HostError(problems[0]["message"], code=problems[0]["code"])


def _bad_config(name: str, error: CNIError) -> HostError:
    path = error.path if isinstance(error, ConfigError) else ""
    text = mask_text(str(error))
    where = f"{path}: " if path and path not in text else ""
    return HostError(
        f"the network {name} cannot be loaded: {where}{text}; mend or remove the file, runtimes cannot load it either",
        code="bad_config",
        file=path,
    )
