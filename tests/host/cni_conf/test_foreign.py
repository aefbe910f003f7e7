# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.cni_conf.networks import network
from ansible_collections.podwire.cni.tests.host.host import sh

PODS = '{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "loopback"}]}'


@pytest.fixture
def look(conf_dir):
    """Return a function that lists what is in the directory of the networks."""
    return lambda: sorted(sh(f"find {conf_dir} -mindepth 1 -printf '%P %m %U %s %i %l\\n'").splitlines())


@pytest.fixture
def pods(conf_dir):
    """A network that another program has written."""
    path = conf_dir / "87-pods.conflist"
    path.write_text(PODS)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("entry", "code", "words"),
    [
        (network("pods"), "duplicate_name", ["file: 87-pods.conflist"]),
        ({"name": "pods", "state": "absent"}, "foreign_file", ["force: true"]),
        (network("mine", file="87-pods.conflist"), "file_in_use", ["'pods'"]),
    ],
    ids=["a second network of that name", "its removal", "its file for another network"],
)
def test_an_unmanaged_network_is_respected(refuse, pods, entry, code, words):
    refuse(code, [str(pods), *words], [entry])


def test_a_file_that_a_network_cannot_have_is_replaced_in_one_run_and_comes_back(refuse, change, conf_dir, look):
    path = conf_dir / "10-pods.conf"
    path.write_text('{"cniVersion": "0.4.0", "name": "pods", "type": "loopback"}')
    before = look()
    refuse("duplicate_name", [str(path), "replace: true"], [network("pods")])
    change([network("pods", replace=True)], ["create", "set_aside"], ["created"])
    assert sorted(os.listdir(conf_dir)) == ["10-pods.conf.podwire-aside", "10-pods.conflist"]
    change([{"name": "pods", "state": "restored"}], ["restore", "remove"], ["restored"])
    assert look() == before


def test_only_the_listed_network_stays_and_the_others_come_back(host, change, conf_dir, look, pods):
    (conf_dir / "05-broken.conflist").touch()
    (conf_dir / ".hidden.json").write_text('{"hello": "world"}\n')
    (conf_dir.parent / "target").write_text('{"cniVersion": "0.4.0", "name": "linked", "type": "loopback"}\n')
    (conf_dir / "88-linked.conf").symlink_to("../target")
    (conf_dir / "calico-kubeconfig.conf").write_text("token: not-to-be-read\n")
    (conf_dir / "89-cluster.conf").write_text("apiVersion: v1\nkind: Config\ntoken: not-to-be-read\n")
    (conf_dir / "README").write_text("text\n")
    (conf_dir / "folder.conflist").mkdir()
    (conf_dir / "folder.conflist" / "10-inner.conf").write_text("{\n")
    before = look()
    gone = [".hidden.json", "05-broken.conflist", "87-pods.conflist", "88-linked.conf"]
    aside = [f"{name}.podwire-aside" for name in gone]

    ran = change([network("only")], ["create", *["set_aside"] * 4], ["created"], exclusive=True).run
    # The same files are there, under names that no runtime reads; folders and kubeconfigs have kept theirs.
    after = [line for line in look() if not line.startswith("10-only.conflist ")]
    assert sorted(line.replace(".podwire-aside", "") for line in after) == before
    assert sorted(line.split()[0] for line in after if ".podwire-aside " in line) == aside
    assert (
        sorted(os.path.basename(diff["after"]["path"]) for diff in ran["diff"] if isinstance(diff["after"], dict))
        == aside
    )
    assert {step["class"] for step in ran["actions"][1:]} == {"disruptive"}
    assert "not-to-be-read" not in json.dumps(ran)

    told = host.run("cni_info", gather=["conf"])["aside"]
    assert [entry["network"] for entry in told] == ["", "", "pods", "linked"]
    assert told[2]["path"] == f"{pods}.podwire-aside"
    assert told[2]["original_path"] == str(pods)
    assert not any(entry["managed"] for entry in told)

    wanted = [
        {"name": "pods", "state": "restored"},
        *({"file": name, "state": "restored"} for name in (".hidden.json", "88-linked.conf", "05-broken.conflist")),
        {"name": "never", "state": "restored"},
    ]
    networks = change(wanted, ["restore"] * 4, [*["restored"] * 4, "none"]).run["networks"]
    assert [line for line in look() if not line.startswith("10-only.conflist ")] == before
    assert [entry["name"] for entry in networks] == ["pods", "", "linked", "", "never"]
    assert networks[0]["path"] == str(pods)
    assert networks[4]["path"] is None


STATUS = """
Package: podman-test
Status: install ok installed
Maintainer: nobody <nobody@example.org>
Architecture: all
Version: 4.3.1+ds1-8
Description: test
"""


@pytest.fixture
def package(conf_dir, work):
    """A network of a package."""
    path = conf_dir / "87-podman.conflist"
    path.write_text(PODS.replace("pods", "podman"))
    status, contents = Path("/var/lib/dpkg/status"), Path("/var/lib/dpkg/info/podman-test.list")
    shutil.copy2(status, work / "status")
    try:
        with status.open("a") as stream:
            stream.write(STATUS)
        contents.write_text(f"{path}\n")
        yield path
    finally:
        shutil.copy2(work / "status", status)
        contents.unlink(missing_ok=True)


def test_the_package_of_a_file_is_named_before_it_is_set_aside(host, package):
    planned = host.run("cni_conf", check_mode=True, exclusive=True, networks=[network("only", priority=99)])
    (found,) = [entry for entry in planned["problems"] if entry["code"] == "package_file"]
    assert found["file"] == str(package)
    assert found["level"] == "warning"
    assert re.search(r"package podman-test 4\.3\.1\+ds1-8.*containers\.conf", found["message"])
