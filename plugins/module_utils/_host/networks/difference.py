# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How two conflists differ: not at all, harmlessly, or so that existing attachments no longer fit."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Tuple

from ...libcni import gojson
from ...libcni.errors import JSONError
from ..problems import WARNING, problem
from ..secrets import mask, mask_text

_IPAM_KEYS = ("subnet", "rangestart", "rangeend", "ranges")


def same_json(one: Optional[bytes], other: bytes) -> bool:
    """Tell whether both mean the same to libcni. Key order, whitespace and the notation of numbers do not count."""
    if one == other:
        return True
    try:
        return one is not None and gojson.dumps(gojson.loads(one)) == gojson.dumps(gojson.loads(other))
    except JSONError:
        return False


def moves_addresses(one: Optional[bytes], other: bytes) -> bool:
    """Tell whether the bridge, a subnet or a range differs, so that attachments of *one* do not fit *other*.

    A conflist that does not load has no attachments.
    """
    try:
        return one is not None and _essence(gojson.loads(one)) != _essence(gojson.loads(other))
    except JSONError:
        return False


def fits(config: bytes, text: bytes) -> bool:
    """Tell whether an attachment made with *config* fits the conflist *text*; False if one of them cannot be read."""
    try:
        return _essence(gojson.loads(config)) == _essence(gojson.loads(text))
    except JSONError:
        return False


def _essence(data: Any) -> List[Tuple[str, bytes]]:
    found: List[Tuple[str, bytes]] = []
    plugins = data.get("plugins") if isinstance(data, dict) else None
    for plugin in plugins if isinstance(plugins, list) else [data]:
        _collect(plugin, found)
    return found


def _collect(plugin: Any, found: List[Tuple[str, bytes]]) -> None:
    members = _folded(plugin)
    if "bridge" in members or members.get("type") == "bridge":
        # The plugin's default.
        found.append(("bridge", gojson.dumps(members.get("bridge") or "cni0")))
    ipam = _folded(members.get("ipam"))
    found.extend((key, gojson.dumps(ipam[key])) for key in _IPAM_KEYS if key in ipam)
    if "delegate" in members:
        _collect(members["delegate"], found)


def _folded(data: Any) -> Dict[str, Any]:
    return {key.lower(): value for key, value in data.items()} if isinstance(data, dict) else {}


def readable_secret(text: bytes, mode: int, path: str) -> List[Dict[str, Any]]:
    """Return a problem if a file with this text and mode lets every user of the host read a secret, else none."""
    try:
        data = gojson.loads(text) if mode & 0o004 else None
    except JSONError:
        return []
    if mask(data) == data:
        return []
    message = (
        f"the conflist contains a secret, and its mode {mode:04o} lets every user of the host read it; set "
        'mode: "0600" (runtimes read the file as root)'
    )
    return [problem(WARNING, "readable_secret", message, path)]


def difference_in_words(before: Optional[bytes], after: bytes) -> str:
    """Return how the content of a file differs from the desired conflist *after*; None is one that was not read."""
    if before is None:
        return "it cannot be read"
    # Imported late, here and below: unchanged runs do not need it.
    from ..changes import change_in_words

    try:
        one, other = gojson.loads(before), gojson.loads(after)
    except JSONError:
        return "it is not valid JSON"
    # Only a file that is not one of its own is replaced although its content is the desired one.
    return change_in_words(one, other) or "it is a symbolic link"


def shown_change(before: Optional[bytes], after: bytes) -> Tuple[str, str]:
    """Return both texts for a diff, without what is the same in them; whole if one of them is not valid JSON."""
    from ..changes import reduce_change

    try:
        one, other = reduce_change(gojson.loads(before or b""), gojson.loads(after))
    except JSONError:
        return shown_conflist(before or b""), shown_conflist(after)
    return _laid_out(one), _laid_out(other)


def _laid_out(data: Any) -> str:
    return data if isinstance(data, str) else json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def shown_conflist(text: bytes) -> str:
    """Return *text* for a diff, in the layout that this collection writes and without secrets."""
    try:
        return _laid_out(mask(gojson.loads(text)))
    except JSONError:
        return mask_text(text.decode("utf-8", "replace"))
