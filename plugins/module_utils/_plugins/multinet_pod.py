# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a call of podwire-multinet is about: its configuration, the pod, and the networks that the pod gets."""

from __future__ import annotations

import os
import sys

from ..libcni import gojson
from ..libcni.errors import (
    ERR_INTERNAL,
    ERR_INVALID_NETNS,
    ERR_INVALID_NETWORK_CONFIG,
    CNIError,
    ConfigError,
    PluginError,
)
from ..libcni.multi.configuration import MultusConf, load_multus_conf
from ..libcni.multi.errors import NetworksError
from ..libcni.multi.pod import Pod, PodNetworks, pod_interface_names, pod_networks
from ..libcni.multi.records import NetworkRecord, PodRecord
from ..libcni.multi.routes import default_route_changes
from ..libcni.multi.runner import PodRunner
from ..libcni.multi.runtime import decode_capabilities, network_args, network_capabilities, parse_pod_args
from ..libcni.multi.selection import DEFAULT_NETWORK, NETWORKS, check_selections, parse_networks
from ..libcni.multi.sources import DefinitionFiles, call_annotations, file_annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from ..libcni.skel import CmdArgs

NAME = "podwire-multinet"
# Multus' own are other directories, so that a host can have both.
_DIRECTORIES = {
    "confDir": "/etc/cni/multinet/net.d",
    "cniDir": "/var/lib/cni/multinet",
    "nadDir": "/etc/cni/multinet/nads",
    "podDir": "/etc/cni/multinet/pods",
}
# Where plugins are if CNI_PATH does not have them; Multus searches it first.
_BIN_DIR = "/opt/cni/bin"
# How many seconds a call waits for plugins that a killed ADD of the same container has started.
PATIENCE = 30.0


def bad_config(text: str) -> PluginError:
    """Return the error for a configuration that the plugin does not take."""
    return PluginError(ERR_INVALID_NETWORK_CONFIG, text)


class Settings:
    """The configuration. Directories are absolute; `path` is where plugins are looked for.

    `tolerant`: a directory that is none counts as not given, because a container must be able to go.
    """

    def __init__(self, args: CmdArgs, tolerant: bool = False) -> None:
        given = dict.fromkeys((*_DIRECTORIES, "binDir"), "")
        for key, value in gojson.struct_items(args.config, tuple(given)):
            if value is not None and not _is_directory(value):
                if not tolerant:
                    raise bad_config(f"{key}: expected an absolute path without . and .., found {value!r}")
                value = None
            given[key] = value or ""
        folders = {key: given[key] or default for key, default in _DIRECTORIES.items()}
        self.conf_dir, self.cni_dir, self.nad_dir, self.pod_dir = folders.values()
        path = [folder for folder in args.path.split(":") if folder]
        folders_of_plugins = [given["binDir"], *path] if given["binDir"] else [*path, _BIN_DIR]
        self.path = list(dict.fromkeys(folders_of_plugins))


def _is_directory(value: t.Any) -> bool:
    if value == "":
        return True
    return isinstance(value, str) and os.path.isabs(value) and os.path.normpath(value) == value and "\0" not in value


def load_conf(args: CmdArgs, settings: Settings) -> MultusConf:
    """Return the configuration as Multus reads it. Raises `PluginError`."""
    try:
        conf = load_multus_conf(args.stdin_data)
    except NetworksError as exc:
        raise bad_config(exc.explain()) from exc
    conf.conf_dir, conf.cni_dir = settings.conf_dir, settings.cni_dir
    if conf.auxiliary_chain:
        raise bad_config(
            "auxiliaryCNIChainName is not supported; put the plugins into the folder of the cluster network's name, "
            "beside its file"
        )
    return conf


class PodCall:
    """A call for one pod."""

    def __init__(self, args: CmdArgs, settings: Settings) -> None:
        self.args = args
        self.settings = settings
        self.conf = load_conf(args, settings)
        try:
            self.pod_args = parse_pod_args(args.args)
        except ConfigError as exc:
            raise bad_config(exc.msg) from exc
        self.namespace = self.pod_args.namespace or "default"
        self.pod = f"{self.namespace}/{self.pod_args.name or args.container_id}"

    def runner(self, netns: str | None = None, keep: t.Collection[int] = ()) -> PodRunner:
        """Return what runs the pod's networks, in the namespace of the call or in another."""
        netns = self.args.netns if netns is None else netns
        return PodRunner(self.settings.path, self.settings.cni_dir, self.args.container_id, netns, keep)

    def planned(self) -> PodRecord:
        """Return the networks of the pod. Whatever can be refused is refused here. Raises `PluginError`."""
        try:
            capabilities = decode_capabilities(_runtime_config(self.args.config))
            annotations = self._annotations(capabilities)
            networks = self._networks(annotations)
            record = self._record(networks, capabilities)
        except NetworksError as exc:
            raise self.refusal(exc.explain()) from exc
        except ConfigError as exc:
            raise self.refusal(exc.msg) from exc
        runner = self.runner()
        for network in record.networks:
            self._check_network(runner, network)
        return record

    def planned_as_far_as_possible(self) -> PodRecord | None:
        """Return the networks that a pod without a record may have: without those of annotations if they are bad."""
        try:
            capabilities = decode_capabilities(_runtime_config(self.args.config))
        except CNIError:
            capabilities = {}
        try:
            return self._record(self._networks(self._annotations(capabilities)), capabilities)
        except CNIError:
            pass
        try:
            return self._record(self._networks({}), capabilities)
        except CNIError:
            return None

    def refusal(self, why: str) -> PluginError:
        """Return the error for a pod that gets no network at all."""
        return PluginError(ERR_INVALID_NETWORK_CONFIG, f"pod {self.pod}: {why}", "no network was added")

    def _annotations(self, capabilities: t.Mapping[str, t.Any]) -> dict[str, str]:
        annotations = call_annotations(capabilities, self.args.config)
        if annotations:
            return annotations
        folder, name = self.settings.pod_dir, self.pod_args.name
        return file_annotations(folder, self.args.container_id, self.namespace, name, check_file)

    def _networks(self, annotations: t.Mapping[str, str]) -> PodNetworks:
        for name, namespace in ((NETWORKS, self.namespace), (DEFAULT_NETWORK, self.conf.multus_namespace)):
            if annotations.get(name):
                check_selections(parse_networks(annotations[name], namespace, name), name)
        definitions = DefinitionFiles(self.settings.nad_dir, self.namespace, self.conf.conf_dir, check_file)
        return pod_networks(self.conf, Pod(self.namespace, self.pod_args.name, annotations), definitions)

    def _record(self, networks: PodNetworks, capabilities: t.Mapping[str, t.Any]) -> PodRecord:
        args = self.args
        names = pod_interface_names(networks, args.ifname)
        changes = default_route_changes([delegate.default_route for delegate in networks.delegates])
        record = PodRecord(self.conf.name, args.container_id, args.ifname, args.netns, self.pod)
        for delegate, ifname, routes in zip(networks.delegates, names, changes):
            network = NetworkRecord(delegate.network, ifname, delegate.data, delegate.is_list, delegate.name)
            network.args = network_args(self.pod_args, delegate)
            network.capability_args = network_capabilities(capabilities, delegate, args.container_id, ifname)
            network.families, network.gateways = routes.families, routes.gateways
            record.networks.append(network)
        return record

    def _check_network(self, runner: PodRunner, network: NetworkRecord) -> None:
        try:
            runner.require(network)
            if any(plugin.type == NAME for plugin in runner.conflist(network).plugins):
                raise ConfigError(f"it runs {NAME} again, which would call itself without end")
        except CNIError as exc:
            raise self.refusal(f"network {network.name} ({network.ifname}): {exc}") from exc


def _runtime_config(config: t.Mapping[str, t.Any]) -> t.Any:
    runtime_config = None
    for _key, value in gojson.struct_items(config, ("runtimeConfig",)):
        runtime_config = value
    return runtime_config


def check_file(path: str) -> None:
    """Raise `NetworksError` unless only root can change a file that decides what root runs."""
    from .._host.errors import HostError
    from .._host.trust import check_trusted

    try:
        check_trusted(path)
    except HostError as exc:
        raise NetworksError(exc.msg) from exc


# ---- for all verbs


def interfaces(path: str) -> dict[str, str]:
    """Return the names of a namespace's interfaces with their hardware addresses. Raises `PluginError`."""
    from ..libcni import netns

    try:
        with netns.inside(path):
            return {link.name: link.mac for link in netns.links()}
    except netns.NamespaceError as exc:
        raise PluginError(ERR_INVALID_NETNS, str(exc)) from exc


def code_of(error: CNIError) -> int:
    """Return the code of an error object for an error."""
    return getattr(error, "code", 0) or ERR_INTERNAL


def joined(errors: t.Sequence[tuple[str, CNIError]]) -> PluginError:
    """Return one error for some, each with the words of what failed."""
    return PluginError(code_of(errors[0][1]), "; ".join(f"{what}: {error}" for what, error in errors))


def note(text: str) -> None:
    """Tell a person what fails no call."""
    sys.stderr.write(f"{NAME}: {text}\n")
