#!/usr/bin/python
# Copyright (c) 2026 the podwire.cni authors; GNU General Public License v3.0+
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_plugins
short_description: Install CNI plugin binaries
version_added: 1.0.0
author:
  - podwire.cni authors (@podwire)
description:
  - Installs plugins from an archive or a directory, from an official release of
    L(containernetworking/plugins,https://github.com/containernetworking/plugins) or from another vendor, and keeps them
    in that state.
  - Copies each binary to a temporary file in the directory, and checks its machine, its sha256 and its answer to
    C(VERSION) there. Renames the binaries only after all of them have run. A binary that does not run never goes live,
    and a running plugin is never disturbed.
  - Installs nothing if a network that works with the old binary has a C(cniVersion) that the new binary does not
    support.
  - Works file by file. Unmanaged files, and the owner and mode of the directory, are left alone.
  - Keeps each file that a binary replaces, by its sha256, below C(/var/lib/podwire/state). O(state=restored) restores
    it.
extends_documentation_fragment:
  - podwire.cni._common
  - podwire.cni._common.lock
  - podwire.cni._common.classes
  - podwire.cni._attributes
  - podwire.cni._attributes.group
options:
  src:
    description:
      - Source of the plugins, which is the path of a tar archive (plain, or compressed with gzip, bzip2 or xz),
        the path of a directory, or the https URL of an archive.
      - V(builtin) means the plugin of this collection, C(podwire-multinet). It needs C(/usr/bin/python3), version 3.8
        or newer, on the host.
      - A relative path is searched for as by M(ansible.builtin.copy), in the C(files) directories of role and play.
      - Only regular ELF files at the top level are installed, and scripts that O(plugins) names. Their owners and
        modes, documents and directories are ignored. An archive that contains a link, a device, an absolute path or
        C(..) is refused as a whole.
      - With O(state=present), this or O(version) is required.
    type: str
  remote_src:
    description:
      - If V(true), O(src) is a path on the managed host, or a URL that the host itself downloads.
      - If V(false), the controller reads or downloads it once, and sends each host only what differs there.
    type: bool
    default: false
  version:
    description:
      - Official release of containernetworking/plugins, such as V(1.9.1). Write it in quotes, because YAML reads
        V(1.10) as a number.
      - Sets the URL and checksum for the machine of the host. With O(src), it sets the checksum only, for a mirror.
      - V(1.6.1) and V(1.7.0) are refused, because their archives were replaced after publication. V(1.6.2) and
        V(1.7.1) have the same content.
    type: str
  checksum:
    description:
      - Checksum of the archive, C(sha256:...) or C(sha512:...).
      - Required for a URL, unless O(version) sets it.
    type: str
  plugins:
    description:
      - Names of plugins. A name that is not in the source is an error.
      - With O(state=present), the default is all ELF plugins of the source. A script is a plugin only if it is named
        here, because it would be executed otherwise, whatever it is. With O(state=restored), the default is all
        plugins that this module installed in the directory. Required with O(state=absent).
    type: list
    elements: str
  bin_dir:
    description:
      - Directory to install to. A missing directory is created, owned by root and with mode 0755. An existing one keeps
        its group and mode. It must belong to root, and nobody else may write to it.
      - The default is the first entry of O(bin_dirs).
    type: path
  owner:
    description:
      - User name or number that owns the binaries. It must be root, because root runs them. Every other value is
        refused.
    type: str
    default: root
  group:
    description: Group name or number of the binaries.
    type: str
    default: root
  mode:
    description: Mode of the binaries, in quotes. It must let root run them, and let nobody else write to them.
    type: raw
    default: '0755'
  state:
    description:
      - V(present) installs what is missing or differs, and sets owner and mode.
      - V(absent) removes O(plugins).
      - V(restored) restores what the newest version replaced, which is an older version or an unmanaged file, and
        removes a binary that replaced nothing. A second run changes nothing.
    type: str
    choices:
      - present
      - absent
      - restored
    default: present
  force:
    description:
      - With O(state=present), install a plugin even if it does not support the C(cniVersion) of a network or attachment
        that worked with the old plugin.
      - With O(state=absent) and O(state=restored), remove a plugin even if a network in O(conf_dir) names it, an
        attachment in O(cache_dir) needs it, or the file is unmanaged. An unmanaged file is kept in the state
        directory.
      - With O(state=restored), go back to the state before this module first installed something.
    type: bool
    default: false
  installed_by:
    description:
      - Who installs the plugins, in a word, such as V(upgrade), the playbook of that name. It is recorded on the host.
      - A later run that wants an older release says so in the reason of its steps.
    type: str
seealso:
  - module: podwire.cni.cni_conf
  - module: podwire.cni.cni_info
"""

EXAMPLES = r"""
- name: Install an official release for the machine of each host
  podwire.cni.cni_plugins:
    version: "1.9.1"

- name: Install some plugins from an archive beside the playbook
  podwire.cni.cni_plugins:
    src: cni-plugins.tgz
    checksum: sha256:b98f74a0f8522f0a83867178729c1aa70f2158f90c45a2ca8fa791db1c76b303
    plugins:
      - bridge
      - host-local
      - loopback

- name: Download from a mirror on the host, with the checksum of the official release
  podwire.cni.cni_plugins:
    src: https://mirror.example.com/cni/cni-plugins-linux-amd64-v1.9.1.tgz
    remote_src: true
    version: "1.9.1"

- name: Copy the plugins of the distribution's package to the directory of the runtime
  podwire.cni.cni_plugins:
    src: /usr/lib/cni
    remote_src: true
    bin_dir: /opt/cni/bin

- name: Install the plugin that gives pods several networks
  podwire.cni.cni_plugins:
    src: builtin
    plugins: [podwire-multinet]

- name: Restore the previous versions
  podwire.cni.cni_plugins:
    state: restored

- name: Remove a plugin that nothing uses
  podwire.cni.cni_plugins:
    plugins: [vrf]
    state: absent
"""

RETURN = r"""
plugins:
  description: The plugins of this task, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the plugin, which is the name of its file.
      type: str
    path:
      description: Path of the binary.
      type: str
      sample: /opt/cni/bin/bridge
    kind:
      description: What the file is, V(elf) or V(script). V(null) if there is no file.
      type: str
      choices: [elf, script]
    sha256:
      description: Digest of the binary after the task. V(null) if there is no binary.
      type: str
      sample: 0c5a7d2d14f8a0a8b8dc1ac3e9cf31c7bd9a4f3df8ac9f4dd6f1b7b9e2f2a3c1
    cni_versions:
      description: Versions of the CNI specification that the binary supports. V(null) if only a run can tell.
      type: list
      elements: str
      sample: ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]
    action:
      description: What was done, or would be done in check mode. V(left) means that O(classes) does not allow it.
      type: str
      choices: [none, installed, replaced, removed, restored, attributes, left]
      sample: installed
findings:
  description:
    - The warnings, which are also printed. C(target) is that of a step in RV(actions), if the warning is about it.
    - In check mode, the level V(error) means that a run fails on it, unless an earlier task of the play makes what is
      missing.
  returned: always
  type: list
  elements: dict
  sample:
    - {level: warning, code: plugin_failed, message: "bridge has the desired content, but does not run", target: ""}
actions:
  description: The steps of the plan, the same in check mode and in a run. When a run fails, each has a C(state).
  returned: always, when there is a plan
  type: list
  elements: dict
  contains:
    kind:
      description: One of C(make_directory), C(install), C(replace), C(remove), C(restore), C(set_attributes).
      type: str
      sample: install
    target:
      description: Path that changes.
      type: str
      sample: /opt/cni/bin/bridge
    class:
      description:
        - V(disruptive) if a plugin that is in use is removed, if the new one is older, or if a runtime chooses another
          network then, because it skips networks whose plugins are missing. Else V(safe).
        - Without known releases, a plugin is older if it no longer supports the newest version of CNI of the old one.
      type: str
    reason:
      description: The difference in a few words. The header of the diff shows it, too.
      type: str
      sample: 1.6.2 to 1.9.1
left:
  description: Steps that were not taken because O(classes) does not allow them, the same in check mode and in a run.
  returned: always, when there is a plan
  type: list
  elements: dict
  sample:
    - kind: remove
      target: /opt/cni/bin/bridge
      class: disruptive
      reason: state is absent
code:
  description: Error code, see C(docs/cni_plugins.md).
  returned: failure
  type: str
  sample: wrong_machine
users:
  description: What still needs the plugins that the task should remove.
  returned: failure with RV(code=plugin_in_use)
  type: list
  elements: dict
  contains:
    name:
      description: Name of the plugin.
      type: str
    users:
      description: Networks and attachments, as human-readable text.
      type: list
      elements: str
      sample: ["the network 'apps' in /etc/cni/net.d/10-apps.conflist"]
"""

from typing import Any, Dict, Optional

# Mitogen takes only a file for a module that has the words "from ansible_collections." in it.
from ..module_utils._host.binaries.outcome import Desired, PluginsPlan
from ..module_utils._host.binaries.request import PLUGINS_ARGUMENTS, PLUGINS_REQUIRED_IF, SourceNeeded
from ..module_utils._host.binaries.source import plan_plugins, with_plugins
from ..module_utils._host.errors import HostError
from ..module_utils._host.hostview import HostView, Users
from ..module_utils._host.lock import read_state
from ..module_utils._module import (
    CLASSES_ARGUMENTS,
    COMMON_ARGUMENTS,
    LOCK_ARGUMENTS,
    create_module,
    execute,
    fail,
    finish,
    result_of,
)

ARGUMENTS: Dict[str, Any] = {
    # From the action plugin.
    "_source": {"type": "dict"},
    **PLUGINS_ARGUMENTS,
    **COMMON_ARGUMENTS,
    **LOCK_ARGUMENTS,
    **CLASSES_ARGUMENTS,
}


def _built_in(view: HostView, bin_dir: str) -> Users:
    # Imported late: only a plan that replaces or removes binaries asks.
    from ..module_utils._host.runtimes.discover import built_in_users

    return built_in_users(view, bin_dir)


def main() -> None:
    module = create_module(ARGUMENTS, required_if=PLUGINS_REQUIRED_IF)
    params = module.params
    bin_dir = str(params["bin_dir"] or params["bin_dirs"][0])

    from ..module_utils._host.runtimes.unused import warn_of_unused

    def make_plan(wanted: Optional[Desired]) -> PluginsPlan:
        view = HostView()
        view.built_in = _built_in
        plan = plan_plugins(params, bin_dir, wanted, view, module.check_mode)
        if plan.changed:
            from ..module_utils._host.networks.effects import classify_plugins

            classify_plugins(plan, plan.expected(), params, view)
        view.expect_binaries(plan.expected())
        warn_of_unused(plan, plan.present, bin_dir, params["conf_dir"], view)
        return plan

    def run(wanted: Optional[Desired]) -> PluginsPlan:
        return execute(module, lambda: make_plan(wanted), "cni_plugins")

    try:
        seen = read_state()
        present = params["state"] == "present"
        plan = with_plugins(params, lambda: module.tmpdir, bin_dir, run) if present else run(None)
    except SourceNeeded as needed:
        module.exit_json(changed=False, plugins_needed=needed.need)
    except HostError as error:
        fail(module, error)
    if not plan.changed and not module.check_mode:
        plan.remember(seen)
    finish(module, plan, plugins=plan.report(), **result_of(module, plan))


if __name__ == "__main__":
    main()
