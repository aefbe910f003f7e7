#!/usr/bin/python
# Copyright (c) 2026 the podwire.cni authors; GNU General Public License v3.0+
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_report
short_description: Save the state of hosts, and make a report of it
version_added: 1.0.0
author:
  - podwire.cni authors (@podwire)
description:
  - Writes one file for each host to a directory on the controller, and makes C(report.json) and C(report.html) from all
    files in that directory.
  - Does nothing on the managed host and needs no connection to it, unless O(inspect) is set. A host that cannot be
    reached is also in the report.
  - The playbook C(podwire.cni.drift) uses this module. See C(docs/drift.md) for the report and its
    format.
options:
  dir:
    description:
      - Directory on the controller. If it does not exist, it is created with access for its owner only, because the
        files contain addresses. A relative path starts in the directory where C(ansible-playbook) was called.
    type: path
    required: true
  results:
    description:
      - Results of this host. They are written to C(hosts/NAME.json) in O(dir). Parts of the host name that could lead
        out of the directory are replaced.
      - Each result is what a task registered, in check mode and with diff. A result that was skipped or is not set
        does not count.
    type: dict
    suboptions:
      host:
        description:
          - A result of M(podwire.cni.cni_host), which replaces all results below. Its C(info) replaces
            O(results.info).
        type: raw
      plugins:
        description: A result of M(podwire.cni.cni_plugins).
        type: raw
      networks:
        description: A result of M(podwire.cni.cni_conf).
        type: raw
      runtime:
        description: A second result of M(podwire.cni.cni_conf), about the configurations of the runtimes.
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
        description: A sentence that describes another error. If it is not empty, the status of the host is V(error).
        type: raw
  inspect:
    description:
      - Inspect the host first. Determines what the role P(podwire.cni.host#role) would change, given the variables of
        the host, and reads the state of the host. Changes nothing on the host.
      - This is one task, where O(results) needs several. Every task costs the controller processor time for each host.
      - Excludes O(results).
    type: bool
    default: false
  compare:
    description:
      - Whether to compare the results with the host's previous file in O(dir) before it is overwritten.
      - A host is worse if it has a new error, a new problem of the level V(error), a runtime that has lost its network,
        or a step that a run would not have taken before. Steps are not compared if the previous results were
        incomplete because something was missing or wrong.
    type: bool
    default: false
  known:
    description: Sentences of RV(worse) of an earlier comparison. Those that still hold are in RV(worse) again.
    type: list
    elements: str
    default: []
  render:
    description:
      - Whether to make the report from all files in O(dir), including those of earlier runs and of other hosts.
      - Several runs may do this at the same time.
    type: bool
    default: false
  max_age:
    description:
      - Number of days after which the record of a host is too old, so that the host needs attention. V(0) means never.
    type: float
    default: 7
  keep:
    description: Number of runs whose findings are kept in C(runs) in O(dir).
    type: int
    default: 30
  against:
    description:
      - The run to compare with. V(previous) is the one before this run, a time such as V(2026-11-24) or
        V(2026-11-24T06:00) the last run that began then. A path is a file in C(runs) of any report.
      - If it is not set, V(previous), if there is such a run.
    type: str
    default: ''
  prometheus:
    description:
      - Path of a file for the textfile collector of Prometheus' node exporter. Everybody on the controller can read it.
    type: path
attributes:
  check_mode:
    support: full
    description: Check mode writes the same files, because a report does not change a host.
  diff_mode:
    support: N/A
    description: Returns details on what has changed, or would change in C(check_mode), when in diff mode.
  idempotent:
    support: partial
    details: The file of a host contains the time when it was written.
    description:
      - When run twice in a row outside check mode, with the same arguments, the second invocation indicates no change.
seealso:
  - module: podwire.cni.cni_info
"""

EXAMPLES = r"""
- name: Check what a run would change
  podwire.cni.cni_host:
    networks:
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
    gather: [conf, plugins, attachments, leases, kernel, garbage, runtime]
  check_mode: true
  diff: true
  register: found
  ignore_errors: true # The report shows an error as a row.

- name: Save the result
  podwire.cni.cni_report:
    dir: cni-report
    results:
      host: "{{ found }}"
  register: kept

- name: Make the report
  podwire.cni.cni_report:
    dir: cni-report
    render: true
  when: inventory_hostname == ansible_play_hosts_all[0]
"""

RETURN = r"""
path:
  description: Path of the host's file.
  returned: with O(results) or O(inspect)
  type: str
  sample: /home/ops/cni-report/hosts/web1.json
status:
  description: Whether the host is in its desired state.
  returned: with O(results) or O(inspect)
  type: str
  choices: [clean, drift, error]
  sample: drift
summary:
  description: The status in a line, with three of the steps, how many more there are, and the first error.
  returned: with O(results) or O(inspect)
  type: str
  sample: "drift: write 10-apps.conflist (disruptive), install bridge"
error:
  description: Why the state of the host is unknown. V(null) if it is known.
  returned: with O(results) or O(inspect)
  type: str
steps:
  description:
    - What a run would change, with C(module), C(kind), C(target), C(class) and C(reason), and with C(before) and
      C(after) if they differ. For attachments, C(why) is the word that C(cni_attach) returns for the reason.
    - C(lost) are the kinds of the objects that a repair in place is about.
  returned: with O(results) or O(inspect)
  type: list
  elements: dict
  sample:
    - module: cni_conf
      kind: write
      target: /etc/cni/net.d/10-apps.conflist
      class: safe
      reason: "bridge: mtu 1450, want 1500"
time:
  description: When the host was inspected, in UTC.
  returned: with O(results) or O(inspect)
  type: str
  sample: "2026-11-25T06:00:00Z"
problems:
  description: The problems of the networks and plugins of the host, as M(podwire.cni.cni_conf) returns them.
  returned: with O(results) or O(inspect)
  type: list
  elements: dict
confirmed:
  description: Whether a container started now would get its network. V(null) if that is not known.
  returned: with O(results) or O(inspect)
  type: bool
planned:
  description: Whether it is known what a run would change. If not, RV(error) says why.
  returned: with O(inspect)
  type: bool
cautions:
  description: The warnings of the inspection, without those about drift that is a step.
  returned: with O(inspect)
  type: list
  elements: str
fail:
  description: Why the playbook C(podwire.cni.drift) fails the host. Empty if it does not.
  returned: with O(inspect)
  type: str
worse:
  description: In what the host is worse than before, one sentence for each difference.
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
      description: Path of the machine-readable report.
      type: str
      sample: /home/ops/cni-report/report.json
    html:
      description: Path of the human-readable report.
      type: str
      sample: /home/ops/cni-report/report.html
    status:
      description: The status of the worst host.
      type: str
      choices: [clean, drift, error]
    counts:
      description:
        - Number of hosts, in total and by status.
        - C(attention) counts the hosts that need attention for any reason.
      type: dict
      sample: {hosts: 3, clean: 2, drift: 1, error: 0, attention: 1}
    summary:
      description: How many hosts need attention, and why, in a line.
      type: str
      sample: "1 of 3 hosts needs attention: 1 with drift"
    lost_with_container:
      description:
        - Whether the report will be lost with the execution environment in which Ansible runs, because its directory is
          in no volume. AWX's own volume C(/runner) does not outlive the job.
      type: bool
      sample: false
    artifact:
      description:
        - The totals and the hosts by name, in less than 64 KB, for the artifacts of a job.
        - C(status), C(summary) and C(counts) are those of the report. C(classes) counts steps by class.
        - C(hosts) has lists of names, C(error), C(drift), C(attention) (clean hosts that need it), C(disruptive) and
          C(safe) (hosts with steps of that class). C(left_out) says how many names a list lacks because of the size.
      type: dict
      sample:
        status: drift
        summary: "1 of 3 hosts needs attention: 1 with drift"
        counts: {hosts: 3, clean: 2, drift: 1, error: 0, attention: 1}
        classes: {safe: 2, disruptive: 0, foreign: 0}
        hosts: {error: [], drift: [web2], attention: [], disruptive: [], safe: [web2]}
        left_out: {}
    since:
      description: When the run began that the report was compared with. Empty if there was none.
      type: str
      sample: "2026-11-24T06:00:00Z"
    changes:
      description:
        - The hosts that differ from that run, each with C(host), its level C(before) and C(after), and the findings
          that are C(new) or C(gone).
      type: list
      elements: dict
      sample:
        - host: web2
          before: clean
          after: drift
          new: ["write /etc/cni/net.d/10-apps.conflist: bridge: mtu 1450, want 1500"]
          gone: []
    changes_summary:
      description: How many findings are new and gone, in a line. Empty if there was nothing to compare with.
      type: str
      sample: "since 2026-11-24 06:00: new findings on 1 host"
"""
