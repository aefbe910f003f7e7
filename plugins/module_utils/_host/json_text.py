# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""JSON that a program prints, an agent answers or a file has, when Go's rules for it do not matter."""

from __future__ import annotations

import json
from typing import Any, Union

from ..libcni.gojson import is_deeper

# As deep as libcni reads.
_DEEPEST = 500


def parse_json(data: Union[str, bytes], **hooks: Any) -> Any:
    """Parse JSON text with the arguments of `json.loads`; bytes are UTF-8. Raises ValueError, whatever the text is."""
    text = data if isinstance(data, str) else data.decode("utf-8")
    if is_deeper(text, _DEEPEST):
        raise ValueError(f"it is nested deeper than {_DEEPEST} levels")
    return json.loads(text, **hooks)
