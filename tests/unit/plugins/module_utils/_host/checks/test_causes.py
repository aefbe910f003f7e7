# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import shutil
import struct
from subprocess import run

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.checks import causes, plugins as plugin_files, state
from ansible_collections.podwire.cni.plugins.module_utils._host.checks.plugins import why_not_executed, why_not_there


@pytest.fixture
def plugin(tmp_path):
    """A program that the kernel executes."""
    path = tmp_path / "bridge"
    shutil.copy("/bin/true", path)
    return path


def code(path):
    found = why_not_executed(str(path))
    return found and found.code


def test_a_program_is_executed(plugin):
    assert code(plugin) is None


def test_what_the_kernel_does_not_execute(plugin):
    plugin.chmod(0o644)
    assert code(plugin) == "not_executable"
    plugin.chmod(0o755)
    text = bytearray(plugin.read_bytes())
    plugin.write_bytes(b"short")
    assert code(plugin) == "not_a_program"
    plugin.write_text("#!/no/such/interpreter -x\n")
    assert code(plugin) == "missing_loader"
    plugin.write_text("#!/bin/sh\n")
    assert code(plugin) is None
    for table in (1 << 20, (1 << 64) - 1):
        # It is beyond what is read, or nonsense: VERSION tells.
        plugin.write_bytes(text[:32] + struct.pack("<Q", table) + text[40:])
        assert code(plugin) is None
    text[18:20] = struct.pack("<H", 22)
    plugin.write_bytes(bytes(text))
    assert code(plugin) == "wrong_machine"
    plugin.unlink()
    assert code(plugin) == "plugin_failed"


def test_a_loader_that_does_not_exist(plugin):
    text = plugin.read_bytes()
    loader = plugin_files._loader(text[:4096])
    assert loader.startswith("/lib")
    plugin.write_bytes(text.replace(loader.encode(), b"/" + b"x" * (len(loader) - 1)))
    found = why_not_executed(str(plugin))
    assert found.code == "missing_loader"
    assert "/xxxx" in found.message


@pytest.mark.parametrize(
    ("enforcing", "label", "expected"),
    [
        ("1", b"system_u:object_r:user_home_t:s0\0", "selinux_label"),
        ("1", b"system_u:object_r:bin_t:s0\0", None),
        ("0", b"system_u:object_r:user_home_t:s0\0", None),
        ("1", b"", None),
    ],
)
def test_a_label_that_runtimes_may_usually_not_execute(plugin, tmp_path, monkeypatch, enforcing, label, expected):
    (tmp_path / "enforce").write_text(enforcing)
    monkeypatch.setattr(plugin_files, "_SELINUX", str(tmp_path / "enforce"))
    monkeypatch.setattr(os, "getxattr", lambda path, name: label)
    assert code(plugin) == expected


def test_a_plugin_that_is_elsewhere(plugin, tmp_path):
    found = why_not_there("bridge", ["/opt/none"], [str(tmp_path)])
    assert found.evidence == f"{plugin} exists"
    assert f"configure the runtime to search {tmp_path}" in found.remedy
    found = why_not_there("bridge", ["/opt/none"], [])
    assert found.evidence == "the directory /opt/none does not exist"
    os.rename(plugin, tmp_path / "other")
    plugin.symlink_to("nowhere")
    assert "is a link to nowhere" in why_not_there("bridge", [str(tmp_path)], []).evidence
    found = why_not_there(str(tmp_path / "other"), [str(tmp_path)], [])
    assert (found.code, found.remedy) == ("bad_type", 'write "other", and let the runtime search its directory')


# ---- what plugins write


def found_in(store, kind="bridge"):
    ipam = {"type": "host-local", "dataDir": str(store.parent)}
    tuning = {"type": "tuning", "mtu": 1400, "dataDir": "not/absolute"}
    plugin = {"type": kind, "ipam": ipam, "dataDir": f"{store}/10.1.0.4/kept"}
    return state.state_obstacles(store.name, [plugin, tuning], str(store.parent))


@pytest.mark.parametrize(("kind", "kept"), [("bridge", []), ("flannel", ["10.1.0.4 away"])])
def test_what_in_a_store_stops_host_local(tmp_path, kind, kept):
    for name in ("10.1.0.2", "lock", "last_reserved_ip.0"):
        (tmp_path / name).mkdir()
    (tmp_path / "last_reserved_ip.1").symlink_to("created")
    (tmp_path / "last_reserved_ip.2").symlink_to("no/where")
    os.mkfifo(tmp_path / "10.1.0.4")
    names = [os.path.basename(finding.remedy.split(",")[0]) for finding in found_in(tmp_path, kind)]
    assert names == [*kept, "10.1.0.4", "last_reserved_ip.0", "last_reserved_ip.2", "lock"]


@pytest.mark.parametrize("lock", ["chattr +i {0}", "chattr +a {0}", "mount -B {0} {0}; mount -o remount,bind,ro {0}"])
def test_the_remedy_unlocks_a_file_of_a_store(tmp_path, lock):
    path = tmp_path / "last_reserved_ip.0"
    path.touch()
    run(["sh", "-ec", lock.format(path)], check=True)
    (finding,) = found_in(tmp_path)
    run(finding.remedy.split(), check=True)
    path.write_text("10.1.0.2")
    run(["umount", "-q", path], check=False)


def test_what_is_reserved_for_root_is_free_for_plugins(tmp_path, monkeypatch):
    status = os.statvfs_result((4096, 4096, 100, 5, 0, 100, 5, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _path: status)
    assert list(found_in(tmp_path)) == []


# ---- what Nomad tells its servers of


def touch(path):
    path.parent.mkdir(exist_ok=True)
    path.touch()


@pytest.mark.parametrize(
    ("printed", "known"),
    [
        ("CNI bridge plugin v1.9.1\n", True),
        # Releases without one of their own print the versions of the specification since 1.0.0; the last has no comma.
        ("CNI bridge plugin version unknown\nCNI protocol versions supported: 0.1.0, 0.2.0, 1.0.0\n", True),
        ("CNI bridge plugin version unknown\n", False),
        ("CNI bridge plugin v0.3.0\n", False),
        ("CNI dnsname plugin\nversion: 1.3.1\ncommit: unknown\n", True),
        ("", False),
    ],
)
def test_a_plugin_has_to_print_its_version(tmp_path, monkeypatch, printed, known):
    touch(tmp_path / "bin" / "bridge")
    monkeypatch.setattr(causes, "about_plugin", lambda _path, _timeout: printed)
    found = list(causes.not_fingerprinted(["bridge", "portmap"], [str(tmp_path / "bin")]))
    assert [entry.code for entry in found] == ([] if known else ["not_fingerprinted"])


@pytest.mark.parametrize(("first", "known"), [("missing", False), ("empty", False), ("full", True)])
def test_its_search_ends_at_a_directory_without_plugins(tmp_path, monkeypatch, first, known):
    touch(tmp_path / "bin" / "bridge")
    touch(tmp_path / "full" / "other")
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(causes, "about_plugin", lambda _path, _timeout: "CNI bridge plugin v1.9.1")
    found = list(causes.not_fingerprinted(["bridge"], [str(tmp_path / first), str(tmp_path / "bin")]))
    assert [str(tmp_path / first) in entry.evidence for entry in found] == ([] if known else [True])
