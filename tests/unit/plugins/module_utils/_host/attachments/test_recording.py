# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What surrounds ADDs: the first one on a network runs alone, and a footprint that cannot be recorded fails nothing."""

from __future__ import annotations

import json
import threading

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import recording
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.recording import FirstAlone, Recording
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import AttachmentStore
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.attribution import Party
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.recorder import RecordedAdd
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import actions, web
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import raising


def test_only_the_first_on_each_network_runs_alone():
    alone, running, seen, first = FirstAlone(), [], [], set()
    guard, together = threading.Lock(), threading.Barrier(2)

    def work(network, meets):
        with alone.running(network):
            with guard:
                running.append(network)
                seen.append((network in first, len(running)))
                first.add(network)
            if meets:
                # It goes on only when another one runs at the same time.
                together.wait(timeout=60)
            with guard:
                running.remove(network)

    work("a", False)
    work("b", False)
    threads = [threading.Thread(target=work, args=("a", True)) for _number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    threads = [threading.Thread(target=work, args=(name, False)) for name in "cdef" * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {count for known, count in seen if not known} == {1}
    assert max(count for _known, count in seen) >= 2


def test_after_a_failure_others_go_on():
    alone = FirstAlone()
    with pytest.raises(HostError), alone.running("a"):
        raise HostError("no", "add_failed")
    with alone.running("a"), alone.running("a"):
        pass


REFUSE = raising(HostError("the kernel does not answer", "kernel_unreadable"))


@pytest.mark.parametrize("name", ["read_host", "visit"])
def test_what_cannot_be_read_is_a_warning(attach_host, monkeypatch, name):
    monkeypatch.setattr(recording, name, REFUSE)
    plan = attach_host.run(web())
    assert actions(plan) == ["added"]
    assert [code for code, _text in plan.warnings] == ["footprint_missing"]
    assert "the kernel does not answer" in next(iter(plan.warnings))[1]


def test_what_cannot_be_written_is_a_warning(attach_host, monkeypatch):
    monkeypatch.setattr(recording, "visit", lambda namespaces, read: {one.path: read() for one in namespaces})
    monkeypatch.setattr(recording, "read_inside", lambda _sysctls: {})
    monkeypatch.setattr(Recording, "_read_after", read_nothing)
    monkeypatch.setattr(AttachmentStore, "write_shared", REFUSE)
    plan = attach_host.run(web())
    assert actions(plan) == ["added"]
    assert [code for code, _text in plan.warnings] == ["footprint_missing"]


def read_nothing(self, keys):
    for key in keys:
        identity = self._done[key].identity
        self._added[key] = RecordedAdd(Party(key, [], {}), {}, {}, {}, identity, "")


def test_namespaces_with_one_attachment_are_read_together(attach_host, monkeypatch):
    """Others are read around each of their ADDs, so that each change has one owner."""
    before, after = [], []

    def visit(namespaces, _read):
        paths = sorted(one.path for one in namespaces)
        before.append(paths)
        if not after and len(before) == 1:
            return {path: ({}, attach_host.namespaces[path][0]) for path in paths}
        return {path: {} for path in paths}

    def read_after(self, keys):
        after.append(sorted(key.container_id + key.ifname for key in keys))
        read_nothing(self, keys)

    monkeypatch.setattr(recording, "visit", visit)
    monkeypatch.setattr(Recording, "_read_after", read_after)
    for number, name in enumerate(("other", "third"), 2):
        attach_host.namespace(name, number)
    third = [web(netns="third", container_id="third", ifname=ifname) for ifname in ("eth0", "eth1")]
    plan = attach_host.run(web(), web(netns="other", container_id="other"), *third)
    assert actions(plan) == ["added"] * 4
    assert before == [["/run/netns/other", "/run/netns/web"], ["/run/netns/third"], ["/run/netns/third"]]
    assert sorted(after[:2]) == [["thirdeth0"], ["thirdeth1"]]
    assert [len(keys) for keys in after] == [1, 1, 2]


def test_the_stores_that_adds_will_use_are_known_before():
    plugins = [
        {"type": "bridge", "ipam": {"type": "host-local", "dataDir": "/data/"}},
        {"type": "ptp", "ipam": {"type": "host-local"}},
        {"type": "macvlan", "ipam": {"type": "dhcp"}},
        {"type": "bridge", "ipam": {"type": "host-local", "dataDir": "relative"}},
    ]
    text = json.dumps({"cniVersion": "1.0.0", "name": "demo", "plugins": plugins})
    config = network_conf_from_bytes(text.encode())
    assert recording._stores([config]) == [("/data", "demo"), ("/var/lib/cni/networks", "demo")]


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        ([{"type": "bridge", "ipam": {"type": "host-local"}}], []),
        (
            [
                {"type": "bridge"},
                {
                    "type": "tuning",
                    "sysctl": {"net.core.somaxconn": "1", "net.ipv4.conf.IFNAME.arp_filter": "1", "kernel.shmmax": "1"},
                    "args": {"cni": {"sysctl": {"net/ipv4/tcp_ecn": "1", "net/../../tmp/pipe": "1"}}},
                },
            ],
            ["core/somaxconn", "ipv4/tcp_ecn"],
        ),
        ([{"type": "bridge", "ipam": {"type": "whereabouts"}}], None),
        ([{"type": "bridge"}, {"type": "vendor"}], None),
    ],
)
def test_which_sysctls_are_read(plugins, expected):
    """What an unknown plugin sets is not known, so all are read."""
    text = json.dumps({"cniVersion": "1.0.0", "name": "demo", "plugins": plugins})
    found = recording.sysctls_set_by(network_conf_from_bytes(text.encode()), "eth0")
    assert found == (None if expected is None else ["ipv4/ip_forward", "ipv6/conf/all/forwarding", *expected])


def test_which_defaults_of_interfaces_are_read():
    sysctl = {"net.ipv4.conf.IFNAME.arp_filter": "1", "net.ipv6.conf.eth0.accept_ra": "0", "net.core.somaxconn": "1"}
    sysctl.update(dict.fromkeys(["net.ipv4.conf.net1.arp_filter", "net.ipv4.neigh.IFNAME.app_solicit"], "1"))
    plugins = [{"type": "bridge"}, {"type": "tuning", "sysctl": sysctl}]
    text = json.dumps({"cniVersion": "1.0.0", "name": "demo", "plugins": plugins})
    found = recording.interface_sysctls_set_by(network_conf_from_bytes(text.encode()), "eth0")
    assert found == [("conf4", "arp_filter"), ("conf6", "accept_ra")]
