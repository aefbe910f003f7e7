# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Running a plugin, with the noop plugin (Go: pkg/invoke/raw_exec_test.go)."""

from __future__ import annotations

import io

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import invoke
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError

RESULT = '{ "some": "result" }'
STDIN = b'{"name": "raw-exec-test", "some":"stdin-json", "cniVersion": "0.3.1"}'


@pytest.fixture
def debug(world):
    return world.debug(ReportResult=RESULT, ReportStderr="some stderr message")


def run(world, debug, executor=None, path=None):
    env = {
        "PATH": "/usr/bin:/bin",
        "CNI_COMMAND": "ADD",
        "CNI_CONTAINERID": "some-container-id",
        "CNI_ARGS": f"DEBUG={debug.path}",
        "CNI_NETNS": "/some/netns/path",
        "CNI_PATH": "/some/bin/path",
        "CNI_IFNAME": "some-eth0",
    }
    return (executor or invoke.Executor()).exec_plugin(path or str(world.bin / "noop"), STDIN, env)


def test_runs_with_stdin_and_environment_and_returns_stdout(world, debug):
    assert run(world, debug) == RESULT.encode()
    assert debug.command == "ADD"
    assert (debug.args["StdinData"].encode(), debug.args["NETNS"]) == (STDIN, "/some/netns/path")


def test_stderr_is_forwarded(world, debug):
    stderr = io.BytesIO()
    run(world, debug, invoke.Executor(stderr))
    assert stderr.getvalue() == b"some stderr message"


@pytest.mark.parametrize(
    ("orders", "text"),
    [
        ({"ReportError": "banana", "ReportStderr": "some stderr message"}, "banana"),
        # After v1.3.0, Go says how the plugin ended, too.
        (
            {"ExitWithCode": 1, "ReportStderr": "some stderr message"},
            'netplugin failed: "some stderr message": exit status 1',
        ),
        ({"ExitWithCode": 1}, "netplugin failed with no error message: exit status 1"),
    ],
)
def test_failures(world, debug, orders, text):
    debug.set(ReportResult="", **orders)
    stderr = io.BytesIO()
    with pytest.raises(PluginError) as caught:
        run(world, debug, invoke.Executor(stderr))
    assert str(caught.value) == text
    assert stderr.getvalue() == b""


def test_plugin_that_cannot_be_run(world, debug):
    with pytest.raises(PluginError, match=r"/tmp/some/invalid/plugin/path"):
        run(world, debug, path="/tmp/some/invalid/plugin/path")
