# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.podwire.cni.plugins.filter import networks as module
from ansible_collections.podwire.cni.plugins.module_utils.libcni.multi.configuration import load_multus_conf
from ansible_collections.podwire.cni.plugins.plugin_utils._conf.networks import LEVELS, CheckedNetworks

cni_multus = module.FilterModule().filters()["cni_multus"]

PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}
PODS = {"name": "pods", "conflist": {"cniVersion": "1.0.0", "plugins": [{"type": "bridge"}, PORTMAP]}}
STORAGE = {"name": "storage", "content": '{"cniVersion": "1.0.0", "type": "macvlan", "capabilities": {"ips": true}}'}
KUBECONFIG = {"kubeconfig": "/etc/cni/net.d/multus.d/multus.kubeconfig"}


def plugin_of(entry):
    (plugin,) = entry["conflist"]["plugins"]
    return plugin


def test_networks_become_delegates_and_their_capabilities_those_of_multus():
    entry = cni_multus([PODS, STORAGE, {"name": "old", "state": "absent"}], {"confDir": "/c"})
    assert (entry["name"], entry["file"]) == ("multus-cni-network", "00-multus.conflist")
    assert entry["conflist"]["cniVersion"] == "1.0.0"
    plugin = plugin_of(entry)
    assert plugin["type"] == "multus"
    assert plugin["capabilities"] == {"ips": True, "portMappings": True}
    assert [network["name"] for network in plugin["delegates"]] == ["pods", "storage"]
    assert plugin["confDir"] == "/c"


def test_multus_reads_what_was_made():
    conf = load_multus_conf(json.dumps({**plugin_of(cni_multus([PODS, STORAGE])), "name": "m"}).encode())
    assert [(one.network, one.first) for one in conf.delegates] == [("pods", True), ("storage", False)]


def test_the_entry_is_one_that_cni_conf_takes():
    checked = CheckedNetworks([cni_multus([PODS, STORAGE])], list(LEVELS), lambda _src: ("", b""))
    assert [entry for entry in checked.problems if entry.level == "error"] == []
    assert checked.rendered[0]["file"] == "00-multus.conflist"


def test_a_cluster_network_is_named_and_not_contained():
    plugin = plugin_of(cni_multus([PODS], KUBECONFIG, cluster_network="/etc/cni/multus/net.d/10-pods.conflist"))
    assert plugin["clusterNetwork"] == "/etc/cni/multus/net.d/10-pods.conflist"
    assert "delegates" not in plugin
    assert plugin["capabilities"] == {"portMappings": True}


def test_the_shim_of_thick_multus():
    entry = cni_multus([PODS], {"capabilities": {"mac": True}}, "pods", shim="yes", name="m", file="05-m.conflist")
    assert (entry["name"], entry["file"], plugin_of(entry)["type"]) == ("m", "05-m.conflist", "multus-shim")
    assert plugin_of(entry)["capabilities"] == {"mac": True, "portMappings": True}


@pytest.mark.parametrize(
    ("networks", "options", "words"),
    [
        ([], {}, "there is no network"),
        (None, {}, "the option is missing"),
        ([{"name": "old", "state": "absent"}], {}, "there is no network"),
        ([{"name": "a", "src": "a.conflist"}], {}, "a filter reads no files"),
        (
            [{**PODS, "conflist": {"cniVersion": "1.0.0", "plugins": [{"type": "bridge", "mtu": "x"}]}}],
            {},
            "/plugins/0/mtu",
        ),
        ([PODS], {"settings": {"delegates": []}}, "settings: delegates is not one of them"),
        ([PODS], {"settings": {"logOptions": 5}}, "logOptions"),
        ([PODS], {"settings": "x"}, "settings must be a mapping"),
        ([PODS], {"shim": True}, "set cluster_network"),
        ([PODS], {"cluster_network": "pods"}, "without kubeconfig in settings every ADD fails"),
        ([PODS], {"name": "a b"}, "not a valid network name"),
        ([PODS], {"name": 5}, "must be strings"),
        ([PODS], {"shim": "perhaps"}, "shim must be true or false"),
        ([PODS], {"validate": ["plugins"]}, "validate must be"),
    ],
)
def test_what_cannot_be_made(networks, options, words):
    with pytest.raises(AnsibleFilterError, match=words):
        cni_multus(networks, **options)


def test_the_example_of_the_documentation_is_made():
    with open(module.__file__[: -len("networks.py")] + "cni_multus.yml", encoding="utf-8") as stream:
        (task,) = yaml.safe_load(yaml.safe_load(stream)["EXAMPLES"])
    entry = cni_multus([task["vars"]["pods"], task["vars"]["storage"]], {"confDir": "/etc/cni/multus/net.d"})
    assert plugin_of(entry)["capabilities"] == {"portMappings": True}


def test_the_files_of_the_networks_go_when_that_of_multus_is_complete():
    made = cni_multus([PODS, STORAGE, {"name": "old", "state": "absent"}], alone=True)
    assert made[0] == cni_multus([PODS, STORAGE])
    gone = [{"name": name, "state": "absent"} for name in ("pods", "storage", "old")]
    assert made[1:] == gone
    unnamed = {"conflist": {**PODS["conflist"], "name": "inner"}}
    assert cni_multus([unnamed], alone="yes")[1:] == [{"name": "inner", "state": "absent"}]
    with pytest.raises(AnsibleFilterError, match="alone must be true or false"):
        cni_multus([PODS], alone="maybe")
