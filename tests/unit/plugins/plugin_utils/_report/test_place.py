# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._report.artifact import goes_with_the_container

PODMAN, POD = {"container": "podman"}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
AWX = {"AWX_HOST": "https://awx.example.org"}


@pytest.mark.parametrize(
    ("path", "environment", "files", "mounts", "expected"),
    [
        ("/home/ops/cni-report", {}, [], [], False),
        # A variable of AWX's command line, outside of a container.
        ("/home/ops/cni-report", AWX, [], [], False),
        ("/runner/project/cni-report", PODMAN, [], [], True),
        ("/runner/project/cni-report", POD, [], [], True),
        ("/runner/project/cni-report", {}, ["/run/.containerenv"], [], True),
        ("/runner/project/cni-report", {}, ["/.dockerenv"], [], True),
        # ansible-runner and ansible-navigator mount directories of the user.
        ("/runner/project/cni-report", PODMAN, [], ["/runner"], False),
        ("/home/ops/cni-report", PODMAN, [], ["/home/ops"], False),
        ("/runner/project/cni-report", {**POD, **AWX}, [], ["/runner"], True),
        ("/runner/reports/cni", {**POD, **AWX}, [], ["/runner", "/runner/reports"], False),
        ("/srv/cni", {**PODMAN, **AWX}, [], ["/runner", "/srv"], False),
        ("/", PODMAN, [], ["/"], True),
    ],
)
def test_only_volumes_outlive_a_container(path, environment, files, mounts, expected):
    files = {*files, "/runner"}
    assert goes_with_the_container(path, environment, files.__contains__, mounts.__contains__) is expected
    # Other containers are places where people work.
    assert not goes_with_the_container(path, environment, (files - {"/runner"}).__contains__, mounts.__contains__)
