#!/usr/bin/python

# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_report
short_description: Keep what was found on hosts, and make a report of it
version_added: 0.1.0
author:
  - podwire.cni authors (@podwire)
description:
  - Writes one file for each host into a folder on the controller, and makes C(report.json) and C(report.html) of all
    files that are in it.
  - Nothing is done on the managed host, and no connection to it is needed. So a host that cannot be reached has its
    place in the report, too.
  - The playbook C(podwire.cni.drift) gathers what this module takes. See C(docs/drift.md) for the report and its form.
options:
  dir:
    description:
      - Folder on the controller. It is made if it is not there, with access for its owner only, as the files have
        addresses in them. A relative path begins where C(ansible-playbook) was called.
    type: path
    required: true
  results:
    description:
      - What was found on this host. Its file is C(hosts/NAME.json) in O(dir); what of the host's name could lead out of
        the folder is replaced.
      - Each is what a task registered, in check mode and with diff; what was skipped or is left out says nothing.
    type: dict
    suboptions:
      plugins:
        description: A result of M(podwire.cni.cni_plugins).
        type: raw
      networks:
        description: A result of M(podwire.cni.cni_conf).
        type: raw
      runtime:
        description: A second result of M(podwire.cni.cni_conf), about how runtimes are configured.
        type: raw
      netns:
        description: A result of M(podwire.cni.cni_netns).
        type: raw
      attachments:
        description: A result of M(podwire.cni.cni_attach).
        type: raw
      info:
        description: A result of M(podwire.cni.cni_info).
        type: raw
      error:
        description: A sentence on what else went wrong. If it is not empty, the host's status is V(error).
        type: raw
  compare:
    description:
      - Whether to compare with what the host's file in O(dir) says so far, before it is written anew.
      - Worse are an error that was not there, a problem of the level V(error) that was not there, a runtime that has
        lost its network, and a step that a run would not have taken before. Steps are not compared if the look before
        could not see everything because something was missing or wrong.
    type: bool
    default: false
  render:
    description:
      - Whether to make the report from all files in O(dir), those of earlier runs and of other hosts included.
      - Several runs may do that at once.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: The same is written in check mode, since a report changes no host.
  diff_mode:
    support: none
    description: Returns details on what has changed.
  idempotent:
    support: partial
    details:
      - The file of a host says when it was written.
    description:
      - When run twice in a row outside check mode, with the same arguments, the second invocation indicates no change.
seealso:
  - module: podwire.cni.cni_info
  - plugin: podwire.cni.cni_report
    plugin_type: filter
"""

EXAMPLES = r"""
- name: See what a run would change
  podwire.cni.cni_conf:
    networks:
      - name: apps
        conflist:
          cniVersion: "1.0.0"
          plugins:
            - type: bridge
              bridge: apps0
              ipam:
                type: host-local
                subnet: 10.55.0.0/24
  check_mode: true
  diff: true
  register: conf
  ignore_errors: true # An error is a row of the report.

- name: Keep it
  podwire.cni.cni_report:
    dir: cni-report
    results:
      networks: "{{ conf }}"
  register: kept

- name: Make the report
  podwire.cni.cni_report:
    dir: cni-report
    render: true
  when: inventory_hostname == ansible_play_hosts_all[0]
"""

RETURN = r"""
path:
  description: File of the host.
  returned: with O(results)
  type: str
  sample: /home/ops/cni-report/hosts/web1.json
status:
  description: Whether the host is as it is to be.
  returned: with O(results)
  type: str
  choices: [clean, drift, error]
  sample: drift
error:
  description: Why its state is not known, V(null) if it is.
  returned: with O(results)
  type: str
steps:
  description:
    - What a run would change, with C(module), C(kind), C(target), C(class), and C(before) and C(after) where
      they differ.
  returned: with O(results)
  type: list
  elements: dict
  sample:
    - module: cni_conf
      kind: write
      target: /etc/cni/net.d/10-apps.conflist
      class: safe
worse:
  description: In what the host is worse than it was before, a sentence each.
  returned: with O(compare)
  type: list
  elements: str
  sample:
    - a run would add demo/web/eth0, and would not have done so before
report:
  description: The report.
  returned: with O(render)
  type: dict
  contains:
    json:
      description: Path of the report for programs.
      type: str
      sample: /home/ops/cni-report/report.json
    html:
      description: Path of the report for people.
      type: str
      sample: /home/ops/cni-report/report.html
    status:
      description: The status of the worst host.
      type: str
      choices: [clean, drift, error]
    counts:
      description: How many hosts there are, in all and of each status.
      type: dict
      sample: {hosts: 3, clean: 2, drift: 1, error: 0}
"""
