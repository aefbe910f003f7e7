# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What action plugins have in common that find the networks of pods."""

from __future__ import annotations

from typing import Any

from .pods import PodEntries
from .reading import ReadingAction


class ResolvingAction(ReadingAction):
    """Sends a host only the networks that its pods ask for, after they were validated."""

    def resolve(self, entries: Any, options: Any) -> Any:
        """Return the option ``attachments`` for the module; *options* is ``nads``. Raises HostError."""
        if not isinstance(entries, list) or not any(isinstance(one, dict) and one.get("pod") for one in entries):
            return entries
        return PodEntries(options, self.sources(), bool(self._task.check_mode)).resolve(entries)
