# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The cases of Go's pkg/skel and of pkg/types/args_test.go."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils import libcni

PROBE = Path(__file__).parents[1] / "skel" / "probe.py"
NAMES = ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH")
ENV = {**dict(zip(NAMES, ("some-id", "/some/netns/path", "eth0", "/some/path"))), "CNI_ARGS": "some;args"}
OK = {name: {"do": "ok"} for name in ("add", "check", "del", "gc", "status")}
LATEST = {"ADD": "1.1.0", "DEL": "1.1.0", "CHECK": "0.4.0", "GC": "1.1.0", "STATUS": "1.1.0", "VERSION": "1.1.0"}


def call(command, env=(), without=(), conf=(), stdin=None, callbacks=OK, **plugin):
    environment = {"CNI_COMMAND": command, **ENV, **dict(env)}
    environment = {name: value for name, value in environment.items() if name not in without}
    text = json.dumps({"cniVersion": LATEST.get(command, "1.1.0"), "name": "skel-test", **dict(conf)})
    spec = {"callbacks": callbacks, **plugin}
    calls = json.dumps([{"env": environment, "stdin": text if stdin is None else stdin, "plugin": spec}])
    argv = [sys.executable, "-I", "-S", "-B", str(PROBE)]
    done = subprocess.run(argv, input=calls.encode(), stdout=subprocess.PIPE, check=True, timeout=60)
    outcome = json.loads(done.stdout)[0]
    outcome["stdout"] = bytes.fromhex(outcome["stdout"]).decode()
    outcome["stderr"] = bytes.fromhex(outcome["stderr"]).decode()
    return outcome, text


def error_of(outcome):
    assert (outcome["exit"], outcome["calls"]) == (1, [])
    return json.loads(outcome["stdout"])


@pytest.mark.parametrize("command", ["ADD", "CHECK", "DEL", "GC"])
def test_the_callback_of_the_command_gets_everything(command):
    outcome, stdin = call(command)
    assert outcome["calls"] == [
        {
            "callback": command.lower(),
            "container_id": "some-id",
            "netns": "/some/netns/path",
            "ifname": "eth0",
            "args": "some;args",
            "path": "/some/path",
            "netns_override": "",
            "stdin": stdin.encode().hex(),
        }
    ]


def test_bad_container_id():
    error = error_of(call("ADD", {"CNI_CONTAINERID": "some-%%container-id"})[0])
    assert error == {"code": 4, "msg": "invalid characters in containerID", "details": "some-%%container-id"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("1234567890123456", "interface name is too long"),
        (".", "interface name is . or .."),
        ("..", "interface name is . or .."),
        ("test/test", "interface name contains / or : or whitespace characters"),
        ("test:test", "interface name contains / or : or whitespace characters"),
        ("test test", "interface name contains / or : or whitespace characters"),
    ],
)
def test_bad_interface_name(name, message):
    error = error_of(call("ADD", {"CNI_IFNAME": name})[0])
    assert (error["code"], error["msg"]) == (4, message)


@pytest.mark.parametrize(
    ("command", "required"),
    [
        ("ADD", NAMES),
        ("CHECK", NAMES),
        ("DEL", ("CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH")),
        ("GC", ("CNI_PATH",)),
        ("VERSION", ()),
    ],
)
def test_required_variables(command, required):
    for name in (*NAMES, "CNI_ARGS"):
        outcome, _stdin = call(command, without=[name])
        if name in required:
            assert error_of(outcome) == {"code": 4, "msg": f"required env variables [{name}] missing"}
        else:
            assert outcome["exit"] == 0
    assert error_of(call("", without=["CNI_COMMAND"])[0])["msg"] == "required env variables [CNI_COMMAND] missing"


@pytest.mark.parametrize("command", ["ADD", "CHECK", "GC"])
def test_all_missing_variables_are_named(command):
    error = error_of(call(command, without=["CNI_NETNS", "CNI_IFNAME", "CNI_PATH"])[0])
    names = "CNI_PATH" if command == "GC" else "CNI_NETNS,CNI_IFNAME,CNI_PATH"
    assert error == {"code": 4, "msg": f"required env variables [{names}] missing"}


def test_no_version_is_0_1_0():
    stdin = '{"name": "skel-test", "some": "config"}'
    assert call("ADD", stdin=stdin, versions=["0.1.0"])[0]["calls"][0]["callback"] == "add"
    error = error_of(call("ADD", stdin=stdin, versions=["4.3.2"])[0])
    details = 'config is "0.1.0", plugin supports ["4.3.2"]'
    assert error == {"code": 1, "msg": "incompatible CNI versions", "details": details}


@pytest.mark.parametrize(
    ("command", "old", "early"), [("CHECK", "0.2.0", "0.2.0"), ("GC", "0.4.0", "1.0.0"), ("STATUS", "0.4.0", "1.0.0")]
)
def test_versions_of_a_later_command(command, old, early):
    error = error_of(call(command, conf={"cniVersion": old})[0])
    assert error == {"code": 1, "msg": f"config version does not allow {command}"}
    error = error_of(call(command, versions=["0.1.0", early])[0])
    assert error == {"code": 1, "msg": f"plugin version does not allow {command}"}
    for error in (
        error_of(call(command, conf={"cniVersion": "adsfsadf"})[0]),
        error_of(call(command, versions=["0.1.0", "adsfasdf"])[0]),
    ):
        assert error["code"] == 6
        assert 'failed to convert major version part "ads' in error["msg"]


@pytest.mark.parametrize("command", ["CHECK", "GC"])
def test_bad_network_name(command):
    error = error_of(call(command, conf={"name": "te%%st"})[0])
    assert error == {"code": 7, "msg": "invalid characters found in network name", "details": "te%%st"}


def test_version_is_printed():
    outcome, _stdin = call("VERSION", versions=["9.8.7", "10.0.0"], stdin={"kind": "open"})
    assert outcome["calls"] == []
    assert json.loads(outcome["stdout"]) == {"cniVersion": "1.1.0", "supportedVersions": ["9.8.7", "10.0.0"]}


def test_unknown_command():
    assert error_of(call("NOPE")[0]) == {"code": 4, "msg": "unknown CNI_COMMAND: NOPE"}


@pytest.mark.parametrize("without", [(), ("CNI_COMMAND", *NAMES)])
def test_about(without):
    outcome, _stdin = call("", without=without, about="AWESOME PLUGIN", versions=["9.8.7", "10.0.0"])
    assert (outcome["exit"], outcome["stdout"], outcome["calls"]) == (0, "", [])
    assert outcome["stderr"] == "AWESOME PLUGIN\nCNI protocol versions supported: 9.8.7, 10.0.0\n"


def test_unreadable_stdin():
    error = error_of(call("ADD", stdin={"kind": "directory"})[0])
    assert error == {"code": 5, "msg": "error reading from stdin: read /dev/stdin: is a directory"}


def test_errors_of_a_callback():
    typed = {"do": "cni_error", "code": 1234, "msg": "insufficient something"}
    assert json.loads(call("ADD", callbacks={"add": typed})[0]["stdout"]) == {
        "code": 1234,
        "msg": "insufficient something",
    }
    plain = {"do": "plain_error", "text": "potato"}
    assert json.loads(call("ADD", callbacks={"add": plain})[0]["stdout"]) == {"code": 999, "msg": "potato"}


# ---- pkg/types/args_test.go


class Args(libcni.CommonArgs):
    Bool = False
    String = ""
    IP = libcni.IPAddress()


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("TRUE", True), ("1", True), ("false", False), ("FALSE", False), ("0", False)]
)
def test_bool(text, value):
    assert libcni.load_args(f"Bool={text}", Args).Bool is value


def test_bad_values():
    for text in ("Bool=invalid", "IP=10.0.0.0/24"):
        with pytest.raises(libcni.CNIError, match=r"ARGS: error parsing value of pair"):
            libcni.load_args(text, Args)


@pytest.mark.parametrize("text", ["", "some string"])
def test_string(text):
    assert libcni.load_args(f"String={text}", Args).String == text


def test_arguments():
    assert libcni.load_args("", Args).IgnoreUnknown is False
    assert libcni.load_args("IgnoreUnknown=True;IP=10.0.0.1", Args).IP == "10.0.0.1"
    assert libcni.load_args("IgnoreUnknown=True;Unk=nown", Args).IgnoreUnknown is True
    for text in ("Unk=nown", "IgnoreUnknown=0;Unk=nown"):
        with pytest.raises(libcni.CNIError, match=r'ARGS: unknown args \["Unk=nown"\]'):
            libcni.load_args(text, Args)
