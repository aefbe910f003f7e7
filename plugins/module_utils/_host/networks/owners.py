# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The owner of an unmanaged file: recognised by its content or name, and by the processes on the host."""

from __future__ import annotations

import json
import re
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ...libcni import gojson
from ..addresses import objects_in
from ..binaries.types import types_of
from ..confdir import ConfFile, read_go_json
from ..kinds import text_of


def injected(current: Optional[bytes], desired: bytes, of_others: Callable[[str], bool]) -> List[Dict[str, Any]]:
    """Return the plugins of the conflist *current* that *desired* does not have and whose type *of_others* accepts."""
    asked = {text_of(plugin, "type") for plugin in _plugins(desired)}
    return [
        plugin
        for plugin in _plugins(current or b"")
        if text_of(plugin, "type") not in asked and of_others(text_of(plugin, "type"))
    ]


def with_injected(desired: bytes, plugins: List[Dict[str, Any]]) -> bytes:
    """Return the conflist *desired* with *plugins* at the end of its chain, where their owners put them."""
    # Imported late: few hosts have such plugins.
    from ..json_text import parse_json

    data = parse_json(desired)
    data["plugins"] = data["plugins"] + plugins
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def split(text: bytes, of_others: Callable[[str], bool]) -> Tuple[Any, List[Dict[str, Any]]]:
    """Return the parsed conflist *text* without the plugins whose type *of_others* accepts, and those plugins.

    Raises JSONError.
    """
    data = gojson.loads(text)
    injected_plugins = [plugin for plugin in _objects(data) if of_others(text_of(plugin, "type"))]
    if injected_plugins:
        data["plugins"] = [plugin for plugin in data["plugins"] if plugin not in injected_plugins]
    return data, injected_plugins


def _plugins(text: bytes) -> List[Dict[str, Any]]:
    return _objects(read_go_json(text))


def _objects(data: Any) -> List[Dict[str, Any]]:
    return objects_in(data.get("plugins")) if isinstance(data, dict) else []


class Owner(NamedTuple):
    """A program that writes conflists.

    It owns a file if a plugin of ``types`` is in the chain, or if the path matches the pattern ``path``. ``processes``
    are the names of its processes, one of which must run as root (none: its package writes them). ``config`` is
    a file and a pattern that must match in it, for programs whose running proves nothing. ``setting`` says what to
    change so that it stops writing the file.
    """

    name: str
    types: Tuple[str, ...]
    path: str
    processes: Tuple[str, ...]
    setting: str
    config: Tuple[str, str] = ("", "")


INJECTED = {"istio-cni": "Istio", "linkerd-cni": "Linkerd"}
"""Plugins that a program adds to the conflists of other owners -> its name."""

# The first match that runs counts, so programs that take over files of other owners come first.
OWNERS = (
    Owner(
        "Multus",
        ("multus", "multus-shim"),
        r"/00-multus\.conf(list)?\Z",
        ("multus-daemon", "thin_entrypoint"),
        "set 'multusConfigFile' in its daemon-config.json (thin plugin: --multus-conf-file) to a file of your own "
        "instead of 'auto', or remove its DaemonSet",
    ),
    Owner(
        "Cilium",
        ("cilium-cni",),
        r"/05-cilium\.conf(list)?\Z",
        ("cilium-agent",),
        "set cni.customConf=true in its Helm values (write-cni-conf-when-ready: '' in the ConfigMap cilium-config), "
        "so that the agent writes no configuration",
    ),
    Owner(
        "Calico",
        ("calico",),
        r"/10-(calico|canal)\.conflist\Z",
        ("calico-node", "calico-felix"),
        "change spec.cni of the operator's Installation (without the operator: cni_network_config in the ConfigMap "
        "calico-config), or remove Calico",
    ),
    Owner(
        "AWS VPC CNI",
        ("aws-cni",),
        r"/10-aws\.conflist\Z",
        ("aws-k8s-agent",),
        "change the environment of its DaemonSet aws-node (EKS: the configuration of the add-on vpc-cni), or remove it",
    ),
    Owner(
        "Azure CNI",
        ("azure-vnet", "azure-ipam"),
        r"/10-azure\.conflist\Z",
        ("azure-cns",),
        "change the cluster's network plugin (az aks --network-plugin), or remove its DaemonSet azure-cns",
    ),
    Owner(
        "Antrea",
        ("antrea",),
        r"/10-antrea\.conflist\Z",
        ("antrea-agent",),
        "change antrea-cni.conflist in the ConfigMap antrea-config, or remove Antrea",
    ),
    Owner(
        "Kube-OVN",
        ("kube-ovn",),
        r"/\d\d-kube-ovn\.conflist\Z",
        ("kube-ovn-daemon",),
        "change --cni-conf-name of its DaemonSet kube-ovn-cni, or remove Kube-OVN",
    ),
    Owner(
        "OVN-Kubernetes",
        ("ovn-k8s-cni-overlay",),
        r"/10-ovn-kubernetes\.conf\Z",
        ("ovnkube",),
        "change the cluster's network (OpenShift: spec.defaultNetwork of the operator's Network), or remove it",
    ),
    Owner(
        "Weave Net",
        ("weave-net",),
        r"/10-weave\.conflist\Z",
        ("weaver",),
        "remove its DaemonSet weave-net, which writes the file again at each start",
    ),
    Owner(
        "k3s",
        (),
        r"/k3s/agent/etc/cni/net\.d/10-flannel\.conflist\Z",
        ("k3s",),
        "start k3s with --flannel-cni-conf=FILE, or with --flannel-backend=none",
    ),
    Owner(
        "flannel",
        ("flannel",),
        r"/10-flannel\.conflist\Z",
        ("flanneld",),
        "change cni-conf.json in the ConfigMap kube-flannel-cfg, or remove its DaemonSet kube-flannel-ds",
    ),
    Owner(
        "kindnet",
        (),
        r"/10-kindnet\.conflist\Z",
        ("kindnetd",),
        "set networking.disableDefaultCNI: true in the configuration of the kind cluster",
    ),
    Owner(
        "kube-router",
        (),
        r"/10-kuberouter\.conf(list)?\Z",
        ("kube-router",),
        "change cni-conf.json in the ConfigMap kube-router-cfg, or start it with --run-router=false",
    ),
    Owner(
        "GKE's netd",
        (),
        r"/10-gke-ptp\.conflist\Z",
        ("netd",),
        "change the cluster's network; its DaemonSet netd writes the file again at each start",
    ),
    Owner(
        "containerd",
        (),
        r"/10-containerd-net\.conflist\Z",
        ("containerd",),
        "remove conf_template from the section cni of /etc/containerd/config.toml",
        ("/etc/containerd/config.toml", r"""(?m)^\s*conf_template\s*=\s*["'][^"'\s]"""),
    ),
    Owner(
        "Istio",
        ("istio-cni",),
        r"/YYY-istio-cni\.conf(list)?\Z",
        ("install-cni",),
        "set cniConfFileName to another file, or chained: false, in the values of the chart istio-cni",
    ),
    Owner(
        "Linkerd",
        ("linkerd-cni",),
        r"/01-linkerd-cni\.conf(list)?\Z",
        ("install-cni.sh", "linkerd-cni-repair-controller"),
        "set destCNINetDir to another directory in the values of the chart linkerd2-cni, or remove its DaemonSet",
    ),
    # Its package installs these files. Nothing writes them again while it runs.
    Owner(
        "Apptainer",
        (),
        r"/apptainer/network/(00_bridge|10_ptp|20_ipvlan|30_macvlan|40_fakeroot)\.conflist\Z",
        (),
        "set 'cni configuration path' in apptainer.conf to another directory",
    ),
)


CILIUM_SUFFIX = ".cilium_bak"
"""The suffix that Cilium, with ``cni.exclusive``, adds to the names of files of other owners."""

_CONFIG_SIZE = 1 << 20


class Living(NamedTuple):
    """A running owner, known by one of its processes."""

    owner: Owner
    process: str
    pid: int

    def __str__(self) -> str:
        return f"{self.owner.name}, which is running ({self.process}, process {self.pid})"


class Owners:
    """Finds the owners of the files of *conf_dir*. Lists processes once, and only if a file has a possible owner."""

    def __init__(self, conf_dir: str) -> None:
        self._conf_dir = conf_dir
        self._processes: Optional[Dict[str, int]] = None

    def living(self, file: ConfFile) -> Optional[Living]:
        """Return the running owner of *file*, by its content or its name; None if there is none."""
        for owner in _fitting(file):
            running = self._running(owner)
            if running is not None:
                return running
        return None

    def named(self, name: str) -> Optional[Living]:
        """Return the owner *name* of the table if it is running."""
        return next((self._running(owner) for owner in OWNERS if owner.name == name), None)

    def injector(self, plugin_type: str) -> Optional[Living]:
        """Return the running program that adds plugins of this type to the conflists of other owners."""
        return self.named(INJECTED[plugin_type]) if plugin_type in INJECTED else None

    def _running(self, owner: Owner) -> Optional[Living]:
        if self._processes is None:
            from ..processes import processes

            # Most of them run in containers, which have the directory that they write to. Only their names are used.
            names = {name for owned in OWNERS for name in owned.processes}
            self._processes = {owned.name: owned.pid for owned in reversed(processes(*names, seeing=self._conf_dir))}
        for process in owner.processes:
            pid = self._processes.get(process)
            if pid is not None and _configured(owner):
                return Living(owner, process, pid)
        return None


def recognise(file: ConfFile) -> Optional[Owner]:
    """Return the owner of *file* by its content or name, whether it runs or not; None if there is none."""
    return next(_fitting(file), None)


def _fitting(file: ConfFile) -> Iterator[Owner]:
    types = set(types_of(file.plugins))
    for owner in OWNERS:
        if types.intersection(owner.types) or re.search(owner.path, file.path):
            yield owner


def _configured(owner: Owner) -> bool:
    path, pattern = owner.config
    if not path:
        return True
    try:
        with open(path, "rb") as stream:
            return re.search(pattern, stream.read(_CONFIG_SIZE).decode("utf-8", "replace")) is not None
    except OSError:
        return False
