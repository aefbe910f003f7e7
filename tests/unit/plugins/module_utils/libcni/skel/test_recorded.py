# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""cases.json: what a plugin on Go's pkg/skel answered to 387 calls, and the same plugin on libcni.skel."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))["cases"]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """What the tokens of CNI_NETNS stand for."""
    root = tmp_path_factory.mktemp("netns")
    paths = {f"@{name}": root / name for name in ("other", "own-bind", "file", "directory", "deleted", "missing")}
    for name in ("other", "own-bind", "file", "deleted"):
        paths[f"@{name}"].touch()
    paths["@directory"].mkdir()
    subprocess.run(["unshare", f"--net={paths['@other']}", "true"], check=True)
    subprocess.run(["mount", "--bind", "/proc/self/ns/net", paths["@own-bind"]], check=True)
    yield {"@own": "/proc/self/ns/net", **{token: str(path) for token, path in paths.items()}}
    for name in ("other", "own-bind"):
        subprocess.run(["umount", paths[f"@{name}"]], check=True)


@pytest.fixture(scope="module")
def outcomes(places):
    calls = []
    for case in CASES:
        env = dict(case["env"])
        if "CNI_NETNS" in env:
            env["CNI_NETNS"] = places.get(env["CNI_NETNS"], env["CNI_NETNS"])
        calls.append({"env": env, "stdin": case["stdin"], "plugin": case["plugin"]})
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", HERE / "probe.py"],
        input=json.dumps(calls).encode(),
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
    )
    return {case["id"]: outcome for case, outcome in zip(CASES, json.loads(done.stdout))}


def given(stdin):
    if isinstance(stdin, str):
        return stdin.encode("utf-8", "surrogatepass")
    return b""


def shown(call, stdin, places):
    data = bytes.fromhex(call["stdin"])
    if len(data) > 100000:
        text = f"{len(data)} characters"
    else:
        text = "as given" if isinstance(stdin, str) and data == given(stdin) else data.decode("utf-8", "replace")
    tokens = {path: token for token, path in places.items()}
    return {**call, "stdin": text, "netns": tokens.get(call["netns"], call["netns"])}


def seen(case, outcome, places):
    stdout = bytes.fromhex(outcome["stdout"])
    return {
        "exit": outcome["exit"],
        "stdout": stdout.decode("utf-8"),
        "stderr": bytes.fromhex(outcome["stderr"]).decode("utf-8"),
        "calls": [shown(call, case["stdin"], places) for call in outcome["calls"]],
    }


def wanted(case, found):
    """Return what the outcome must be, of the recorded one and its alternative the one that is nearer."""
    keys = ("exit", "stdout", "stderr", "calls")
    recorded = {key: case["expected"][key] for key in keys}
    other = case.get("alternative")
    if other and found != recorded:
        return {key: other[key] for key in keys}
    return recorded


@pytest.mark.parametrize("case", CASES, ids=[case["name"][:60] for case in CASES])
def test_the_plugin_answers_as_in_go(case, outcomes, places):
    found = seen(case, outcomes[case["id"]], places)
    rule = case["compare"]["rule"]
    expected = wanted(case, found)
    if case["compare"].get("stdout") == "sha256":
        expected["stdout"] = case["expected"]["stdout_sha256"]
        found["stdout"] = hashlib.sha256(found["stdout"].encode()).hexdigest()
    if rule == "exact":
        assert found == expected
    elif rule == "fails":
        assert found["exit"] != 0
        assert "code" in json.loads(found["stdout"] or '{"code": 0}')
    else:
        error = json.loads(found["stdout"])
        assert (found["exit"], error["code"], found["calls"]) == (
            expected["exit"],
            case["expected"]["error"]["code"],
            expected["calls"],
        )
        if rule == "message prefix":
            assert error["msg"].startswith(case["compare"]["prefix"])
