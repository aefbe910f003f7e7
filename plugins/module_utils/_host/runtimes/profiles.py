# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each runtime reads and how it chooses: data for :mod:`rules`, each row with its source.

Sources are named as file:function of the project's repository; docs/runtimes.md has the commits.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple


def vendor_dir(kind: str) -> str:
    """Return the directory of the vendor of the plugin *kind*, "" if that is not the name of a file."""
    return "" if kind in ("", ".", "..") or "/" in kind or "\0" in kind else f"/opt/{kind}/bin"


class Runtime:
    """One reader of network configurations.

    ``name`` of its profile, ``version`` ("" if unknown), ``conf_dir`` and ``bin_dirs``. ``conf_file``: the only file
    that it reads, "" if it reads the directory. ``max_networks``: how many files it uses at once, 0 for all.
    ``default_network``: the network it uses if none is requested, "" for the rule of its profile. ``folder``: a folder
    of conf_dir that it also reads. ``found``: the evidence that it is on this host, "" if there is none. ``notes``:
    sentences about what could not be determined, or what is special here. ``reads`` is False for a runtime that is on
    the host but does not use CNI; the reason is in ``notes``.

    ``allowed``: the ``networks``, ``users`` and ``groups`` that Apptainer's configuration allows.

    For runtimes that can be configured: ``config`` is the file (containerd, Apptainer) or the directory of drop-ins
    that it reads ("" if there is none), ``pid`` its process (0 if it is not running), ``address`` its socket for CRI,
    ``databases`` the directory where podman keeps them, ``port`` that of Nomad's API, ``setup_serially`` whether it
    calls its networks one after another, ``internal_loopback`` whether it is configured to bring up lo by itself,
    ``handler`` the runtime handler that has these settings ("" for all others), ``tables`` its whole configuration
    (containerd).
    """

    def __init__(
        self, name: str, version: str = "", found: str = "", conf_dir: str = "", bin_dirs: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.profile = PROFILES[name]
        self.version = version
        self.found = found
        self.conf_file = ""
        self.conf_dir = ""
        self.set_conf(conf_dir or self.profile.conf_dir)
        self.bin_dirs = list(bin_dirs or self.profile.bin_dirs)
        self.max_networks = 1
        self.default_network = self.profile.default_network
        self.folder = ""
        self.notes: List[str] = []
        self.reads = True
        self.config = ""
        self.pid = 0
        self.address = ""
        self.databases = ""
        self.port = 0
        self.setup_serially = False
        self.internal_loopback = False
        self.handler = ""
        self.allowed: Dict[str, List[str]] = {}
        self.tables: Dict[str, Any] = {}

    @property
    def rules(self) -> Rules:
        return RULES[self.profile.rules]

    @property
    def libcni(self) -> str:
        """The release of libcni that it contains, such as 1.1."""
        return libcni_of(self.profile, self.version)

    def set_conf(self, path: str) -> None:
        """Set the directory that it reads; for buildkit the file."""
        if self.profile.rules == "buildkit":
            self.conf_file = path
            path = os.path.dirname(path)
        self.conf_dir = path

    def searched(self, kind: str) -> List[str]:
        """Return the directories that it searches for the plugins of a network whose first plugin is *kind*."""
        extra = vendor_dir(kind) if self.rules.vendor_dirs else ""
        return [*self.bin_dirs, extra] if extra else self.bin_dirs

    def may_read(self, conf_dir: str) -> bool:
        """Tell whether its conf_dir is *conf_dir*, or could be configured to be."""
        return self.conf_dir == conf_dir or not (self.profile.fixed or self.conf_file or self.rules.choice == "own")


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


class Profile(NamedTuple):
    """A runtime from the point of view of CNI.

    ``rules`` is a key of :data:`RULES`; ``libcni`` is the release of Go's libcni that it contains: pairs of the
    runtime's first version with it and libcni's release, newest first, the last one for all earlier versions.
    ``conf_dir`` (buildkit: the file) and ``bin_dirs`` are its defaults, ``default_network`` the network it uses when
    none is requested (NAMED). ``own`` is the network that it creates itself if there is none. ``fixed``: its conf_dir
    cannot be configured.
    """

    rules: str
    libcni: Tuple[Tuple[Tuple[int, int], str], ...]
    conf_dir: str = "/etc/cni/net.d"
    bin_dirs: Tuple[str, ...] = ("/opt/cni/bin",)
    verified: str = SOURCE
    default_network: str = ""
    own: str = ""
    fixed: bool = False


def _always(level: str) -> Tuple[Tuple[Tuple[int, int], str], ...]:
    return (((0, 0), level),)


# go.mod of containerd at each tag
CONTAINERD_LIBCNI = (((2, 1), "1.3"), ((2, 0), "1.2"), ((0, 0), "1.1"))
_PODMAN_BIN_DIRS = (
    "/usr/local/libexec/cni",
    "/usr/libexec/cni",
    "/usr/local/lib/cni",
    "/usr/lib/cni",
    "/opt/cni/bin",
)

PROFILES: Dict[str, Profile] = {
    "containerd-1.6": Profile("go-cni", _always("1.1"), verified=RUN),
    "containerd-1.7": Profile("go-cni", _always("1.1"), verified=RUN),
    "containerd-2.0": Profile("go-cni", _always("1.2")),
    "containerd-2.1": Profile("go-cni", _always("1.3"), verified=RUN),
    # containerd cmd/ctr/commands/run/run.go: both directories are written there
    "ctr": Profile("go-cni", CONTAINERD_LIBCNI, fixed=True),
    # cri-o docs/crio.conf.5.md; go.mod at each tag
    "crio": Profile("ocicni", (((1, 33), "1.3"), ((1, 31), "1.2"), ((0, 0), "1.1"))),
    # machine-config-operator templates/worker/.../crio.yaml
    "openshift": Profile(
        "ocicni",
        (((1, 33), "1.3"), ((1, 31), "1.2"), ((0, 0), "1.1")),
        "/etc/kubernetes/cni/net.d",
        ("/var/lib/cni/bin",),
    ),
    "dockershim": Profile("dockershim", _always("1.1")),
    "dockershim-1.9": Profile("dockershim-1.9", _always("1.1")),
    "kubenet": Profile(
        "kubenet",
        _always("1.1"),
        own="kubelet builds it from the node's PodCIDR, not from a file: bridge cbr0, host-local",
    ),
    "cri-dockerd": Profile("cri-dockerd", _always("1.1")),
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
    "nomad": Profile("nomad", (((1, 10), "1.2"), ((0, 0), "1.1")), "/opt/cni/config"),
    "nomad-bridge": Profile(
        "nomad-bridge", _always("1.2"), own="Nomad builds it from plugins, not from a file, for jobs in bridge mode"
    ),
    # buildkit util/appdefaults/appdefaults_unix.go
    "buildkit": Profile("buildkit", _always("1.1"), "/etc/buildkit/cni.json"),
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
    ),
    "rke2": Profile("go-cni", CONTAINERD_LIBCNI),
    # microk8s-resources/default-args/containerd-template.toml
    "microk8s": Profile(
        "go-cni",
        CONTAINERD_LIBCNI,
        "/var/snap/microk8s/current/args/cni-network",
        ("/var/snap/microk8s/current/opt/cni/bin",),
        fixed=True,
    ),
    "k0s": Profile("go-cni", CONTAINERD_LIBCNI),
}

ECS_CONFIG = "/etc/ecs/ecs.config"
APPTAINER_CONFIG = "/etc/apptainer/apptainer.conf"

CONTAINERD = "containerd"
"""Stands for the row of the installed version, or the newest row if none is installed."""
NAMES = (CONTAINERD, *PROFILES)


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


def _pair(version: str) -> Tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def libcni_of(profile: Profile, version: str) -> str:
    """Return the release of libcni, such as 1.1, that the *version* ("": the newest) of a runtime contains."""
    if not version:
        return profile.libcni[0][1]
    return next(level for first, level in profile.libcni if _pair(version) >= first)


def containerd_profile(version: str) -> str:
    """Return the name of the row for a version of containerd, or of the nearest row."""
    rows = [name for name in PROFILES if name.startswith("containerd-")]
    if not version:
        return rows[-1]
    older = [name for name in rows if _pair(name[len("containerd-") :]) <= _pair(version)]
    return older[-1] if older else rows[0]
