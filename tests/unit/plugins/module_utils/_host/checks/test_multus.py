# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.checks.directory import (
    check_plugins,
    directory_problems,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError

BRIDGE = {"type": "bridge"}
PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}
PODS = {"cniVersion": "1.0.0", "name": "pods", "plugins": [BRIDGE]}


class Installed:
    """Plugin directories in which only bridge is, at two versions."""

    def ask(self, plugin):
        if plugin != "bridge":
            raise HostError(f"there is no {plugin}", code="missing_plugin")
        return f"/opt/cni/bin/{plugin}", ["0.4.0", "1.0.0"]


def multus_problems(view):
    """Return those of the directory that are about Multus."""
    return [problem for problem in directory_problems(view, Installed()) if problem.code.startswith("multus_")]


def multus(directory, name="00-multus.conflist", network="m", **keys):
    return directory.add(network, {"type": "multus", **keys}, name=name)


@pytest.fixture
def found(directory, codes):
    """Return level, code, file name and pointer of the problems."""

    def run(**options):
        every = codes(multus_problems(directory.view(**options)))
        return [(level, code, path.rpartition("/")[2], pointer) for level, code, path, pointer in every]

    return run


def test_multus_alone_with_its_networks_is_as_it_has_to_be(directory, found):
    multus(directory, delegates=[PODS, {"cniVersion": "1.0.0", "name": "b", "type": "macvlan"}])
    assert found() == []


def test_a_directory_without_multus_is_none_of_its_business(directory, found):
    directory.add("a", BRIDGE)
    directory.add("b", BRIDGE)
    assert found() == []


def test_a_network_beside_multus_is_what_runtimes_fall_back_to(directory, found):
    multus(directory, delegates=[PODS])
    directory.add("pods", BRIDGE)
    assert found() == [("warning", "multus_fallback", "00-multus.conflist", "")]
    assert found(wanted=["10-pods.conflist"]) == [("info", "multus_fallback", "00-multus.conflist", "")]


def test_a_network_before_multus_hides_it(directory, found):
    multus(directory, name="20-multus.conflist", delegates=[PODS])
    directory.add("pods", BRIDGE)
    assert found() == [("warning", "multus_not_first", "20-multus.conflist", "")]


def test_two_of_multus(directory, found):
    multus(directory, name="00-multus.conf", delegates=[PODS])
    multus(directory, name="05-multus.conflist", network="n", delegates=[PODS])
    assert found(wanted=["05-multus.conflist"]) == [("warning", "multus_twice", "05-multus.conflist", "")]


def test_capabilities_that_multus_does_not_declare(directory, found):
    chain = {**PODS, "plugins": [BRIDGE, PORTMAP]}
    multus(directory, delegates=[PODS, chain])
    at = "/plugins/0/delegates/1"
    assert found() == [("warning", "multus_capabilities", "00-multus.conflist", at)]
    directory.files.clear()
    multus(directory, delegates=[PODS, chain], capabilities={"portMappings": True})
    assert found() == []


def test_a_version_that_is_not_that_of_multus(directory, found):
    multus(directory, delegates=[PODS, {"name": "old", "type": "bridge", "cniVersion": "0.3.1"}])
    assert found() == [("warning", "multus_version", "00-multus.conflist", "/plugins/0/delegates/1")]


def test_podwire_multinet_answers_in_its_own_version(directory, found):
    old = {"name": "old", "type": "bridge", "cniVersion": "0.3.1", "capabilities": {"mac": True}}
    multus(directory, type="podwire-multinet", delegates=[PODS, old])
    assert [row[1] for row in found()] == ["multus_capabilities"]


def test_multus_that_runs_itself(directory, found):
    multus(directory, delegates=[{**PODS, "plugins": [{"type": "multus", "delegates": [PODS]}]}])
    assert found() == [("error", "multus_loop", "00-multus.conflist", "/plugins/0/delegates/0")]
    directory.files.clear()
    multus(directory, clusterNetwork="/net.d/00-multus.conflist")
    assert found() == [("error", "multus_loop", "00-multus.conflist", "/plugins/0/clusterNetwork")]


def test_the_first_file_of_its_own_directory_is_multus_itself(tmp_path, directory, found):
    directory.path = str(tmp_path)
    multus(directory, clusterNetwork=str(tmp_path))
    assert [code for _level, code, _file, _pointer in found()] == ["multus_loop"]


def test_the_file_of_the_cluster_network_is_read(tmp_path, directory, found):
    (tmp_path / "10-pods.conflist").write_text(json.dumps({**PODS, "plugins": [BRIDGE, PORTMAP]}))
    for target in (f"{tmp_path}/10-pods.conflist", str(tmp_path)):
        directory.files.clear()
        multus(directory, clusterNetwork=target)
        assert found() == [("warning", "multus_capabilities", "00-multus.conflist", "/plugins/0/clusterNetwork")]


def test_multus_that_points_at_a_file_that_goes(directory, codes):
    gone = directory.add("pods", BRIDGE)
    directory.files.clear()
    file = directory.add("m", {"type": "multus", "clusterNetwork": "/net.d/10-pods.conflist"}, name="00-multus.conf")
    (problem,) = multus_problems(directory.view(wanted=[], before=[gone, file]))
    assert (problem.level, problem.code, problem.pointer) == ("warning", "multus_target_missing", "/clusterNetwork")
    assert [entry.level for entry in multus_problems(directory.view(wanted=[]))] == ["info"]
    directory.files.append(gone)
    assert [entry.code for entry in multus_problems(directory.view(wanted=[]))] == ["multus_fallback"]


def test_multus_may_point_at_a_network_by_name_or_elsewhere(tmp_path, directory, found):
    (tmp_path / "10-pods.conflist").write_text(json.dumps(PODS))
    for target in ("pods", f"{tmp_path}/10-pods.conflist"):
        directory.files.clear()
        multus(directory, clusterNetwork=target)
        assert found() == []
    directory.files.clear()
    multus(directory, clusterNetwork="/elsewhere/10-pods.conflist")
    assert found() == [("warning", "multus_target_missing", "00-multus.conflist", "/plugins/0/clusterNetwork")]


def test_plugins_of_the_networks_have_to_be_there(directory):
    chain = {"cniVersion": "1.1.0", "name": "x", "plugins": [BRIDGE, PORTMAP]}
    file = multus(directory, delegates=[PODS, chain, "text"])
    found = list(check_plugins(Installed(), [file], tolerate_missing=False))
    assert [(entry.level, entry.code, entry.pointer) for entry in found] == [
        ("error", "missing_plugin", "/plugins/0/type"),
        ("error", "missing_plugin", "/plugins/0/delegates/1/plugins/1/type"),
        ("error", "unsupported_by_plugin", "/plugins/0/delegates/1/plugins/0/type"),
    ]
    assert [entry.level for entry in check_plugins(Installed(), [file], tolerate_missing=True)][:2] == ["warning"] * 2
    single = directory.add("m", {"type": "multus", "delegates": [{"type": "nope"}]}, name="00-multus.conf")
    found = check_plugins(Installed(), [single], False)
    assert [entry.pointer for entry in found] == ["/type", "/delegates/0/type"]


@pytest.mark.parametrize("delegates", [None, {}, "x", [None, 1, []]])
def test_networks_of_the_wrong_type_are_left_to_the_other_levels(directory, found, delegates):
    file = multus(directory, delegates=delegates)
    assert found() == []
    assert [entry.pointer for entry in check_plugins(Installed(), [file], False)] == ["/plugins/0/type"]
