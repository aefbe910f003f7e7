# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.nomad import settings_in
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

AGENT = """
# The agent of a small site
data_dir  = "/opt/nomad/data"
bind_addr = "{{ GetInterfaceIP \\"eth0\\" }}"

server {
  enabled          = false // no
  retry_join = ["10.0.0.1", "10.0.0.2"]
}

/* a client
   with networks */
client {
  enabled = true
  cni_path = "/opt/cni/bin:/usr/lib/cni"
  cni_config_dir = "/srv/cni/config"
  meta { "rack" = "a-1", size = 3 }
  host_volume "certs" { path = "/etc/ssl" read_only = true }
  options = { "driver.raw_exec.enable" = "1" }
  template { left = <<EOF
} client {
EOF
    }
}
plugin "docker" "x" {
  config { gc { image_delay = 1.5 } }
}
telemetry { collection_interval = 5s }
"""


def test_an_agents_configuration_is_understood():
    settings = settings_in(AGENT)
    client = settings["client"]
    assert client["cni_path"] == "/opt/cni/bin:/usr/lib/cni"
    assert (client["enabled"], client["cni_config_dir"]) == (True, "/srv/cni/config")
    assert settings["server"] == {"enabled": False}
    assert settings["telemetry"] == {"collection_interval": None}
    assert "path" not in client and "left" not in client


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("", {}),
        ("a = 1", {}),
        ("c { a = 1\na = 2 }", {"c": {"a": 2}}),
        ("c { x = 1 }\r\nc { y = 2 }", {"c": {"x": 1, "y": 2}}),
        ('c { a = "\\"b\\\\" }', {"c": {"a": '"b\\'}}),
        ("c { a = [1, [true], {b = 2}] d = 3 }", {"c": {"d": 3}}),
        ("c { a = <<-X\n  one\n  X\nb = 1 }", {"c": {"a": None, "b": 1}}),
        ("c { a = <<X\nX\nb = 1 }", {"c": {"a": None, "b": 1}}),
        ('{"client": {"cni_path": "/x", "y": null}}', {"client": {"cni_path": "/x", "y": None}}),
        ('{"client": [{"enabled": true}, {"cni_path": "/x"}]}', {"client": {"enabled": True, "cni_path": "/x"}}),
    ],
)
def test_blocks_attributes_and_json(text, settings):
    assert settings_in(text) == settings


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a", 1),
        ("a = ", 1),
        ("\n\na = var.x", 3),
        ('a = "x', 1),
        ("a {", 1),
        ("a = [1", 1),
        ("a = {", 1),
        ("}", 1),
        ("a = <<X\nno end", 1),
        ("/* no end", 1),
        ("a " * 1000, 1),
        ("a {" * 10000, 1),
        ("a = " + "[" * 10000, 1),
        ("a { b = 1 ]", 1),
        ("a { b = }", 1),
        ('a = "\\q"', 1),
        ("= 1", 1),
        ("a = 1 + 2", 1),
    ],
)
def test_what_is_not_understood_is_an_error_with_its_line(text, line):
    with fails_with("not_understood") as error:
        settings_in(text)
    assert "line %d" % line in error.value.msg


@pytest.mark.parametrize("text", ["{", '{"a": 1', "{" * 100000, '{"a": ' * 100000])
def test_broken_json_is_an_error(text):
    with fails_with("not_understood"):
        settings_in(text)


def test_any_beginning_is_read_or_refused():
    for end in range(len(AGENT)):
        try:
            settings_in(AGENT[:end])
        except HostError as error:
            assert error.code == "not_understood"
