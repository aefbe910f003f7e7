# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documented differences between Go's libcni 1.3.0 and this collection's: all of them, each with its reason.

Two kinds. A rewriting difference says how one text has to be changed to be the other's: it explains a disagreement only
if the texts are then equal, to the byte. Any other one tells of a whole disagreement whether it is meant. What none of
them explains is a disagreement.
"""

from __future__ import annotations

import base64
import json
import re
import typing as t
from dataclasses import dataclass

from cases.calling import LONG, LOUD
from compare import Disagreement
from model import Case, Directory, Link, Seen

Texts = t.Tuple[str, str]


@dataclass
class Difference:
    """`rewrite` takes what the disagreement is about and both texts; `explains` takes all there is."""

    name: str
    reason: str
    rewrite: t.Callable[[str, str, str], Texts] | None = None
    explains: t.Callable[[Case, Disagreement, Seen, Seen], bool] | None = None


def explain(case: Case, one: Disagreement, go: Seen, python: Seen) -> set[str]:
    """Return the names of the differences that explain a disagreement; none of them: it is one."""
    for difference in DIFFERENCES:
        if difference.explains is not None and difference.explains(case, one, go, python):
            return {difference.name}
    left, right = (data.decode("utf-8", "surrogateescape") for data in (one.go, one.python))
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


# ---- names

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.\-]*")
_VALIDATION = re.compile(
    r"libcni: (interface name (is too long; .*|is \. or \.\.|contains / or : or whitespace characters)"
    r"|invalid characters in containerID; .*|invalid characters found in network name; .*|missing network name:)\n",
    re.DOTALL,
)


def _validated_always(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    verb = case.steps[one.step].argv[0]
    refused = _VALIDATION.fullmatch(python.stderr.decode("utf-8", "surrogateescape"))
    return bool(verb not in ("add", "plugin-add") and refused and not python.calls and len(case.steps) == 1)


def _no_drop_ins_for_bad_names(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    argv = case.steps[one.step].argv
    if argv[0] != "load" or one.what != "stdout" or not one.go or not one.python or _NAME.fullmatch(argv[1]):
        return False
    left, right = json.loads(one.go), json.loads(one.python)
    appended, inlined = left.pop("plugins"), right.pop("plugins")
    return left == right and appended == [*inlined, "alpha"]


def _nameless_not_collected(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    # An entry without a container id, which a path cannot be made of.
    others = [call for call in go.calls if b"CNI_CONTAINERID=" not in call.env or call.command != "DEL"]
    of_calls = one.what in ("status", "stderr", "calls") or one.what.startswith("call ")
    return case.steps[one.step].argv[0] == "gc" and others == python.calls != go.calls and of_calls


# ---- the cache


def _expanded_list_cached(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    if not any(re.fullmatch(r"net\.d/[^/]+/[^/]+\.conf", name) for name in case.files):
        return False
    try:
        if one.what == "stdout" and case.steps[one.step].argv[0] == "cached":
            left, right = json.loads(one.go), json.loads(one.python)
            return left[1:] == right[1:] and _expands(left[0], right[0])
        if one.what.startswith("file cache/"):
            left, right = json.loads(one.go), json.loads(one.python)
            configs = [base64.b64decode(entry.pop("config")).decode() for entry in (left, right)]
            return list(left.items()) == list(right.items()) and _expands(*configs)
    except (ValueError, KeyError, TypeError):
        pass
    return False


def _expands(go: str, python: str) -> bool:
    left, right = json.loads(go, parse_int=float), json.loads(python, parse_int=float)
    inlined = left.pop("plugins", [])
    expanded = right.pop("plugins")
    return left == right and len(expanded) > len(inlined) and expanded[: len(inlined)] == inlined


def _cache_tested_before_add(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    of_directory = one.what in ("mode of cache", "mode of cache/results")
    if of_directory and (one.go, one.python) == (b"no such file", b"040700"):
        # Go does not come to make them.
        return not _cached_by(python)
    # Go says it of the attachment that it has made.
    refused = re.compile(rb'libcni: failed to set network "[^"]+" cached result: ')
    both = refused.match(go.stderr) and refused.match(python.stderr)
    return bool(both and not python.calls and (of_directory or one.what in ("calls", "stderr")))


def _cached_by(seen: Seen) -> list[str]:
    return [name for name in seen.files if name.startswith("cache/results/")]


def _atomic_cache_write(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    replaced = one.what.startswith("mode of cache/results/") and one.what.rpartition(" ")[2] in case.files
    return replaced and case.mode == 0o644 and (one.go, one.python) == (b"100644", b"100600")


def _link_replaced(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    links = [
        name for name, content in case.files.items() if isinstance(content, Link) and name.startswith("cache/results/")
    ]
    # It is a file now, or is no more; Go has written to where it led.
    if one.what in [f"{what} {name}" for what in ("mode of", "file") for name in links]:
        return python.files.get(one.what.rpartition(" ")[2], ("100600",))[0] == "100600"
    return bool(links) and one.what in ("mode of cache/elsewhere", "file cache/elsewhere")


def _others_cache_file(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    path = "cache/results/net-cid-1-eth0"
    try:
        entry = json.loads(python.files[path][1])
        names = [entry.get(key) for key in ("networkName", "containerId", "ifName")]
    except (KeyError, ValueError, AttributeError):
        return False
    return any(name not in (None, "", mine) for name, mine in zip(names, ("net", "cid-1", "eth0")))


def _directory_moved_aside(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    path = "cache/results/net-cid-1-eth0"
    if not isinstance(case.files.get(path), Directory):
        return False
    verb = case.steps[one.step].argv[0]
    if verb == "add" and one.what in ("status", "stdout", "stderr"):
        return b"cached result: open " in go.stderr and b": is a directory" in go.stderr
    if "add" in [step.argv[0] for step in case.steps[: one.step]] and (
        one.what == "stdout" or re.fullmatch(r"call \d+ stdin", one.what)
    ):
        return _knows_more(verb, one.what, json.loads(one.go), json.loads(one.python))
    aside = re.fullmatch(r"mode of cache/\.cniCacheV1-[0-9a-f]{16}\.aside", one.what)
    return bool(aside) or one.what in (f"mode of {path}", f"file {path}")


def _knows_more(verb: str, what: str, go: t.Any, python: t.Any) -> bool:
    """Tell whether the only difference is that ours remembers the attachment, and has its result to pass on."""
    if what != "stdout":
        go.pop("prevResult", None)
        return python.pop("prevResult", None) is not None and list(go.items()) == list(python.items())
    if verb == "cached":
        return go == [None, None]
    keys = ("network", "container_id", "ifname")
    return go == [entry for entry in python if [entry[key] for key in keys] != ["net", "cid-1", "eth0"]]


def _cache_directory_unreadable(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    gc = case.steps[one.step].argv[0] == "gc" and case.files.get("cache/results") == b""
    return gc and not go.calls and go.status == 0 and b"cache/results: not a directory" in python.stderr


def _broken_cache_of_plugin(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    failed = b'libcni: failed to get network "net" cached result: '
    return case.steps[one.step].argv[0] == "plugin-del" and go.stderr.startswith(failed) and not go.calls


# ---- running


def _relative_directory(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    refused = b'plugin directory "bin" is not an absolute path' in python.stderr
    return case.env.get("CNI_PATH") == "bin" and refused and not python.calls


def _bounded_output(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    return b"signal: killed (it printed more than 4194304 bytes)" in python.stderr


def _null_elements(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    return bool(
        re.search(rb"cannot unmarshal null into field (ips|routes|interfaces|ip[46]/routes)/\d+ of", python.stderr)
    )


def _number_too_big(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    # Only in what is one plugin's: Go takes no note of keys that it does not know.
    refused = re.search(
        rb"/net\.d/(\S*\.(conf|json)): error parsing configuration: invalid JSON: 1e999 ", python.stderr
    )
    return refused is not None and b"1e999" in t.cast(bytes, case.files["net.d/" + refused.group(1).decode()])


def _nesting(case: Case, one: Disagreement, go: Seen, python: Seen) -> bool:
    return b"the value is nested too deeply" in python.stderr


NEWER = "As in libcni after 1.3.0. "

DIFFERENCES = (
    Difference("the file is named", "A broken file's error begins with its path.", rewrite=_file_named),
    Difference("JSON errors", "The text is that of the JSON library; ours says line and column.", rewrite=_json_errors),
    Difference("place of an address", "Says which address of a result is none.", rewrite=_place_of_address),
    Difference("exit status after stderr", NEWER + "How the plugin ended.", rewrite=_exit_status_after_stderr),
    Difference("empty error message", "Go's error is empty, or begins with `; `.", rewrite=_text_for_empty_message),
    Difference("exact integers", "Go passes all numbers through float64.", rewrite=_exact_integers),
    Difference("names on every verb", "Go validates on ADD only.", explains=_validated_always),
    Difference("names on every verb", "GC, too.", explains=_nameless_not_collected),
    Difference("no drop-ins of a bad name", "The name is not joined into a path.", explains=_no_drop_ins_for_bad_names),
    Difference("expanded list cached", "A DEL with Go's cached list forgets drop-ins.", explains=_expanded_list_cached),
    Difference("cache tested before ADD", "Go attaches first, and fails then.", explains=_cache_tested_before_add),
    Difference("atomic cache write", "A new file replaces the old, mode 0600.", explains=_atomic_cache_write),
    Difference("cache link replaced", "The same, for a link instead of a file.", explains=_link_replaced),
    Difference("another's cache file", "Two attachments can have one file name.", explains=_others_cache_file),
    Difference("directory moved aside", "Go attaches, and fails then.", explains=_directory_moved_aside),
    Difference("cache unreadable in GC", "Go does nothing and reports success.", explains=_cache_directory_unreadable),
    Difference("broken cache of a plugin", NEWER + "DEL goes on without.", explains=_broken_cache_of_plugin),
    Difference("relative plugin directory", "Go may run what PATH finds.", explains=_relative_directory),
    Difference("bounded output", "A plugin that prints 4 MiB is ended.", explains=_bounded_output),
    Difference("bounded texts", "The end of 16 KiB of stderr; 2048 bytes are quoted.", rewrite=_bounded_texts),
    Difference("null in a list", "Go dies of it when it converts.", explains=_null_elements),
    Difference("number too big", "Go refuses it later, where it reads all keys.", explains=_number_too_big),
    Difference("nesting", "Python's recursion limit; Go's is 10000.", explains=_nesting),
)
