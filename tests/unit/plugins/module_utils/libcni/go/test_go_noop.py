# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The fake plugin itself (Go: plugins/test/noop/noop_test.go)."""

from __future__ import annotations

import json
import subprocess

import pytest

RESULT = '{ "ips": [{ "version": "4", "address": "10.1.2.3/24" }], "dns": {} }'
STDIN = '{"name": "noop-test", "some":"stdin-json", "cniVersion": "0.3.1"}'


class Call:
    """One call of the plugin, with the environment of Go's tests."""

    def __init__(self, world):
        self.path = world.bin / "noop"
        self.debug = world.debug(
            ReportResult=RESULT, ReportVersionSupport=["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0"]
        )
        self.env = {
            "PATH": "/usr/bin:/bin",
            "CNI_COMMAND": "ADD",
            "CNI_CONTAINERID": "some-container-id",
            "CNI_NETNS": "/some/netns/path",
            "CNI_IFNAME": "some-eth0",
            "CNI_PATH": "/some/bin/path",
            "CNI_ARGS": f"DEBUG={self.debug.path};FOO=BAR",
        }

    def run(self, stdin=STDIN):
        done = subprocess.run(
            [self.path],
            input=stdin.encode(),
            env=self.env,
            capture_output=True,
            check=False,
        )
        return done.returncode, done.stdout.decode()

    def expected_args(self, stdin=STDIN):
        names = ("CONTAINERID", "NETNS", "IFNAME", "ARGS", "PATH")
        return {**{name: self.env[f"CNI_{name}"] for name in names}, "StdinData": stdin}


@pytest.fixture
def call(world):
    return Call(world)


def test_add_reports_the_result(call):
    assert call.run() == (0, RESULT)


def test_panic_without_debug_file(call):
    call.env["CNI_ARGS"] = "FOO=BAR"
    assert call.run()[0] == 2


def test_nothing_to_do_without_arguments(call):
    call.env["CNI_ARGS"] = ""
    assert call.run() == (0, "{}")


@pytest.mark.parametrize("version", ["0.3.1", "0.4.0"])
def test_passthrough(call, version):
    call.debug.set(ReportResult="PASSTHROUGH")
    previous = {"cniVersion": version, "ips": [{"version": "4", "address": "10.1.2.15/24"}]}
    status, output = call.run(
        json.dumps({"name": "noop-test", "some": "stdin-json", "cniVersion": version, "prevResult": previous})
    )
    assert (status, json.loads(output)) == (0, {**previous, "dns": {}})


def test_inject_dns(call):
    call.debug.set(ReportResult="INJECT-DNS")
    previous = {"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "10.1.2.3/24"}], "dns": {}}
    status, output = call.run(
        json.dumps({"name": "noop-test", "some": "stdin-json", "cniVersion": "0.4.0", "prevResult": previous})
    )
    assert (status, json.loads(output)) == (0, {**previous, "dns": {"nameservers": ["1.2.3.4"]}})


def test_debug_file_of_the_configuration(call):
    # Without DEBUG in CNI_ARGS, Go's plugin reads the supported versions from the file of the configuration, too.
    call.env["CNI_ARGS"] = "FOO=BAR"
    stdin = json.dumps(
        {"name": "noop-test", "some": "stdin-json", "cniVersion": "0.4.0", "debugFile": str(call.debug.path)}
    )
    assert call.run(stdin) == (0, RESULT)
    assert call.debug.command == "ADD"
    assert call.debug.args == call.expected_args(stdin)


def test_records_all_arguments(call):
    assert call.run()[0] == 0
    assert call.debug.command == "ADD"
    assert call.debug.args == call.expected_args()


@pytest.mark.parametrize("status", [0, 3])
def test_empty_result(call, status):
    call.debug.set(ReportResult="", ExitWithCode=status)
    assert call.run() == (status, "")
    assert call.debug.read()["ReportResult"] == ""


def test_any_text_is_a_result(call):
    text = ' { "result": "set debug.ReportResult and call debug.WriteDebug() before calling this plugin" }'
    call.debug.set(ReportResult=text)
    assert call.run() == (0, text)
    assert call.debug.read()["ReportResult"] == text


def test_error(call):
    call.debug.set(ReportResult=RESULT, ReportError="banana")
    status, output = call.run()
    assert (status, json.loads(output)) == (1, {"code": 999, "msg": "banana"})


def test_del_does_the_same(call):
    call.env["CNI_COMMAND"] = "DEL"
    call.debug.set(ReportResult='{ "some": "delete-data" }')
    assert call.run() == (0, '{ "some": "delete-data" }')
    assert call.debug.command == "DEL"
    assert call.debug.args == call.expected_args()


def test_version(call):
    call.env["CNI_COMMAND"] = "VERSION"
    call.debug.set(ReportVersionSupport=["0.123.0", "0.2.0"])
    status, output = call.run()
    assert (status, json.loads(output)["supportedVersions"]) == (0, ["0.123.0", "0.2.0"])


@pytest.mark.parametrize(
    ("changed", "stdin", "error"),
    [
        ({"CNI_NETNS": ""}, STDIN, {"code": 4, "msg": "required env variables [CNI_NETNS] missing"}),
        ({}, '{"cniVersion":"0.3.1"}', {"code": 7, "msg": "missing network name"}),
        ({"CNI_COMMAND": "CHECK"}, STDIN, {"code": 1, "msg": "config version does not allow CHECK"}),
        (
            {},
            '{"name":"n","cniVersion":"1.0.0"}',
            {
                "code": 1,
                "msg": "incompatible CNI versions",
                "details": 'config is "1.0.0", plugin supports ["0.1.0" "0.2.0" "0.3.0" "0.3.1" "0.4.0"]',
            },
        ),
    ],
)
def test_what_the_skeleton_refuses(call, changed, stdin, error):
    call.env.update(changed)
    status, output = call.run(stdin)
    assert (status, json.loads(output)) == (1, error)
