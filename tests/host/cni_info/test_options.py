# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest


def test_a_host_without_cni(site, gather):
    info = gather()
    assert info["conf"] == []
    assert info["plugins"] == []
    assert info["attachments"] == []
    assert info["leases"] == []
    assert info["kernel"]["attachments"] == []
    assert [link["mtu"] for link in info["kernel"]["links"] if link["name"] == "lo"] == [65536]
    assert info["problems"] == []
    assert list(site.work.iterdir()) == []


@pytest.mark.parametrize(
    "options, code",
    [
        ({"conf_dir": "net.d"}, "path_not_absolute"),
        ({"cache_dir": "/var/lib/../cni"}, "path_not_clean"),
        ({"bin_dirs": ["/opt/cni/bin", "bin"]}, "path_not_absolute"),
        ({"bin_dirs": []}, "no_bin_dir"),
    ],
)
def test_bad_directories_are_refused(site, state, options, code):
    site.host.refuse("cni_info", state, code, **options)


def test_a_link_to_a_directory_is_not_followed(site, work):
    (work / "net.d").symlink_to(work)
    odd = site.run("cni_info", gather=["conf"], conf_dir=f"{work}/net.d")
    assert odd["conf"] == []
    assert [problem["code"] for problem in odd["problems"]] == ["path_is_link"]


def test_a_file_is_no_directory(site, work):
    (work / "net.d").touch()
    odd = site.run("cni_info", gather=["conf"], conf_dir=f"{work}/net.d")
    assert odd["conf"] == []
    assert [problem["code"] for problem in odd["problems"]] == ["no_directory"]
