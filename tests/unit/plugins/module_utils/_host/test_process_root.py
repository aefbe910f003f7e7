# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import os
import subprocess

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.process_root import ProcessRoot
from ansible_collections.podwire.cni.plugins.module_utils._host.processes import Process, open_root


@pytest.fixture
def root(tmp_path):
    """A root directory with files, beside one that is outside of it."""
    (tmp_path / "secret").write_text("outside")
    top = tmp_path / "root"
    for folder in ("bin", "etc/deep", "loop"):
        (top / folder).mkdir(parents=True)
    (top / "etc" / "file").write_text("inside")
    links = {
        "bin/absolute": "/etc/file",
        "bin/relative": "../etc/file",
        "bin/above": "../../../../etc/file",
        "bin/through": "/etc/deep/../file",
        "bin/twice": "absolute",
        "bin/outside": f"{tmp_path}/secret",
        "bin/escape": "../../secret",
        "bin/file-as-folder": "/etc/file/x",
        "bin/loop": "/loop/a",
        "loop/a": "b",
        "loop/b": "a",
        "etc/here": "/bin",
        "top": "/",
    }
    for name, target in links.items():
        (top / name).symlink_to(target)
    os.mkfifo(top / "etc" / "pipe")
    descriptor = os.open(top, os.O_PATH | os.O_DIRECTORY)
    before = len(os.listdir("/proc/self/fd"))
    yield ProcessRoot(descriptor)
    assert len(os.listdir("/proc/self/fd")) <= before, "a file descriptor leaked"
    os.close(descriptor)


DEAD = ["escape", "file-as-folder", "loop", "outside"]


@pytest.mark.parametrize("name", ["absolute", "relative", "above", "through", "twice"])
def test_links_lead_to_files_below_the_root(root, name):
    for folder in ("/bin", "bin", "/../bin/.", "/etc/here", "//top/top/bin"):
        assert root.read(f"{folder}/{name}", 100) == b"inside"


@pytest.mark.parametrize(("name", "code"), [*zip(DEAD, (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENOENT))])
def test_and_to_nothing_outside_of_it(root, name, code):
    with pytest.raises(OSError) as caught:
        root.read(f"/bin/{name}", 100)
    assert caught.value.errno == code


@pytest.mark.parametrize("folder", ["/bin", "/etc/here"])
def test_dead_links_are_listed(root, folder):
    assert sorted(root.dead_links(folder)) == DEAD
    assert root.dead_links(folder)["escape"] == "../../secret"


def test_a_directory_below_is_a_root_of_its_own(root):
    with root.below("/etc") as inner:
        assert inner.read("/deep/../../file", 100) == b"inside"
        assert inner.dead_links("/") == {"here": "/bin"}


@pytest.mark.parametrize(("path", "largest"), [("/etc/pipe", 100), ("/etc/file", 3), ("/etc", 100), ("/gone", 100)])
def test_only_small_files_are_read(root, path, largest):
    with pytest.raises(OSError):
        root.read(path, largest)


def test_the_root_of_a_process(root):
    descriptor = open_root(Process(os.getpid()))
    assert os.path.samestat(os.fstat(descriptor), os.stat("/"))
    os.close(descriptor)
    with subprocess.Popen("cat", stdin=subprocess.PIPE, preexec_fn=lambda: os.setuid(65534)) as users:
        for pid in (users.pid, 2**22 + 1):
            with pytest.raises(OSError):
                open_root(Process(pid))
