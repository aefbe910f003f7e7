# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import multiprocessing
import os
import time
from pathlib import Path

import pytest
from ansible.utils.display import Display

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.plugin_utils import archive_cache

BODY = b"archive"
SUM = "sha256:" + hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    """The URLs that were fetched, one a line, also by other processes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    log = tmp_path / "log"
    log.write_text("")

    def fetch(url, target):
        with open(log, "a") as stream:
            stream.write(url + "\n")
        # Long enough for the other processes to come to the same point.
        time.sleep(0.2)
        target.write(BODY)

    monkeypatch.setattr(archive_cache, "fetch", fetch)
    return log


def test_it_is_fetched_once_for_all_processes(fetched):
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=archive_cache.obtain, args=("https://h/a", SUM)) for dummy in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    path = archive_cache.obtain("https://h/a", SUM)
    assert Path(path).read_bytes() == BODY
    assert fetched.read_text() == "https://h/a\n"


def test_a_damaged_copy_is_fetched_again(fetched):
    path = archive_cache.obtain("https://h/a", SUM)
    Path(path).write_bytes(b"damaged")
    archive_cache.obtain("https://h/a", SUM)
    assert Path(path).read_bytes() == BODY


def test_a_wrong_checksum_leaves_nothing(fetched):
    with pytest.raises(HostError) as caught:
        archive_cache.obtain("https://h/a?token=secret", "sha256:" + "0" * 64)
    assert caught.value.code == "checksum_mismatch" and "secret" not in caught.value.msg
    assert [name for name in os.listdir(archive_cache.cache_dir()) if not name.endswith(".lock")] == []


def test_the_directory_is_private(fetched, tmp_path, monkeypatch):
    assert os.stat(archive_cache.cache_dir()).st_mode & 0o777 == 0o700
    os.chmod(archive_cache.cache_dir(), 0o755)
    with pytest.raises(HostError) as caught:
        archive_cache.obtain("https://h/a", SUM)
    assert caught.value.code == "unsafe_permissions"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert archive_cache.cache_dir() == str(tmp_path / "home" / ".cache" / "podwire.cni")


def test_a_download_is_shown_and_what_is_there_is_not(fetched, monkeypatch):
    shown = []
    monkeypatch.setattr(Display, "display", lambda self, text: shown.append(text))
    archive_cache.obtain("https://user:secret@h/a", SUM)
    archive_cache.obtain("https://user:secret@h/a", SUM)
    assert [text.rpartition(" in ")[0] or text for text in shown] == [
        "podwire.cni: downloading https://h/a",
        "podwire.cni: received 0.0 MB",
    ]


def test_a_long_download_says_how_far_it_is(fetched, monkeypatch):
    shown = []
    monkeypatch.setattr(Display, "display", lambda self, text: shown.append(text))
    monkeypatch.setattr(archive_cache, "_PAUSE", 0)
    monkeypatch.setattr(archive_cache, "fetch", lambda url, target: [target.write(part) for part in (b"arc", b"hive")])
    archive_cache.obtain("https://h/a", SUM)
    assert len(shown) == 4
