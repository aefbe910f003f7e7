# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


def test_a_check_warns_about_runtimes_that_are_not_installed_yet(host, configurations):
    before = configurations()
    runtimes = ["containerd", "crio", "nomad", "podman"]
    predicted = host.run("cni_conf", networks=[], runtime=runtimes, configure={"state": "present"}, check_mode=True)
    assert predicted["changed"]
    assert [entry["action"] for entry in predicted["configured"]] == ["configured"] * 4
    assert len([warning for warning in predicted["warnings"] if "missing_runtime" in warning]) == 4
    assert configurations() == before


def test_a_run_refuses_a_runtime_that_is_not_installed(host, configurations):
    before = configurations()
    refused = host.fail("cni_conf", networks=[], runtime=["crio"], configure={"state": "present"})
    assert refused["code"] == "missing_runtime"
    assert configurations() == before
