# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation level ``plugins``: the binaries behind the networks of a request."""

from __future__ import annotations

from typing import List, Sequence

from ..binaries.usable import Binaries, Use, check_uses, uses_of
from ..confdir import ConfFile, drop_ins
from ..errors import HostError
from ..problems import ERROR, WARNING, problem
from .steps import ConfPlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request import ConfRequest


def check_plugins(plan: ConfPlan, binaries: Binaries, files: Sequence[ConfFile], request: ConfRequest) -> None:
    """Add the problems with the plugins that *files*, the planned files of the request, name."""
    for file in files:
        if file.error or not file.network:
            text = f"libcni cannot load this network: {file.error or 'it has no name'}"
            plan.problems.append(problem(ERROR, "not_loadable", text, file.path))
            continue
        uses: List[Use] = []
        for index, plugin in enumerate(file.plugins):
            uses.extend(uses_of(file.path, "/plugins/%d" % index, plugin))
        for extra in [] if file.inlined_only else drop_ins(request.conf_dir, file.network):
            for plugin in extra.plugins:
                uses.extend(uses_of(extra.path, "", plugin))
        problems = check_uses(binaries, file.network, file.cni_version, uses, request.tolerate_missing)
        plan.problems.extend(problems)
        if not problems:
            _check_tools(plan, file, binaries.bin_dirs)


def _check_tools(plan: ConfPlan, file: ConfFile, bin_dirs: Sequence[str]) -> None:
    """Warn about a missing command that a plugin needs.

    It is not an error: the runtime may have another PATH, and the command may be installed later.
    """
    if not any(plugin.get("type") in ("bridge", "ptp", "portmap", "firewall") for plugin in file.plugins):
        return
    # No other plugin needs commands, so most calls do not have to compile this.
    from ..firewall.tools import require_tools

    for index, plugin in enumerate(file.plugins):
        try:
            require_tools(f"network {file.network!r}", [plugin], {"portMappings": True}, bin_dirs)
        except HostError as error:
            plan.problems.append(problem(WARNING, error.code, error.msg, file.path, f"/plugins/{index}"))
