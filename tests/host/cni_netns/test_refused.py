# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re

import pytest

from ansible_collections.podwire.cni.tests.host.host import PYTHON, sh


@pytest.mark.parametrize("wanted", ["present", "absent"])
def test_a_directory_is_neither_replaced_nor_removed(refuse, wanted):
    sh("ip netns add pwn-real; mkdir -p /run/netns/pwn-directory/inside")
    names = ["pwn-real", "pwn-new", "pwn-directory"]
    refuse("not_a_namespace", ["/run/netns/pwn-directory", "remove it"], names, wanted)


NAMES = ["../x", "a/b", "/run/netns/web", "", ".", "..", "-x", "a b", "a\nb", "x" * 256, "ö" * 128]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_bad_names_are_refused_before_a_good_one_is_created(host, state, name):
    before = state()
    refused = host.fail("cni_netns", names=["pwn-good", name])
    assert refused["code"] == "bad_netns"
    assert re.search("names.1..*must not be empty", refused["msg"])
    assert state() == before


@pytest.mark.parametrize("check_mode", [False, True])
def test_bad_names_are_refused_before_one_is_removed(host, state, check_mode):
    before = state()
    assert host.fail("cni_netns", names=["../x"], state="absent", check_mode=check_mode)["code"] == "bad_netns"
    assert state() == before


def test_the_same_name_twice(refuse):
    refuse("duplicate_netns", ["names[2]", "pwn-good", "twice"], ["pwn-good", "pwn-other", "pwn-good"])


def test_the_longest_name(host):
    name = "pwn-" + "x" * 251
    assert host.run("cni_netns", names=[name])["changed"]
    assert host.run("cni_netns", names=[name], state="absent")["changed"]


def test_a_python_without_pyroute2(refuse, work):
    sh(f"{PYTHON} -m venv --without-pip {work}/bare")
    python = f"{work}/bare/bin/python"
    refuse("missing_required_lib", ["pyroute2", python], ["pwn-new"], python=python)
