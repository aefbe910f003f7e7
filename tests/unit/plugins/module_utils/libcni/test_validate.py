# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Container ids, network names, interface names (Go: pkg/utils tests; libcni.md 1.9)."""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import validate
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError, ValidationError


@pytest.mark.parametrize("check", [validate.validate_container_id, validate.validate_network_name])
@pytest.mark.parametrize("name", ["a", "0", "1abcZ-_.", "a..b", "x" * 1000])
def test_good_names(check, name):
    check(name)


BAD_NAMES = ["-a", ".a", "_a", "..", "../x", "a/b", "a b", "a\n", "\na", "a\0", "a%", "\u00e9", "a:b", "a\\b"]


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize(
    ("check", "code", "text"),
    [
        (validate.validate_container_id, 4, "invalid characters in containerID"),
        (validate.validate_network_name, 7, "invalid characters found in network name"),
    ],
)
def test_bad_names(check, code, text, name):
    with pytest.raises(ValidationError) as caught:
        check(name)
    assert (caught.value.code, caught.value.msg, caught.value.details) == (code, text, name)
    assert isinstance(caught.value, PluginError)


def test_missing_names():
    with pytest.raises(ValidationError) as caught:
        validate.validate_container_id("")
    assert (caught.value.code, str(caught.value)) == (3, "missing containerID")
    with pytest.raises(ValidationError) as caught:
        validate.validate_network_name("")
    assert (caught.value.code, str(caught.value)) == (7, "missing network name:")


@pytest.mark.parametrize("name", ["eth0", "...", "a" * 15, "eth0.100", "a\x1cb", "\u00e9" * 7, "\udcff" * 15, "-", "@"])
def test_good_interface_names(name):
    validate.validate_if_name(name)


SPACES = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "interface name is empty"),
        ("a" * 16, "interface name is too long; interface name should be less than 16 characters"),
        # Bytes count, not characters.
        ("\u00e9" * 8, "interface name is too long; interface name should be less than 16 characters"),
        ("\ud800" * 6, "interface name is too long; interface name should be less than 16 characters"),
        # A byte that is not UTF-8 is one surrogate; any other surrogate is text that no environment has.
        ("\udcff" * 16, "interface name is too long; interface name should be less than 16 characters"),
        (".", "interface name is . or .."),
        ("..", "interface name is . or .."),
        ("test/test", "interface name contains / or : or whitespace characters"),
        ("test:test", "interface name contains / or : or whitespace characters"),
        ("test test", "interface name contains / or : or whitespace characters"),
        ("eth0\n", "interface name contains / or : or whitespace characters"),
        *((f"a{space}b", "interface name contains / or : or whitespace characters") for space in SPACES),
    ],
)
def test_bad_interface_names(name, text):
    with pytest.raises(ValidationError) as caught:
        validate.validate_if_name(name)
    assert caught.value.code == 4
    assert str(caught.value) == text


# ---- the namespace of the host


@pytest.mark.parametrize("own", ["/proc/self/ns/net", "/proc/1/ns/net", "/proc/{pid}/ns/net"])
def test_host_netns_is_known_under_every_path_to_it(own, tmp_path):
    own = own.format(pid=os.getpid())
    link, chain, bound = tmp_path / "link", tmp_path / "chain", tmp_path / "bound"
    link.symlink_to(own)
    chain.symlink_to(link)
    bound.touch()
    subprocess.run(["mount", "--bind", own, str(bound)], check=True)
    try:
        with open(own) as stream:
            for path in (own, link, chain, bound, f"/proc/self/fd/{stream.fileno()}", f"/proc/..{own}"):
                assert validate.is_host_netns(str(path)), path
    finally:
        subprocess.run(["umount", str(bound)], check=True)


def test_host_netns_is_not_a_container_nor_what_is_no_namespace(tmp_path):
    (tmp_path / "dangling").symlink_to("/nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    held = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        held.stdin.write(b"\n")
        held.stdin.flush()
        # It answers from inside.
        held.stdout.read(1)
        paths = [str(tmp_path / name) for name in ("", "dangling", "loop", "pipe", "nothing")]
        for path in [*paths, f"/proc/{held.pid}/ns/net", "/proc/self/ns/mnt", "", "a\0b"]:
            assert not validate.is_host_netns(path), path
    finally:
        held.communicate()
