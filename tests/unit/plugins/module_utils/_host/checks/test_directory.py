# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.usable import Binaries
from ansible_collections.podwire.cni.plugins.module_utils._host.checks.directory import directory_problems
from ansible_collections.podwire.cni.plugins.module_utils._host.checks.view import ConfView
from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import sort_key
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest

LO = {"type": "loopback"}


@pytest.fixture
def check(directory, tmp_path):
    def run(before=(), wanted=(), managed=(), after=None):
        files = directory.files if after is None else after
        files = sorted(files, key=lambda file: sort_key(file.name))
        view = ConfView(directory.path, list(before), files, set(managed), set(wanted))
        binaries = Binaries([str(tmp_path)], HostView(Manifest(str(tmp_path / "state"))))
        return directory_problems(view, binaries)

    return run


def found(problems):
    return [(entry.level, entry.code, entry.file) for entry in problems]


def test_a_clean_directory_has_no_problems(directory, check):
    before = [directory.add("a", LO)]
    directory.add("b", LO, name="20-b.conflist")
    assert check(before, wanted=["20-b.conflist"], managed=["10-a.conflist"]) == []


def test_another_network_in_front_is_a_flip(directory, check):
    before = [directory.add("podman", LO, name="87-podman.conflist")]
    directory.add("a", LO)
    (problem,) = check(before, wanted=["10-a.conflist"])
    assert found([problem]) == [("warning", "order_flip", "/net.d/10-a.conflist")]
    assert all(word in problem.message for word in ("87-podman.conflist", "'podman'", "'a'", "priority"))


def test_a_flip_by_a_network_that_goes_needs_no_priority(directory, check):
    going, staying = directory.add("a", LO), directory.add("podman", LO, name="87-podman.conflist")
    (problem,) = check([going, staying], after=[staying])
    assert found([problem]) == [("warning", "order_flip", "/net.d/87-podman.conflist")]
    assert "priority" not in problem.message


def test_a_flip_is_seen_as_text_and_by_network(directory, check):
    before = [directory.add("a", LO, name="20-a.conflist")]
    directory.add("b", LO, name="100-b.conflist")
    assert found(check(before)) == [("warning", "order_flip", "/net.d/100-b.conflist")]
    again = directory.add("a", LO, name="10-a.conflist")
    assert check(before, after=[again]) == []
    assert check(after=[again]) == []
    assert check(before, after=[]) == []


def test_a_file_without_a_network_is_no_first_one(directory, check):
    broken = directory.put("05-broken.conflist", b"{")
    network = directory.add("a", LO)
    assert "order_flip" not in [problem.code for problem in check([broken], after=[network])]
    assert "order_flip" not in [problem.code for problem in check([network], after=[broken, network])]


def test_another_name_in_the_first_file_is_a_flip_of_the_name(directory, check):
    before = [directory.add("a", LO, name="main.conflist")]
    after = [directory.add("b", LO, name="main.conflist")]
    (problem,) = check(before, wanted=["main.conflist"], after=after)
    assert (problem.code, problem.pointer) == ("name_flip", "/name")
    assert all(word in problem.message for word in ("'a'", "'b'", "detach"))


def test_one_name_in_two_files_is_reported_at_the_second(directory, check):
    directory.add("a", LO)
    directory.add("a", LO, name="20-a.conflist")
    assert found(check(directory.files)) == [("warning", "duplicate_name", "/net.d/20-a.conflist")]


@pytest.mark.parametrize("single", ["05-a.conf", "20-a.json"])
def test_one_network_as_list_and_single_plugin(directory, check, single):
    directory.add("a", LO)
    directory.add("a", LO, name=single)
    problems = [entry for entry in check(directory.files) if entry.level == "warning"]
    assert found(problems) == [("warning", "conf_and_conflist", "/net.d/" + single)]
    first = min("10-a.conflist", single)
    assert f"loads the conflist (10-a.conflist); by order, runtimes load {first}," in problems[0].message


def test_drop_ins_are_told_of_whoever_has_the_list(tmp_path, directory, check):
    directory.path = str(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "50-x.conf").write_text('{"type": "loopback"}')
    directory.add("a", LO)
    path = str(tmp_path / "a" / "50-x.conf")
    assert found(check(directory.files, wanted=["10-a.conflist"])) == [("warning", "drop_in", path)]
    assert found(check(directory.files)) == [("info", "drop_in", path)]
    (tmp_path / "a" / "50-x.conf").write_text("{")
    directory.files[0].folder = None
    assert found(check(directory.files, wanted=["10-a.conflist"])) == [("error", "drop_in_broken", path)]
    assert found(check(directory.files)) == [("warning", "drop_in_broken", path)]
