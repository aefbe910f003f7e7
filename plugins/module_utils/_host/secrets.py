# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets are masked in everything that leaves the host, not only in diffs."""

from __future__ import annotations

import re
from typing import Any, Iterator, Set

MASK = "********"

# Containing one of the words is enough: k8s_auth_token, clientSecret, etcd_password.
_WORDS = re.compile(r"token|passw|passphrase|secret|credential", re.IGNORECASE)
# etcd_key, private-key, apiKey, client-key-data; but not etcd_key_file, which is a path.
_KEYS = re.compile(r"(^|[_-])key$|[a-z]Key$|-data$")
_IN_TEXT = re.compile(
    r"""(?P<head>["']?(?P<key>[A-Za-z0-9_.-]+)["']?\s*[:=]\s*)(?P<value>"[^"\n]*"|'[^'\n]*'|[^\s,;}\]]+)"""
)


def is_secret(key: str, value: Any) -> bool:
    """Tell whether *value* under *key* must not be shown. A flag or an empty value gives nothing away."""
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return False
    if key.lower() == "kubeconfig":
        return not (isinstance(value, str) and value.startswith("/") and "\n" not in value)
    return bool(_WORDS.search(key) or _KEYS.search(key))


def mask(value: Any) -> Any:
    """Return a copy of JSON-ready *value* with every secret replaced by ``MASK``."""
    if isinstance(value, dict):
        return {k: MASK if is_secret(str(k), v) else mask(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [mask(v) for v in value]
    return value


def secrets_of(value: Any) -> Set[str]:
    """Return the secret texts inside *value*, to be passed to :func:`scrub`."""
    return set(_secrets(value, False))


def _secrets(value: Any, inside: bool) -> Iterator[str]:
    if isinstance(value, dict):
        for k, v in value.items():
            yield from _secrets(v, inside or is_secret(str(k), v))
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _secrets(v, inside)
    # A short text would turn half of a message into asterisks.
    elif inside and isinstance(value, str) and len(value) >= 4:
        yield value


def scrub(text: str, known: Set[str]) -> str:
    """Return *text*, which a plugin printed, without the secrets that were handed to it."""
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def mask_text(text: str) -> str:
    """Mask what looks like ``key: value`` in a text that is not valid JSON."""

    def replace(match: re.Match[str]) -> str:
        value = match.group("value")
        if not is_secret(match.group("key"), value.strip("\"'")):
            return match.group(0)
        quote = value[0] if value[0] in "\"'" else ""
        return match.group("head") + quote + MASK + quote

    return _IN_TEXT.sub(replace, text)
