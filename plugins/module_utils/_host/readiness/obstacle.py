# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One thing that stands between now and a container with a working network."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple

from ..problems import ERROR, INFO, WARNING
from ..secrets import mask_text

_LEVELS = (ERROR, WARNING, INFO)


class Obstacle(NamedTuple):
    """``code`` and ``message`` say what is wrong, ``evidence`` what was seen, ``remedy`` what to do about it.

    An error: no container of this runtime gets a working network. A warning: some do not, or it cannot be told. An
    info: it is odd, and no obstacle. ``runtime`` is "" for what concerns the host, ``network`` "" for all networks.
    """

    code: str
    message: str
    evidence: str
    remedy: str
    level: str = ERROR
    runtime: str = ""
    network: str = ""
    file: str = ""

    @property
    def rank(self) -> int:
        return _LEVELS.index(self.level)

    def row(self) -> Dict[str, Any]:
        texts = {key: mask_text(getattr(self, key)) for key in ("message", "evidence", "remedy")}
        return dict(self._asdict(), **texts)
