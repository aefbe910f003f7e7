# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import fcntl
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import leases
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with, raising


def store(tmp_path, network="demo", **files):
    folder = tmp_path / network
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_both_formats_are_read_and_sorted_by_address(tmp_path):
    folder = store(
        tmp_path,
        **{
            "10.1.0.10": b"web\r\neth0",
            "10.1.0.9": b"old",
            "fd00::2": b"web\r\neth1",
            "last_reserved_ip.0": b"10.1.0.10",
        },
    )
    found, problems = leases.read_leases(str(tmp_path), "demo")
    assert [(lease.ip, lease.container_id, lease.ifname) for lease in found] == [
        ("10.1.0.9", "old", ""),
        ("10.1.0.10", "web", "eth0"),
        ("fd00::2", "web", "eth1"),
    ]
    assert problems == []
    # Reading makes no lock file.
    assert not (folder / "lock").exists()


def test_empty_and_foreign_files_are_named(tmp_path):
    folder = store(tmp_path, **{"10.1.0.2": b"", "notes.txt": b"x", "10.1.0.3": b"x" * 5000})
    os.symlink("/etc/passwd", folder / "10.1.0.4")
    (folder / "10.1.0.5").mkdir()
    found, problems = leases.read_leases(str(tmp_path), "demo")
    assert [(lease.ip, lease.container_id) for lease in found] == [("10.1.0.2", "")]
    assert [(os.path.basename(entry.file), entry.code) for entry in problems] == [
        ("10.1.0.2", "lease_empty"),
        ("10.1.0.3", "lease_unknown"),
        ("10.1.0.4", "lease_unknown"),
        ("10.1.0.5", "lease_unknown"),
        ("notes.txt", "lease_unknown"),
    ]


def test_bytes_that_are_no_text_do_not_stop_it(tmp_path):
    store(tmp_path, **{"10.1.0.2": b"\xff\xfe\r\neth0"})
    (lease,) = leases.read_leases(str(tmp_path), "demo")[0]
    assert lease.ifname == "eth0"


def test_a_store_that_vanished_is_a_problem(tmp_path):
    found, problems = leases.read_leases(str(tmp_path), "gone")
    assert found == []
    assert problems[0].code == "leases_unreadable"


def test_stores_are_those_of_the_networks_and_all_of_the_default_directory(tmp_path):
    default, other = tmp_path / "default", tmp_path / "other"
    store(default, "left")
    store(default, "demo")
    store(other, "demo")
    (default / "link").symlink_to("demo")
    (default / "file").write_text("")
    networks = [
        ("demo", {"type": "bridge", "ipam": {"type": "host-local", "dataDir": f"{other}/"}}),
        ("demo", {"type": "portmap"}),
        ("unused", {"type": "bridge", "ipam": {"type": "host-local"}}),
        ("odd", {"type": "bridge", "ipam": {"type": "host-local", "dataDir": 7}}),
        ("odd", {"type": "bridge", "ipam": "host-local"}),
        ("dhcp", {"type": "bridge", "ipam": {"type": "dhcp", "dataDir": str(other)}}),
    ]
    assert leases.lease_stores(networks, str(default)) == [
        (str(default), "demo"),
        (str(default), "left"),
        (str(other), "demo"),
    ]


def test_nothing_there_is_no_store(tmp_path):
    assert leases.lease_stores([], str(tmp_path / "nothing")) == []


def test_a_reservation_is_removed_only_if_it_is_the_one_that_was_read(tmp_path):
    folder = store(tmp_path, **{f"10.1.0.{number}": b"web\r\neth0" for number in (2, 3, 4, 5, 6)})
    found = leases.read_leases(str(tmp_path), "demo")[0]
    (folder / "10.1.0.3").write_bytes(b"db\r\neth0")
    # The same text in another file is a newer reservation.
    (folder / "new").write_bytes(b"web\r\neth0")
    os.replace(folder / "new", folder / "10.1.0.4")
    # It was written again.
    os.utime(folder / "10.1.0.5", ns=(0, 1))
    # Which file it was is not known.
    found[-1] = leases.Lease(str(tmp_path), "demo", "10.1.0.6", "web", "eth0", found[-1].text, None)
    for lease in found:
        leases.remove_lease(lease, 1)
        leases.remove_lease(lease, 1)
    assert sorted(os.listdir(folder)) == ["10.1.0.3", "10.1.0.4", "10.1.0.5", "10.1.0.6", "lock"]


def test_a_change_of_a_reservation_waits_for_the_lock_of_host_local(tmp_path):
    folder = store(tmp_path, **{"10.1.0.2": b"web\r\neth0", "lock": b""})
    (lease,) = leases.read_leases(str(tmp_path), "demo")[0]
    with open(folder / "lock", "rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with fails_with("lease_locked"):
            leases.remove_lease(lease, 0.1)
        with fails_with("lease_locked"):
            leases.put_lease(str(tmp_path), "demo", "10.1.0.3", "web", 0.1)
    assert sorted(os.listdir(folder)) == ["10.1.0.2", "lock"]
    leases.remove_lease(lease, 0.1)
    assert not (folder / "10.1.0.2").exists()


def test_a_store_that_is_gone_has_nothing_to_remove(tmp_path):
    leases.remove_lease(leases.Lease(str(tmp_path), "nowhere", "10.1.0.2", "web", "eth0"), 1)


def test_what_was_given_last_is_read(tmp_path):
    store(tmp_path, **{"last_reserved_ip.0": b"10.1.0.7", "last_reserved_ip.1": b"junk", "10.1.0.2": b""})
    assert leases.last_reserved(str(tmp_path), "demo") == ["10.1.0.7"]
    assert leases.last_reserved(str(tmp_path), "nowhere") == []


@pytest.mark.parametrize("name", [b"\xff", b"10.9.0.\xff", b"apps-\xed\xa0\x80"])
def test_file_names_that_are_no_utf8_are_no_leases(tmp_path, name):
    store(tmp_path, **{"10.9.0.2": b"web\r\neth0"})
    (tmp_path / "demo" / os.fsdecode(name)).write_bytes(b"a\0b\r\ne\0th")
    found, problems = leases.read_leases(str(tmp_path), "demo")
    assert [lease.ip for lease in found] == ["10.9.0.2"]
    assert [entry.code for entry in problems] == ["lease_unknown"]


def test_a_lease_as_a_row():
    lease = leases.Lease("/data", "demo", "10.1.0.2", "web", "eth0")
    assert lease.path == "/data/demo/10.1.0.2"
    assert lease.row() == {
        "network": "demo",
        "ip": "10.1.0.2",
        "container_id": "web",
        "ifname": "eth0",
        "data_dir": "/data",
    }


def test_a_lease_that_cannot_be_removed(tmp_path, monkeypatch):
    store(tmp_path, **{"10.1.0.2": b"web"})
    (lease,), _problems = leases.read_leases(str(tmp_path), "demo")

    monkeypatch.setattr(os, "unlink", raising(OSError(30, "Read-only file system")))
    with fails_with("lease_not_removed", f"cannot free {tmp_path}/demo/10.1.0.2: Read-only file system"):
        leases.remove_lease(lease, 1)


def test_a_lost_lease_is_put_back_but_never_over_another_one(tmp_path):
    text = "web\r\neth0"
    leases.put_lease(str(tmp_path), "demo", "10.1.0.2", text, 1)
    path = tmp_path / "demo" / "10.1.0.2"
    assert path.read_bytes() == text.encode()
    # As if it had come back by itself.
    leases.put_lease(str(tmp_path), "demo", "10.1.0.2", text, 1)
    path.write_bytes(b"db\r\neth0")
    with fails_with("lease_taken", "leased to another container"):
        leases.put_lease(str(tmp_path), "demo", "10.1.0.2", text, 1)
    assert path.read_bytes() == b"db\r\neth0"
    path.unlink()
    path.mkdir()
    with pytest.raises(HostError, match="is no lease of host-local; remove it"):
        leases.put_lease(str(tmp_path), "demo", "10.1.0.2", text, 1)


def test_a_lease_is_not_written_through_a_link(tmp_path):
    folder = store(tmp_path, lock=b"")
    (folder / "10.1.0.2").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HostError):
        leases.put_lease(str(tmp_path), "demo", "10.1.0.2", "web", 1)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("owned", ["users", "users/leases"])
def test_nothing_is_changed_in_a_store_that_a_user_can_lead_elsewhere(tmp_path, owned):
    roots = store(tmp_path / "roots", **{"10.1.0.2": b"db\r\neth0"})
    data_dir = tmp_path / "users" / "leases"
    data_dir.mkdir(parents=True)
    (data_dir / "demo").symlink_to(roots)
    os.chown(str(tmp_path / owned), 65534, 65534)
    (lease,) = leases.read_leases(str(data_dir), "demo")[0]
    for change, *arguments in (
        (leases.remove_lease, lease),
        (leases.put_lease, str(data_dir), "demo", "10.1.0.3", "web"),
        (leases.put_lease, str(data_dir), "new", "10.1.0.3", "web"),
    ):
        with pytest.raises(HostError, match="belongs to user 65534"):
            change(*arguments, 1)
    assert os.listdir(roots) == ["10.1.0.2"] and os.listdir(data_dir) == ["demo"]
