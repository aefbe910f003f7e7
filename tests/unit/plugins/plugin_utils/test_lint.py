# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The linter for other repositories; tests/real/hook tests it as a hook of pre-commit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils import lint

ROOT = Path(__file__).resolve().parents[4]
GOOD = {"cniVersion": "1.0.0", "name": "apps", "plugins": [{"type": "bridge", "ipam": {"type": "dhcp"}}]}
BAD = {**GOOD, "plugins": [{"type": "bridge", "mtu": "1500"}]}
MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: storage
spec:
  config: |
    {"cniVersion": "1.0.0", "type": "macvlan",
     "mode": "brigde"}
"""


@pytest.fixture
def run(lint_files):
    """Return a function that writes files, lints them, and returns status, output and errors."""

    def written(files, *options):
        lint_files(files, *options)
        return lint_files.status, lint_files.out, lint_files.err

    return written


def test_a_good_conflist_is_silent(run):
    assert run({"a.conflist": GOOD}) == (0, "", "")


def test_what_a_host_would_say_of_the_network_alone_is_said(run):
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24", "gateway": "10.2.0.1"}]]}
    plugins = [{"type": "portmap", "capabilities": {"portMappings": True}}, {"type": "ptp", "ipam": ipam}]
    status, out, _err = run({"a.conflist": {**GOOD, "plugins": plugins}})
    assert status == 1
    first, second = out.splitlines()
    assert "error: /plugins/0: portmap comes first" in first and first.endswith("[chain_order]")
    assert "a.conflist:19:" in second and "/plugins/1/ipam/ranges/0/0/gateway" in second


def test_an_error_has_its_place_and_its_code(run):
    status, out, err = run({"dir/a.conflist": BAD})
    assert (status, err) == (1, "")
    assert out.startswith('dir/a.conflist:7:11: error: /plugins/0/mtu: bridge: mtu is the string "1500"')
    assert out.endswith(" [schema]\n")


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.conflist", "", "json_empty"),
        ("a.conflist", "{", "json_truncated"),
        ("net.json", '{"cniVersion": "1.0.0", "type": "a",}', "json_trailing_comma"),
        ("a.conflist", b"\xff{}", "not_utf8"),
        ("a.conflist", " " * (1 << 20) + "{}", "src_unreadable"),
        ("a.yaml", MANIFEST.replace("config: |", "config: {"), "yaml_invalid"),
        ("a.yaml", MANIFEST + "---\n" + MANIFEST.partition("---\n")[2], "nad_twice"),
        (
            "nad.json",
            {"apiVersion": "v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "a"}},
            "nad_kind",
        ),
        ("a.conf", {"cniVersion": "1.0.0", "name": "a", "type": "loopback", "x": 1}, None),
    ],
)
def test_what_is_wrong_has_a_code(run, name, content, code):
    status, out, err = run({name: content})
    assert err == ""
    assert status == (1 if code else 0)
    if code:
        assert f" [{code}]\n" in out


def test_strict_makes_warnings_errors(run):
    files = {"a.conf": {"cniVersion": "1.0.0", "name": "a", "type": "loopback", "isGatway": True}}
    assert run(files)[0] == 0
    assert run(files, "--strict")[0] == 1


def test_a_file_that_cannot_be_read_is_no_error_of_the_network(run, capsys):
    _status, out, _err = run({"a.conflist": BAD})
    Path("b.conflist").symlink_to("/proc/self/mem")
    assert lint.main(["gone.conflist", "b.conflist", "a.conflist"]) == 2
    why = "cannot read gone.conflist: No such file or directory\ncannot read b.conflist: Input/output error\n"
    assert capsys.readouterr() == (out, why)


def test_a_name_that_a_terminal_would_obey_is_shown_by_number(run):
    _status, out, _err = run({"a\x1b[2J.conflist": BAD})
    assert "\x1b" not in out
    assert out.startswith("a\\u001b[2J.conflist:")


def test_without_yaml_manifests_are_refused_and_networks_are_checked(tmp_path):
    """As in an environment that has jsonschema and nothing else: neither Ansible nor PyYAML can be imported."""
    (tmp_path / "a.yaml").write_text(MANIFEST)
    (tmp_path / "a.conflist").write_text(json.dumps(BAD))
    code = (
        "import runpy, sys\n"
        "sys.modules.update({'yaml': None, 'ansible': None})\n"
        "sys.argv[0] = 'lint'\n"
        "runpy.run_module('plugins.plugin_utils.lint', run_name='__main__')\n"
    )
    files = [str(tmp_path / name) for name in ("a.yaml", "a.conflist")]
    done = subprocess.run([sys.executable, "-c", code, *files], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "PyYAML is missing" in done.stderr
    assert "error: /plugins/0/mtu: bridge: mtu is the string" in done.stdout


def test_the_output_in_the_documentation(run):
    page = (ROOT / "docs" / "schemas.md").read_text(encoding="utf-8")
    conflist = page.partition("$ cat apps.conflist\n")[2].partition("$ check-jsonschema")[0]
    expected = page.partition("plugins.plugin_utils.lint apps.conflist\n")[2].partition("$ echo $?")[0]
    assert run({"apps.conflist": conflist}) == (1, expected, "")


# ---- variables of groups

GROUP = """\
---
cni_networks:
  - name: lan
    conflist:
      cniVersion: "1.0.0"
      plugins:
        - type: %s
          master: eth0
          ipam:
            type: host-local
            ranges:
              - - subnet: 192.0.2.0/24
                  rangeStart: %s
"""
TEXT = """\
    content: |-
      {"cniVersion": "1.0.0", "type": "macvlan", "ipam": {"type": "host-local", "subnet": "192.0.2.0/24"}}
"""


@pytest.mark.parametrize(
    ("path", "content", "line"),
    [
        ("group_vars/web.yml", GROUP % ("macvlan", "192.0.2.10"), 12),
        ("inventory/group_vars/web/cni.yaml", GROUP % ("ipvlan", "192.0.2.10"), 12),
        ("group_vars/all.yml", f"secret: !vault x\ncni_networks:\n  - name: lan\n{TEXT}", 4),
        ("group_vars/web.yml", GROUP % ("macvlan", '"{{ lan_start }}"'), None),
        ("group_vars/web.yml", GROUP % ("macvlan", '"192.0.2.{{ number }}"'), None),
        ("group_vars/web.yml", GROUP % ("bridge", "192.0.2.10"), None),
        ("group_vars/web.yml", GROUP % ("ptp", "192.0.2.10"), None),
        ("host_vars/web1.yml", GROUP % ("macvlan", "192.0.2.10"), None),
        ("play.yml", GROUP % ("macvlan", "192.0.2.10"), None),
        ("group_vars/web.yml", "cniVersion: [", None),
    ],
)
def test_a_range_of_a_lan_in_the_variables_of_a_group_is_a_warning(run, path, content, line):
    status, out, _err = run({path: content})
    told = [text for text in out.splitlines() if "[shared_range]" in text]
    assert [text.split(": ")[1] for text in told] == ["warning"] * bool(line)
    if line:
        assert told[0].startswith(f"{path}:{line}:") and "every host of the group" in told[0]
        assert status == 0 and run({path: content}, "--strict")[0] == 1
