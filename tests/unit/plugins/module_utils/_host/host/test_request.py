# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.host.request import HostRequest, bin_dir_of
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.host.whole_host import options
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with


def request(**sections):
    return HostRequest(*options(sections))


def network(name, state="present", **more):
    plugin = {"type": "bridge", "ipam": {"type": "host-local"}}
    content = json.dumps({"cniVersion": "1.0.0", "name": name, "plugins": [plugin, {"type": "portmap"}]})
    return {"name": name, "content": content if state == "present" else None, "state": state, **more}


def attachment(network, netns="web", state="present", **more):
    return {"network": network, "container_id": "c1", "netns": netns, "state": state, **more}


def contradictions(**sections):
    """Return the sentences of the one error."""
    with fails_with("contradiction") as error:
        request(**sections)
    return error.value.msg.split("; ")[::2]


def test_sections_that_agree():
    made = request(
        networks={"networks": [network("a"), network("gone", "absent"), {"file": "x.conflist", "state": "restored"}]},
        netns={"names": ["web"]},
        plugins={"state": "absent", "plugins": ["tuning"]},
        attachments={"attachments": [attachment("a"), attachment("gone", state="absent", ifname="eth1")]},
    )
    assert list(made.sections) == ["networks", "netns", "plugins", "attachments"]
    assert [str(wanted.key) for wanted in made.attachments] == ["a/c1/eth0", "gone/c1/eth1"]
    assert (made.state_of("plugins"), made.state_of("netns")) == ("absent", "present")


def test_sections_that_are_not_given_are_not_there():
    made = HostRequest({"plugins": None, "netns": None}, {})
    assert made.sections == {} and made.attachments == []


def test_a_network_that_is_removed_and_attached():
    found = contradictions(
        networks={"networks": [network("a", "absent"), network("b", "absent")]},
        attachments={"attachments": [attachment("a"), attachment("b", ifname="eth1"), attachment("c", ifname="eth2")]},
    )
    assert found == [
        "the section networks removes 'a', and the section attachments attaches a/c1/eth0 to it",
        "the section networks removes 'b', and the section attachments attaches b/c1/eth1 to it",
    ]


@pytest.mark.parametrize("netns", ["web", "/run/netns/web"])
def test_a_namespace_that_is_removed_and_attached(netns):
    assert contradictions(
        netns={"names": ["db", "web"], "state": "absent"}, attachments={"attachments": [attachment("a", netns)]}
    ) == ["the section netns removes 'web', and the section attachments attaches a/c1/eth0 in it"]


@pytest.mark.parametrize("plugin", ["bridge", "host-local", "portmap"])
def test_a_plugin_that_is_removed_and_run(plugin):
    assert contradictions(
        plugins={"state": "absent", "plugins": ["tuning", plugin]}, networks={"networks": [network("a")]}
    ) == [f"the section plugins removes '{plugin}', and the network 'a' of the section networks runs it"]


def test_all_contradictions_are_told_at_once():
    found = contradictions(
        plugins={"state": "absent", "plugins": ["bridge"]},
        networks={"networks": [network("a"), network("b", "absent")]},
        netns={"names": ["web"], "state": "absent"},
        attachments={"attachments": [attachment("b")]},
    )
    assert [text.split()[2] for text in found] == ["networks", "netns", "plugins"]


def test_what_cannot_be_read_is_the_error_of_its_section():
    """The section networks tells it, and the other sections go on."""
    broken = network("a")
    broken["content"] = "{"
    request(plugins={"state": "absent", "plugins": ["bridge"]}, networks={"networks": [broken]})


def test_restored_plugins_contradict_nothing():
    request(plugins={"state": "restored", "plugins": ["bridge"]}, networks={"networks": [network("a")]})


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_timeout_is_more_than_nothing(timeout):
    with pytest.raises(HostError) as error:
        request(attachments={"attachments": [], "timeout": timeout})
    assert (error.value.code, error.value.msg.split()[0]) == ("bad_timeout", "attachments.timeout")


def test_bad_entries_are_named():
    with pytest.raises(HostError) as error:
        request(attachments={"attachments": [attachment("a"), attachment("a")]})
    assert (error.value.code, error.value.msg.split(":")[0]) == ("duplicate_attachment", "attachments[1]")


def test_check_mode_leaves_out_bad_entries_and_keeps_their_errors():
    entries = [attachment("a"), attachment("a"), attachment("b", ifname="eth1"), attachment("b", ifname="a/b")]
    made = HostRequest(*options({"attachments": {"attachments": entries}}), check_mode=True)
    assert [str(wanted.key) for wanted in made.attachments] == ["a/c1/eth0", "b/c1/eth1"]
    assert [(error.code, error.msg.split(":")[0]) for error in made.refused] == [
        ("duplicate_attachment", "attachments[1]"),
        ("bad_id", "attachments[3].ifname"),
    ]


@pytest.mark.parametrize(
    ("runtime", "state"),
    [({}, "present"), ({"configure": {"state": "absent"}}, "absent"), ({"configure": {}}, "present")],
)
def test_the_state_of_runtimes_is_that_of_their_settings(runtime, state):
    assert request(runtime={"runtime": ["crio"], **runtime}).state_of("runtime") == state


def test_the_directory_of_plugins():
    assert bin_dir_of({"bin_dir": None, "bin_dirs": ["/a", "/b"]}) == "/a"
    assert bin_dir_of({"bin_dir": "/c/", "bin_dirs": ["/a"]}).rstrip("/") == "/c"
    with pytest.raises(HostError, match=r"plugins\.bin_dir"):
        bin_dir_of({"bin_dir": "relative", "bin_dirs": ["/a"]})
