# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What this collection's libcni has to do where it deliberately does not do what Go's does: all of it, to the byte.

Each function takes a step and what is expected of it so far, at first what Go's libcni did. It returns what is expected
instead, or None if its difference does not apply. Whether it applies depends on the case, on the files that were there
before and on Go's libcni, never on what this collection's libcni did. Often that is what Go's does in another
situation: then Go's is run in that situation.
"""

from __future__ import annotations

import base64
import json
import re
import typing as t
from dataclasses import replace

from cases.calling import ENDLESS
from cases.loading import DEEPEST
from model import ASIDE, NETNS, Seen
from sides import Turn

Expectation = t.Callable[[Turn, Seen], t.Optional[Seen]]

RESULTS = "cache/results"
_NO_CACHE = b'libcni: failed to get network "net" cached result: '
# The exit status of a program in Go that died of nil.
_PANIC = 2


def _is_file(turn: Turn, path: str, kind: str = "100") -> bool:
    return turn.before.get(path, ("", b""))[0].startswith(kind)


def _entry(turn: Turn, path: str) -> dict[str, t.Any] | None:
    """Return what a cache file says if it is one."""
    try:
        found = json.loads(turn.before[path][1])
    except (KeyError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("kind") == "cniCacheV1" else None


def _with_files(seen: Seen, files: t.Mapping[str, tuple[str, bytes]], without: t.Iterable[str] = ()) -> Seen:
    gone = set(without)
    return replace(seen, files={**{name: file for name, file in seen.files.items() if name not in gone}, **files})


def _kept(turn: Turn, names: t.Iterable[str]) -> dict[str, tuple[str, bytes]]:
    return {name: turn.before[name] for name in names}


# ---- names


def names_always(turn: Turn, expected: Seen) -> Seen | None:
    """Any verb that needs the names refuses them as Go's ADD does."""
    if turn.verb not in ("check", "del", "cached", "gc", "status", "validate") or not turn.is_set_up:
        return None
    if all(re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9_.\-]{,14}", name) for name in turn.key):
        # Nobody refuses these.
        return None
    arguments = "CNI_ARGS" in turn.env and turn.verb in ("gc", "status", "validate")
    added = turn.again(["add", turn.network, NETNS], env={"CNI_ARGS": ""} if arguments else None)
    refused = re.fullmatch(
        r'libcni: plugin type="\w+"(?: name=".*?")? failed \(add\): ((?:invalid characters|interface name) .*)\n',
        added.stderr.decode("utf-8", "surrogateescape"),
        re.DOTALL,
    )
    of_network = refused is not None and refused.group(1).startswith("invalid characters found in network name")
    if refused is None or (turn.verb in ("gc", "status", "validate") and not of_network):
        return None
    return turn.refused(refused.group(1))


_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.\-]*")


def no_drop_ins(turn: Turn, expected: Seen) -> Seen | None:
    """A name that is none leads to no drop-in folder."""
    if turn.verb != "load" or not turn.network or _NAME.fullmatch(turn.network):
        return None
    # The folder of ".", and of "../net.d", is that of the configurations.
    names = [name for name in turn.before if re.fullmatch(r"net\.d/[^/]+\.conf", name)]
    return _with_files(turn.again(without=names), _kept(turn, names)) if names else None


def nameless_left(turn: Turn, expected: Seen) -> Seen | None:
    """GC does as if there were no entries with a container id that is none."""
    names = _nameless(turn)
    return _with_files(turn.again(without=names), _kept(turn, names)) if names else None


def _nameless(turn: Turn) -> list[str]:
    names: list[str] = []
    if turn.verb != "gc":
        return names
    for name in turn.before:
        found = _entry(turn, name) if name.startswith(RESULTS + "/") else None
        if found is not None and found.get("networkName") == turn.network:
            container = found.get("containerId")
            if container in (None, "") or (isinstance(container, str) and not _NAME.fullmatch(container)):
                names.append(name)
    return names


# ---- the cache


def another_s_file(turn: Turn, expected: Seen) -> Seen | None:
    """A file of another attachment is neither used nor changed: ADD, CHECK and `cached` fail, DEL does without."""
    found = _entry(turn, turn.path)
    if found is None or not turn.is_set_up:
        return None
    names = [found.get(key) or "" for key in ("networkName", "containerId", "ifName")]
    if all(name in ("", own) for name, own in zip(names, turn.key)):
        return None
    verb = turn.verb.replace("plugin-", "")
    if verb not in ("add", "check", "del", "cached") or not _is_readable(turn):
        return None
    if verb == "del":
        return _with_files(turn.again(without=[turn.path]), _kept(turn, [turn.path]))
    network, container, interface = (json.dumps(name, ensure_ascii=False) for name in names)
    text = (
        f"cache file {turn.root}/{turn.path} belongs to another attachment: network {network}, "
        f"container ID {container}, interface {interface}"
    )
    if verb == "cached":
        return turn.refused(text)
    if verb == "add":
        return turn.refused(f'failed to set network "net" cached result: {text}') if expected.calls else None
    # Where CHECK is not supported or disabled, neither side looks.
    looked = expected.calls or expected.stderr.startswith(_NO_CACHE)
    return turn.refused(f'failed to get network "net" cached result: {text}') if looked else None


def _is_readable(turn: Turn) -> bool:
    """Whether every member of a cache file has the type that it has to have."""
    said = turn.again(["cached", turn.network, NETNS]).stderr
    return b"failed to unmarshal cached network" not in said


def broken_cache_of_plugin(turn: Turn, expected: Seen) -> Seen | None:
    """DEL of a single plugin does as if the broken file were not there, as DEL of a list does, and removes it."""
    if turn.verb != "plugin-del" or expected.calls or not expected.stderr.startswith(_NO_CACHE):
        return None
    return turn.again(without=[turn.path])


def null_in_cache(turn: Turn, expected: Seen) -> Seen | None:
    """A cached result with null in a list is a broken one: CHECK fails, DEL does without."""
    found = _entry(turn, turn.path)
    result = None if found is None else found.get("result")
    where = _null_in(json.dumps(result).encode(), "") if isinstance(result, dict) else ""
    verb = turn.verb.replace("plugin-", "")
    if not where or verb not in ("check", "del", "cached") or not turn.is_set_up or not _is_readable(turn):
        return None
    if verb == "del":
        # Before 0.4.0, DEL does not look.
        return turn.again(without=[turn.path])
    if verb == "check":
        if not expected.calls and expected.status != _PANIC and not expected.stderr.startswith(_NO_CACHE):
            return None
        return turn.refused(f'failed to get network "net" cached result: {_null_text(where)}')
    return turn.refused(_null_text(where)) if _reads(turn) else None


def _reads(turn: Turn) -> bool:
    """Whether Go comes to read the result of what is cached, after the configuration."""
    return turn.go.status in (0, _PANIC) or b"config" not in turn.go.stderr or b"convert" in turn.go.stderr


def made_before_add(turn: Turn, expected: Seen) -> Seen | None:
    """ADD makes the cache's directories before it runs a plugin, and fails then if it could not write there."""
    if turn.verb not in ("add", "plugin-add") or not expected.calls:
        return None
    if _is_file(turn, RESULTS):
        return turn.refused(f'failed to set network "net" cached result: mkdir {turn.root}/{RESULTS}: not a directory')
    name = turn.path.rpartition("/")[2]
    if len(name.encode()) > 255:
        text = (
            f'failed to set network "{turn.network}" cached result: cache file name "{name}" is longer than 255 bytes'
        )
        return turn.refused(text)
    directories = {name: ("040700", b"") for name in ("cache", RESULTS) if name not in expected.files}
    return _with_files(expected, directories) if directories else None


def written_anew(turn: Turn, expected: Seen) -> Seen | None:
    """ADD puts a new file, of mode 0600, where the old one was."""
    if turn.verb in ("add", "plugin-add") and expected.status == 0 and _is_file(turn, turn.path):
        return _with_files(expected, {turn.path: ("100600", expected.files[turn.path][1])})
    return None


def link_replaced(turn: Turn, expected: Seen) -> Seen | None:
    """ADD puts a file where a link was; Go writes to where it leads."""
    target = "cache/elsewhere"
    if turn.verb not in ("add", "plugin-add") or expected.status or not _is_file(turn, turn.path, "120"):
        return None
    written = {turn.path: ("100600", expected.files[target][1])}
    return _with_files(
        expected, {**written, **{name: turn.before[name] for name in turn.before if name == target}}, [target]
    )


def link_not_read(turn: Turn, expected: Seen) -> Seen | None:
    """Any other verb does as if a link were no file; DEL removes it, whatever it leads to."""
    links = [name for name in turn.before if name.startswith(RESULTS + "/") and _is_file(turn, name, "120")]
    if turn.verb in ("add", "plugin-add") or not links:
        return None
    names = [*links, *_nameless(turn)]
    seen = turn.again(without=names)
    removed = turn.path if seen.status == 0 and turn.verb in ("del", "plugin-del") else ""
    return _with_files(seen, _kept(turn, [name for name in names if name != removed]))


def moved_aside(turn: Turn, expected: Seen) -> Seen | None:
    """ADD moves a directory out of its file's way before it runs a plugin, and then finds none."""
    if turn.verb not in ("add", "plugin-add") or not expected.calls or not _is_file(turn, turn.path, "040"):
        return None
    return _with_files(turn.again(without=[turn.path]), {ASIDE: turn.before[turn.path]})


def unreadable_in_gc(turn: Turn, expected: Seen) -> Seen | None:
    """GC fails if it cannot know what there is."""
    if turn.verb != "gc" or expected.status or not _is_file(turn, RESULTS):
        return None
    if json.loads(turn.again(["load", turn.network]).stdout)["disableGC"]:
        return None
    return turn.refused(f"open {turn.root}/{RESULTS}: not a directory")


def expanded_list(turn: Turn, expected: Seen) -> Seen | None:
    """ADD caches the list with the plugins of the drop-in folder, in the order of their files' names."""
    folder = f"net.d/{turn.network}/"
    drop_ins = sorted(name for name in turn.before if name.startswith(folder) and name.endswith(".conf"))
    if turn.verb != "add" or expected.status or not drop_ins:
        return None
    entry = json.loads(expected.files[turn.path][1])
    config = _numbers_alike(base64.b64decode(entry["config"]))
    if config.get("loadOnlyInlinedPlugins") in (True, "true"):
        return None
    config["plugins"] = [*config.get("plugins", []), *(_numbers_alike(turn.before[name][1]) for name in drop_ins)]
    try:
        written = json.loads(turn.python.files[turn.path][1])["config"]
        same = _plain(_numbers_alike(base64.b64decode(written))) == _plain(config)
    except (KeyError, ValueError, TypeError):
        same = False
    # Which blanks it has is no concern of anybody's.
    text = written if same else base64.b64encode(_plain(config).encode()).decode()
    mode, data = expected.files[turn.path]
    return _with_files(
        expected, {turn.path: (mode, re.sub(rb'"config":"[^"]*"', b'"config":"%s"' % text.encode(), data, count=1))}
    )


def _numbers_alike(data: bytes) -> t.Any:
    return json.loads(data, parse_int=float)


def _plain(value: t.Any) -> str:
    return json.dumps(value, sort_keys=True)


# ---- running


def relative_directory(turn: Turn, expected: Seen) -> Seen | None:
    """No plugin is looked for if a directory is a relative path."""
    if turn.verb != "validate" or turn.env["CNI_PATH"] != "bin":
        return None
    loaded = turn.again(["load", turn.network])
    if loaded.status:
        return None
    said = [
        f"invalid plugin name: {name}" if "/" in name else 'plugin directory "bin" is not an absolute path'
        for name in json.loads(loaded.stdout)["plugins"]
    ]
    return turn.refused(f"[{' '.join(said)}]")


def bounded_output(turn: Turn, expected: Seen) -> Seen | None:
    """A plugin that prints more than 4 MiB is ended, and has failed."""
    for number in range(len(turn.go.calls) if turn.verb == "status" else 0):
        if turn.answer(number) == ENDLESS:
            start = base64.b64decode(ENDLESS["stdout"]).decode()
            shown = (start * 3)[:2048]
            text = (
                f'netplugin failed but error parsing its diagnostic message "{shown}": invalid JSON: Extra data '
                f"(line 1, column {len(start) + 1}): signal: killed (it printed more than 4194304 bytes)"
            )
            return replace(turn.refused(text), calls=turn.go.calls[: number + 1])
    return None


# ---- JSON


class _Members(t.List[t.Tuple[str, t.Any]]):
    """An object's members in the order of the text."""


def _null_in(data: bytes, version: str) -> str:
    """Return where the first null is among the ips, routes or interfaces of a result, "" if there is none."""
    try:
        members = json.loads(data, object_pairs_hook=_Members)
    except ValueError:
        return ""
    if not isinstance(members, _Members):
        return ""
    for key, value in members:
        if key.lower() == "cniversion" and value:
            version = value
    if version in ("0.1.0", "0.2.0", ""):
        old = [(key.lower(), value) for key, value in members if key.lower() in ("ip4", "ip6")]
        lists = [
            (f"{name}/routes", routes)
            for name, value in old
            if isinstance(value, _Members)
            for key, routes in value
            if key.lower() == "routes"
        ]
    elif version in ("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"):
        lists = [(key.lower(), value) for key, value in members if key.lower() in ("ips", "routes", "interfaces")]
    else:
        return ""
    found = (f"{name}/{value.index(None)}" for name, value in lists if isinstance(value, list) and None in value)
    return next(found, "")


def _null_text(where: str) -> str:
    return f"json: cannot unmarshal null into field {where} of type object"


def null_in_list(turn: Turn, expected: Seen) -> Seen | None:
    """A result with null in a list is none: not to be converted, not from a plugin."""
    if turn.verb == "convert":
        where = _null_in(turn.step.stdin, "")
        said = turn.refused(_null_text(where)) if where else None
        # Where something else is wrong, too, either may be met first.
        other = expected.stderr.startswith((b"libcni: json: ", b"libcni: invalid "))
        return None if other and said is not None and turn.python.stderr != said.stderr else said
    if turn.verb not in ("add", "plugin-add"):
        return None
    for number, call in enumerate(turn.go.calls):
        answer = turn.answer(number)
        said = base64.b64decode(answer["stdout"])
        if b"null" not in said or answer.get("exit") or answer.get("signal"):
            continue
        where = _null_in(said, json.loads(call.stdin)["cniVersion"])
        if where:
            text = _null_text(where)
            if turn.verb == "add":
                [conflist] = [data for name, data in turn.case.files.items() if name.endswith(".conflist")]
                name = json.loads(t.cast(bytes, conflist))["plugins"][number].get("name")
                named = f" name={json.dumps(name)}" if name else ""
                text = f'plugin type="{call.plugin}"{named} failed (add): {text}'
            return replace(turn.refused(text), calls=turn.go.calls[: number + 1])
    return None


_TOO_BIG = b'{"n":1e999}'


def number_too_big(turn: Turn, expected: Seen) -> Seen | None:
    """A number beyond float64 is what is wrong with a file even if Go complains of something else."""
    if expected.stderr != b"libcni: error parsing configuration: missing 'type'\n":
        return None
    for name, (_mode, data) in turn.before.items():
        # The file that Go has complained of is the one that it complains of again.
        if data == _TOO_BIG and turn.again(changed={name: b"{"}).stderr != expected.stderr:
            said = "invalid JSON: 1e999 is not a number that JSON allows (line 1, column 6)"
            return turn.refused(f"{turn.root}/{name}: error parsing configuration: {said}")
    return None


def nesting(turn: Turn, expected: Seen) -> Seen | None:
    """What is nested too deeply cannot be loaded."""
    for name, (_mode, data) in turn.before.items():
        if name.startswith("net.d/") and _depth(data) > DEEPEST and turn.verb in ("add", "del"):
            part = "configuration" if name.endswith(".conf") else "configuration list"
            said = f"the value is nested too deeply (more than {DEEPEST} levels)"
            return turn.refused(f"{turn.root}/{name}: error parsing {part}: {said}")
    return None


def _depth(data: bytes) -> int:
    deepest = depth = 0
    for bracket in re.findall(rb"[\[\]{}]", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", data)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest
