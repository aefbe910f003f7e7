# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation level ``plugins``: the binaries behind the networks of a request."""

from __future__ import annotations

from typing import List, Sequence

from .confdir import ConfFile, drop_ins
from .confplan import ConfPlan
from .pluginuse import Binaries, Use, check_uses, uses_of
from .problems import ERROR, problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .networks import Request


def check_plugins(plan: ConfPlan, binaries: Binaries, files: Sequence[ConfFile], request: Request) -> None:
    """Add the problems of *files*, the planned ones of the request, with the plugins that they name."""
    for file in files:
        if file.error or not file.network:
            text = "libcni cannot load this network: %s" % (file.error or "it has no name")
            plan.problems.append(problem(ERROR, "not_loadable", text, file.path))
            continue
        uses: List[Use] = []
        for index, plugin in enumerate(file.plugins):
            uses.extend(uses_of(file.path, "/plugins/%d" % index, plugin))
        for extra in [] if file.inlined_only else drop_ins(request.conf_dir, file.network):
            for plugin in extra.plugins:
                uses.extend(uses_of(extra.path, "", plugin))
        plan.problems.extend(check_uses(binaries, file.network, file.cni_version, uses, request.tolerate_missing))
