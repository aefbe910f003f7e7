# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Running a plugin for its result and its versions, with a fake executor (Go: pkg/invoke/exec_test.go)."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import exec as libcni_exec
from ansible_collections.podwire.cni.plugins.module_utils.libcni import invoke
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import CNIError, PluginError

PATH = "/some/plugin/path"
CONF = b'{ "some": "stdin", "cniVersion": "0.3.1" }'
ENV = {"SOME": "ENV"}
IPS = '"ips": [ { "version": "4", "address": "1.2.3.4/24" } ]'


class Fake(invoke.Executor):
    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def exec_plugin(self, path, stdin, env, timeout=None):
        self.received = (path, stdin, env)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer.encode()


def add(answer, net_conf=CONF):
    fake = Fake(answer)
    return libcni_exec.exec_plugin_with_result(PATH, net_conf, ENV, fake), fake


def test_result_is_decoded_and_arguments_are_passed():
    result, fake = add(f'{{ "cniVersion": "0.3.1", {IPS} }}')
    assert result.addresses == ["1.2.3.4/24"]
    assert fake.received == (PATH, CONF, ENV)


def test_errors_are_passed():
    with pytest.raises(PluginError, match=r"^banana$"):
        add(PluginError(0, "banana"))


def test_default_executor():
    """The plugin is not there, so the error comes from running it."""
    with pytest.raises(PluginError, match=PATH):
        libcni_exec.exec_plugin_with_result(PATH, CONF, ENV, invoke.Executor())


@pytest.mark.parametrize("own", ["", '"cniVersion": "", '])
def test_result_without_version_has_the_configurations(own):
    result, _fake = add(f"{{ {own}{IPS} }}")
    assert (result.version, result.addresses) == ("0.3.1", ["1.2.3.4/24"])


def test_without_any_version_it_is_0_1_0():
    result, _fake = add('{ "some": "version-info" }', b'{ "some": "stdin" }')
    assert result.version == "0.1.0"


def test_version_is_asked_for_and_decoded():
    fake = Fake('{"cniVersion":"1.0.0","supportedVersions":["0.42.0"]}')
    assert invoke.get_version_info(PATH, fake) == ["0.42.0"]
    path, stdin, env = fake.received
    assert (path, json.loads(stdin), env["CNI_COMMAND"]) == (PATH, {"cniVersion": "1.1.0"}, "VERSION")


def test_version_passes_errors():
    with pytest.raises(CNIError, match=r"^banana$"):
        invoke.get_version_info(PATH, Fake(PluginError(0, "banana")))


def test_plugin_that_does_not_know_version():
    fake = Fake(PluginError(0, "unknown CNI_COMMAND: VERSION"))
    assert invoke.get_version_info(PATH, fake) == ["0.1.0"]
    env = fake.received[2]
    assert [env[f"CNI_{name}"] for name in ("NETNS", "IFNAME", "PATH")] == ["dummy"] * 3


@pytest.mark.parametrize(
    ("answer", "versions"),
    [
        ('{"code":4,"msg":"unknown CNI_COMMAND: VERSION"}', ["0.1.0"]),
        ('{"cniVersion":"0.2.0"}', ["0.1.0", "0.2.0"]),
        ('{"cniVersion":"0.2.0","supportedVersions":["0.2.0","0.999.0"]}', ["0.2.0", "0.999.0"]),
        ('{"cniVersion":"0.3.1","supportedVersions":["0.2.0","0.999.0"]}', ["0.2.0", "0.999.0"]),
        ('{"cniVersion":"1.1.0","supportedVersions":["0.2.0","0.4.0","0.999.0"]}', ["0.2.0", "0.4.0", "0.999.0"]),
    ],
)
def test_plugins_of_all_times(world, answer, versions):
    """Go: pkg/invoke/get_version_integration_test.go, which builds them; these answer as those do."""
    status = 1 if "code" in answer else 0
    path = world.script("test-plugin", f"cat >/dev/null; echo '{answer}'; exit {status}")
    assert invoke.get_version_info(path, invoke.Executor()) == versions
