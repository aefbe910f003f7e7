# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for everything that leaves the host: masks secrets, and escapes characters that a terminal interprets.

The words of a key decide (``clientKeyData``: client, key, data). Neither a list of keys nor a search for substrings
tells ``private_key_pem`` from ``public_key``, or ``pass`` from ``bypass``. When in doubt, a value is masked.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import AbstractSet, Any, Callable, Dict, FrozenSet, List, Match, Set, Tuple

MASK = "********"


def _words(text: str) -> FrozenSet[str]:
    return frozenset(text.split())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Compounds are often written without a separator: authtoken, dbpassword.
_SECRET = re.compile(r".*(password|passwd|passphrase|passcode|secret|token|credential)s?|creds|bearer|authorization")
# These are parts of other names, too (pass_through), and count only at the end.
_SECRET_AT_END = _words("cookie cookies cred jwt otp pass pin psk psks pw pwd")
_COMPOUND_KEY = re.compile(
    r"(access|account|api|auth|ca|client|encrypt|encryption|host|license|master|pass|(pre)?shared|priv|private|secret"
    r"|server|sign|signing|ssh|ssl|tls|wg)keys?"
)
# A last word that says how a secret is written, not what it is.
_ENCODING = _words(
    """b base content contents data decoded der encoded hash hex json pem plain plaintext raw string text value
    values"""
)
# A last word for something about a secret that does not give the secret away.
_ABOUT = _words(
    """alg algorithm audience bits bucket burst bytes class count dir directory disabled enabled endpoint
    expiration expires expiry file filename files format header helper host interval issuer kind label
    length lifetime limit max method min mode mount name names namespace namespaces path paths period plugin
    policy port prefix provider rate ref refs reference renewal required review rotation rules scope scopes
    second seconds server service size socket source status strength suffix through timeout ttl type types
    uri url user username version"""
)
# Keys that are no secrets: public_key, primary_key, authorized_keys.
_OPEN_KEY = _words(
    """annotation authorized cache column composite field foreign group hash hot index known label lookup map node
    object partition primary pub public routing row sort trusted unique"""
)
_PLAIN_PATH = re.compile(r"/(etc|var|run|opt|usr|root|home|srv|mnt|tmp)(/[\w.@+-]+)+")
_PATH = re.compile(r"/.*|[\w.@+-]{0,64}conf(ig)?")
# The member of {"name": "DB_PASSWORD", "value": ...} that says what the value is.
_LABELS = ("name", "key", "variable", "header")

# Bounded, and never started within a word: the time must not grow with the square of an untrusted text's length.
_KEY = r"(?P<key>[A-Za-z][\w.-]{0,127})"
_VALUE = r"""(?P<value>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|(?:(?:Bearer|Basic|Token) +)?[^\s,;&}\]]+)"""
# Of an object or a list, and not of a text that only begins with brackets.
_OPENING = r"[\[{](?!\s*[\]}][^\s,;&}\]])"
_BEFORE = rf"""(?P<head>(?<![\w.-])["']?{_KEY}["']?\s*[:=]\s*)"""
# Compiled by the few runs that need them.
_PAIR = rf"{_BEFORE}(?!{_OPENING}){_VALUE}"
_NESTED = rf"{_BEFORE}(?P<opening>{_OPENING})(?!\s*[\]}}])"
_TOKEN = r"""[\[{\]}]|"(?P<text>(?:\\.|[^"\\\n])*)"?(?P<colon>\s*:)?"""
_LABELLED = rf"""(?i)(?P<head>\bname["']?\s*:\s*["']?{_KEY}["']?\s*,\s*["']?value["']?\s*:\s*){_VALUE}"""
_ASSIGNMENT = re.compile(rf"(?P<head>(?<![\w.])(?:--?)?{_KEY}=){_VALUE}")
# --token x, and "--token", "x"
_OPTION = re.compile(rf"""(?P<head>(?<![\w-])--?{_KEY}(?:\s+|["']\s*,\s*))(?!["']?-){_VALUE}""")
_OPTION_NAME = re.compile(rf"--?{_KEY}")
_HEADER = re.compile(rf"(?P<head>{_KEY}: )(?P<value>\S+(?: \S+)?)")
_BY_FORM = re.compile(
    r"(?P<head>://[^\s/?#:@\"']*:)(?!\d{1,5}(?:[/?#,;]|$))[^\s\"']{1,256}(?=@)"
    r"|(?P<scheme>\b(?:Bearer|Basic) +)(?=\S*[0-9=])[\w.~+/=-]{8,}"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)"
    r"|(?<![\w-])eyJ[\w-]{8,}\.[\w-]+\.[\w-]*",
    re.DOTALL,
)
# A shorter text would turn half of a message into asterisks.
_SHORTEST = 4
# Deeper values are not shown; nothing that a person writes is nested so deeply.
_DEEPEST = 100
# Their values are always on one line, whatever they quote.
_ONE_LINE = frozenset(["message", "reason", "target", "before_header", "after_header"])


def is_secret(key: str, value: Any) -> bool:
    """Tell whether *value* under *key* must not be shown. A flag or an empty value gives nothing away."""
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return False
    kind = _kind(key)
    if kind == "kubeconfig":
        return not (isinstance(value, str) and _PATH.fullmatch(value))
    if kind == "auth":
        # Usually the name of a method, but user:password in base64 for Docker.
        return isinstance(value, str) and (":" in value or len(value) > 16)
    if kind == "key":
        # A number is the key of a tunnel; an object is described by its own keys.
        is_path = isinstance(value, str) and _PLAIN_PATH.fullmatch(value)
        return isinstance(value, (str, list, tuple)) and not is_path
    return kind == "secret"


# The same keys occur again and again.
@lru_cache(maxsize=1024)
def _kind(key: str) -> str:
    """Return what a key says about its value: ``secret``, or ``kubeconfig``, ``auth`` and ``key`` for some values."""
    words = [word.lower() for word in _WORD.findall(key)]
    while len(words) > 1 and words[-1] in _ENCODING:
        words.pop()
    if not words or words[-1] in _ABOUT or words[0] in ("max", "min", "num"):
        return ""
    last = words[-1]
    if last in _SECRET_AT_END or any(_SECRET.fullmatch(word) for word in words):
        return "secret"
    if "kubeconfig" in "".join(words):
        return "kubeconfig"
    if last == "auth":
        return "auth"
    is_key = last in ("key", "keys") or _COMPOUND_KEY.fullmatch(last)
    return "key" if is_key and _OPEN_KEY.isdisjoint(words) else ""


def mask(value: Any) -> Any:
    """Return a copy of JSON-ready *value* with every secret replaced by ``MASK``."""
    return _masked(value, set())


def secrets_of(value: Any) -> Set[str]:
    """Return the secret texts inside *value*, to be passed to :func:`scrub`."""
    secrets: Set[str] = set()
    _masked(value, secrets)
    return {secret for secret in secrets if len(secret) >= _SHORTEST}


def _masked(value: Any, secrets: Set[str], depth: int = 0) -> Any:
    """Return *value* without its secrets, which are added to *secrets*."""
    if depth > _DEEPEST:
        return MASK
    if isinstance(value, dict):
        label = _label(value)
        return {
            key: _hidden(entry, secrets)
            if is_secret(label if label and str(key).lower() == "value" else str(key), entry) and entry is not label
            else _masked(entry, secrets, depth + 1)
            for key, entry in value.items()
        }
    if isinstance(value, (list, tuple)):
        # In a list of arguments, an option's value may be the next entry.
        before = ["", *(entry if isinstance(entry, str) and _OPTION_NAME.fullmatch(entry) else "" for entry in value)]
        return [
            _hidden(entry, secrets)
            if is_secret(option, entry) and not str(entry).startswith("-")
            else _masked(entry, secrets, depth + 1)
            for option, entry in zip(before, value)
        ]
    return _masked_string(value, secrets) if isinstance(value, str) else value


def _label(pair: Dict[Any, Any]) -> str:
    """Return what ``value`` is the value of, in an object such as ``{"name": "DB_PASSWORD", "value": ...}``."""
    if not any(isinstance(key, str) and key.lower() == "value" for key in pair):
        return ""
    folded = {str(key).lower(): entry for key, entry in pair.items()}
    labels = [folded.get(key) for key in _LABELS]
    return next((label for label in labels if isinstance(label, str)), "")


def _hidden(value: Any, secrets: Set[str]) -> str:
    """Return ``MASK``; every text and number inside *value* is added to *secrets*."""
    inside = [value]
    while inside:
        entry = inside.pop()
        if isinstance(entry, dict):
            inside.extend(entry.values())
        elif isinstance(entry, (list, tuple)):
            inside.extend(entry)
        elif entry is not None and not isinstance(entry, bool):
            secrets.add(str(entry))
    return MASK


def _masked_string(text: str, secrets: Set[str]) -> str:
    if text[:1] in ("{", "["):
        try:
            return _masked_json(text, secrets)
        except ValueError:
            return _masked_text(text, secrets)
    replace = _without_value(secrets)
    header = _HEADER.fullmatch(text)
    return replace(header) if header else _masked_parts(text, secrets)


def _masked_json(text: str, secrets: Set[str]) -> str:
    """Return masked JSON, unchanged if nothing in it is secret. Raises ValueError."""
    # Imported late: most calls mask no text that is JSON.
    from .json_text import parse_json

    hidden: List[Any] = []

    def no_key_twice(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            # Only the last value is tested, but the text has all of them.
            hidden.extend(pairs)
        return members

    value = parse_json(text, object_pairs_hook=no_key_twice)
    masked = _masked(value, secrets)
    if masked == value and not hidden:
        return text
    indent = 2 if "\n" in text.rstrip("\n") else None
    return json.dumps(masked, indent=indent, ensure_ascii=False) + "\n" * text.endswith("\n")


def _masked_text(text: str, secrets: Set[str]) -> str:
    replace = _without_value(secrets)
    text = _without_nested(text, secrets)
    return _masked_parts(re.sub(_PAIR, replace, re.sub(_LABELLED, replace, text)), secrets)


def _without_nested(text: str, secrets: Set[str]) -> str:
    """Return *text*, which is not JSON, without the objects and lists under secret keys."""
    parts = []
    end = 0
    for match in re.finditer(_NESTED, text):
        nested = [""] if match.group("opening") == "[" else {"": ""}
        if match.start() >= end and is_secret(match.group("key"), nested):
            parts += [text[end : match.end("head")], MASK]
            end = _end_of(text, match.start("opening"), secrets)
    return "".join(parts) + text[end:]


def _end_of(text: str, start: int, secrets: Set[str]) -> int:
    """Return where the object or list at *start* ends, and add its texts to *secrets*. An open one has no end."""
    depth = 0
    for match in re.compile(_TOKEN).finditer(text, start):
        if match.group("text") is None:
            depth += 1 if match.group() in "[{" else -1
        elif not match.group("colon"):
            secrets.add(match.group("text"))
        if depth == 0:
            return match.end()
    return len(text)


def _masked_parts(text: str, secrets: Set[str]) -> str:
    """Return *text* without the secrets that can be part of any text: in URLs, assignments, options, keys in PEM."""

    def by_form(match: Match[str]) -> str:
        head = match.group("head") or match.group("scheme") or ""
        secrets.add(match.group(0)[len(head) :])
        return head + MASK

    if ":" in text or " " in text or "eyJ" in text:
        text = _BY_FORM.sub(by_form, text)
    if "=" in text:
        text = _ASSIGNMENT.sub(_without_value(secrets), text)
    if "-" in text:
        text = _OPTION.sub(_without_value(secrets), text)
    return text


def _without_value(secrets: Set[str]) -> Callable[[Match[str]], str]:
    def replace(match: Match[str]) -> str:
        value = match.group("value")
        bare = value.strip("\"'")
        if bare == MASK or not is_secret(match.group("key"), bare):
            return match.group(0)
        secrets.add(bare)
        quote = value[0] if value[0] in "\"'" else ""
        return match.group("head") + quote + MASK + quote

    return replace


def mask_text(text: str) -> str:
    """Mask values of secret keys (``key: value``) in a text that is not valid JSON."""
    return _masked_text(text, set())


def scrub(text: str, known: AbstractSet[str]) -> str:
    """Return *text*, which a plugin printed, without the secrets that were handed to it."""
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def visible(text: str, kept: str = "\n\t") -> str:
    """Return *text* with JSON escapes for characters that are invisible or that a terminal interprets, except *kept*.

    These are control characters, line separators, marks that change the direction of text, and lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in kept else json.dumps(char)[1:-1] for char in text)


def one_line(text: str) -> str:
    """Return *text*, which may quote untrusted text, as one line."""
    return visible(text, "")


def published(value: Any, known: AbstractSet[str] = frozenset(), kept: str = "\n\t") -> Any:
    """Return JSON-ready *value* as it may leave the host: masked, without the *known* secrets, and visible."""
    return _published(mask(value), known, kept)


def _published(value: Any, known: AbstractSet[str], kept: str) -> Any:
    if isinstance(value, dict):
        return {
            one_line(key) if isinstance(key, str) else key: _published(entry, known, "" if key in _ONE_LINE else kept)
            for key, entry in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_published(entry, known, kept) for entry in value]
    return visible(scrub(value, known), kept) if isinstance(value, str) else value
