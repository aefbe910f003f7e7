# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

BROKEN = [
    "71-list.json",
    "81-nowhere.conflist",
    "82-pipe.conflist",
    "85-huge.conflist",
    "88-kubeconfig.conf",
    "99-broken.conflist",
]


@pytest.fixture(scope="module")
def info(foreign_conf, gather):
    return gather()


@pytest.fixture(scope="module")
def conf(info, site):
    """The rows by the names of the files."""
    return {str(Path(row["path"]).relative_to(site.conf_dir)): row for row in info["conf"]}


def test_every_file_that_a_runtime_reads_has_a_row_in_its_order(conf, info):
    assert len(conf) == len(info["conf"])
    assert [(name, row["network"], row["managed_as"]) for name, row in conf.items()] == [
        ("10-pwi.conflist", "pwi", "pwi"),
        ("10-pwiptp.conflist", "pwiptp", "pwiptp"),
        ("20-pwiedit.conflist", "pwiedit", "pwiedit"),
        ("50-other.conf", "pwiother", ""),
        ("60-list.conflist", "pwilist", ""),
        ("70-single.json", "pwisingle", ""),
        ("71-list.json", "", ""),
        ("80-link.conflist", "pwilinked", ""),
        ("81-nowhere.conflist", "", ""),
        ("82-pipe.conflist", "", ""),
        ("85-huge.conflist", "", ""),
        ("88-kubeconfig.conf", "", ""),
        ("99-broken.conflist", "", ""),
    ]
    assert [row["network"] for row in info["conf"] if row["managed"]] == ["pwi", "pwiptp", "pwiedit"]
    assert [row["network"] for row in info["conf"] if row["edited"]] == ["pwiedit"]
    assert [name for name, row in conf.items() if row["link"]] == ["80-link.conflist", "81-nowhere.conflist"]
    assert [row["owner"] for row in info["conf"] if row["owner"]] == ["Calico"]
    assert info["aside"] == []


def test_a_managed_network_is_shown_as_it_was_configured(conf, networks, site):
    pwi = conf["10-pwi.conflist"]
    assert pwi["config"] == {**networks[0]["conflist"], "name": "pwi"}
    assert pwi["plugins"] == ["bridge", "host-local", "portmap"]
    assert pwi["cni_version"] == "1.0.0"
    assert pwi["sha256"] == hashlib.sha256((site.conf_dir / "10-pwi.conflist").read_bytes()).hexdigest()
    assert pwi["mode"] == "0644"
    assert pwi["uid"] == 0


def test_secrets_of_a_foreign_network_are_hidden(conf):
    calico = conf["50-other.conf"]
    assert calico["kind"] == "conf"
    assert calico["owner"] == "Calico"
    assert calico["plugins"] == ["calico", "calico-ipam"]
    assert calico["mode"] == "0640"
    assert calico["config"]["etcd_password"] == "********"
    assert calico["config"]["policy"]["k8s_auth_token"] == "********"
    assert calico["config"]["etcd_key_file"] == "/etc/calico/key.pem"
    assert calico["config"]["kubernetes"]["kubeconfig"] == "/etc/cni/net.d/calico-kubeconfig"


def test_a_network_lists_the_plugins_that_its_directory_adds(conf, site):
    assert conf["60-list.conflist"]["drop_ins"] == [
        f"{site.conf_dir}/pwilist/10-more.conf",
        f"{site.conf_dir}/pwilist/20-broken.conf",
    ]


def test_broken_files_are_reported(conf, info, site):
    assert [name for name, row in conf.items() if row["error"]] == BROKEN
    problems = [problem for problem in info["problems"] if problem["code"] == "bad_config"]
    files = [f"{site.conf_dir}/{name}" for name in [*BROKEN, "pwilist/20-broken.conf"]]
    assert sorted(problem["file"] for problem in problems) == sorted(files)
    assert {problem["level"] for problem in problems} == {"error"}
    broken = conf["99-broken.conflist"]
    assert broken["config"] is None
    assert len(broken["sha256"]) == 64


def test_a_kubeconfig_is_not_even_digested(conf):
    kubeconfig = conf["88-kubeconfig.conf"]
    assert kubeconfig["config"] is None
    assert kubeconfig["sha256"] == ""
    assert "kubeconfig" in kubeconfig["error"]
