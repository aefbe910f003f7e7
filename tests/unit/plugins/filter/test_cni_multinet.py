# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.podwire.cni.plugins.filter.networks import FilterModule
from ansible_collections.podwire.cni.plugins.module_utils.libcni.multi.configuration import load_multus_conf
from ansible_collections.podwire.cni.plugins.plugin_utils._conf.networks import LEVELS, CheckedNetworks

cni_multinet = FilterModule().filters()["cni_multinet"]

PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}
PODS = {"name": "pods", "priority": 5, "conflist": {"cniVersion": "1.0.0", "plugins": [{"type": "bridge"}, PORTMAP]}}
STORAGE = {"content": '{"cniVersion": "1.0.0", "name": "storage", "type": "macvlan"}'}


def test_the_network_keeps_its_name_and_its_place():
    first, second = cni_multinet([PODS, STORAGE], "pods", {"nadDir": "/n", "capabilities": {"mac": True}})
    assert second == STORAGE
    assert (first["name"], first["priority"], first["conflist"]["name"]) == ("pods", 5, "pods")
    (plugin,) = first["conflist"]["plugins"]
    assert plugin["type"] == "podwire-multinet"
    assert plugin["capabilities"] == {"io.kubernetes.cri.pod-annotations": True, "mac": True, "portMappings": True}
    assert plugin["nadDir"] == "/n"
    conf = load_multus_conf(json.dumps({**plugin, "name": "pods"}).encode())
    assert [(one.network, one.first) for one in conf.delegates] == [("pods", True)]
    checked = CheckedNetworks([first, second], list(LEVELS), lambda _src: ("", b""))
    assert [entry for entry in checked.problems if entry.level == "error"] == []


def test_a_network_without_an_entry_name():
    _first, second = cni_multinet([PODS, STORAGE], "storage")
    assert second["conflist"]["plugins"][0]["delegates"][0]["plugins"][0]["type"] == "macvlan"
    assert "content" not in second


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([PODS], "nope"), "there is no network 'nope'"),
        (([PODS, PODS], "pods"), "there are several networks 'pods'"),
        (([{"name": "pods", "state": "absent"}], "pods"), "would be removed"),
        (([{"name": "pods", "src": "a.conflist"}], "pods"), "a filter reads no files"),
        (([{"name": "pods", "conflist": {"plugins": [{}]}}], "pods"), "type"),
        (([PODS], "pods", {"delegates": []}), "settings: delegates"),
        (([PODS], "pods", {"nadDir": 5}), "nadDir"),
        (([PODS], 5), "expected a list"),
        (("x", "pods"), "expected a list"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(AnsibleFilterError, match="cni_multinet: ") as caught:
        cni_multinet(*arguments)
    assert words in str(caught.value)


def test_unknown_levels_are_refused():
    with pytest.raises(AnsibleFilterError, match="cni_multinet: validate must be a list of 'syntax' and 'schema'"):
        cni_multinet([PODS], "pods", validate=["plugins"])
