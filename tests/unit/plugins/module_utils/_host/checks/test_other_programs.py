# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What other programs would do to a network later: only what they really do is told, with the file that decides."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.checks import other_programs
from ansible_collections.podwire.cni.plugins.module_utils._host.commands import Done

IPAM = {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd01::/64"}]]}
BRIDGE = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipam": IPAM}
PTP = {"type": "ptp", "ipam": IPAM}
MACVLAN = {"type": "macvlan", "master": "eth0", "ipam": IPAM}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write files of a host, by their paths; systemd-networkd runs there."""
    roots = tuple(str(tmp_path / name) for name in ("etc", "run", "local", "usr"))
    monkeypatch.setattr(other_programs, "_SYSTEM", roots)
    monkeypatch.setattr(other_programs, "_SYSCTL_CONF", str(tmp_path / "etc" / "sysctl.conf"))
    monkeypatch.setattr(other_programs, "_NETWORKD", str(tmp_path / "state"))
    monkeypatch.setattr(other_programs, "_ZONES", (str(tmp_path / "zones"),))
    monkeypatch.setattr(other_programs, "is_running", lambda _name: False)

    def write(texts):
        for name, text in texts.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("/"):
                path.symlink_to(text)
            else:
                path.write_text(text)
        return tmp_path

    write({"state": ""})
    return write


def told(*plugins):
    return [(entry.code, entry.level) for entry in other_programs.OtherPrograms().obstacles_of(plugins)]


@pytest.mark.parametrize("network", [BRIDGE, {"type": "flannel", "delegate": {"hairpinMode": True}}])
@pytest.mark.parametrize(
    ("match", "taken"),
    [
        ("Name=*", ["cni0", "veth"]),
        ("Name=e* veth*", ["veth"]),
        ("Name=!eth* lo", ["cni0", "veth"]),
        ("Name=!cni0 veth*", []),
        ("Type=ether", ["veth"]),
        ("Type=bridge", ["cni0"]),
        ("Kind=veth\nName=ve-*", []),
        ("Kind=veth", ["veth"]),
        ("Driver=virtio_net", []),
        ("Virtualization=vmware", ["cni0", "veth"]),
        ("Virtualization=vmware\nDriver=vmxnet3", []),
        ("MACAddress=02:00:00:00:00:01", []),
        ("Property=ID_NET=1", []),
        ("Name=eth0\nName=cni*", ["cni0"]),
        ("Name=*\nName=\nName=eth0", []),
        ("# Name=*", []),
    ],
)
def test_systemd_networkd_takes_what_its_match_has(files, network, match, taken):
    root = files({"usr/systemd/network/90-all.network": f"[Match]\n{match}\n[Network]\nDHCP=yes\n"})
    found = list(other_programs.OtherPrograms().obstacles_of([network]))
    assert [entry.code for entry in found] == ["taken_over"] * len(taken)
    for entry, name in zip(found, taken):
        assert name in entry.what
        assert entry.file == str(root / "usr/systemd/network/90-all.network")
        assert "Unmanaged=yes" in entry.remedy


ALL = "[Match]\nName=*\n"
UNMANAGED = "[Match]\nName=veth* cni*\n[Link]\nUnmanaged=yes\n"


@pytest.mark.parametrize(
    "texts",
    [
        {"etc/systemd/network/05-cni.network": UNMANAGED, "usr/systemd/network/90-all.network": ALL},
        {"usr/systemd/network/05-cni.network": UNMANAGED, "etc/systemd/network/90-all.network": ALL},
        {"etc/systemd/network/90-all.network": UNMANAGED, "usr/systemd/network/90-all.network": ALL},
        {"etc/systemd/network/90-all.network": "/dev/null", "usr/systemd/network/90-all.network": ALL},
        {
            "usr/systemd/network/90-all.network": ALL,
            "etc/systemd/network/90-all.network.d/50.conf": "[Link]\nUnmanaged=true\n",
        },
        {"etc/systemd/network/90-all.network": "[Network]\nDHCP=yes\n"},
        {"etc/systemd/network/90-all.conf": ALL},
    ],
)
def test_the_first_file_decides(files, texts):
    files(texts)
    assert told(BRIDGE) == []


def test_only_interfaces_of_the_host_are_taken(files):
    root = files({"etc/systemd/network/90-all.network": ALL})
    assert told(PTP) == [("taken_over", "warning")]
    assert told(MACVLAN) == []
    (root / "state").unlink()
    assert told(BRIDGE) == []


@pytest.mark.parametrize(
    ("texts", "winner"),
    [
        ({"etc/sysctl.d/90-router.conf": "net.ipv4.ip_forward = 0\n"}, "90-router.conf, line 1"),
        ({"usr/sysctl.d/90-router.conf": "\n# no\nnet/ipv4/ip_forward=0\n"}, "90-router.conf, line 3"),
        ({"etc/sysctl.d/90-router.conf": "-net.ipv4.conf.all.forwarding=0\n"}, "90-router.conf, line 1"),
        ({"etc/sysctl.d/90-router.conf": "net.ipv6.conf.*.forwarding=0\n"}, "90-router.conf, line 1"),
        ({"etc/sysctl.conf": "net.ipv4.ip_forward=0\n", "etc/sysctl.d/9.conf": "net.ipv4.ip_forward=1"}, "sysctl.conf"),
        ({"etc/sysctl.d/1.conf": "net.ipv4.ip_forward=1\nnet.ipv4.ip_forward=0\n"}, "1.conf, line 2"),
        ({"etc/sysctl.d/1.conf": "net.ipv4.ip_forward=1", "usr/sysctl.d/2.conf": "net.ipv4.ip_forward=0"}, "2.conf"),
        # all.forwarding is the same value under another name.
        ({"run/sysctl.d/1.conf": "net.ipv4.ip_forward=1\nnet.ipv4.conf.all.forwarding=0\n"}, "1.conf, line 2"),
        ({"etc/sysctl.d/1.conf": "net.ipv4.ip_forward=0", "etc/sysctl.d/2.conf": "net.ipv4.ip_forward=1"}, ""),
        ({"etc/sysctl.d/1.conf": "net.ipv4.ip_forward=1", "usr/sysctl.d/1.conf": "net.ipv4.ip_forward=0"}, ""),
        ({"etc/sysctl.d/1.conf": "/dev/null", "usr/sysctl.d/1.conf": "net.ipv4.ip_forward=0"}, ""),
        ({"etc/sysctl.d/1.conf": "net.ipv6.conf.all.forwarding=1\nnet.ipv6.conf.*.forwarding=0\n"}, ""),
        ({"etc/sysctl.d/1.conf": "net.ipv4.conf.eth0.forwarding=0\n"}, ""),
        ({"etc/sysctl.d/1.conf.bak": "net.ipv4.ip_forward=0\n"}, ""),
    ],
)
def test_the_sysctl_file_that_wins_is_named(files, texts, winner):
    files(texts)
    found = list(other_programs.OtherPrograms().obstacles_of([BRIDGE]))
    assert [entry.code for entry in found] == (["forwarding_reset"] if winner else [])
    assert all(winner in entry.evidence for entry in found)


def test_only_networks_that_are_forwarded_need_it(files):
    files({"etc/sysctl.d/1.conf": "net.ipv4.ip_forward=0\nnet.ipv6.conf.all.forwarding=0\n"})
    assert told(PTP) == [("forwarding_reset", "warning")] * 2
    ipam = {"type": "host-local", "subnet": "10.1.0.0/24"}
    assert told({**BRIDGE, "ipam": ipam}) == [("forwarding_reset", "warning")]
    # bridge sets isGateway for isDefaultGateway (plugins/main/bridge/bridge.go: cmdAdd).
    assert told({**BRIDGE, "isGateway": False, "isDefaultGateway": True}) == told(BRIDGE) == told(PTP)
    assert told({**BRIDGE, "isGateway": False}) == told({**MACVLAN, "isGateway": True}) == []


@pytest.mark.parametrize(
    ("states", "taken"),
    [
        ("cni0:connected\neth0:connected\n", True),
        ("cni0:connecting (getting IP configuration)\n", True),
        ("cni0:disconnected\n", True),
        ("cni0:connected (externally)\neth0:connected\n", False),
        ("cni0:unmanaged\n", False),
        ("eth0:connected\n", False),
        ("", False),
    ],
)
def test_networkmanager_is_asked(files, monkeypatch, states, taken):
    monkeypatch.setattr(other_programs, "is_running", lambda _name: True)
    monkeypatch.setattr(other_programs, "find_command", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(other_programs, "run_command", lambda _argv, _timeout: Done(0, states.encode(), ""))
    assert told(BRIDGE) == ([("taken_over", "warning")] if taken else [])


def test_networkmanager_is_asked_once_for_all_networks(files, monkeypatch):
    asked = []
    monkeypatch.setattr(other_programs, "is_running", lambda _name: True)
    monkeypatch.setattr(other_programs, "find_command", lambda name: f"/usr/bin/{name}")
    answer = Done(0, b"cni0:connected", "")
    monkeypatch.setattr(other_programs, "run_command", lambda *call: asked.append(call) or answer)
    programs = other_programs.OtherPrograms()
    found = [entry.code for _network in range(3) for entry in programs.obstacles_of([BRIDGE])]
    assert (found, len(asked)) == (["taken_over"] * 3, 1)


def test_firewalld_has_to_have_the_zone(files, monkeypatch):
    firewall = {"type": "firewall"}
    assert told(firewall) == []
    monkeypatch.setattr(other_programs, "is_running", lambda name: name == "firewalld")
    assert told(firewall) == [("no_zone", "error")]
    assert told({**firewall, "backend": "iptables"}) == []
    files({"zones/trusted.xml": ""})
    assert told(firewall) == []
    assert told({**firewall, "firewalldZone": "pods"}) == [("no_zone", "error")]


@pytest.mark.parametrize(
    ("legacy", "nft", "both"),
    [
        ("*filter\n-A FORWARD -j DROP\nCOMMIT\n", "*nat\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n", True),
        ("*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n", "*nat\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n", False),
        ("*filter\n-A FORWARD -j DROP\nCOMMIT\n", "", False),
    ],
)
def test_two_firewalls_are_told(monkeypatch, legacy, nft, both):
    dumps = {"iptables-legacy": legacy, "iptables-nft": nft}
    dump = {"ipv4": dumps}
    monkeypatch.setattr(other_programs, "dump_iptables", lambda backend, family: dump.get(family, {}).get(backend, ""))
    assert [entry.code for entry in other_programs.two_firewalls()] == (["two_firewalls"] if both else [])
