# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import os

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils import file_memory
from ansible_collections.podwire.cni.plugins.plugin_utils.archive_cache import cache_dir
from ansible_collections.podwire.cni.plugins.plugin_utils.file_memory import FileMemory

ELF = b"\x7fELF\x02\x01\x01" + b"\0" * 11 + b"\x3e\x00"


@pytest.fixture
def reads(monkeypatch, tmp_path):
    """How often a file was read; the clock is a minute ahead, so that files seem to have been left alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    counted = []
    real = file_memory.inspect
    monkeypatch.setattr(file_memory, "inspect", lambda stream: counted.append(1) or real(stream))
    now = file_memory.time.time_ns()
    monkeypatch.setattr(file_memory.time, "time_ns", lambda: now + 60 * 10**9)
    return counted


def member(path):
    with open(path, "rb") as stream, FileMemory() as memory:
        return memory.member(stream)


def test_a_file_is_read_once_until_it_changes(reads, tmp_path):
    path = tmp_path / "bridge"
    path.write_bytes(ELF)
    first = member(path)
    assert member(path) == first == (hashlib.sha256(ELF).hexdigest(), "x86_64", len(ELF))
    assert len(reads) == 1
    with open(path, "rb") as stream, FileMemory() as memory:
        assert memory.sha256(stream) == first.sha256
    path.write_bytes(b"text, no ELF file at all")
    assert member(path) is None and member(path) is None
    assert len(reads) == 2


def test_a_file_that_changed_just_now_is_not_remembered(reads, tmp_path, monkeypatch):
    path = tmp_path / "bridge"
    path.write_bytes(ELF)
    monkeypatch.setattr(file_memory.time, "time_ns", lambda: os.stat(path).st_ctime_ns)
    member(path)
    member(path)
    assert len(reads) == 2


@pytest.mark.parametrize("content", ["", "[]", '{"%s": 3}'])
def test_a_damaged_memory_is_passed_over(reads, tmp_path, content):
    path = tmp_path / "bridge"
    path.write_bytes(ELF)
    with open(os.path.join(cache_dir(), "files.json"), "w") as stream:
        stream.write(content.replace("%s", str(path)))
    assert member(path).machine == "x86_64"
