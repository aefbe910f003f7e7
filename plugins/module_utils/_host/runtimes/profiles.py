# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What each runtime reads and how it chooses: data for :mod:`rules`, each row with its source.

Sources are named as file:function of the project's repository; docs/runtimes.md has the commits.
"""

from __future__ import annotations

import re
from typing import Dict, NamedTuple, Optional, Tuple

CONTAINERD = "containerd"
"""Stands for the row of the installed version, or the newest row if none is installed."""


def vendor_dir(kind: str) -> str:
    """Return the directory of the vendor of the plugin *kind*, "" if that is not the name of a file."""
    return "" if kind in ("", ".", "..") or "/" in kind or "\0" in kind else f"/opt/{kind}/bin"


# --- how a network is chosen (Rules.choice)
FIRST = "first"
"""The first files by name, as many as it is configured to use."""
NAMED = "named"
"""The network is named when a container starts."""
OWN = "own"
"""It reads no file: it generates the configuration itself."""

# --- the effect of a file that cannot be loaded (Rules.broken)
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

_ALL = (".conf", ".conflist", ".json")


class Rules(NamedTuple):
    """How a family of runtimes loads networks from files.

    ``nothing``: its message for a directory without files ("{}" is the directory). ``validates``: a network counts
    only if its plugins are installed and support its version. ``drop_ins``: with libcni 1.3, the plugins in the
    network's folder are appended. ``lists_first``: ``.conf`` and ``.json`` files are read after all conflists.
    ``all_lists``: every file is read as a conflist, whatever its extension. ``ignored``: files whose names start with
    this are not read. ``valid_names``: a network with an invalid name is skipped. ``converts``: a network counts only
    if it can be converted to podman's own form. ``named_by_file``: a network without a name gets the name of its file.
    ``vendor_dirs``: plugins are also searched in /opt/TYPE/bin, where TYPE is the type of the network's first plugin.
    ``finds``: a network counts only if its plugins are there; they are not asked. ``all_single``: every file is read as
    the configuration of a single plugin, whatever its extension. ``untyped``: one without a type is no error.
    ``bundled``: plugins that the runtime brings along, and executes where no directory has them.
    ``notes_missing``: a network whose plugins are missing is available all the same, which is noted.
    """

    choice: str
    broken: str
    nothing: str = "no network configuration in {}"
    extensions: Tuple[str, ...] = _ALL
    validates: bool = False
    drop_ins: bool = True
    lists_first: bool = False
    all_lists: bool = False
    ignored: str = ""
    valid_names: bool = False
    converts: bool = False
    named_by_file: bool = False
    finds: bool = False
    all_single: bool = False
    untyped: bool = False
    bundled: Tuple[str, ...] = ()
    vendor_dirs: bool = False
    notes_missing: bool = False


RULES = {
    # containerd/go-cni opts.go:loadFromConfDir
    "go-cni": Rules(FIRST, ENDS, "no network config found in {}"),
    # cri-o/ocicni pkg/ocicni/ocicni.go:loadNetworks
    "ocicni": Rules(
        FIRST,
        SKIPPED,
        "no CNI configuration file in {}. Has your network provider started?",
        validates=True,
        named_by_file=True,
    ),
    # kubernetes pkg/kubelet/dockershim/network/cni/cni.go:getDefaultCNINetwork, until 1.9 :vendorCNIDir
    "dockershim": Rules(FIRST, SKIPPED, "No networks found in {}"),
    "dockershim-1.9": Rules(FIRST, SKIPPED, "No networks found in {}", vendor_dirs=True),
    # kubernetes pkg/kubelet/network/kubenet/kubenet_linux.go:Init, Event
    "kubenet": Rules(OWN, SKIPPED),
    # rkt networking/podenv.go:loadUserNets, loadNets, net_plugin.go:pluginPaths, stage1/net-plugins/net-plugins.mk
    "rkt": Rules(
        NAMED,
        SPOILS,
        extensions=(".conf",),
        drop_ins=False,
        all_single=True,
        untyped=True,
        bundled=("bridge", "dhcp", "flannel", "host-local", "ipvlan", "macvlan", "ptp", "tuning"),
    ),
    # mesos src/slave/containerizer/mesos/isolators/network/cni/cni.cpp:loadNetworkConfigs, spec.proto
    "mesos": Rules(NAMED, SKIPPED, drop_ins=False, all_single=True, finds=True),
    # amazon-ecs-agent agent/config, ecscni
    "ecs": Rules(OWN, SKIPPED),
    # Mirantis/cri-dockerd network/cni/cni.go:getDefaultCNINetwork
    "cri-dockerd": Rules(FIRST, SKIPPED, "no networks found in {}", validates=True),
    # containers/common libnetwork/cni/network.go:loadNetworks
    "podman": Rules(NAMED, SKIPPED, extensions=(".conflist",), validates=True, valid_names=True, converts=True),
    # containerd/nerdctl pkg/netutil/store.go:fsRead, netutil.go:cniLoad
    "nerdctl": Rules(NAMED, SPOILS, drop_ins=False, all_lists=True),
    # hashicorp/nomad client/fingerprint/cni.go:Fingerprint, client/allocrunner/networking_cni.go:loadCNIConf
    "nomad": Rules(NAMED, SPOILS, "no CNI network config found in {}"),
    "nomad-bridge": Rules(OWN, SKIPPED),
    # moby/buildkit util/network/cniprovider/cni.go:New
    "buildkit": Rules(FIRST, ENDS, "no CNI configuration {}, so builds use the host's network"),
    # containernetworking/cni libcni/conf.go:LoadNetworkConf
    "libcni": Rules(NAMED, ENDS, "no net configurations found in {}", lists_first=True),
    # It calls libcni's LoadConfList; measured
    "apptainer": Rules(NAMED, ENDS, "no net configurations found in {}", lists_first=True, notes_missing=True),
    # multus-cni cmd/thin_entrypoint/main.go:getMasterConfigPath, pkg/server/config/generator.go:findMasterPlugin
    "multus": Rules(
        FIRST,
        ENDS,
        "no master configuration in {}",
        extensions=(".conf", ".conflist"),
        drop_ins=False,
        ignored="00-multus",
    ),
}


class BuiltIn(NamedTuple):
    """A network that a runtime builds: its ``name``, ``cni_version``, the types of its ``plugins``, and for what."""

    name: str
    cni_version: str
    plugins: Tuple[str, ...]
    purpose: str


class Profile(NamedTuple):
    """A runtime from the point of view of CNI.

    ``rules`` is a key of :data:`RULES`; ``libcni`` is the release of Go's libcni that it contains: pairs of the
    runtime's first version with it and libcni's release, newest first, the last one for all earlier versions.
    ``conf_dir`` (buildkit: the file) and ``bin_dirs`` are its defaults, ``default_network`` the network it uses when
    none is requested (NAMED). ``own`` is the network that it creates itself if there is none. ``fixed``: its conf_dir
    cannot be configured. ``built_in``: the network whose plugins it executes although no file names them; CRI-O, podman
    and nerdctl bring up lo without a plugin, ctr leaves it to the OCI runtime. ``unit``: the unit of its daemon, "" if
    it is none. ``stands_for`` is the runtime whose place a distribution takes, ``managed`` how it configures it ("{}"
    is its conf_dir).
    """

    rules: str
    libcni: Tuple[Tuple[Tuple[int, int], str], ...]
    conf_dir: str = "/etc/cni/net.d"
    bin_dirs: Tuple[str, ...] = ("/opt/cni/bin",)
    verified: str = SOURCE
    default_network: str = ""
    own: str = ""
    fixed: bool = False
    built_in: Optional[BuiltIn] = None
    unit: str = ""
    stands_for: str = ""
    managed: str = ""


def _always(level: str) -> Tuple[Tuple[Tuple[int, int], str], ...]:
    return (((0, 0), level),)


# containerd/go-cni opts.go:WithLoNetwork
_LO = BuiltIn("cni-loopback", "0.3.1", ("loopback",), "every pod")
# kubernetes pkg/kubelet/dockershim/network/cni/cni.go:getLoNetwork, cri-dockerd network/cni/cni.go:getLoNetwork
_LO_OF_KUBELET = _LO._replace(cni_version="0.2.0")
_RANCHER = (
    " generates this configuration at each start; write networks to {} (cni_conf_dir), or change the template "
    "config.toml.tmpl (config-v3.toml.tmpl with containerd 2) beside it"
)
# go.mod of containerd at each tag
CONTAINERD_LIBCNI = (((2, 1), "1.3"), ((2, 0), "1.2"), ((0, 0), "1.1"))
_CRIO_LIBCNI = (((1, 33), "1.3"), ((1, 31), "1.2"), ((0, 0), "1.1"))
_PODMAN_BIN_DIRS = (
    "/usr/local/libexec/cni",
    "/usr/libexec/cni",
    "/usr/local/lib/cni",
    "/usr/lib/cni",
    "/opt/cni/bin",
)

PROFILES: Dict[str, Profile] = {
    # containerd internal/cri/server/service_linux.go:cniLoadOptions
    "containerd-1.6": Profile("go-cni", _always("1.1"), verified=RUN, built_in=_LO, unit="containerd"),
    "containerd-1.7": Profile("go-cni", _always("1.1"), verified=RUN, built_in=_LO, unit="containerd"),
    "containerd-2.0": Profile("go-cni", _always("1.2"), built_in=_LO, unit="containerd"),
    "containerd-2.1": Profile("go-cni", _always("1.3"), verified=RUN, built_in=_LO, unit="containerd"),
    # containerd cmd/ctr/commands/run/run.go: both directories are written there
    "ctr": Profile("go-cni", CONTAINERD_LIBCNI, fixed=True),
    # cri-o docs/crio.conf.5.md; go.mod at each tag
    "crio": Profile("ocicni", _CRIO_LIBCNI, unit="crio"),
    # machine-config-operator templates/worker/.../crio.yaml
    "openshift": Profile(
        "ocicni",
        _CRIO_LIBCNI,
        "/etc/kubernetes/cni/net.d",
        ("/var/lib/cni/bin",),
        unit="crio",
        stands_for="crio",
        managed="its MachineConfig manages this configuration; write networks to {} (cni_conf_dir), or change the "
        "MachineConfig",
    ),
    "dockershim": Profile("dockershim", _always("1.1"), built_in=_LO_OF_KUBELET),
    "dockershim-1.9": Profile("dockershim-1.9", _always("1.1"), built_in=_LO_OF_KUBELET),
    "kubenet": Profile(
        "kubenet",
        _always("1.1"),
        own="kubelet builds it from the node's PodCIDR, not from a file: bridge cbr0, host-local",
        # kubernetes pkg/kubelet/network/kubenet/kubenet_linux.go:NET_CONFIG_TEMPLATE
        built_in=BuiltIn("kubenet", "0.1.0", ("loopback", "bridge", "host-local"), "every pod"),
    ),
    "cri-dockerd": Profile("cri-dockerd", _always("1.1"), built_in=_LO_OF_KUBELET),
    # containers/common pkg/config/default.go, libnetwork/types/const.go
    "podman": Profile(
        "podman",
        (((5, 0), "1.3"), ((0, 0), "1.1")),
        bin_dirs=_PODMAN_BIN_DIRS,
        verified=RUN,
        default_network="podman",
        own="podman creates it in memory: bridge cni-podman0, 10.88.0.0/16",
    ),
    # nerdctl pkg/defaults/defaults_linux.go, pkg/netutil/netutil_unix.go
    "nerdctl": Profile(
        "nerdctl",
        (((2, 1), "1.3"), ((2, 0), "1.2"), ((0, 0), "1.1")),
        default_network="bridge",
        own="nerdctl writes it to nerdctl-bridge.conflist on its next command: bridge nerdctl0, 10.4.0.0/24",
    ),
    # nomad client/config/config.go, client/config/config_linux.go
    "nomad": Profile("nomad", (((1, 10), "1.2"), ((0, 0), "1.1")), "/opt/cni/config", unit="nomad"),
    "nomad-bridge": Profile(
        "nomad-bridge",
        _always("1.2"),
        own="Nomad builds it from plugins, not from a file, for jobs in bridge mode",
        # hashicorp/nomad client/allocrunner/networking_bridge_linux.go:nomadCNIConfigTemplate
        built_in=BuiltIn(
            "nomad", "0.4.0", ("loopback", "bridge", "host-local", "firewall", "portmap"), "every job in bridge mode"
        ),
    ),
    # buildkit util/appdefaults/appdefaults_unix.go
    "buildkit": Profile(
        "buildkit",
        _always("1.1"),
        "/etc/buildkit/cni.json",
        # moby/buildkit util/network/cniprovider/cni.go:New
        built_in=_LO._replace(purpose="every build step"),
        unit="buildkit",
    ),
    # firecracker-go-sdk network.go
    "firecracker": Profile("libcni", _always("1.1"), "/etc/cni/conf.d"),
    # The package of Debian; measured
    "apptainer": Profile("apptainer", _always("1.3"), "/etc/apptainer/network", ("/usr/lib/cni",), verified=RUN),
    # rkt networking/podenv.go, net_plugin.go
    "rkt": Profile(
        "rkt",
        _always("1.1"),
        "/etc/rkt/net.d",
        ("/usr/lib/rkt/plugins/net",),
        default_network="default",
        own="rkt takes it from its stage1 image: ptp, 172.16.28.0/24",
    ),
    # mesos docs/cni.md; the agent has no defaults
    "mesos": Profile("mesos", _always("1.1"), "/var/lib/mesos/cni/config", ("/var/lib/mesos/cni/plugins",)),
    # amazon-ecs-agent agent/config/config.go:defaultCNIPluginsPath, in the image of the agent
    "ecs": Profile(
        "ecs",
        _always("1.1"),
        bin_dirs=("/amazon-ecs-cni-plugins",),
        own="the ECS agent builds it, not from a file, of plugins in its image, for tasks in the mode awsvpc",
    ),
    "multus": Profile("multus", _always("1.3")),
    "cnitool": Profile("libcni", _always("1.3")),
    # k3s pkg/agent/templates/templates_linux.go; the directories while flannel is enabled
    "k3s": Profile(
        "go-cni",
        CONTAINERD_LIBCNI,
        "/var/lib/rancher/k3s/agent/etc/cni/net.d",
        ("/var/lib/rancher/k3s/data/cni",),
        fixed=True,
        built_in=_LO,
        unit="k3s",
        stands_for=CONTAINERD,
        managed=f"k3s{_RANCHER}",
    ),
    "rke2": Profile(
        "go-cni", CONTAINERD_LIBCNI, built_in=_LO, unit="rke2", stands_for=CONTAINERD, managed=f"rke2{_RANCHER}"
    ),
    # microk8s-resources/default-args/containerd-template.toml
    "microk8s": Profile(
        "go-cni",
        CONTAINERD_LIBCNI,
        "/var/snap/microk8s/current/args/cni-network",
        ("/var/snap/microk8s/current/opt/cni/bin",),
        fixed=True,
        built_in=_LO,
        unit="microk8s",
        stands_for=CONTAINERD,
        managed="MicroK8s generates this configuration from "
        "/var/snap/microk8s/current/args/containerd-template.toml; write networks to {} (cni_conf_dir), or change that "
        "file",
    ),
    "k0s": Profile(
        "go-cni",
        CONTAINERD_LIBCNI,
        built_in=_LO,
        unit="k0s",
        stands_for=CONTAINERD,
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


class Distribution(NamedTuple):
    """Where a distribution keeps its containerd: the profile's ``name``, a part of the ``config`` path, both files."""

    name: str
    mark: str
    config: str
    program: str


DISTRIBUTIONS = (
    Distribution(
        "k3s",
        "/k3s/agent/",
        "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
        "/var/lib/rancher/k3s/data/current/bin/containerd",
    ),
    Distribution(
        "rke2",
        "/rke2/agent/",
        "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
        "/var/lib/rancher/rke2/bin/containerd",
    ),
    Distribution(
        "microk8s",
        "/snap/microk8s/",
        "/var/snap/microk8s/current/args/containerd.toml",
        "/snap/microk8s/current/bin/containerd",
    ),
    Distribution("k0s", "/k0s/", "/etc/k0s/containerd.toml", "/var/lib/k0s/bin/containerd"),
)

_VERSION = re.compile(r"(?<![0-9.])v?([0-9]{1,5})\.([0-9]{1,5})(\.[0-9]{1,5})?")


def version_of(text: str) -> str:
    """Return the first version number in the output of a runtime, "" if there is none."""
    match = _VERSION.search(text)
    return f"{match.group(1)}.{match.group(2)}{match.group(3) or ''}" if match else ""


def pair(version: str) -> Tuple[int, int]:
    """Return the first two numbers of a version."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def libcni_of(profile: Profile, version: str) -> str:
    """Return the release of libcni, such as 1.1, that the *version* ("": the newest) of a runtime contains."""
    if not version:
        return profile.libcni[0][1]
    return next(level for first, level in profile.libcni if pair(version) >= first)


def containerd_profile(version: str) -> str:
    """Return the name of the row for a version of containerd, or of the nearest row."""
    rows = [name for name in PROFILES if name.startswith("containerd-")]
    if not version:
        return rows[-1]
    older = [name for name in rows if pair(name[len("containerd-") :]) <= pair(version)]
    return older[-1] if older else rows[0]
