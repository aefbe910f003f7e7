# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook explain: what it prints, and which hosts fail."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

K0S = Path("/etc/k0s")
CONFIGURED = """\
version = 2
[plugins."io.containerd.grpc.v1.cri".cni]
conf_dir = "/etc/cni/nobody.d"
"""


@pytest.fixture
def node(controller):
    return controller({"all": {"hosts": {"node": {"ansible_connection": "local"}}}})


@pytest.fixture
def stopped():
    """A k0s that is installed, but does not run."""
    K0S.mkdir()
    (K0S / "containerd.toml").write_text(CONFIGURED)
    yield
    shutil.rmtree(K0S)


def test_a_host_without_a_runtime(node):
    run = node.run("explain", real=True)
    assert "info: no runtime that uses CNI was found on this host [missing_runtime]" in run.stdout
    assert re.search("(?m)^node .* failed=0 ", run.stdout)


@pytest.mark.usefixtures("stopped")
def test_a_runtime_that_does_not_run_comes_before_its_directory(node):
    run = node.run("explain", status=2)
    assert "error: k0s is installed, but does not run [not_running]" in run.stdout
    assert re.search(r"(?s)not_running\].*no_network\]", run.stdout)
    assert "systemctl start k0s" in run.stdout
    node.run("explain", cni_explain_fail="never")


def test_a_level_that_does_not_exist_is_refused(node):
    refused = node.run("explain", status=2, cni_explain_fail="often")
    assert "its values, which are error, warning, never" in refused.stdout
