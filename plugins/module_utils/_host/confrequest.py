# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of a request for networks that are tested before anything is read; the controller tests them, too."""

from __future__ import annotations

import grp
import pwd
import re
from typing import Any, Optional

from .atomic import Attributes
from .errors import HostError
from .paths import file_name


def read_file_name(name: Optional[str], option: str) -> Optional[str]:
    """Return the name of a network's file; it must be plain, visible and end in ``.conflist``."""
    if name is None:
        return None
    file_name(name, option)
    if name.startswith(".") or not name.endswith(".conflist"):
        raise HostError(
            "%s: %r is refused; a list of plugins needs a visible file with the extension .conflist, such as "
            "'10-apps.conflist'" % (option, name),
            code="bad_file_name",
        )
    return name


def check_priority(priority: Optional[int], option: str) -> Optional[int]:
    """Return *priority* if it has at most two digits, so that the order as text is the order as numbers."""
    if priority is not None and not 0 <= priority <= 99:
        raise HostError(
            "%s: %d is not from 0 to 99; names are compared as text, so 100- would come before 20-"
            % (option, priority),
            code="bad_priority",
        )
    return priority


def read_attributes(mode: Any, owner: str, group: str) -> Attributes:
    """Return mode and numeric owner from what the user wrote."""
    return Attributes(_mode(mode), _id(owner, "owner"), _id(group, "group"))


def _mode(mode: Any) -> int:
    # An unquoted 0644 is the number 420 in YAML, an unquoted 644 is 0o1204: only one of the two is what was meant.
    number = mode if isinstance(mode, int) and not isinstance(mode, bool) else -1
    if isinstance(mode, str) and re.match(r"0?[0-7]{3}\Z", mode):
        number = int(mode, 8)
    if not 0o400 <= number <= 0o777:
        raise HostError(
            "mode: %r is refused; write three octal digits that let the owner read, in quotes and with a leading 0, "
            "such as '0644'" % (mode,),
            code="bad_mode",
        )
    return number


def _id(name: str, option: str) -> int:
    if name.isdigit() and name.isascii():
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid if option == "owner" else grp.getgrnam(name).gr_gid
    except KeyError:
        raise HostError(
            "%s: there is no %s %r on this host; create it, or write a number"
            % (option, "user" if option == "owner" else option, name),
            code="bad_%s" % option,
        ) from None
