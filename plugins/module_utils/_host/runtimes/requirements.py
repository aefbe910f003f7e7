# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plugins that runtimes execute although no file names them: those of networks that runtimes build themselves."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..errors import HostError
from ..hostview import HostView, Users
from . import discover
from .profiles import OWN, Runtime


class BuiltIn(NamedTuple):
    """A network that a runtime builds: its ``name``, ``cni_version``, the types of its ``plugins``, and for what."""

    name: str
    cni_version: str
    plugins: Tuple[str, ...]
    purpose: str


# containerd/go-cni opts.go:WithLoNetwork
_LO = BuiltIn("cni-loopback", "0.3.1", ("loopback",), "every pod")
# kubernetes pkg/kubelet/dockershim/network/cni/cni.go:getLoNetwork, cri-dockerd network/cni/cni.go:getLoNetwork
_LO_OF_KUBELET = _LO._replace(cni_version="0.2.0")
BUILT_IN: Dict[str, BuiltIn] = {
    # containerd internal/cri/server/service_linux.go:cniLoadOptions
    "containerd-1.6": _LO,
    "containerd-1.7": _LO,
    "containerd-2.0": _LO,
    "containerd-2.1": _LO,
    "k3s": _LO,
    "rke2": _LO,
    "microk8s": _LO,
    "k0s": _LO,
    "dockershim": _LO_OF_KUBELET,
    "dockershim-1.9": _LO_OF_KUBELET,
    # kubernetes pkg/kubelet/network/kubenet/kubenet_linux.go:NET_CONFIG_TEMPLATE
    "kubenet": BuiltIn("kubenet", "0.1.0", ("loopback", "bridge", "host-local"), "every pod"),
    "cri-dockerd": _LO_OF_KUBELET,
    # moby/buildkit util/network/cniprovider/cni.go:New
    "buildkit": _LO._replace(purpose="every build step"),
    # hashicorp/nomad client/allocrunner/networking_bridge_linux.go:nomadCNIConfigTemplate
    "nomad-bridge": BuiltIn(
        "nomad", "0.4.0", ("loopback", "bridge", "host-local", "firewall", "portmap"), "every job in bridge mode"
    ),
}
"""The networks by profile. CRI-O, podman and nerdctl bring up lo without a plugin; ctr leaves it to the OCI runtime."""

# The releases of containerd that ignore use_internal_loopback.
_WITHOUT_INTERNAL = ("1.6", "1.7")


def built_in(runtime: Runtime) -> Optional[BuiltIn]:
    """Return the network that *runtime* builds itself, None if it builds none."""
    if not runtime.reads or (runtime.internal_loopback and not runtime.version.startswith(_WITHOUT_INTERNAL)):
        return None
    return BUILT_IN.get(runtime.name)


def requirements(runtime: Runtime, ask: Callable[[str], Sequence[str]]) -> List[Dict[str, Any]]:
    """Return a row for each plugin of the built-in network: ``{plugin, code, problem}``, both "" if it is usable.

    *ask* returns the versions that a plugin supports, or raises HostError.
    """
    own = built_in(runtime)
    return [_requirement(plugin, own, ask) for plugin in own.plugins] if own else []


def _requirement(plugin: str, own: BuiltIn, ask: Callable[[str], Sequence[str]]) -> Dict[str, Any]:
    try:
        versions = ask(plugin)
    except HostError as error:
        return {"plugin": plugin, "code": error.code, "problem": error.msg}
    if own.cni_version in versions:
        return {"plugin": plugin, "code": "", "problem": ""}
    text = f"the plugin {plugin} supports {', '.join(versions)}, but not {own.cni_version}; install another release"
    return {"plugin": plugin, "code": "unsupported_by_plugin", "problem": text}


def built_in_users(view: HostView, bin_dir: str) -> Users:
    """Return the built-in networks of this host's runtimes whose plugins are in *bin_dir*.

    Without a network of its own, a runtime starts no container, and does not need the plugins.
    """
    found = []
    for runtime in discover.runtimes_on_host(""):
        own = built_in(runtime)
        if own is None or not any(discover.same_directory(bin_dir, path) for path in runtime.bin_dirs):
            continue
        if runtime.rules.choice == OWN or view.conf_files(runtime.conf_dir):
            text = f"{runtime.name} for {own.purpose} (its built-in network {own.name!r})"
            found.append((text, own.cni_version, [{"type": plugin} for plugin in own.plugins]))
    return found
