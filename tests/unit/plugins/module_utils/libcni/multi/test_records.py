# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Records of pods: what is written is read again, whole or not at all, and locked as long as somebody works on it."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given, settings, strategies as st

from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import CacheError, JSONError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.multi import records
from ansible_collections.podwire.cni.plugins.module_utils.libcni.process import run_program


def a_record(container_id="c1", ifname="eth0"):
    network = records.NetworkRecord("storage", "net1", b'{"name": "storage"}', True, "default/storage")
    network.args = [("IgnoreUnknown", "1"), ("A", "b")]
    network.capability_args = {"mac": "02:00:00:00:00:01", "big": 9007199254740993}
    network.families, network.gateways = ["4"], ["10.1.0.1"]
    return records.PodRecord("pods", container_id, ifname, "/run/netns/a", "default/web", [network])


def contents(record):
    return json.loads(record.to_bytes())


def test_a_record_is_read_as_it_was_written(tmp_path):
    with records.create_record(str(tmp_path), a_record()) as file:
        assert file.path == f"{tmp_path}/pods/c1:eth0"
    with records.open_record(file.path, 0) as found:
        assert contents(found.record) == contents(a_record())
        assert os.stat(found.path).st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path / "pods") == ["c1:eth0"]
    assert records.record_paths(str(tmp_path)) == [file.path]


def test_one_call_at_a_time(tmp_path):
    with records.create_record(str(tmp_path), a_record()) as file:
        with pytest.raises(FileExistsError):
            records.create_record(str(tmp_path), a_record())
        with pytest.raises(BlockingIOError):
            records.open_record(file.path, 0.05)
        assert os.listdir(tmp_path / "pods") == ["c1:eth0"]
        file.remove()
        file.remove()
    assert records.open_record(file.path, 0) is None
    records.create_record(str(tmp_path), a_record()).close()


def test_a_plugin_that_outlives_its_caller_holds_the_lock(tmp_path):
    file = records.create_record(str(tmp_path), a_record())
    os.set_inheritable(file.lock, True)
    script = f"sleep 1 >/dev/null 2>&1 & echo $! > {tmp_path}/pid"
    assert not run_program("/bin/sh", ["sh", "-c", script], b"", {"PATH": "/bin"}, keep=(file.lock,)).failure
    file.close()
    with pytest.raises(BlockingIOError):
        records.open_record(file.path, 0)
    records.open_record(file.path, 30).close()
    # Without keep, it is closed.
    file = records.open_record(file.path, 0)
    os.set_inheritable(file.lock, True)
    assert not run_program("/bin/sh", ["sh", "-c", script], b"", {"PATH": "/bin"}).failure
    file.close()
    records.open_record(file.path, 0).close()


def test_the_record_of_another_attachment(tmp_path):
    records.create_record(str(tmp_path), a_record()).close()
    os.rename(tmp_path / "pods" / "c1:eth0", tmp_path / "pods" / "c2:eth0")
    with records.open_record(f"{tmp_path}/pods/c2:eth0", 0) as file:
        assert (file.record, file.reason) == (None, "the record is that of another attachment")


def test_files_that_are_none(tmp_path):
    (tmp_path / "pods").mkdir()
    (tmp_path / "pods" / "c1:eth0").symlink_to("/etc/passwd")
    (tmp_path / "pods" / "c2:eth0").mkdir()
    os.mkfifo(tmp_path / "pods" / "c3:eth0")
    for name in ("c1:eth0", "c2:eth0", "c3:eth0"):
        with pytest.raises(CacheError):
            records.open_record(f"{tmp_path}/pods/{name}", 0)
    (tmp_path / "file").touch()
    with pytest.raises(CacheError):
        records.create_record(f"{tmp_path}/file", a_record())
    with pytest.raises(CacheError):
        records.record_paths(f"{tmp_path}/file/x/..")


KEYS = ["version", "network", "containerID", "ifname", "netns", "pod", "networks", "name", "isList", "config", "args"]
KEYS += ["capabilityArgs", "families", "gateways"]
VALUES = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a"])
ANY = st.recursive(VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner))


def damaged(value, path, new):
    """Return *value* with *new* at a place that *path* chooses."""
    if not path or not isinstance(value, (dict, list)) or not value:
        return new
    key = sorted(value)[path[0] % len(value)] if isinstance(value, dict) else path[0] % len(value)
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[key] = damaged(value[key], path[1:], new)
    return changed


@settings(deadline=None)
@given(st.lists(st.integers(0, 20), max_size=4), ANY)
def test_any_damage_is_found_or_harmless(path, new):
    data = json.dumps(damaged(contents(a_record()), path, new)).encode()
    try:
        found = records.PodRecord.from_bytes(data)
    except JSONError:
        return
    # What is read can be used, and written again.
    assert found.networks and all(isinstance(one.config, bytes) for one in found.networks)
    assert contents(records.PodRecord.from_bytes(found.to_bytes())) == contents(found)
