# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of the roles and playbooks. A unit test compares these lists with the files."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

DECLARING = (
    "cni_networks",
    "cni_attachments",
    "cni_attachments_watch",
    "cni_netns",
    "cni_runtime",
    "cni_plugins_version",
    "cni_plugins_src",
    "cni_plugins_dhcp_daemon",
)
"""The roles do not change a host for which none of these is set."""

PLAYBOOKS = """
cni_audit cni_conformance_fail cni_conformance_parallel cni_conformance_plugins cni_conformance_versions
cni_drift_fail cni_explain_fail cni_gc_allow_empty cni_gc_apply cni_gc_keep cni_gc_keep_from cni_gc_min_age
cni_gc_networks cni_gc_scope cni_hosts cni_remediate_classes cni_report_dir cni_report_fail
cni_report_max_age cni_serial cni_smoke_networks
cni_smoke_ping cni_smoke_timeout cni_teardown_force cni_teardown_netns
""".split()  # noqa: SIM905
"""Variables that users set for playbooks, besides those of the roles."""

ROLES = """
cni_attachments cni_attachments_force cni_attachments_on_drift cni_attachments_parallel cni_attachments_timeout
cni_attachments_watch cni_bin_dirs cni_cache_dir cni_classes cni_conf_dir cni_host_audit cni_host_gather
cni_host_rehearse cni_attachments_preview
cni_lock_timeout cni_netns cni_networks cni_networks_exclusive cni_networks_force cni_networks_group
cni_networks_mode cni_networks_owner
cni_networks_strict cni_networks_validate cni_plugins_bin_dir cni_plugins_checksum cni_plugins_dhcp_daemon
cni_plugins_force cni_plugins_group cni_plugins_mode cni_plugins_names cni_plugins_owner cni_plugins_remote_src
cni_plugins_src cni_plugins_version cni_runtime cni_runtime_allow cni_runtime_max_conf_num
cni_runtime_network cni_runtime_restart
cni_runtime_services cni_runtime_setup_serially cni_runtime_state cni_runtime_wait
""".split()  # noqa: SIM905

OWN = """
cni_attachments_result cni_attachments_watch_changed cni_attachments_watch_program cni_attachments_watch_unit
cni_attachments_watch_units cni_conformance_chosen cni_conformance_failed cni_conformance_found
cni_conformance_info cni_conformance_missing cni_conformance_python cni_conformance_report
cni_conformance_result cni_conformance_runs cni_conformance_temporary cni_conformance_violating
cni_conformance_wanted cni_drift cni_drift_compare cni_drift_error cni_drift_info cni_drift_report cni_drift_result
cni_explain_bad cni_explain_found cni_explain_levels cni_explain_limit cni_explain_obstacles cni_gc_result
cni_gc_word cni_host_attachments cni_host_declared cni_host_inspect cni_host_names cni_host_netns
cni_host_networks cni_host_plugins cni_host_result cni_host_runtime cni_host_sections cni_host_selected
cni_netns_result cni_networks_result cni_plugins_dhcp_units cni_plugins_result cni_preflight
cni_remediate_after cni_remediate_before cni_remediate_error cni_remediate_errors cni_remediate_failed
cni_remediate_known cni_remediate_last cni_remediate_left cni_remediate_news cni_remediate_rest
cni_remediate_wrong cni_report_levels cni_report_limit cni_runtime_configure
cni_runtime_configured cni_runtime_left cni_runtime_loaded
cni_runtime_may_restart cni_runtime_result cni_smoke_result cni_teardown_adopted cni_teardown_aside
cni_teardown_back cni_teardown_detached cni_teardown_dirs cni_teardown_files cni_teardown_found
cni_teardown_gone cni_teardown_managed cni_teardown_networks cni_teardown_others cni_teardown_removed
cni_teardown_restored cni_teardown_result cni_teardown_runtimes cni_teardown_unknown cni_upgrade_actions
cni_upgrade_after cni_upgrade_again cni_upgrade_before cni_upgrade_broken cni_upgrade_edited cni_upgrade_found
cni_upgrade_installed cni_upgrade_lost cni_upgrade_replaced cni_upgrade_why cni_upgrade_worked
""".split()  # noqa: SIM905
"""Variables that playbooks and roles set themselves."""


def unknown_variables(names: Iterable[str]) -> dict[str, str]:
    """Return those of *names* that look like variables of this collection but are not, each with the closest one.

    The latter is empty for a name without a close one: playbooks may have variables of their own with this prefix.
    """
    settable = sorted({*PLAYBOOKS, *ROLES})
    known = {*settable, *OWN}
    unknown = sorted(name for name in names if name.startswith("cni_") and name not in known)
    return {name: "".join(difflib.get_close_matches(name, settable, n=1, cutoff=0.8)) for name in unknown}
