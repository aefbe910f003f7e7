# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The reader for hosts whose Python has none: it understands the same, or refuses."""

from __future__ import annotations

import contextlib
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import toml
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.toml import (
    with_import,
    with_setting,
    without_managed_lines,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

DUMPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dumps")


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("", {}),
        ("# nothing\n\n", {}),
        ("a = 1\r\nb = 2\r\n", {"a": 1, "b": 2}),
        ('a = "x" # why', {"a": "x"}),
        ("a = 'C:\\x'", {"a": "C:\\x"}),
        (r'a = "\t\"\\\u00e9\U0001F600"', {"a": '\t"\\\u00e9\U0001f600'}),
        ('a = """\none\n  two\\\n   three"""', {"a": "one\n  twothree"}),
        ('a = """x\\""" y"""', {"a": 'x""" y'}),
        ("a = '''\n\\x'''", {"a": "\\x"}),
        ("a = true\nb = false", {"a": True, "b": False}),
        ("a = -1\nb = 1_000\nc = 0x1F\nd = 0o17\ne = 0b11", {"a": -1, "b": 1000, "c": 31, "d": 15, "e": 3}),
        ('a = ["x", \'y\'\n , # z\n "w",\n]', {"a": ["x", "y", "w"]}),
        ("a = [[1], []]", {"a": [[1], []]}),
        ("a = {b = 1, c = 'x'}", {"a": {"b": 1, "c": "x"}}),
        ('a = ["x", {append = true}]', {"a": ["x", {"append": True}]}),
        ("[a]\nb = 1\n[a.c]\nd = 2\n[ e . 'f.g' ]\nh = 3", {"a": {"b": 1, "c": {"d": 2}}, "e": {"f.g": {"h": 3}}}),
        ('[plugins."io.x".cni]\nk = 1', {"plugins": {"io.x": {"cni": {"k": 1}}}}),
        ("[[a]]\nb = 1\n[a.c]\nd = 1\n[[a]]\nb = 2", {"a": [{"b": 1, "c": {"d": 1}}, {"b": 2}]}),
        ("a.b.c = 1\na.d = 2", {"a": {"b": {"c": 1}, "d": 2}}),
        ("1 = 2\n-a_ = 3", {"1": 2, "-a_": 3}),
    ],
)
def test_what_runtimes_and_people_write_is_understood(text, tables):
    assert toml.load_toml(text) == toml._loads(text) == tables


def test_numbers_that_no_caller_needs_are_none():
    text = "a = 1.5\nb = 1979-05-27T07:32:00Z\nc = inf\nd = 07:32:00\ne = " + "9" * 5000
    assert toml._loads(text) == dict.fromkeys("abcde")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a", 1),
        ("\na =", 2),
        ("a = x", 1),
        ('a = "x', 1),
        ('a = "x\n"', 1),
        ("a = 'x", 1),
        ('a = """x', 1),
        ("a = [1", 1),
        ("a = [1 2]", 1),
        ("a = {b = 1", 1),
        ("a = {b}", 1),
        ("[a", 1),
        ("[[a]", 1),
        ("[]", 1),
        ("a = 1 b = 2", 1),
        ("a = 1\n\n[a]\nb = 1\n", 4),
        ("a = 1\na.b = 2", 2),
        ("a = 1\n[[a]]", 2),
        (r'a = "\q"', 1),
        ('"a', 1),
        ("= 1", 1),
        ("a = 0x_", 1),
        ("a = 0o", 1),
    ],
)
def test_what_is_not_understood_is_an_error_with_its_line(text, line):
    with fails_with("not_understood"):
        toml.load_toml(text)
    with pytest.raises(ValueError, match=rf"line {line}\b"):
        toml._loads(text)


@pytest.mark.parametrize("name", sorted(os.listdir(DUMPS)))
def test_real_dumps_are_read_as_pythons_own_reader_does(name):
    with open(os.path.join(DUMPS, name), encoding="utf-8") as stream:
        text = stream.read()
    tables = toml._loads(text)
    assert "plugins" in tables and tables["version"] in (2, 3)
    assert tables == without_floats(toml.load_toml(text))
    for end in range(0, len(text), 31):
        with contextlib.suppress(ValueError):
            toml._loads(text[:end])


def without_floats(value):
    if isinstance(value, dict):
        return {key: without_floats(inner) for key, inner in value.items()}
    return None if isinstance(value, float) else value


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, 'a = """' + '\\"""' * 20_000, 'a = """' + "\\" * 99_999 + '"' * 99_999]
)
def test_what_has_no_end_is_refused_in_linear_time(text):
    with pytest.raises((ValueError, RecursionError)):
        toml._loads(text)
    with pytest.raises(HostError):
        toml.load_toml(text)


CNI = ["plugins", "io.containerd.grpc.v1.cri", "cni"]
LAYOUTS = [
    "version = 2\n",
    "version = 2",
    '[plugins]\n  [plugins."io.containerd.grpc.v1.cri".cni]\n    bin_dir = "/usr/lib/cni"  # theirs\n[grpc]\nuid = 1\n',
    "[plugins.'io.containerd.grpc.v1.cri'.cni]  # x\n\tconf_dir = '/a'\n\t\"bin_dir\"='b'\n",
    'version = 2\r\n[plugins."io.containerd.grpc.v1.cri".cni]\r\n  bin_dir = "/usr/lib/cni"\r\n',
    '# [plugins."io.containerd.grpc.v1.cri".cni]\ntext = """\n[grpc]\n"""\n',
]


@pytest.mark.parametrize("text", LAYOUTS)
def test_a_setting_comes_in_and_goes_out_again(text):
    changed = with_setting(text, CNI, "bin_dir", "/opt/cni/bin")
    changed = with_setting(changed, CNI, "max_conf_num", 2)
    cni = toml.load_toml(changed)["plugins"]["io.containerd.grpc.v1.cri"]["cni"]
    assert (cni["bin_dir"], cni["max_conf_num"]) == ("/opt/cni/bin", 2)
    assert without_managed_lines(changed).rstrip("\n") == text.rstrip("\n")


def test_the_line_that_was_there_is_kept_beside_ours():
    changed = with_setting(LAYOUTS[2], CNI, "bin_dir", "/b")
    assert '    bin_dir = "/b"  # podwire.cni, before:     bin_dir = "/usr/lib/cni"  # theirs\n' in changed
    assert with_setting(changed, CNI, "bin_dir", "/b") == changed


@pytest.mark.parametrize(
    "text",
    [
        '[plugins."io.containerd.grpc.v1.cri"]\ncni = { bin_dir = "/a" }\n',
        '[plugins."io.containerd.grpc.v1.cri"]\ncni.bin_dir = "/a"\n',
        "plugins = 1\n",
        '[plugins."io.containerd.grpc.v1.cri".cni]\nbin_dir = """\n/a"""\n',
    ],
)
def test_a_layout_that_cannot_be_changed_is_said_with_what_to_write(text):
    with fails_with("not_understood") as caught:
        with_setting(text, CNI, "bin_dir", "/b")
    if text.startswith("["):
        assert 'set bin_dir = "/b" in [plugins."io.containerd.grpc.v1.cri".cni]' in caught.value.msg


@pytest.mark.parametrize(
    ("text", "imports"),
    [
        ("version = 2\n[grpc]\nuid = 1\n", ["/d"]),
        ("version = 2\nimports = ['/a', \"/b\"] # x\n", ["/a", "/b", "/d"]),
        ('imports = [\n  "/a",\n  "/b",\n]\n', ["/a", "/b", "/d"]),
        # The last entry has no comma, and a managed line is removed as a whole.
        ('imports = [ # x\n  "/a",\n  "/b"\n]\n', ["/d", "/a", "/b"]),
        ("imports = [\n]\n", ["/d"]),
    ],
)
def test_an_import_comes_in_and_goes_out_again(text, imports):
    changed = with_import(text, "/d")
    assert toml.load_toml(changed) == dict(toml.load_toml(text), imports=imports)
    assert without_managed_lines(changed) == text


def test_imports_in_another_layout_are_said():
    with pytest.raises(HostError, match="imports = "):
        with_import('imports = ["/a",\n "/b"]\n', "/d")
