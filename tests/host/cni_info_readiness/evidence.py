# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What somebody sees who follows the evidence of a code of readiness on a host that is broken so."""

from __future__ import annotations

import subprocess

FAILS = None
VERSION = "CNI_COMMAND=VERSION /opt/cni/bin/bridge </dev/null"
STORE = "ls /var/lib/cni/networks/pods"

# The fault, or its code -> commands, each with what it prints; FAILS: its exit status is not 0.
COMMANDS = {
    "no_bridge": [("test -f /opt/cni/bin/bridge", FAILS)],
    "no_ipam": [("test -f /opt/cni/bin/host-local", FAILS)],
    "no_chained_plugin": [("test -f /opt/cni/bin/tuning", FAILS)],
    "dangling_link": [("test -f /opt/cni/bin/bridge", FAILS)],
    "directory_of_that_name": [("test -f /opt/cni/bin/bridge", FAILS)],
    "no_loopback": [("test -f /opt/cni/bin/loopback", FAILS)],
    "not_executable": [("ls -l /opt/cni/bin/bridge", "-rw-r--r--")],
    "loopback_is_not_executable": [("ls -l /opt/cni/bin/loopback", "-rw-r--r--")],
    "noexec_mount": [("findmnt --target /opt/cni/bin/bridge", "noexec")],
    "wrong_machine": [(VERSION, FAILS), ("uname -m", "")],
    "not_a_program": [(VERSION + " | grep supportedVersions", FAILS)],
    "missing_loader": [(VERSION, FAILS)],
    "plugin_failed": [(VERSION + " | grep supportedVersions", FAILS)],
    "unsupported_by_plugin": [(VERSION, "supportedVersions"), (VERSION + " | grep -F '\"0.4.7\"'", FAILS)],
    "full_pool": [(STORE, "10.91.0.6")],
    "full_second_pool": [(STORE, "fd91::3")],
    "master_missing": [("ip link show pwdnone", FAILS)],
    "no_device": [("ip link show pwdnone", FAILS)],
    "missing_tool": [("command -v firewalld", FAILS)],
    "read_only_state": [("findmnt --target /var/lib/cni", "ro,")],
    "full_state": [("df /var/lib/cni", "100%")],
    "no_flannel": [("ls /run/flannel/subnet.env", FAILS)],
    "no_kubeconfig": [("ls /etc/cni/net.d/calico-kubeconfig", FAILS)],
    "no_dhcp_daemon": [("ls /run/cni/dhcp.sock", FAILS)],
}
# The fault, or its code -> words that the message has, or `evidence` of the row.
WORDS = {
    "broken_json": ["05-broken.conflist"],
    "list_in_conf": ["05-list.conf"],
    "text_for_a_flag": ["10-pods.conflist"],
    "no_network": ["is empty"],
    "bad_name": ["my pods"],
    "full_pool": ["5 of 5 addresses"],
    "full_second_pool": ["2 of 2 addresses"],
    "bad_range": ["10.91.0.0/24"],
    "no_range": ["neither subnet nor ranges"],
    "no_addresses": ['no "ipam" with a type'],
    "chain_order": ["tuning", "/plugins/0"],
    "two_interfaces": ["ptp", "/plugins/1"],
    "unsupported_by_runtime": ["1.6", "1.1.0"],
}


def follow(fault, error):
    """Assert that the fault shows itself as its evidence says."""
    name, code = fault.__name__, fault.__doc__
    said = f"{error['message']} {error['evidence']}"
    for word in WORDS.get(name, WORDS.get(code, [])):
        assert word in said, said
    for command, wanted in COMMANDS.get(name, COMMANDS.get(code, [])):
        done = subprocess.run(
            ["bash", "-c", command], check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        seen = f"{command}: {done.returncode}: {done.stdout}"
        assert (done.returncode != 0) if wanted is FAILS else (done.returncode == 0 and wanted in done.stdout), seen
