# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

"""Archives that must not be installed."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, b""


def regular(name, content):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), 0o755
    return info, content


@pytest.fixture
def write(work, new):
    """Return a function that writes an archive of a good plugin and one more member, and returns its path."""
    good = Path(new, "loopback").read_bytes()

    def make(member):
        path = work / "plugins.tgz"
        with tarfile.open(path, "w:gz", compresslevel=1) as tar:
            for info, content in (regular("./loopback", good), member(good)):
                tar.addfile(info, io.BytesIO(content))
        return path

    return make


MEMBERS = {
    "symlink": ("bad_archive", lambda good: special("./ptp", tarfile.SYMTYPE, "/etc/shadow")),
    "hardlink": ("bad_archive", lambda good: special("./ptp", tarfile.LNKTYPE, "./loopback")),
    "device": ("bad_archive", lambda good: special("./null", tarfile.CHRTYPE)),
    "fifo": ("bad_archive", lambda good: special("./pipe", tarfile.FIFOTYPE)),
    "absolute": ("bad_archive", lambda good: regular("/opt/cni/bin/ptp", good)),
    "dotdot": ("bad_archive", lambda good: regular("./../ptp", good)),
    "twice": ("bad_archive", lambda good: regular("loopback", good)),
    "other_machine": ("wrong_machine", lambda good: regular("./ptp", good[:18] + b"\xb7\x00" + good[20:])),
    "no_plugin": ("plugin_failed", lambda good: regular("./ptp", Path("/bin/true").read_bytes())),
    "truncated_plugin": ("plugin_failed", lambda good: regular("./ptp", good[:4000])),
}
WORDS = {"symlink": "'./ptp' is a link to '/etc/shadow'", "other_machine": "aarch64"}


@pytest.mark.parametrize("remote_src", [False, True], ids=["from_the_controller", "on_the_host"])
@pytest.mark.parametrize("bad", MEMBERS)
def test_an_archive_with_a_bad_member_is_refused_as_a_whole(host, bin_dir, write, bad, remote_src):
    code, member = MEMBERS[bad]
    refused = host.fail("cni_plugins", src=str(write(member)), remote_src=remote_src)
    assert refused["code"] == code, refused["msg"]
    assert WORDS.get(bad, "") in refused["msg"]
    assert list(bin_dir.rglob("*")) == []


@pytest.mark.parametrize("remote_src", [False, True], ids=["from_the_controller", "on_the_host"])
def test_a_text_is_not_an_archive(host, bin_dir, work, remote_src):
    archive = work / "plugins.tgz"
    archive.write_text("not found\n" * 100)
    assert host.fail("cni_plugins", src=str(archive), remote_src=remote_src)["code"] == "bad_source"
    assert list(bin_dir.rglob("*")) == []
