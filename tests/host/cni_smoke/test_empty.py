# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest


@pytest.mark.parametrize("conf_dir", ["net.d", "nowhere"])
def test_a_directory_without_networks(host, work, conf_dir):
    empty = host.run("cni_smoke", conf_dir=str(work / conf_dir))
    assert not empty["changed"]
    assert empty["networks"] == []


def test_a_network_that_does_not_exist(host):
    # An earlier task may be about to configure it.
    assert host.run("cni_smoke", networks=["nobody"], check_mode=True)["networks"] == []
    refused = host.fail("cni_smoke", networks=["nobody"])
    assert refused["code"] == "missing_network"
    assert "nobody" in refused["msg"]


def test_a_network_whose_plugin_does_not_exist(host, write, work):
    write(10, "pwsnone", [{"type": "bridge"}])
    nowhere = [str(work / "nowhere")]
    checked = host.run("cni_smoke", bin_dirs=nowhere, check_mode=True)
    assert checked["networks"][0]["status"] == "planned"
    missing = host.fail("cni_smoke", bin_dirs=nowhere)
    assert missing["code"] == "smoke_failed"
    assert missing["networks"][0]["error"]["code"] == "missing_plugin"


def test_a_file_that_is_not_json(host, work):
    (work / "net.d" / "10-pwsnone.conflist").write_text('{"cniVersion": "1.0.0", "name": "pwsnone", "plugins": [}')
    bad = host.fail("cni_smoke")
    assert bad["networks"][0]["error"]["code"] == "bad_config"
    assert "10-pwsnone.conflist" in bad["msg"]
