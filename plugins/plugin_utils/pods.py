# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of cni_attach on the controller: from annotations to networks, before any host is touched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Optional

from ..module_utils._host.attachments.request import ATTACHMENTS_ARGUMENTS
from ..module_utils._host.errors import HostError
from ..module_utils._host.json_text import parse_json
from ..module_utils._host.problems import error_of, errors_of
from ..module_utils.libcni.multi.configuration import MultusConf
from ..module_utils.libcni.multi.definitions import NetworkDefinition
from ..module_utils.libcni.multi.delegates import Delegate
from ..module_utils.libcni.multi.errors import NetworksError
from ..module_utils.libcni.multi.pod import Pod, pod_interface_names, pod_networks
from ..module_utils.libcni.multi.routes import DefaultRoutes, default_route_changes
from ..module_utils.libcni.multi.runtime import network_capabilities
from ..module_utils.libcni.multi.selection import DEFAULT_NETWORK, NETWORKS, check_selections, parse_networks
from ._conf.nads import CheckedNads
from .definitions import LEVELS, Definitions, FileDefinition, Sources, check_nads

Result = dict[str, Any]

_OPTIONS = ATTACHMENTS_ARGUMENTS["nads"]["options"]


class PodEntries:
    """Adds to each entry with a pod the networks that its annotations ask for, as ``_networks``.

    *options* is the option ``nads`` as the user wrote it. *tolerant*: what is refused is sent in its entry,
    so that check mode shows what else would change.
    """

    def __init__(self, options: Any, sources: Sources, tolerant: bool) -> None:
        given = check_nads({} if options is None else options, _OPTIONS)
        self._definitions = Definitions(given, sources)
        self._tolerant = tolerant
        self._conf = MultusConf("")
        self._conf.namespace_isolation = bool(given.get("namespace_isolation"))
        self._conf.global_namespaces = names = given.get("global_namespaces", ["default"])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise HostError(f"nads.global_namespaces is a list of namespaces, not {names!r:.60}", code="bad_option")
        self._conf.conf_dir = str(given.get("conf_dir") or _OPTIONS["conf_dir"]["default"])
        self._checked: dict[tuple[str, str], Optional[HostError]] = {}

    def resolve(self, entries: list[Any]) -> list[Any]:
        """Return the entries. Raises HostError with everything that is refused."""
        out, refused = [], []
        for index, entry in enumerate(entries):
            pod = entry.get("pod") if isinstance(entry, dict) else None
            if not isinstance(pod, dict) or not isinstance(pod.get("name"), str):
                # The module itself refuses what has another shape.
                out.append(entry)
                continue
            try:
                annotations = _annotations(pod)
                networks = self._networks(entry, pod, annotations or {})
                pod = pod if annotations is None else {**pod, "annotations": annotations}
            except HostError as error:
                error = HostError(f"attachments[{index}].pod: {error.msg}", error.code, **error.facts)
                refused.append(error)
                networks = [{"error": {"code": error.code, "message": error.msg}}]
            out.append({**entry, "pod": pod, "_networks": networks})
        if refused and not self._tolerant:
            first = refused[0]
            raise HostError("; ".join(error.msg for error in refused), first.code, **first.facts)
        return out

    def _networks(self, entry: Mapping[str, Any], pod: Mapping[str, Any], annotations: dict[str, str]) -> list[Result]:
        name, namespace = pod["name"], str(pod.get("namespace") or "default")
        try:
            return self._resolve(entry, Pod(namespace, name, annotations))
        except (NetworksError, HostError) as error:
            if entry.get("state") == "absent":
                # What was attached is recorded on the host.
                return []
            if isinstance(error, HostError):
                raise
            code = "bad_annotation" if error.annotation else "bad_pod"
            raise HostError(f"{namespace}/{name}: {error.explain()}", code) from error

    def _resolve(self, entry: Mapping[str, Any], pod: Pod) -> list[Result]:
        own = Delegate(b"", str(entry.get("network")), "", None)
        own.first = True
        self._conf.delegates = [own]
        wanted = []
        for annotation, namespace in ((DEFAULT_NETWORK, self._conf.multus_namespace), (NETWORKS, pod.namespace)):
            text = pod.annotations.get(annotation)
            if text:
                selections = parse_networks(text, namespace, annotation)
                check_selections(selections, annotation)
                wanted += [(selection.namespace, selection.name) for selection in selections]
        definitions = {key: definition for key in wanted if (definition := self._definition(key)) is not None}
        networks = pod_networks(self._conf, pod, definitions)
        ifnames = pod_interface_names(networks, str(entry.get("ifname") or "eth0"))
        changes = default_route_changes([delegate.default_route for delegate in networks.delegates])
        in_files = {"/".join(key) for key, definition in definitions.items() if isinstance(definition, FileDefinition)}
        return [
            self._sent(delegate, ifname, routes, delegate.name in in_files)
            for delegate, ifname, routes in zip(networks.delegates, ifnames, changes)
        ]

    def _definition(self, key: tuple[str, str]) -> Optional[NetworkDefinition]:
        """Return a definition that is valid, None if there is none. Raises HostError with its problems."""
        manifest = self._definitions.find(*key)
        if manifest is None:
            return None
        if key not in self._checked:
            problems = errors_of(CheckedNads([manifest], LEVELS).problems)
            self._checked[key] = error_of(problems) if problems else None
        error = self._checked[key]
        if error is not None:
            raise error
        return self._definitions.definition(*key)

    def _sent(self, delegate: Delegate, ifname: str, routes: DefaultRoutes, in_file: bool) -> Result:
        sent: Result = {"network": delegate.network, "ifname": ifname, "name": delegate.name}
        if routes.families:
            sent["routes"] = {"families": routes.families, "gateways": routes.gateways}
        asked = delegate.selection
        if in_file:
            if asked is not None and asked.cni_args is not None:
                raise NetworksError(
                    f"cni-args of {delegate.name} cannot be added to a configuration that is in a file of the host; "
                    "write spec.config in its definition",
                    annotation=NETWORKS,
                )
            sent["conf_dir"] = self._conf.conf_dir
        elif delegate.data:
            sent["config"] = delegate.data.decode("utf-8", "surrogatepass")
        if asked is not None and not delegate.first:
            sent["capability_args"] = parse_json(json.dumps(network_capabilities({}, delegate, "", ifname)))
            sent["capability_args"].pop("CNIDeviceInfoFile", None)
            args = {"MAC": asked.mac, "IP": ",".join(asked.ips or [])}
            sent["args"] = {key: value for key, value in args.items() if value}
        return sent


def _annotations(pod: Mapping[str, Any]) -> Optional[dict[str, str]]:
    """Return the annotations of a pod, those about networks as texts: templates may have made data of their JSON."""
    given = pod.get("annotations")
    if not isinstance(given, dict):
        return None
    annotations = dict(given)
    for name in (NETWORKS, DEFAULT_NETWORK):
        if isinstance(given.get(name), (dict, list)):
            annotations[name] = json.dumps(given[name])
    for name, value in annotations.items():
        if not isinstance(value, str):
            raise HostError(f"the annotation {name} is {type(value).__name__}; write it in quotes", "bad_pod")
    return annotations
