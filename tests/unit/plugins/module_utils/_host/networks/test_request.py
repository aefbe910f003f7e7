# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.networks import request
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

PRESENT = {"name": "demo", "content": "{}", "file": None, "priority": None, "state": "present"}
CONFIGURE = {"max_conf_num": 2, "setup_serially": True, "state": "present", "wait": 1.5, "allow": None}


def params(*networks, **changed):
    return dict(
        {
            "networks": networks or (PRESENT,),
            "conf_dir": "/etc/cni/net.d",
            "bin_dirs": ["/opt/cni/bin"],
            "cache_dir": "/var/lib/cni",
            "mode": "0640",
            "owner": "0",
            "group": "6",
            "validate": ["plugins"],
            "force": False,
            "exclusive": False,
            "runtime": ["containerd"],
            "ensure_effective": "demo",
            "on_not_effective": "warn",
            "configure": None,
            "strict": False,
        },
        **changed,
    )


def wanted(**changed):
    (network,) = request.conf_request(params(dict(PRESENT, **changed)), False).networks
    return network


def refused(**changed):
    with pytest.raises(HostError) as caught:
        wanted(**changed)
    return caught.value.code, caught.value.msg


def test_the_options():
    made = request.conf_request(params(), True)
    assert (made.conf_dir, made.bin_dirs, made.cache_dir) == ("/etc/cni/net.d", ["/opt/cni/bin"], "/var/lib/cni")
    attributes = made.attributes
    assert (attributes.mode, attributes.uid, attributes.gid) == (0o640, 0, 6)
    assert (made.levels, made.runtimes, made.ensure_effective) == (["plugins"], ["containerd"], "demo")
    assert made.settings is None
    assert made.tolerate_missing is True
    assert request.conf_request(params(), False).tolerate_missing is False


def test_the_settings_of_runtimes():
    settings = request.conf_request(params(configure=CONFIGURE), False).settings
    assert (settings.conf_dir, settings.bin_dirs) == ("/etc/cni/net.d", ["/opt/cni/bin"])
    assert (settings.max_conf_num, settings.setup_serially, settings.present, settings.wait) == (2, True, True, 1.5)
    settings = request.conf_request(params(configure=dict(CONFIGURE, state="absent")), False).settings
    assert settings.present is False


def test_who_may_use_networks_with_apptainer():
    def allow(**lists):
        given = dict({"networks": None, "users": None, "groups": None}, **lists)
        return request.conf_request(params(configure=dict(CONFIGURE, allow=given)), False).settings.allow

    assert request.conf_request(params(configure=CONFIGURE), False).settings.allow == {}
    assert allow(networks=["hpc"], users=[]) == {"networks": ["hpc"], "users": []}
    for name in ("", "a,b", "a\nallow net users = all", " a", "a\t"):
        with fails_with("bad_argument", r"configure\.allow\.users: .* is not a name"):
            allow(users=["ann", name])


def test_a_network():
    network = wanted(content="{ü}", file="10-x.conflist", priority=7)
    assert (network.name, network.present, network.restored) == ("demo", True, False)
    assert (network.text, network.file, network.priority) == ("{ü}".encode(), "10-x.conflist", 7)
    assert wanted(content="").text == b""


def test_a_network_that_shall_be_restored():
    network = wanted(state="restored", content=None, file="any name")
    assert (network.name, network.present, network.restored, network.file) == ("demo", False, True, "any name")
    assert wanted(state="restored", name=None, file="20-x.conflist").name == ""
    assert wanted(state="restored", file=None).file is None
    assert refused(state="restored", file="a/b")[0] == "bad_file_name"


@pytest.mark.parametrize(
    "changed",
    [
        {"name": None},
        {"name": ""},
        {"content": None},
        {"name": None, "state": "absent", "file": "10-x.conflist"},
        {"name": None, "state": "restored"},
    ],
)
def test_what_the_controller_has_not_rendered(changed):
    code, message = refused(**changed)
    assert code == "not_rendered"
    assert message.startswith("networks[0]: its name and content are missing")


def test_the_entry_is_named():
    with pytest.raises(HostError, match=r"^networks\[1\]\.priority: 100 is not from 0 to 99"):
        request.conf_request(params(PRESENT, dict(PRESENT, priority=100)), False)


@pytest.mark.parametrize("name", [".10-x.conflist", "10-x.conf", "10-x", "conflist"])
def test_names_that_hold_no_network(name):
    code, message = refused(file=name)
    assert code == "bad_file_name"
    assert message.startswith(f"networks[0].file: {name!r} cannot hold a network")


@pytest.mark.parametrize("name", ["a/10-x.conflist", "..", "", "a\0.conflist"])
def test_names_that_are_not_plain(name):
    assert refused(file=name)[0] == "bad_file_name"


def test_priorities():
    assert [wanted(priority=number).priority for number in (None, 0, 99)] == [None, 0, 99]
    assert [refused(priority=number)[0] for number in (-1, 100)] == ["bad_priority", "bad_priority"]


def test_the_default_file():
    assert [wanted(priority=number).default_file() for number in (None, 0, 5, 99)] == [
        "10-demo.conflist",
        "00-demo.conflist",
        "05-demo.conflist",
        "99-demo.conflist",
    ]
