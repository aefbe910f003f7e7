# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Options of cni_conf, by subject. Private to the collection."""

from __future__ import annotations

from ..module_utils._host.networks.request import EFFECT_ARGUMENTS, RUNTIME_ARGUMENTS
from ._specs import fragment

_RUNTIMES = """\
runtime:
  - The runtimes that RV(effective) and O(ensure_effective) cover. The default is every runtime that is found on
    the host, by its processes, programs and configurations.
  - Each runtime reads the directories that its configuration names. A runtime that is not on the host is assumed to
    read O(conf_dir), unless its directory cannot be configured.
  - V(containerd) is the installed version, or the newest known version if none is installed. See the page runtimes
    of the documentation for the rules of each runtime.
ensure_effective:
  - Name of the network that the runtimes must use. If one of them would use another network, or none, the task
    fails before anything is written.
  - If not set, O(on_not_effective) applies.
  - A runtime that is configured to use a network by name must find this network.
  - If O(runtime) is not set, this covers the runtimes of the host that read O(conf_dir). At least one must do so.
on_not_effective:
  - What to do if a runtime of the host reads O(conf_dir), takes the first network of its files, and would use an
    unmanaged one, but none of O(networks) (V(not_effective)).
  - 'V(warn): warn. V(error): fail before anything is written. V(ignore): do nothing, for example because only
    containers that ask for a network by name should get it.'
  - Networks to which M(podwire.cni.cni_attach) attaches containers are used, and Multus is followed to the networks
    that it runs.
configure:
  - Make the runtimes in O(runtime) read O(conf_dir) and search for plugins in O(bin_dirs). Supports V(containerd),
    V(crio), V(nomad), V(podman) and V(apptainer). RV(effective) and O(ensure_effective) assume the new
    configuration.
  - CRI-O, Nomad, podman and containerd 2.0 or later get a drop-in C(99-podwire-cni), which containerd also imports.
    In containerd 1.6 and 1.7, an import would replace all other settings of CRI. There, the module edits lines of
    the file itself and adds a comment to each that keeps the former line.
  - Apptainer has no drop-ins. The settings are put at the beginning of C(apptainer.conf), where they take
    precedence. O(bin_dirs) must be one directory.
  - A runtime that is already configured this way is left alone. If a runtime would not follow its new
    configuration, or would lose another setting, its old configuration is restored and the task fails.
  - The module does not restart runtimes, see RV(configured[].restart). The role P(podwire.cni.runtime#role)
    restarts them.
configure.max_conf_num:
  - How many networks containerd uses at once, V(0) for all. If not set, the configuration stays as it is.
configure.setup_serially:
  - Whether containerd (1.7 or later) sets up its networks one after another. If not set, the configuration
    stays as it is.
configure.allow:
  - Who may use which networks with Apptainer without being root (C(allow net networks), C(allow net users) and
    C(allow net groups)). A list that is not set stays as it is. An empty list allows none.
configure.allow.networks: Names of networks.
configure.allow.users: Names of users.
configure.allow.groups: Names of groups.
configure.state: V(absent) removes what this option wrote. The former configuration applies again.
configure.wait:
  - How many seconds to wait until containerd, CRI-O, Nomad and podman have loaded the network of
    O(ensure_effective). After that, the task fails.
  - A runtime that this task configures, or that has to be restarted, is not asked. A Nomad agent that does not
    run is a warning. Apptainer, and podman before its first use, read the network when they start a container.
"""


class ModuleDocFragment:
    VALIDATION = r"""
options:
  validate:
    description:
      - Levels of validation to run.
      - 'V(syntax): what libcni itself refuses. Runs on the controller.'
      - 'V(schema): the keys, types and values of each known plugin. Runs on the controller, and needs the Python
        library jsonschema there. All reference plugins and many others are known. An unknown plugin type passes with a
        problem of level V(info).'
      - 'V(plugins): every plugin, IPAM plugin and delegate is in O(bin_dirs), is executable, and supports the
        C(cniVersion) of its conflist. Runs on the host.'
      - 'V(directory): the files of O(conf_dir) taken together (names, order, broken files and leftovers, chains,
        bridges, subnets, known security problems) and compared with the addresses and routes of the host. Runs on the
        host.'
    type: list
    elements: str
    choices: [syntax, schema, plugins, directory]
    default: [syntax, schema, plugins, directory]
  strict:
    description:
      - Treat every warning of O(validate) as an error, and fail before anything is written, in check mode as in a run.
      - A problem that only check mode tolerates (a missing plugin or runtime that an earlier task may install) stays a
        warning in check mode. A run fails on it regardless of this option.
    type: bool
    default: false
"""

    RUNTIMES: str = fragment({**RUNTIME_ARGUMENTS, **EFFECT_ARGUMENTS}, _RUNTIMES)

    FILES = r"""
options:
  mode:
    description:
      - Mode of the files, as an octal number in quotes. A different mode is corrected.
      - V(0600) resolves the warning C(readable_secret), and is what the CIS Kubernetes Benchmark (1.1.9) asks for.
        Runtimes read the files as root. A mode that lets others write is refused.
    type: raw
    default: '0644'
  owner:
    description:
      - Owner of the files, as a name or number. It must be root, because the files decide what root runs. Every other
        value is refused.
    type: str
    default: root
  group:
    description: Group of the files, as a name or number.
    type: str
    default: root
"""
