# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What action plugins have in common that read networks: from files of the controller, and from a cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ansible.errors import AnsibleError, AnsibleFileNotFound
from ansible.plugins.loader import lookup_loader

from ..module_utils._host.errors import HostError
from ..module_utils.libcni.multi.definitions import API_VERSION, KIND
from .definitions import Manifest, Sources
from .module_action import ModuleAction
from .pods import PodEntries

MAX_SIZE = 1 << 20
_LOOKUP = "kubernetes.core.k8s"


class ReadingAction(ModuleAction):
    """Reads files of the controller."""

    def _read(self, src: str) -> tuple[str, bytes]:
        """Return path and content of a file on the controller. Raises ValueError with the reason."""
        try:
            path = self._find_needle("files", src)
            if os.path.getsize(path) > MAX_SIZE:
                raise ValueError(f"{path} is larger than 1 MiB, so it cannot be a network configuration")
            real = self._loader.get_real_file(path)
            try:
                with open(real, "rb") as stream:
                    return path, stream.read()
            finally:
                self._loader.cleanup_tmp_file(real)
        except AnsibleFileNotFound as error:
            raise ValueError(
                f"file {str(src)!r} not found on the controller; relative names are searched in the directories "
                "'files' of the role and of the play, and next to them"
            ) from error
        except (AnsibleError, OSError) as error:
            raise ValueError(f"cannot read the file {str(src)!r} on the controller: {error}") from error

    def sources(self) -> Sources:
        """Return how this controller reads NetworkAttachmentDefinitions."""
        return Sources(self._read, self._read_cluster)

    def resolve(self, entries: Any, options: Any) -> Any:
        """Return the option ``attachments`` for the module: with the networks that pods ask for, and no others.

        *options* is ``nads``. Raises HostError.
        """
        if not isinstance(entries, list) or not any(isinstance(entry, dict) and entry.get("pod") for entry in entries):
            return entries
        return PodEntries(options, self.sources(), bool(self._task.check_mode)).resolve(entries)

    def _read_cluster(self, kubeconfig: str, context: str, namespace: str) -> Sequence[Manifest]:
        """Return the definitions of a namespace, of all for "". Raises HostError."""
        lookup = lookup_loader.get(_LOOKUP, loader=self._loader, templar=self._templar)
        if lookup is None:
            raise HostError(
                "nads.kubeconfig needs the collection kubernetes.core on the controller; install it (ansible-galaxy "
                "collection install kubernetes.core), or pass manifests in nads.manifests",
                code="missing_required_lib",
            )
        wanted = {"api_version": API_VERSION, "kind": KIND, "kubeconfig": kubeconfig}
        wanted.update({name: text for name, text in (("context", context), ("namespace", namespace)) if text})
        try:
            manifests: Any = lookup.run(None, variables={}, **wanted)
        except Exception as error:
            # The client raises whatever its libraries raise.
            raise HostError(
                f"nads.kubeconfig: cannot read the networks of {namespace or 'all namespaces'} with {kubeconfig} on "
                f"the controller: {error}",
                code="cluster_unreachable",
            ) from error
        # Without any, the client returns null.
        return manifests if isinstance(manifests, list) else [manifests] if manifests else []
