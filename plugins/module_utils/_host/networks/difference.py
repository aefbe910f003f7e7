# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""How two conflists differ: not at all, harmlessly, or so that existing attachments no longer fit."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ...libcni import gojson
from ...libcni.errors import JSONError
from ..addresses import objects_in
from ..confdir import read_go_json
from ..kinds import META, delegate_of, kind_of, member_of, object_of, text_of
from ..problems import WARNING, Finding
from ..secrets import mask, mask_text

Plugin = Dict[str, Any]
# Members of every plugin: its own and its IPAM plugin's type, and what names addresses for single containers.
_OF_ANY = dict.fromkeys(("type", "ipam", "args", "runtimeConfig"))
_OF_NONE = ("name", "cniversion")


def same_json(text: Optional[bytes], other: bytes) -> bool:
    """Tell whether both mean the same to libcni. Key order, whitespace and the notation of numbers do not count."""
    if text == other:
        return True
    try:
        return text is not None and gojson.dumps(gojson.loads(text)) == gojson.dumps(gojson.loads(other))
    except JSONError:
        return False


def moved(before: Optional[bytes], after: bytes) -> List[str]:
    """Return in words what differs between two conflists so that attachments of *before* do not fit *after*.

    That is what decides on addresses, interfaces and rules. A conflist that does not load has no attachments.
    """
    return [] if before is None else _moved_in(read_go_json(before), read_go_json(after))


def fits(config: bytes, text: bytes, drop_ins: Sequence[Plugin] = ()) -> bool:
    """Tell whether an attachment made with *config* fits the conflist *text* with *drop_ins*.

    False if one of them cannot be read.
    """
    try:
        return not _moved_in(gojson.loads(config), gojson.loads(text), drop_ins)
    except JSONError:
        return False


def _moved_in(before: Any, after: Any, drop_ins: Sequence[Plugin] = ()) -> List[str]:
    if not isinstance(before, dict) or not isinstance(after, dict):
        return []
    # libcni reads the keys of a list exactly.
    name = ["the name"] if before.get("name") != after.get("name") else []
    return name + moved_plugins(_plugins(before), [*_plugins(after), *drop_ins])


def _plugins(data: Plugin) -> List[Plugin]:
    return objects_in(data.get("plugins", [data]))


def moved_plugins(before: Sequence[Plugin], after: Sequence[Plugin]) -> List[str]:
    """Return what :func:`moved` does for two chains. A plugin that works on the interface may be added."""
    words: List[str] = []
    added = list(after)
    for plugin in before:
        kind = text_of(plugin, "type")
        same = next((other for other in added if text_of(other, "type") == kind), None)
        if same is not None:
            added.remove(same)
            ours, theirs = _moving(plugin), _moving(same)
            changed = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
            # Another type explains all that is different inside.
            others = tuple(key[: -len("type")] for key in changed if key.endswith("/type"))
            changed = [key for key in changed if not key.startswith(others) or key.endswith("/type")]
            words += [(theirs.get(key) or ours[key])[0] for key in changed]
        elif not kind_of(plugin).inside:
            words.append(f"the plugin {kind}")
    words += [f"the plugin {text_of(plugin, 'type')}" for plugin in added if kind_of(plugin).role != META]
    return list(dict.fromkeys(words))


def _moving(plugin: Plugin) -> Dict[str, Tuple[str, bytes]]:
    """Return key -> (words, value) for the members of a plugin, or of an object in it, that move attachments."""
    kind = kind_of(plugin)
    names = dict.fromkeys(plugin) if kind.moving is None else {**kind.moving, **_OF_ANY}
    states = {}
    for name, default in names.items():
        key = gojson.fold(name)
        value = member_of(plugin, key)
        # Objects with a type of their own.
        if kind.moving is not None and key in ("ipam", "delegate"):
            # flannel's ipam is that of its delegate.
            part = object_of(plugin, key) if text_of(plugin, "type") != "flannel" else {}
            members = _moving(delegate_of(plugin) if key == "delegate" else part)
            states.update({f"{key}/{member}": state for member, state in members.items()})
            if "type" in members:
                states[f"{key}/type"] = f"the type of {key}", members["type"][1]
        elif key not in _OF_NONE:
            if value in (None, "") or (default is None and not value):
                value = default
            states[key] = f"{name} of {text_of(plugin, 'type')}", gojson.dumps(_settled(value))
    return states


def _settled(value: Any) -> Any:
    """Return a value in the form in which equal ones are the same: folded keys, clean paths."""
    if isinstance(value, dict):
        return {gojson.fold(key): _settled(item) for key, item in value.items()}
    if isinstance(value, str) and value.startswith("/"):
        return os.path.normpath(value)
    return [_settled(item) for item in value] if isinstance(value, list) else value


def readable_secret(text: bytes, mode: int, path: str) -> List[Finding]:
    """Return a problem if a file with this text and mode lets every user of the host read a secret, else none."""
    data = read_go_json(text) if mode & 0o004 else None
    if mask(data) == data:
        return []
    what = f"the conflist contains a secret, and its mode {mode:04o} lets every user of the host read it"
    return [Finding(WARNING, "readable_secret", what, 'set mode: "0600" (runtimes read the file as root)', path)]


def difference_in_words(before: Optional[bytes], after: bytes) -> str:
    """Return how the content of a file differs from the desired conflist *after*; None is one that was not read."""
    if before is None:
        return "it cannot be read"
    from ..changes import change_in_words

    try:
        current, desired = gojson.loads(before), gojson.loads(after)
    except JSONError:
        return "it is not valid JSON"
    # Only a file that is not one of its own is replaced although its content is the desired one.
    return change_in_words(current, desired) or "it is a symbolic link"


def shown_change(before: Optional[bytes], after: bytes) -> Tuple[str, str]:
    """Return both texts for a diff, without what is the same in them; whole if one of them is not valid JSON."""
    from ..changes import reduce_change

    try:
        current, desired = reduce_change(gojson.loads(before or b""), gojson.loads(after))
    except JSONError:
        return shown_conflist(before or b""), shown_conflist(after)
    return _laid_out(current), _laid_out(desired)


def _laid_out(data: Any) -> str:
    return data if isinstance(data, str) else json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def shown_conflist(text: bytes) -> str:
    """Return *text* for a diff, in the layout that this collection writes and without secrets."""
    try:
        return _laid_out(mask(gojson.loads(text)))
    except JSONError:
        return mask_text(text.decode("utf-8", "replace"))
