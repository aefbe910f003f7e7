# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of variables, for messages. A unit test compares these lists with the files."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .settings import VARIABLES

DECLARING = (
    "cni_networks",
    "cni_pod_networks",
    "cni_pod_networks_nads",
    "cni_attachments",
    "cni_attachments_watch",
    "cni_netns",
    "cni_runtime",
    "cni_plugins_version",
    "cni_plugins_src",
    "cni_plugins_builtin",
    "cni_plugins_dhcp_daemon",
)
"""The roles do not change a host for which none of these is set."""

OWN = """
cni_attachments_result cni_attachments_watch_changed cni_attachments_watch_program cni_attachments_watch_unit
cni_attachments_watch_units cni_attachments_watched cni_bad_values
cni_drift cni_drift_looked cni_drift_report cni_drift_result cni_explain_bad
cni_explain_found cni_explain_levels cni_explain_limit cni_explain_obstacles cni_gc_applied cni_gc_result
cni_gc_word cni_host_instead cni_host_only cni_host_options cni_host_result cni_host_sections cni_netns_result
cni_networks_result cni_plugins_dhcp_units cni_plugins_dhcp_wanted cni_plugins_result cni_preflight cni_pull_file
cni_pull_found cni_pull_installed cni_pull_keys cni_pull_kind cni_pull_lacks_keys cni_pull_lacks_signers
cni_pull_left cni_pull_longest cni_pull_machine cni_pull_open cni_pull_open_pip cni_pull_packages cni_pull_pip
cni_pull_requirements cni_pull_runs cni_pull_supported cni_pull_units cni_pull_watched cni_pull_what cni_pull_where
cni_pull_written cni_pull_wrong cni_remediate_after cni_remediate_before cni_remediate_error cni_remediate_errors
cni_remediate_failed cni_remediate_known cni_remediate_last cni_remediate_left cni_remediate_looked
cni_remediate_news cni_remediate_old cni_remediate_rest cni_remediate_result cni_remediate_wrong cni_report_levels
cni_report_limit cni_report_lost cni_runtime_configured cni_runtime_left cni_runtime_loaded cni_runtime_may_restart
cni_runtime_names cni_runtime_options cni_runtime_result cni_smoke_result cni_summary_of cni_summary_planned
cni_summary_results cni_teardown_adopted cni_teardown_back cni_teardown_detached cni_teardown_dirs
cni_teardown_entries cni_teardown_forced cni_teardown_foreign cni_teardown_found cni_teardown_managed
cni_teardown_namespaces cni_teardown_networks cni_teardown_others cni_teardown_pod_dir cni_teardown_pods
cni_teardown_removed cni_teardown_restored cni_teardown_restored_pods cni_teardown_result cni_teardown_runtimes
cni_teardown_unknown cni_teardown_written cni_upgrade_actions cni_upgrade_after cni_upgrade_again cni_upgrade_before
cni_upgrade_broken cni_upgrade_edited cni_upgrade_found cni_upgrade_installed cni_upgrade_lost cni_upgrade_replaced
cni_upgrade_why cni_upgrade_worked
""".split()  # noqa: SIM905
"""Variables that playbooks and roles set themselves."""


def unknown_variables(names: Iterable[str]) -> dict[str, str]:
    """Return those of *names* that look like variables of this collection but are not, each with the closest one.

    The latter is empty for a name without a close one: playbooks may have variables of their own with this prefix.
    """
    settable = sorted(VARIABLES)
    known = {*settable, *OWN}
    unknown = sorted(name for name in names if name.startswith("cni_") and name not in known)
    return {name: "".join(difflib.get_close_matches(name, settable, n=1, cutoff=0.8)) for name in unknown}
