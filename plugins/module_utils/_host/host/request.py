# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The request of ``cni_host``: its sections, and what they say about each other."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from ..attachments.request import ABSENT, ATTACHMENTS_ARGUMENTS, PRESENT, WantedAttachment, parse_attachments
from ..binaries.request import PLUGINS_ARGUMENTS, PLUGINS_REQUIRED_IF
from ..binaries.types import types_of
from ..confdir import ConfFile
from ..errors import HostError
from ..named_netns import NETNS_ARGUMENTS
from ..netns import netns_path
from ..networks.request import EFFECT_ARGUMENTS, NETWORK_ARGUMENTS, NETWORKS_ARGUMENTS, RUNTIME_ARGUMENTS
from ..paths import absolute

PODS_CONF_DIR = "/etc/cni/multus/net.d"
SECTIONS_ARGUMENTS: Dict[str, Any] = {
    "plugins": {"type": "dict", "options": PLUGINS_ARGUMENTS, "required_if": PLUGINS_REQUIRED_IF},
    "pod_networks": {
        "type": "dict",
        "options": {
            **NETWORKS_ARGUMENTS,
            "networks": {"type": "list", "elements": "dict", "default": [], "options": NETWORK_ARGUMENTS},
            "conf_dir": {"type": "path", "default": PODS_CONF_DIR},
        },
    },
    "networks": {"type": "dict", "options": {**NETWORKS_ARGUMENTS, **EFFECT_ARGUMENTS}},
    "runtime": {"type": "dict", "options": RUNTIME_ARGUMENTS, "required_by": {"configure": ["runtime"]}},
    "netns": {"type": "dict", "options": NETNS_ARGUMENTS},
    "attachments": {"type": "dict", "options": ATTACHMENTS_ARGUMENTS},
}
"""The sections, in the order in which they are applied; removals come after the attachments, in reverse."""


class HostRequest:
    """``sections``: name -> the options of its module, for each section that is given; ``attachments``: its entries.

    *common* are the options that all sections share. *audit* adds the section of that name, which has no others. Raises
    HostError ``contradiction`` with all contradictions between sections, and the error of the first bad entry. In check
    mode, bad entries are left out of ``attachments``, and their errors are in ``refused``.
    """

    def __init__(
        self,
        given: Mapping[str, Optional[Mapping[str, Any]]],
        common: Mapping[str, Any],
        audit: bool = False,
        check_mode: bool = False,
    ) -> None:
        self.sections = {name: dict(common, **options) for name, options in given.items() if options is not None}
        if audit:
            self.sections["audit"] = dict(common)
        if "pod_networks" in self.sections:
            options = self.sections["pod_networks"]
            options["conf_dir"] = absolute(options["conf_dir"], "pod_networks.conf_dir")
            if "networks" in self.sections and options["conf_dir"] == self.sections["networks"]["conf_dir"]:
                raise HostError(
                    f"pod_networks.conf_dir is {options['conf_dir']}, the directory of the section networks; runtimes "
                    "would use the networks of pods as their own: write another directory",
                    code="contradiction",
                )
        self.attachments: List[WantedAttachment] = []
        self.refused: List[HostError] = []
        if "attachments" in self.sections:
            options = self.sections["attachments"]
            if options["timeout"] <= 0:
                raise HostError("attachments.timeout must be more than 0 seconds", code="bad_timeout")
            self.attachments = parse_attachments(options["attachments"], self.refused if check_mode else None)
        contradictions = [*self._networks_in_use(), *self._namespaces_in_use(), *self._plugins_in_use()]
        if contradictions:
            raise HostError("; ".join(contradictions), code="contradiction")

    def state_of(self, section: str) -> str:
        """Return the option ``state`` of a section; a section without one is about what must exist."""
        options = self.sections[section]
        return str((options.get("configure") or {} if section == "runtime" else options).get("state") or PRESENT)

    def _given_networks(self, section: str) -> List[Dict[str, Any]]:
        return list(self.sections.get(section, {}).get("networks") or [])

    def _networks_in_use(self) -> Iterator[str]:
        absent = {given["name"] for given in self._given_networks("networks") if given["state"] == ABSENT}
        for wanted in self.attachments:
            own = wanted.pod is not None and wanted.pod.config is not None
            if wanted.state == PRESENT and wanted.key.network in absent and not own:
                yield (
                    f"the section networks removes {wanted.key.network!r}, and the section attachments attaches "
                    f"{wanted.key} to it; remove one of the two entries"
                )

    def _namespaces_in_use(self) -> Iterator[str]:
        section = self.sections.get("netns")
        if section is None or self.state_of("netns") != ABSENT:
            return
        removed = {netns_path(name, "netns"): name for name in section["names"]}
        for wanted in self.attachments:
            if wanted.state == PRESENT and wanted.netns in removed:
                yield (
                    f"the section netns removes {removed[wanted.netns]!r}, and the section attachments attaches "
                    f"{wanted.key} in it; remove one of the two entries"
                )

    def _plugins_in_use(self) -> Iterator[str]:
        section = self.sections.get("plugins")
        if section is None or self.state_of("plugins") != ABSENT:
            return
        removed = set(section["plugins"])
        for where, given in self._present_networks():
            # What cannot be read is an error of its section.
            file = ConfFile("wanted.conflist", "", given["content"].encode("utf-8"))
            for name in sorted(removed.intersection(types_of(file.plugins))):
                yield (
                    f"the section plugins removes {name!r}, and the network {given['name']!r} of the section {where} "
                    "runs it; remove one of the two entries"
                )

    def _present_networks(self) -> Iterator[Tuple[str, Dict[str, Any]]]:
        for section in ("networks", "pod_networks"):
            for given in self._given_networks(section):
                if given["state"] == PRESENT and given["content"]:
                    yield section, given


def bin_dir_of(options: Mapping[str, Any]) -> str:
    """Return the directory that the section ``plugins`` is about."""
    return absolute(options["bin_dir"], "plugins.bin_dir") if options["bin_dir"] else str(options["bin_dirs"][0])
