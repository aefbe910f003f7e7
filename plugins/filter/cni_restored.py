# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter cni_restored: the entries of cni_conf that bring a directory back to what it was before the collection."""

from __future__ import annotations

import posixpath
from typing import Any, Callable

from ansible.errors import AnsibleFilterError


def cni_restored(found: Any) -> list[dict[str, str]]:
    """Return entries of ``networks``; see the filter's documentation."""
    try:
        managed = [file for file in found["conf"] if file["managed"]]
        foreign = [file for file in found["aside"] if not file["managed"]]
        adopted = [file["managed_as"] for file in managed if file["original"]]
        written = [file["managed_as"] for file in managed]
        written += [file["network"] for file in found["aside"] if file["managed"]]
        # A managed network that replaced a file which was set aside is removed when that file is restored.
        back = {*adopted, *(file["network"] for file in foreign)}
        files = [posixpath.basename(file["original_path"]) for file in foreign]
        return [
            *({"name": name, "state": "absent"} for name in dict.fromkeys(written) if name not in back),
            *({"name": name, "state": "restored"} for name in dict.fromkeys(adopted)),
            *({"file": name, "state": "restored"} for name in dict.fromkeys(files)),
        ]
    except (KeyError, TypeError) as error:
        raise AnsibleFilterError("cni_restored: the input must be a result of cni_info with 'conf'") from error


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cni_restored": cni_restored}
