# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages for options that a module does not have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def no_options(given: Iterable[object], known: Iterable[str]) -> list[str]:
    """Return a sentence, without its full stop, for each of *given* that is not among *known*."""
    options = sorted(known)
    return [_no_option(str(name), options) for name in given if name not in options]


def _no_option(name: str, options: list[str]) -> str:
    near = difflib.get_close_matches(name, options, 1)
    remedy = f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(options)}"
    return f"there is no option {name!r}; {remedy}"
