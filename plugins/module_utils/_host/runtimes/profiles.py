# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What each runtime reads and how it chooses: data for :mod:`rules`, each row with its source.

Sources are named as file:function of the project's repository; docs/runtimes.md has the commits.
"""

from __future__ import annotations

import re
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

CONTAINERD = "containerd"
"""Stands for the row of the installed version, or the newest row if none is installed."""


# --- how a network is chosen (Profile.choice)
FIRST = "first"
"""The first files by name, as many as it is configured to use."""
NAMED = "named"
"""The network is named when a container starts."""
OWN = "own"
"""It reads no file: it generates the configuration itself."""

# --- the effect of a file that cannot be loaded (Profile.broken)
ENDS = "ends"
"""Loading ends there with an error; networks found before it are dropped (NAMED: kept)."""
SKIPPED = "skipped"
"""It is skipped; the other files are loaded."""
SPOILS = "spoils"
"""All files are read, and a broken one, wherever it sorts, means that no network is loaded."""

# --- Profile.verified
RUN = "run"
"""Compared with the runtime itself, on many directories."""
SOURCE = "source"
"""Taken from its source; not run."""


class BuiltIn(NamedTuple):
    """A network that a runtime builds: its ``name``, ``cni_version``, the types of its ``plugins``, and for what.

    ``chain``: its plugins as the runtime writes them, () if that is not known, ``rules``: its commands of iptables.
    """

    name: str
    cni_version: str
    plugins: Tuple[str, ...]
    purpose: str
    chain: Sequence[Dict[str, Any]] = ()
    rules: Sequence[Sequence[str]] = ()


Releases = Tuple[Tuple[Tuple[int, int], str], ...]


def _always(level: str) -> Releases:
    return (((0, 0), level),)


class Profile(NamedTuple):
    """A runtime from the point of view of CNI.

    How it loads networks from files: ``nothing`` is its message for a directory without files ("{}" is the directory).
    ``validates``: a network counts only if its plugins are installed and support its version. ``drop_ins``: with libcni
    1.3, the plugins in the network's folder are appended. ``lists_first``: ``.conf`` and ``.json`` files are read after
    all conflists. ``all_lists``: every file is read as a conflist (True), or as the configuration of a single plugin
    (False), whatever its extension. ``ignored``: files whose names start with this are not read. ``converts``: a
    network counts only if it can be converted to podman's own form, and has a valid name. ``named_by_file``: a network
    without a name gets the name of its file. ``finds``: a network counts only if its plugins are there; they are not
    asked. ``untyped``: a single plugin without a type is no error. ``bundled``: plugins that the runtime brings along,
    and executes where no directory has them. ``notes_missing``: a network whose plugins are missing is available all
    the same, which is noted. ``one_file``: it reads the file at conf_dir only. ``label``: a network with this label of
    nerdctl is the default.

    ``libcni`` is the release of Go's libcni that it contains: pairs of the runtime's first version with it and libcni's
    release, newest first, the last one for all earlier versions. ``conf_dir`` and ``bin_dirs`` are its defaults,
    ``default_network`` the network it uses when none is requested (NAMED). ``own`` says which network it creates
    itself if there is none. ``fixed``: its conf_dir cannot be configured. ``built_in``: the network whose plugins it
    executes although no file names them; CRI-O, podman and nerdctl bring up lo without a plugin, ctr leaves it to the
    OCI runtime. That of podman, which it creates if no file has it, has a chain only. ``unit``: the unit of its daemon,
    "" if it is none.

    A distribution has a containerd of its own with the configuration ``config``, in whose path, wherever it is, is
    ``mark``, and the ``program``. ``stands_for`` is the runtime whose place it takes, ``managed`` how it configures it
    ("{}" is its conf_dir).
    """

    choice: str
    broken: str
    nothing: str = "no network configuration in {}"
    extensions: Tuple[str, ...] = (".conf", ".conflist", ".json")
    validates: bool = False
    drop_ins: bool = True
    lists_first: bool = False
    all_lists: Optional[bool] = None
    ignored: str = ""
    converts: bool = False
    named_by_file: bool = False
    finds: bool = False
    untyped: bool = False
    bundled: Tuple[str, ...] = ()
    notes_missing: bool = False
    one_file: bool = False
    label: str = ""
    libcni: Releases = _always("1.1")
    conf_dir: str = "/etc/cni/net.d"
    bin_dirs: Tuple[str, ...] = ("/opt/cni/bin",)
    verified: str = SOURCE
    default_network: str = ""
    own: str = ""
    fixed: bool = False
    built_in: Optional[BuiltIn] = None
    unit: str = ""
    config: str = ""
    mark: str = ""
    program: str = ""
    stands_for: str = ""
    managed: str = ""


# containerd/go-cni opts.go:WithLoNetwork
_LO = BuiltIn("cni-loopback", "0.3.1", ("loopback",), "every pod")
# kubernetes pkg/kubelet/dockershim/network/cni/cni.go:getLoNetwork, cri-dockerd network/cni/cni.go:getLoNetwork
_LO_OF_KUBELET = _LO._replace(cni_version="0.2.0")
_RANCHER = (
    " generates this configuration at each start; write networks to {} (cni_conf_dir), or change the template "
    "config.toml.tmpl (config-v3.toml.tmpl with containerd 2) beside it"
)

# containerd/go-cni opts.go:loadFromConfDir, containerd internal/cri/server/service_linux.go:cniLoadOptions
_CONTAINERD = Profile(FIRST, ENDS, "no network config found in {}", built_in=_LO, unit="containerd")
# go.mod of containerd at each tag
_DISTRIBUTION = _CONTAINERD._replace(libcni=(((2, 1), "1.3"), ((2, 0), "1.2"), ((0, 0), "1.1")), stands_for=CONTAINERD)
# cri-o/ocicni pkg/ocicni/ocicni.go:loadNetworks; cri-o docs/crio.conf.5.md; go.mod at each tag
_CRIO = Profile(
    FIRST,
    SKIPPED,
    "no CNI configuration file in {}. Has your network provider started?",
    validates=True,
    named_by_file=True,
    libcni=(((1, 33), "1.3"), ((1, 31), "1.2"), ((0, 0), "1.1")),
    unit="crio",
)
# kubernetes pkg/kubelet/dockershim/network/cni/cni.go:getDefaultCNINetwork
_DOCKERSHIM = Profile(FIRST, SKIPPED, "No networks found in {}", built_in=_LO_OF_KUBELET)
# containernetworking/cni libcni/conf.go:LoadNetworkConf
_LIBCNI = Profile(NAMED, ENDS, "no net configurations found in {}", lists_first=True)

PROFILES: Dict[str, Profile] = {
    "containerd-1.6": _CONTAINERD._replace(verified=RUN),
    "containerd-1.7": _CONTAINERD._replace(verified=RUN),
    "containerd-2.0": _CONTAINERD._replace(libcni=_always("1.2")),
    "containerd-2.1": _CONTAINERD._replace(libcni=_always("1.3"), verified=RUN),
    # containerd cmd/ctr/commands/run/run.go: both directories are written there
    "ctr": _DISTRIBUTION._replace(fixed=True, built_in=None, unit="", stands_for=""),
    "crio": _CRIO,
    # machine-config-operator templates/worker/.../crio.yaml
    "openshift": _CRIO._replace(
        conf_dir="/etc/kubernetes/cni/net.d",
        bin_dirs=("/var/lib/cni/bin",),
        stands_for="crio",
        managed="its MachineConfig manages this configuration; write networks to {} (cni_conf_dir), or change the "
        "MachineConfig",
    ),
    "dockershim": _DOCKERSHIM,
    "dockershim-1.9": _DOCKERSHIM,
    # kubernetes pkg/kubelet/network/kubenet/kubenet_linux.go:Init, Event, NET_CONFIG_TEMPLATE
    "kubenet": Profile(
        OWN,
        SKIPPED,
        own="kubelet builds it from the node's PodCIDR, not from a file: bridge cbr0, host-local",
        built_in=BuiltIn("kubenet", "0.1.0", ("loopback", "bridge", "host-local"), "every pod"),
    ),
    # Mirantis/cri-dockerd network/cni/cni.go:getDefaultCNINetwork
    "cri-dockerd": _DOCKERSHIM._replace(nothing="no networks found in {}", validates=True),
    # containers/common libnetwork/cni/network.go:loadNetworks, pkg/config/default.go, libnetwork/types/const.go
    "podman": Profile(
        NAMED,
        SKIPPED,
        extensions=(".conflist",),
        validates=True,
        converts=True,
        libcni=(((5, 0), "1.3"), ((0, 0), "1.1")),
        bin_dirs=("/usr/local/libexec/cni", "/usr/libexec/cni", "/usr/local/lib/cni", "/usr/lib/cni", "/opt/cni/bin"),
        verified=RUN,
        default_network="podman",
        own="podman creates it in memory: bridge cni-podman0",
    ),
    # containerd/nerdctl pkg/netutil/store.go:fsRead, netutil.go:cniLoad, netutil_unix.go, pkg/defaults, pkg/labels
    "nerdctl": Profile(
        NAMED,
        SPOILS,
        drop_ins=False,
        all_lists=True,
        label="nerdctl/default-network",
        libcni=(((2, 1), "1.3"), ((2, 0), "1.2"), ((0, 0), "1.1")),
        default_network="bridge",
        own="nerdctl writes it to nerdctl-bridge.conflist on its next command: bridge nerdctl0, 10.4.0.0/24",
    ),
    # hashicorp/nomad client/fingerprint/cni.go:Fingerprint, client/allocrunner/networking_cni.go:loadCNIConf,
    # client/config/config.go, client/config/config_linux.go
    "nomad": Profile(
        NAMED,
        SPOILS,
        "no CNI network config found in {}",
        libcni=(((1, 10), "1.2"), ((0, 0), "1.1")),
        conf_dir="/opt/cni/config",
        unit="nomad",
    ),
    # hashicorp/nomad client/allocrunner/networking_bridge_linux.go:nomadCNIConfigTemplate
    "nomad-bridge": Profile(
        OWN,
        SKIPPED,
        libcni=_always("1.2"),
        own="Nomad builds it from plugins, not from a file, for jobs in bridge mode",
        built_in=BuiltIn(
            "nomad", "0.4.0", ("loopback", "bridge", "host-local", "firewall", "portmap"), "every job in bridge mode"
        ),
    ),
    # moby/buildkit util/network/cniprovider/cni.go:New, util/appdefaults/appdefaults_unix.go
    "buildkit": Profile(
        FIRST,
        ENDS,
        "no CNI configuration {}, so builds use the host's network",
        one_file=True,
        conf_dir="/etc/buildkit/cni.json",
        built_in=_LO._replace(purpose="every build step"),
        unit="buildkit",
    ),
    # firecracker-go-sdk network.go
    "firecracker": _LIBCNI._replace(conf_dir="/etc/cni/conf.d"),
    # It calls libcni's LoadConfList; the package of Debian; measured
    "apptainer": _LIBCNI._replace(
        notes_missing=True,
        libcni=_always("1.3"),
        conf_dir="/etc/apptainer/network",
        bin_dirs=("/usr/lib/cni",),
        verified=RUN,
    ),
    # rkt networking/podenv.go:loadUserNets, loadNets, net_plugin.go:pluginPaths, stage1/net-plugins/net-plugins.mk
    "rkt": Profile(
        NAMED,
        SPOILS,
        extensions=(".conf",),
        drop_ins=False,
        all_lists=False,
        untyped=True,
        bundled=("bridge", "dhcp", "flannel", "host-local", "ipvlan", "macvlan", "ptp", "tuning"),
        conf_dir="/etc/rkt/net.d",
        bin_dirs=("/usr/lib/rkt/plugins/net",),
        default_network="default",
        own="rkt takes it from its stage1 image: ptp, 172.16.28.0/24",
    ),
    # mesos src/slave/containerizer/mesos/isolators/network/cni/cni.cpp:loadNetworkConfigs, spec.proto, docs/cni.md; the
    # agent has no defaults
    "mesos": Profile(
        NAMED,
        SKIPPED,
        drop_ins=False,
        all_lists=False,
        finds=True,
        conf_dir="/var/lib/mesos/cni/config",
        bin_dirs=("/var/lib/mesos/cni/plugins",),
    ),
    # amazon-ecs-agent ecscni, agent/config/config.go:defaultCNIPluginsPath, in the image of the agent
    "ecs": Profile(
        OWN,
        SKIPPED,
        bin_dirs=("/amazon-ecs-cni-plugins",),
        own="the ECS agent builds it, not from a file, of plugins in its image, for tasks in the mode awsvpc",
    ),
    # multus-cni cmd/thin_entrypoint/main.go:getMasterConfigPath, pkg/server/config/generator.go:findMasterPlugin
    "multus": Profile(
        FIRST,
        ENDS,
        "no master configuration in {}",
        extensions=(".conf", ".conflist"),
        drop_ins=False,
        ignored="00-multus",
        libcni=_always("1.3"),
    ),
    "cnitool": _LIBCNI._replace(libcni=_always("1.3")),
    # k3s pkg/agent/templates/templates_linux.go; the directories while flannel is enabled
    "k3s": _DISTRIBUTION._replace(
        conf_dir="/var/lib/rancher/k3s/agent/etc/cni/net.d",
        bin_dirs=("/var/lib/rancher/k3s/data/cni",),
        fixed=True,
        unit="k3s",
        config="/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
        mark="/k3s/agent/",
        program="/var/lib/rancher/k3s/data/current/bin/containerd",
        managed=f"k3s{_RANCHER}",
    ),
    "rke2": _DISTRIBUTION._replace(
        unit="rke2",
        config="/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
        mark="/rke2/agent/",
        program="/var/lib/rancher/rke2/bin/containerd",
        managed=f"rke2{_RANCHER}",
    ),
    # microk8s-resources/default-args/containerd-template.toml
    "microk8s": _DISTRIBUTION._replace(
        conf_dir="/var/snap/microk8s/current/args/cni-network",
        bin_dirs=("/var/snap/microk8s/current/opt/cni/bin",),
        fixed=True,
        unit="microk8s",
        config="/var/snap/microk8s/current/args/containerd.toml",
        mark="/snap/microk8s/",
        program="/snap/microk8s/current/bin/containerd",
        managed="MicroK8s generates this configuration from "
        "/var/snap/microk8s/current/args/containerd-template.toml; write networks to {} (cni_conf_dir), or change that "
        "file",
    ),
    "k0s": _DISTRIBUTION._replace(
        unit="k0s",
        config="/etc/k0s/containerd.toml",
        mark="/k0s/",
        program="/var/lib/k0s/bin/containerd",
        managed="k0s manages this configuration; write networks to {} (cni_conf_dir), or put your own file into "
        "/etc/k0s/containerd.d",
    ),
}

ECS_CONFIG = "/etc/ecs/ecs.config"
CONTAINERD_CONFIG = "/etc/containerd/config.toml"
CONTAINERD_CRI = ("io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "cri")
"""The section of CRI in the configuration of containerd, from the newest version to the first one."""
APPTAINER_CONFIG = "/etc/apptainer/apptainer.conf"

NAMES = (CONTAINERD, *PROFILES)
CONFIGURABLE = (CONTAINERD, "crio", "nomad", "podman", "apptainer")
"""The runtimes whose settings can be written."""


_VERSION = re.compile(r"(?<![0-9.])v?([0-9]{1,5})\.([0-9]{1,5})(\.[0-9]{1,5})?")


def version_of(text: str) -> str:
    """Return the first version number in the output of a runtime, "" if there is none."""
    match = _VERSION.search(text)
    return f"{match.group(1)}.{match.group(2)}{match.group(3) or ''}" if match else ""


def pair(version: str) -> Tuple[int, int]:
    """Return the first two numbers of a version."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def containerd_profile(version: str) -> str:
    """Return the name of the row for a version of containerd, or of the nearest row."""
    rows = [name for name in PROFILES if name.startswith("containerd-")]
    if not version:
        return rows[-1]
    older = [name for name in rows if pair(name[len("containerd-") :]) <= pair(version)]
    return older[-1] if older else rows[0]
