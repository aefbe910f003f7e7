# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The documented differences between Go's libcni 1.3.0 and this collection's: all of them, each with its reason.

Two kinds. Most say what is expected of a step instead of what Go's libcni did (expectations.py). A rewriting difference
says how one text has to be changed to be the other's: it explains a disagreement only if the texts are then equal, to
the byte. Whatever is left is a disagreement.
"""

from __future__ import annotations

import base64
import re
import typing as t
from dataclasses import dataclass

import expectations as expected_of
from cases.calling import LONG, LOUD
from compare import Disagreement
from expectations import Expectation
from model import Seen
from sides import Turn

Texts = t.Tuple[str, str]


@dataclass
class Difference:
    """`rewrite` takes what the disagreement is about and both texts; `expect` see expectations.py."""

    name: str
    reason: str
    # Where cases meet it.
    category: str
    rewrite: t.Callable[[str, str, str], Texts] | None = None
    expect: Expectation | None = None


def expect(turn: Turn) -> tuple[Seen, set[str]]:
    """Return what this collection's libcni has to do in a step, and the names of the differences that make it so."""
    expected, names = turn.go, set()
    for difference in DIFFERENCES:
        other = difference.expect(turn, expected) if difference.expect is not None else None
        if other is not None and other != expected:
            expected = other
            names.add(difference.name)
    return expected, names


def explain(one: Disagreement) -> set[str]:
    """Return the names of the rewriting differences that explain a disagreement; none of them: it is one."""
    left, right = (data.decode("utf-8", "surrogateescape") for data in (one.expected, one.python))
    used = set()
    for difference in DIFFERENCES:
        if difference.rewrite is not None:
            before = left, right
            left, right = difference.rewrite(one.what, left, right)
            if (left, right) != before:
                used.add(difference.name)
    return used if left == right else set()


# ---- rewriting: the texts of errors


def _file_named(what: str, go: str, python: str) -> Texts:
    return go, re.sub(r"^libcni: /\S*/net\.d[^:\n]*: (?=.)", "libcni: ", python) if what == "stderr" else python


# Both sides say what is wrong with JSON in their own words, up to the end of the line or to the next error of a list.
# That it is broken or that a value has the wrong type, and what it is instead, must agree.
_NEXT = r"(?= (?:plugin|netplugin|failed to find|decoding version) |\]?$)"
_JSON_ERRORS = tuple(
    (re.compile(pattern + ".*?" + _NEXT, re.MULTILINE), sign)
    for pattern, sign in (
        (r"json: cannot unmarshal (array|bool|null|number|object|string)", r"<\1>"),
        (
            r"(?:unexpected end of JSON input|invalid character|invalid JSON:|the text starts with a byte order mark)",
            "<broken>",
        ),
    )
)


def _json_errors(what: str, go: str, python: str) -> Texts:
    if what != "stderr":
        return go, python
    for pattern, sign in _JSON_ERRORS:
        go, python = pattern.sub(sign, go), pattern.sub(sign, python)
    return go, python


def _place_of_address(what: str, go: str, python: str) -> Texts:
    return go, re.sub(r"\b(ips|routes|ip4|ip6)/[a-z0-9/]+: (?=invalid (CIDR|IP) address: )", "", python)


_QUOTED = r'"(?:[^"\\]|\\.)*"'
_ENDED = r"(?:exit status \d+|signal: (?:killed|terminated))"


def _exit_status_after_stderr(what: str, go: str, python: str) -> Texts:
    return go, re.sub(rf"(netplugin failed: {_QUOTED}): {_ENDED}", r"\1", python)


def _text_for_empty_message(what: str, go: str, python: str) -> Texts:
    return go, re.sub(rf"netplugin failed and its output {_QUOTED} has no error message: {_ENDED}", "", python)


def _bounded_texts(what: str, go: str, python: str) -> Texts:
    # What is forwarded keeps the last 16 KiB; in an error's text, 2048 characters are quoted.
    go = go.replace(LOUD, LOUD[-16 * 1024 :])
    go = go.replace(f'netplugin failed: "{LONG}"', f'netplugin failed: "{LONG[-2048:]}"')
    return go.replace(f'diagnostic message "{LONG}"', f'diagnostic message "{LONG[:2048]}"'), python


# ---- rewriting: numbers

_TOKEN = re.compile(rf"{_QUOTED}|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_CONFIG = re.compile(r'"config":"([A-Za-z0-9+/=]*)"')


def _exact_integers(what: str, go: str, python: str) -> Texts:
    if what.startswith("file cache/"):
        # The configuration is in there as base64.
        go, python = _CONFIG.sub(_decoded, go), _CONFIG.sub(_decoded, python)
    return go, _TOKEN.sub(_as_float, python)


def _decoded(match: re.Match[str]) -> str:
    return '"config":' + base64.b64decode(match.group(1)).decode("utf-8", "surrogateescape")


def _as_float(match: re.Match[str]) -> str:
    token = match.group()
    if not token.lstrip("-").isdigit() or abs(int(token)) <= 2**53:
        return token
    text = repr(float(token))
    mantissa, _e, exponent = text.partition("e")
    if text.endswith(".0") or int(exponent or 0) >= 21:
        return text[:-2] if text.endswith(".0") else f"{mantissa}e+{int(exponent)}"
    digits = mantissa.replace(".", "").lstrip("-")
    return ("-" if mantissa.startswith("-") else "") + digits.ljust(int(exponent) + 1, "0")


NEWER = "As in libcni after 1.3.0. "

DIFFERENCES = (
    Difference("the file is named", "A broken file's error begins with its path.", "load", _file_named),
    Difference("JSON errors", "The text is that of the JSON library; ours says line and column.", "load", _json_errors),
    Difference("place of an address", "Says which address of a result is none.", "results", _place_of_address),
    Difference("exit status after stderr", NEWER + "How the plugin ended.", "errors", _exit_status_after_stderr),
    Difference("empty error message", "Go's error is empty, or begins with `; `.", "errors", _text_for_empty_message),
    Difference("exact integers", "Go passes all numbers through float64.", "json", _exact_integers),
    Difference("bounded texts", "The end of 16 KiB of stderr; 2048 bytes are quoted.", "errors", _bounded_texts),
    Difference("names on every verb", "Go validates on ADD only.", "names", expect=expected_of.names_always),
    Difference("nameless entry in GC", "Go sends a DEL.", "gc", expect=expected_of.nameless_left),
    Difference("no drop-ins of a bad name", "No path is made of it.", "names", expect=expected_of.no_drop_ins),
    Difference("null in a list", "Go dies of it when it converts.", "results", expect=expected_of.null_in_list),
    Difference("null in a cached list", "The same.", "cache", expect=expected_of.null_in_cache),
    Difference("directory moved aside", "Go attaches, and fails then.", "cache", expect=expected_of.moved_aside),
    Difference("cache tested before ADD", "Go attaches, and fails then.", "cache", expect=expected_of.made_before_add),
    Difference("expanded list cached", "Go's forgets drop-ins.", "verbs", expect=expected_of.expanded_list),
    Difference("cache link replaced", "A new file replaces it.", "cache", expect=expected_of.link_replaced),
    Difference("cache link not read", "Others may write to where it leads.", "cache", expect=expected_of.link_not_read),
    Difference("atomic cache write", "A new file replaces the old.", "cache", expect=expected_of.written_anew),
    Difference("another's cache file", "Two can have one file name.", "cache", expect=expected_of.another_s_file),
    Difference("cache unreadable in GC", "Go reports success.", "cache", expect=expected_of.unreadable_in_gc),
    Difference("broken cache of a plugin", NEWER, "plugins", expect=expected_of.broken_cache_of_plugin),
    Difference("relative plugin directory", "Go may run another.", "validate", expect=expected_of.relative_directory),
    Difference("bounded output", "A plugin that prints 4 MiB is ended.", "status", expect=expected_of.bounded_output),
    Difference("number too big", "Go complains of something else.", "load", expect=expected_of.number_too_big),
    Difference("nesting", "Python's recursion limit; Go's is 10000.", "json", expect=expected_of.nesting),
)
