# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The section runtime, with a program that stands for CRI-O and never runs; Debian has no package of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.cni_host.conftest import brief, network, steps
from ansible_collections.podwire.cni.tests.host.host import sh

pytestmark = pytest.mark.parametrize("generation", ["new"], indirect=True)
CRIO = Path("/etc/crio")
CONFIGURED = {"runtime": ["crio"], "configure": {"state": "present"}}


@pytest.fixture(autouse=True)
def _crio(generation):
    sh("mount -t tmpfs -o mode=0755 podwire-crio /usr/local/sbin")
    shutil.copy("/bin/true", "/usr/local/sbin/crio")
    (CRIO / "crio.conf.d").mkdir(parents=True)
    (CRIO / "crio.conf").write_text('[crio.network]\nnetwork_dir = "/etc/cni/net.d"\n')
    yield
    shutil.rmtree(CRIO)
    sh("umount /usr/local/sbin")


@pytest.fixture
def host(host, work):
    """A host whose networks are where CRI-O does not look by itself."""
    return host.with_defaults(conf_dir=f"{work}/net.d")


def drop_ins():
    return sorted(path.name for path in (CRIO / "crio.conf.d").iterdir())


def test_settings_follow_the_networks_and_go_before_them(change, desired, absent):
    made = change(**desired, runtime=CONFIGURED).run
    sections = list(dict.fromkeys(step["section"] for step in made["plan"]))
    assert sections == ["plugins", "networks", "runtime", "netns", "attachments"]
    assert [row["action"] for row in made["runtime"]["configured"]] == ["configured"]
    assert [row["network"] for row in made["runtime"]["effective"]] == ["pwhapps"]
    assert len(drop_ins()) == 1

    gone = change(**absent, runtime={**CONFIGURED, "configure": {"state": "absent"}}).run
    sections = list(dict.fromkeys(step["section"] for step in gone["plan"]))
    assert sections == ["attachments", "netns", "runtime", "networks", "plugins"]
    assert drop_ins() == []


def test_networks_that_are_refused_leave_the_runtime_as_it_is(fail, host, work, desired):
    (work / "net.d").mkdir()
    (work / "net.d" / "10-pwhapps.conflist").write_text("{}")
    _check, run = fail({"networks": "foreign_file"}, **desired, runtime=CONFIGURED)
    assert {step["section"] for step in run["plan"]} == {"plugins", "netns"}
    assert run["left"]
    assert drop_ins() == []


def test_networks_that_are_left_leave_the_runtime_as_it_is(host, desired):
    host.run("cni_host", **desired)
    desired["networks"]["networks"][0] = network("pwhapps", 43)
    check = host.run("cni_host", check_mode=True, classes=["safe"], **desired, runtime=CONFIGURED)
    run = host.run("cni_host", classes=["safe"], **desired, runtime=CONFIGURED)
    assert steps(check) == steps(run) == []
    assert [row["action"] for row in run["runtime"]["configured"]] == ["left"]
    assert ("networks", "write", "10-pwhapps.conflist") not in brief(run)
    assert drop_ins() == []
