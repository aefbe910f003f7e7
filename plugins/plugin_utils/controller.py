# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller needs besides Ansible."""

from __future__ import annotations

import sys


def jsonschema_needed(what: str, reason: object) -> str:
    """Return a sentence, without its full stop: *what* needs jsonschema, which cannot be imported because of *reason*.

    Distributions do not allow pip outside of a virtual environment.
    """
    own = sys.prefix != sys.base_prefix
    how = f"run {sys.executable} -m pip install jsonschema" if own else "install the package python3-jsonschema"
    return f"{what} needs the Python library jsonschema on the controller ({reason}); {how}"
