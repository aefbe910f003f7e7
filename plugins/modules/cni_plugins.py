#!/usr/bin/python
# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_plugins
short_description: Install CNI plugin binaries
version_added: 0.1.0
author:
  - podwire.cni authors (@podwire)
description:
  - Installs the plugins of an archive or a directory, of an official release of
    L(containernetworking/plugins,https://github.com/containernetworking/plugins) or of another vendor, and keeps them
    so.
  - Each binary is copied to a temporary file in the directory, its machine, its sha256 and its answer to C(VERSION)
    are tested there, and only when all of them run the first is renamed to its name. What does not run never goes
    live, and a plugin that is running is never disturbed.
  - Nothing is installed either if a network that works with the old binary has a C(cniVersion) that the new one does
    not support.
  - Works file by file. Files of others, and the directory's own owner and mode, are left alone.
  - What a binary replaces is kept by its sha256 below C(/var/lib/podwire/state), and O(state=restored) brings it
    back.
extends_documentation_fragment:
  - podwire.cni._common
  - podwire.cni._common.lock
  - podwire.cni._common.classes
  - podwire.cni._attributes
  - podwire.cni._attributes.group
options:
  src:
    description:
      - Where the plugins come from. The path of a tar archive (plain or packed by gzip, bzip2 or xz), the path of a
        directory, or an https URL of an archive.
      - A relative path is looked for as C(copy) does, in the C(files) directories of role and play.
      - Only regular ELF files in the root count. Their owners and modes, documents and folders are ignored. An
        archive with a link, a device, an absolute path or C(..) in it is refused whole.
      - With O(state=present) this or O(version) is needed.
    type: str
  remote_src:
    description:
      - If V(true), O(src) is a path on the managed host, or a URL that the host itself fetches.
      - If V(false), the controller reads or fetches it once, and sends each host what differs there.
    type: bool
    default: false
  version:
    description:
      - An official release of containernetworking/plugins, such as V(1.9.1). In quotes, because YAML reads V(1.10) as
        a number.
      - Sets URL and checksum by the machine of the host. With O(src) only the checksum is taken, for a mirror.
      - V(1.6.1) and V(1.7.0) are refused. Their archives were replaced after they had been published; V(1.6.2) and
        V(1.7.1) have the same content.
    type: str
  checksum:
    description:
      - Checksum of the archive, C(sha256:...) or C(sha512:...).
      - Needed for a URL, unless O(version) knows it.
    type: str
  plugins:
    description:
      - Names of plugins. A name that the source does not have is an error.
      - With O(state=present) the default is all that the source has, with O(state=restored) all that this module
        installed in the directory. Needed with O(state=absent).
    type: list
    elements: str
  bin_dir:
    description:
      - Directory to install to. A missing one is made, owned by root and with mode 0755.
      - The default is the first of O(bin_dirs).
    type: path
  owner:
    description:
      - User name or number that owns the binaries.
      - With another one than root the modules of this collection refuse to run them, because they run them as root.
    type: str
    default: root
  group:
    description: Group name or number of the binaries.
    type: str
    default: root
  mode:
    description: Mode of the binaries, in quotes. It must let the owner run them and nobody else write them.
    type: raw
    default: '0755'
  state:
    description:
      - V(present) installs what is missing or differs, and sets owner and mode.
      - V(absent) removes O(plugins).
      - V(restored) brings back what the newest version replaced, be it an older version or somebody else's file, and
        removes what replaced nothing. Doing it again changes nothing.
    type: str
    choices:
      - present
      - absent
      - restored
    default: present
  force:
    description:
      - With O(state=present), install a plugin although a network or an attachment that worked with the old one has a
        C(cniVersion) that it does not support.
      - With O(state=absent) and O(state=restored), remove a plugin although a network in O(conf_dir) names it or an
        attachment in O(cache_dir) needs it, and a file that is not ours. The latter is kept.
      - With O(state=restored), go all the way back to what was there before this module first installed something.
    type: bool
    default: false
  _source:
    description:
      - Used internally, between the action plugin and the module; not to be set.
    type: dict
seealso:
  - module: podwire.cni.cni_conf
  - module: podwire.cni.cni_info
"""

EXAMPLES = r"""
- name: Install an official release for the machine of each host
  podwire.cni.cni_plugins:
    version: "1.9.1"

- name: Install some plugins of an archive that lies beside the playbook
  podwire.cni.cni_plugins:
    src: cni-plugins.tgz
    checksum: sha256:b98f74a0f8522f0a83867178729c1aa70f2158f90c45a2ca8fa791db1c76b303
    plugins:
      - bridge
      - host-local
      - loopback

- name: Let the host fetch from a mirror, with the checksum of the official release
  podwire.cni.cni_plugins:
    src: https://mirror.example.com/cni/cni-plugins-linux-amd64-v1.9.1.tgz
    remote_src: true
    version: "1.9.1"

- name: Copy the plugins of the distribution's package to where the runtime looks
  podwire.cni.cni_plugins:
    src: /usr/lib/cni
    remote_src: true
    bin_dir: /opt/cni/bin

- name: Go back to the versions that were there before
  podwire.cni.cni_plugins:
    state: restored

- name: Remove a plugin that nothing uses
  podwire.cni.cni_plugins:
    plugins: [vrf]
    state: absent
"""

RETURN = r"""
plugins:
  description: The plugins that the task is about, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the plugin, which is its file's name.
      type: str
      sample: bridge
    path:
      description: Path of the binary.
      type: str
      sample: /opt/cni/bin/bridge
    sha256:
      description: Digest of the binary as the task leaves it, V(null) if there is none.
      type: str
      sample: 0c5a7d2d14f8a0a8b8dc1ac3e9cf31c7bd9a4f3df8ac9f4dd6f1b7b9e2f2a3c1
    cni_versions:
      description: Versions of the CNI specification that the binary supports, V(null) if only a run can tell.
      type: list
      elements: str
      sample: ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]
    action:
      description: What was done, or in check mode would be. V(left) is what O(classes) does not allow.
      type: str
      choices: [none, installed, replaced, removed, restored, attributes, left]
      sample: installed
actions:
  description: The steps of the plan, the same in check mode and in a run. When a run fails, each has a C(state), too.
  returned: always, when there is a plan
  type: list
  elements: dict
  contains:
    kind:
      description: One of C(make_directory), C(install), C(replace), C(remove), C(restore), C(set_attributes).
      type: str
      sample: install
    target:
      description: What is changed.
      type: str
      sample: /opt/cni/bin/bridge
    class:
      description: V(disruptive) if something in use is removed, else V(safe).
      type: str
      sample: safe
left:
  description: What was left as it is because O(classes) does not allow it, the same in check mode and in a run.
  returned: always, when there is a plan
  type: list
  elements: dict
  sample:
    - kind: remove
      target: /opt/cni/bin/bridge
      class: disruptive
code:
  description: A word for the kind of error, see C(docs/cni_plugins.md).
  returned: failure
  type: str
  sample: wrong_machine
users:
  description: Who needs what was to be removed.
  returned: failure with RV(code=plugin_in_use)
  type: list
  elements: dict
  contains:
    name:
      description: Name of the plugin.
      type: str
      sample: bridge
    users:
      description: Networks and attachments, in words.
      type: list
      elements: str
      sample: ["the network 'apps' in /etc/cni/net.d/10-apps.conflist"]
"""

from typing import Any, Callable, Dict, NoReturn, Optional

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.lock import read_state
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.plugin_plan import PluginsPlan, Wanted, Where
from ansible_collections.podwire.cni.plugins.module_utils._host.plugin_source import Source, attributes_of, names_of
from ansible_collections.podwire.cni.plugins.module_utils._host.plugin_store import Store
from ansible_collections.podwire.cni.plugins.module_utils._host.plugins import (
    ContentMissing,
    plan_absent,
    plan_present,
    plan_restored,
)
from ansible_collections.podwire.cni.plugins.module_utils._module import (
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
    "src": {"type": "str"},
    "remote_src": {"type": "bool", "default": False},
    "version": {"type": "str"},
    "checksum": {"type": "str"},
    "plugins": {"type": "list", "elements": "str"},
    "bin_dir": {"type": "path"},
    "owner": {"type": "str", "default": "root"},
    "group": {"type": "str", "default": "root"},
    "mode": {"type": "raw", "default": "0755"},
    "state": {"type": "str", "choices": ["present", "absent", "restored"], "default": "present"},
    "force": {"type": "bool", "default": False},
    "_source": {"type": "dict"},
    **COMMON_ARGUMENTS,
    **LOCK_ARGUMENTS,
    **CLASSES_ARGUMENTS,
}
REQUIRED_IF = [("state", "present", ("src", "version"), True), ("state", "absent", ("plugins",))]
HOLDER = "cni_plugins"


def _present(module: AnsibleModule, bin_dir: str) -> PluginsPlan:
    params = module.params
    if params["_source"] is None:
        raise HostError(
            "state=present works only through the action plugin of the same name; call it as podwire.cni.cni_plugins",
            code="no_action_plugin",
        )
    source = Source(params, lambda: module.tmpdir)
    attributes = attributes_of(params["mode"], params["owner"], params["group"])
    where = Where(params["conf_dir"], params["bin_dirs"], params["cache_dir"], params["force"])

    def make(wanted: Wanted) -> Callable[[], PluginsPlan]:
        def plan() -> PluginsPlan:
            manifest = Manifest(tolerant=module.check_mode)
            made = plan_present(bin_dir, wanted, attributes, manifest, module.check_mode, where)
            if manifest.error is not None:
                made.refuse(manifest.error, module.check_mode)
            if attributes.uid != 0:
                made.warn("owner_not_root", "modules of this collection do not run plugins that another user owns")
            return made

        return plan

    wanted = source.at_hand(Manifest(tolerant=module.check_mode))
    if source.told["only_ask"]:
        _answer(module, source, bin_dir)
    if wanted is not None:
        try:
            return execute(module, make(wanted), HOLDER)
        except ContentMissing as missing:
            if source.told["last"]:
                raise HostError(
                    "what is in %s has changed while this ran (%s); run again" % (bin_dir, missing), code="host_changed"
                ) from missing
    if not params["remote_src"]:
        _answer(module, source, bin_dir)
    return execute(module, make(source.read_here()), HOLDER)


def _answer(module: AnsibleModule, source: Source, bin_dir: str) -> NoReturn:
    """End with what the controller has to know to send the rest."""
    module.exit_json(changed=False, plugins_needed=source.need(Store(bin_dir, Manifest(tolerant=module.check_mode))))
    raise SystemExit


def _plan(module: AnsibleModule, bin_dir: str) -> PluginsPlan:
    params = module.params
    if params["state"] == "present":
        return _present(module, bin_dir)
    names = names_of(params["plugins"])
    directories = (params["conf_dir"], params["cache_dir"], params["force"])
    if params["state"] == "absent":
        return execute(module, lambda: plan_absent(bin_dir, names or [], Manifest(), *directories), HOLDER)
    return execute(module, lambda: plan_restored(bin_dir, names, Manifest(), *directories), HOLDER)


def main() -> None:
    module = create_module(ARGUMENTS, required_if=REQUIRED_IF)
    bin_dir: Optional[str] = module.params["bin_dir"] or module.params["bin_dirs"][0]
    try:
        seen = read_state()
        plan = _plan(module, str(bin_dir))
    except HostError as error:
        fail(module, error)
        raise
    if not plan.changed and not module.check_mode:
        plan.remember(seen)
    finish(module, plan, plugins=plan.report(), **result_of(module, plan))


if __name__ == "__main__":
    main()
