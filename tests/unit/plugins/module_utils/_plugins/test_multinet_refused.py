# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What podwire-multinet refuses before the first ADD."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import netns as links

from .conftest import NETWORKS, POD_ANNOTATIONS


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        ("storage,nope", f"annotation {NETWORKS}, /1: there is not a NetworkAttachmentDefinition default/nope"),
        ('[{"name": "storage"', f"annotation {NETWORKS}, line 1:20: unexpected end of JSON input"),
        ('[{"name": "../storage"}]', f'annotation {NETWORKS}, /0/name: "../storage" is not a name'),
        ('[{"name": "storage", "namespace": ".."}]', f'annotation {NETWORKS}, /0/namespace: ".." is not a name'),
        ('[{"name": "a\\u0000b"}]', f"annotation {NETWORKS}, /0: there is not a NetworkAttachmentDefinition"),
        ("broken", "/0: NetworkAttachmentDefinition default/broken: line 1:2, /spec/config: invalid JSON: "),
        ("unnamed", "metadata/name is"),
        ("noplugin", 'network default/noplugin (net1): failed to find plugin "nosuch"'),
        ("itself", "it runs podwire-multinet again"),
        ("secret/hidden", f"annotation {NETWORKS}, /0/namespace: namespaceIsolation lets pods of default use"),
    ],
)
def test_what_is_refused(world, annotation, words):
    world.nad("broken").write_text(
        json.dumps({"kind": "NetworkAttachmentDefinition", "metadata": {"name": "broken"}, "spec": {"config": "{x"}})
    )
    world.nad("unnamed").write_text(
        json.dumps({"kind": "NetworkAttachmentDefinition", "metadata": {"name": "other"}, "spec": {}})
    )
    world.nad("noplugin", type="nosuch")
    world.nad("itself", type="podwire-multinet")
    os.symlink(world.plugin, world.folder / "bin" / "podwire-multinet")
    world.nad("hidden", "secret")
    error = world.error("ADD", annotation, namespaceIsolation=True)
    assert error["msg"].startswith("pod default/web: ")
    assert words in error["msg"]
    assert (error["code"], error["details"]) == (7, "no network was added")
    world.ok("DEL", annotation, namespaceIsolation=True)
    # What a pod may have had before is deleted, nothing is added.
    assert (world.calls("ADD"), world.left()) == ([], [])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"cniDir": "relative"}, "cniDir: expected an absolute path"),
        ({"nadDir": "/a/../b"}, "nadDir: expected an absolute path"),
        ({"podDir": 5}, "podDir: expected an absolute path"),
        ({"delegates": []}, "there is no network; write delegates or clusterNetwork"),
        ({"delegates": None, "clusterNetwork": "nope"}, "/clusterNetwork: there is not a NetworkAttachmentDefinition"),
        ({"auxiliaryCNIChainName": "x"}, "auxiliaryCNIChainName is not supported"),
        (
            {"args": {"cni": {NETWORKS: 5}}},
            f"annotation {NETWORKS}: expected a text or a list of networks, found number",
        ),
        ({"args": {"cni": ["x"]}}, "/args/cni: expected an object of annotations, found array"),
        ({"runtimeConfig": {"portMappings": [None]}}, "cannot unmarshal null"),
        ({"runtimeConfig": {POD_ANNOTATIONS: "x"}}, "expected an object of annotations, found string"),
    ],
)
def test_configurations_that_are_refused(world, more, words):
    error = world.error("ADD", **more)
    assert (error["code"], words in error["msg"]) == (7, True), error
    world.ok("DEL", **more)
    assert world.calls("ADD") == []


@pytest.mark.parametrize("args", ["A=b", "IgnoreUnknown=1;A=b=c", "IgnoreUnknown=maybe"])
def test_arguments_that_no_plugin_takes(world, args):
    error = world.error("ADD", env={"ARGS": args})
    assert (error["code"], "ARGS: " in error["msg"]) == (7, True)
    world.ok("DEL", env={"ARGS": args})


def test_only_files_of_root_decide_what_runs(world):
    path = world.nad("storage")
    path.chmod(0o666)
    assert f"chmod go-w {path}" in world.error("ADD", "storage")["msg"]
    path.chmod(0o600)
    path.parent.chmod(0o777)
    assert f"chmod go-w {path.parent}" in world.error("ADD", "storage")["msg"]
    path.parent.chmod(0o755)
    world.ok("ADD", "storage")


def test_an_interface_that_exists_already(world):
    with links.inside(world.netns):
        links.make_veth("net2", world.netns, host_name="other")
    error = world.error("ADD", "storage,backup")
    assert "network default/backup: an interface net2 exists" in error["msg"]
    assert (world.calls(), world.left()) == ([], [])
