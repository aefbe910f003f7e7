# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Calls one plugin on Go's pkg/skel and one on libcni.skel alike, and compares: skel_peer.py PLUGIN [options].

Run it in tests/private.sh: it makes network namespaces. The exit status is 1 for a difference that is not documented.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import typing as t
from pathlib import Path

import skel_cases

HERE = Path(__file__).parent
SKEL = HERE.parents[1] / "unit" / "plugins" / "module_utils" / "libcni" / "skel"
sys.path.insert(0, str(SKEL))

import probe  # noqa: E402  # its way to libcni is its own

# What begins a text whose rest is that of Go's JSON decoder. libcni has others, as docs/libcni.md says.
_DECODERS = ("error unmarshall network config: ", "decoding version from network config: ")
_OWN_NAMESPACE = {"code": 8, "msg": "plugin's netns and netns from CNI_NETNS should not be the same"}
OWN_NAMESPACE, ONE_DOCUMENT, JSON_ERRORS = "own namespace first", "one document on stdout", "JSON errors of plugins"


@contextlib.contextmanager
def namespaces(root: Path) -> t.Iterator[dict[str, str]]:
    """Make what the tokens of CNI_NETNS stand for."""
    paths = {f"@{name}": root / name for name in ("other", "own-bind", "file", "directory", "deleted", "missing")}
    for name in ("other", "own-bind", "file", "deleted"):
        paths[f"@{name}"].touch()
    paths["@directory"].mkdir()
    subprocess.run(["unshare", f"--net={paths['@other']}", "true"], check=True)
    subprocess.run(["mount", "--bind", "/proc/self/ns/net", paths["@own-bind"]], check=True)
    try:
        yield {"@own": "/proc/self/ns/net", **{token: str(path) for token, path in paths.items()}}
    finally:
        for name in ("other", "own-bind"):
            subprocess.run(["umount", paths[f"@{name}"]], check=True)


def go_outcome(plugin: str, call: dict[str, t.Any], root: Path) -> dict[str, t.Any]:
    """Call the plugin in Go."""
    orders, calls = root / "orders", root / "calls"
    orders.write_text(json.dumps(call["plugin"]))
    calls.write_text("")
    env = {os.fsencode(key): os.fsencode(value) for key, value in call["env"].items()}
    env.update({b"PROBE": os.fsencode(orders), b"PROBE_CALLS": os.fsencode(calls)})
    stdin = probe.open_stdin(call["stdin"])
    # A closed stream is /dev/null to a Go program.
    given = subprocess.DEVNULL if stdin is None else stdin
    done = subprocess.run([plugin], env=env, stdin=given, capture_output=True, timeout=60, check=False)
    if stdin is not None:
        os.close(stdin)
    return {
        "exit": done.returncode,
        "stdout": done.stdout.hex(),
        "stderr": done.stderr.hex(),
        "calls": [json.loads(line) for line in calls.read_text().splitlines()],
    }


def expect(call: dict[str, t.Any], go: dict[str, t.Any], python: dict[str, t.Any]) -> tuple[dict[str, t.Any], set[str]]:
    """Return what the plugin in Python must do where Go's did *go*, and the documented differences in that."""
    out, names = dict(go), set()
    command, env = call["env"].get("CNI_COMMAND"), call["env"]
    override = env.get("CNI_NETNS_OVERRIDE", "")
    own = env.get("CNI_NETNS") in ("@own", "@own-bind") and override != "1" and override.upper() != "TRUE"
    if own and command in ("ADD", "DEL") and (go["calls"] or b'"code": 8' in bytes.fromhex(go["stdout"])):
        text = json.dumps(_OWN_NAMESPACE, indent=4).encode()
        if go["calls"]:
            names.add(OWN_NAMESPACE)
        out.update(exit=1, stdout=text.hex(), stderr="", calls=[])
    order = call["plugin"]["callbacks"].get((command or "").lower(), {"do": ""})
    if go["calls"] and not own and order["do"] == "print_and_error" and order["text"]:
        names.add(ONE_DOCUMENT)
        out["stdout"] = bytes.fromhex(go["stdout"])[len(order["text"].encode()) :].hex()
    for prefix in _DECODERS:
        go_error, error = _error(out["stdout"]), _error(python["stdout"])
        if go_error and error and go_error["msg"].startswith(prefix) and error["msg"].startswith(prefix):
            if go_error != error:
                names.add(JSON_ERRORS)
            if go_error["code"] == error["code"]:
                out["stdout"] = python["stdout"]
    return out, names


def _error(stdout: str) -> t.Any:
    try:
        found = json.loads(bytes.fromhex(stdout))
    except ValueError:
        return None
    return found if isinstance(found, dict) and "msg" in found else None


def readable(outcome: dict[str, t.Any]) -> str:
    """Return an outcome for people, cut to what fits."""
    texts = [
        f"exit {outcome['exit']}",
        *(f"{key} {bytes.fromhex(outcome[key])[:600]!r}" for key in ("stdout", "stderr")),
    ]
    return ", ".join([*texts, f"callbacks {[str(call)[:300] for call in outcome['calls']]}"])


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("plugin")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--case", metavar="CATEGORY/N")
    args = parser.parse_args()
    names = [args.case] if args.case else skel_cases.names(args.cases)
    calls = [skel_cases.make_call(args.seed, name) for name in names]
    tally: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    documented: collections.Counter[str] = collections.Counter()
    wrong = []
    with tempfile.TemporaryDirectory() as directory, namespaces(Path(directory)) as places:
        for call in calls:
            if "CNI_NETNS" in call["env"]:
                token = call["env"]["CNI_NETNS"]
                placed = {**call, "env": {**call["env"], "CNI_NETNS": places.get(token, token)}}
            else:
                placed = call
            go = go_outcome(args.plugin, placed, Path(directory))
            python = probe.outcome(placed)
            expected, differences = expect(call, go, python)
            kind = "other" if expected != python else "documented" if differences else "same"
            tally[call["name"].partition("/")[0]][kind] += 1
            documented.update(differences)
            if kind == "other":
                wrong.append(call["name"])
                if len(wrong) <= 10 or args.case:
                    print(
                        f"\n{call['name']}: {str(call)[:1500]}\n  Go:     {readable(go)}\n  Python: {readable(python)}"
                    )
            elif args.case:
                print(f"{call}\n  Go:     {readable(go)}\n  Python: {readable(python)}")
    print("\n| category | cases | the same | with a documented difference | other |\n| --- | --- | --- | --- | --- |")
    for category, counts in sorted(tally.items()):
        print(
            f"| {category} | {sum(counts.values())} | {counts['same']} | {counts['documented']} | {counts['other']} |"
        )
    print("\n" + "\n".join(f"{name}: {number} cases" for name, number in sorted(documented.items())))
    unmet = {OWN_NAMESPACE, ONE_DOCUMENT, JSON_ERRORS} - set(documented) if not args.case else set()
    if wrong:
        print(f"\n{len(wrong)} cases disagree: {' '.join(wrong)}; to repeat one: --seed {args.seed} --case NAME")
    if unmet:
        print(f"\nno case has met: {', '.join(sorted(unmet))}")
    return 1 if wrong or unmet else 0


if __name__ == "__main__":
    sys.exit(main())
