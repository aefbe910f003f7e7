# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""What a namespace is set to, as objects that two readings can be compared by, and undoing a part of what was added.

Everything is read by iproute2, iptables and nft. What changes by itself is left out: counters, link-local addresses,
those of `lo`, routes of the table `local`, the MAC and MTU of a bridge, which follow its ports.
"""

from __future__ import annotations

import collections
import json
import os
import re
import shutil
import typing as t

from . import sandbox

Key = t.Tuple[str, ...]
State = t.Dict[Key, t.Any]

_QUERIES = "route show table all\nrule show\nneighbour show nud permanent\n"
# The kernel gives them to lo when it comes up, and leaves the first one when it goes down.
_LOOPBACK = (("address", "lo", "127.0.0.1/8"), ("address", "lo", "::1/128"))
_FLAGS = frozenset(("UP", "NOARP", "PROMISC", "ALLMULTI"))
_FOLLOWING = frozenset(("bridge",))
_SYSCTLS = "/proc/sys/net"
_CHANGING = re.compile(r"netfilter/nf_conntrack_(count|max|buckets)|nf_conntrack_max|.*/stable_secret|ipv[46]/neigh/.*")
_COUNTERS = re.compile(r"\[\d+:\d+\]|counter packets \d+ bytes \d+")
_LEGACY_TABLES = ("/proc/net/ip_tables_names", "/proc/net/ip6_tables_names")


def read_state(path: str = "") -> State:
    """Return the state of the namespace at *path*; "" is the host's, with its files and mounts. Raises SandboxError."""
    state = sandbox.inside(path, _read_here)
    if not path:
        state.update((("file", name), kind) for name, kind in sandbox.written_files().items())
        state.update((("mount", name), True) for name in _mounts())
    return state


def _read_here() -> State:
    state: State = {}
    links = _documents(sandbox.command("ip", "-details", "-json", "address", "show"))
    answers = [*links, *_documents(_batch("-4")), *_documents(_batch("-6"))]
    # Some releases print nothing for an empty list, so each entry is recognised by its form.
    for entry in (entry for answer in answers for entry in answer if entry):
        if "ifname" in entry:
            _add_link(state, entry)
        elif "priority" in entry and "src" in entry and "dev" not in entry:
            state["rule", json.dumps(entry, sort_keys=True)] = True
        elif "lladdr" in entry:
            state["neighbour", entry["dev"], entry["dst"]] = entry["lladdr"]
        elif "type" in entry and "dst" in entry:
            _add_route(state, entry)
    for entry in _documents(sandbox.command("tc", "-j", "qdisc", "show", check=False))[0]:
        # The kernel's own have no handle.
        if entry.get("handle") not in ("0:", None):
            state["qdisc", str(entry.get("dev")), str(entry["kind"])] = entry.get("options")
    for name, value in _sysctls():
        state["sysctl", name] = value
    state.update(_firewall())
    return state


def _batch(family: str) -> str:
    # Without IPv6, its queries fail.
    return sandbox.command("ip", family, "-details", "-json", "-force", "-batch", "-", stdin=_QUERIES, check=False)


def _documents(text: str) -> t.List[t.Any]:
    decoder, at = json.JSONDecoder(), 0
    documents: t.List[t.Any] = []
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at >= len(text):
            return documents or [[]]
        try:
            document, at = decoder.raw_decode(text, at)
        except ValueError as error:
            raise sandbox.SandboxError(f"cannot read what iproute2 prints: {error}: {text[at : at + 80]!r}") from error
        documents.append(document)


def _add_link(state: State, entry: t.Mapping[str, t.Any]) -> None:
    name = str(entry["ifname"])
    kind = str(entry.get("linkinfo", {}).get("info_kind", ""))
    value = {
        "kind": kind,
        "flags": sorted(_FLAGS.intersection(entry.get("flags", ()))),
        "master": entry.get("master", ""),
        "alias": entry.get("ifalias", ""),
        "txqlen": entry.get("txqlen", 0),
    }
    if kind not in _FOLLOWING:
        value.update(mac=str(entry.get("address", "")).lower(), mtu=entry.get("mtu", 0))
    state["link", name] = value
    for address in entry.get("addr_info", ()):
        if "local" not in address or (address.get("scope") == "link" and address["local"].startswith("fe80:")):
            continue
        state["address", name, f"{address['local']}/{address['prefixlen']}"] = str(address.get("address", ""))


def _add_route(state: State, entry: t.Mapping[str, t.Any]) -> None:
    table, target = str(entry.get("table", "main")), str(entry["dst"])
    if table == "local" or target.startswith(("fe80:", "ff00:", "multicast")) or entry["type"] == "multicast":
        return
    key = ("route", table, target, str(entry.get("dev", "")), str(entry.get("metric", 0)), str(entry["type"]))
    state[key] = {word: entry.get(word, "") for word in ("gateway", "prefsrc", "scope", "protocol", "nexthops")}


def _sysctls() -> t.Iterator[t.Tuple[str, str]]:
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.path.join(_SYSCTLS, folder)) as entries:
                for entry in entries:
                    name = folder + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{name}/")
                    elif not _CHANGING.fullmatch(name):
                        value = _sysctl(name)
                        if value is not None:
                            yield name, value
        except OSError:
            # That of an interface that is just gone.
            continue


def _sysctl(name: str) -> t.Optional[str]:
    try:
        fd = os.open(f"{_SYSCTLS}/{name}", os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(fd, 4096).decode("ascii", "replace").strip()
    except OSError:
        return None
    finally:
        os.close(fd)


def _firewall() -> State:
    """Return the rules and chains of nft, and those of the iptables that nft does not show."""
    counts: t.Dict[Key, int] = collections.Counter()
    if shutil.which("nft"):
        place: t.List[str] = []
        for line in map(str.strip, sandbox.command("nft", "list", "ruleset", check=False).splitlines()):
            if line == "}":
                place.pop()
            elif line.endswith("{"):
                place.append(line[:-2])
                counts[("nft", *place, "")] += 1
            elif line and not line.startswith("#"):
                counts[("nft", *place, _COUNTERS.sub("", line))] += 1
    for tool in ("iptables", "ip6tables") if any(map(_has_text, _LEGACY_TABLES)) else ():
        table = ""
        for line in sandbox.command(f"{tool}-save", check=False).splitlines():
            if line.startswith("*"):
                table = line[1:]
            elif line[:1] in ("-", ":") and not re.match(r":\w+ (ACCEPT|DROP) ", line):
                counts[tool, table, _COUNTERS.sub("", line)] += 1
    return dict(counts)


def _has_text(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return bool(stream.read(1))
    except OSError:
        return False


def _mounts() -> t.Iterator[str]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as stream:
        for line in stream:
            name = line.split()[4]
            if not name.startswith(f"{sandbox.NETNS_DIR}/"):
                yield name


# ---- comparing


class Change(t.NamedTuple):
    """One difference: the object, its value before (None: it was not there) and its value now (None: it is gone)."""

    key: Key
    before: t.Any
    now: t.Any

    def words(self) -> str:
        """Return the difference as a phrase."""
        what = " ".join(filter(None, self.key))
        if self.before is None:
            return f"{what} was added"
        return f"{what} is gone" if self.now is None else f"{what} was {_short(self.before)}, is {_short(self.now)}"


def _short(value: t.Any) -> str:
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)


def changes(before: State, now: State) -> t.List[Change]:
    """Return the differences, without sysctls that come and go with an interface."""
    differences = []
    for key in sorted({*before, *now}):
        old, new = before.get(key), now.get(key)
        # A mount of the real host goes when somebody removes its directory.
        if key in _LOOPBACK or (key[0] == "mount" and new is None):
            continue
        if old != new and (key[0] != "sysctl" or None not in (old, new)):
            differences.append(Change(key, old, new))
    return differences


def words_for(differences: t.Sequence[Change], most: int = 4) -> str:
    """Return the first differences as text."""
    text = "; ".join(change.words() for change in differences[:most])
    return text + (f"; and {len(differences) - most} more" if len(differences) > most else "")


# ---- damage


def undo(change: Change, path: str) -> bool:
    """Undo one change behind the plugin's back, in the namespace at *path*; False if this kind cannot be undone."""
    act = _UNDO.get(change.key[0])
    if act is None:
        return False
    try:
        return sandbox.inside(path, lambda: act(change))
    except (sandbox.SandboxError, OSError):
        return False


def _undo_link(change: Change) -> bool:
    name = change.key[1]
    if change.before is None:
        sandbox.command("ip", "link", "delete", name)
        return True
    old, now = change.before, change.now
    if now is None:
        return False
    done = False
    for word, option in (("mtu", "mtu"), ("mac", "address"), ("txqlen", "txqlen")):
        if old.get(word) != now.get(word):
            sandbox.command("ip", "link", "set", name, option, str(old[word]))
            done = True
    for flag, option in (("UP", ""), ("PROMISC", "promisc"), ("ALLMULTI", "allmulticast")):
        was, is_set = flag in old["flags"], flag in now["flags"]
        if was != is_set:
            state = ("up" if was else "down",) if not option else (option, "on" if was else "off")
            sandbox.command("ip", "link", "set", name, *state)
            done = True
    return done


def _undo_address(change: Change) -> bool:
    sandbox.command("ip", "address", "delete" if change.before is None else "add", change.key[2], "dev", change.key[1])
    return True


def _undo_route(change: Change) -> bool:
    _kind, table, target, device, metric, _type = change.key
    family = ("-6",) if ":" in target or ":" in str((change.now or change.before).get("gateway", "")) else ()
    if change.before is not None:
        return False
    words = ["route", "delete", target, "table", table, *(("dev", device) if device else ())]
    sandbox.command("ip", *family, *words, *(("metric", metric) if metric != "0" else ()))
    return True


def _undo_rule(change: Change) -> bool:
    if change.before is not None:
        return False
    rule = json.loads(change.key[1])
    family = ("-6",) if ":" in str(rule.get("src", "")) else ()
    sandbox.command("ip", *family, "rule", "delete", "priority", str(rule["priority"]))
    return True


def _undo_qdisc(change: Change) -> bool:
    if change.before is not None:
        return False
    place = change.key[2] if change.key[2] in ("ingress", "clsact") else "root"
    sandbox.command("tc", "qdisc", "delete", "dev", change.key[1], place)
    return True


def _undo_sysctl(change: Change) -> bool:
    with open(f"{_SYSCTLS}/{change.key[1]}", "w", encoding="ascii") as stream:
        stream.write(str(change.before))
    return True


def _undo_nft(_change: Change) -> bool:
    sandbox.command("nft", "flush", "ruleset")
    return True


def _undo_iptables(change: Change) -> bool:
    sandbox.command(f"{change.key[0]}-restore", stdin=f"*{change.key[1]}\nCOMMIT\n")
    return True


def _undo_file(change: Change) -> bool:
    if change.before is not None or change.now != "file":
        return False
    os.unlink(change.key[1])
    return True


_UNDO: t.Dict[str, t.Callable[[Change], bool]] = {
    "link": _undo_link,
    "address": _undo_address,
    "route": _undo_route,
    "rule": _undo_rule,
    "qdisc": _undo_qdisc,
    "sysctl": _undo_sysctl,
    "nft": _undo_nft,
    "iptables": _undo_iptables,
    "ip6tables": _undo_iptables,
    "file": _undo_file,
}
