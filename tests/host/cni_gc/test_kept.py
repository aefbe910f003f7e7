# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

"""What a process, an open file or a socket keeps alive is left, and collected when it dies."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from ansible_collections.podwire.cni.plugins.module_utils._host import netns
from ansible_collections.podwire.cni.tests.host.host import sh, wait_until


def test_the_address_of_a_container_without_a_name_is_left_while_its_process_lives(gc, attach, detach, collect, work):
    live = {"network": "pwgone", "container_id": "pwg-live"}
    attach([live, {"network": "pwgone", "container_id": "pwg-nameless"}])
    process = subprocess.Popen(["ip", "netns", "exec", "pwg-nameless", "sleep", "1000"])
    try:
        wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n")
        sh("ip netns delete pwg-nameless")
        alive = gc.run("cni_gc", min_age="0", scope=["attachments", "leases", "rules", "cache", "links"])
        assert not alive["changed"]
        assert alive["collected"] == []
        assert alive["kept"]["attachment"] == 2

        # Nobody knows the container any more, but its address is in use.
        sh(f"rm {work}/cache/*/pwgone-pwg-nameless-eth0")
        used = gc.run("cni_gc", min_age="0", scope=["leases", "rules"])
        assert not used["changed"]
        assert {one["reason"] for one in used["collected"]} == {"address_live"}
        assert "(sleep)" in " ".join(line for one in used["collected"] for line in one["evidence"])
    finally:
        process.kill()
        process.wait()

    # What cannot be told to be old stays until it is.
    undated = gc.run("cni_gc", scope=["rules"], networks=["pwgone"], min_age="1d")
    assert not undated["changed"]
    assert undated["collected"] != []

    ran = collect()
    assert [one["container_id"] for one in ran["collected"] if one["kind"] == "lease"] == ["pwg-nameless"]
    assert {one["action"] for one in ran["collected"]} == {"deleted"}
    assert ran["kept"]["attachment"] == 1
    detach([live])


def test_interfaces_are_collected_when_no_name_file_or_socket_leads_to_their_container(
    gc, attach, detach, collect, work
):
    kept = [{"network": "pwgone", "container_id": "pwg-live"}, {"network": "pwgone", "container_id": "pwg-open"}]
    attach(
        [
            *kept,
            {"network": "pwgone", "container_id": "pwg-held"},
            {"network": "pwgfour", "container_id": "pwg-held", "ifname": "eth1"},
        ]
    )
    # An open file keeps one namespace, and nothing but a socket another.
    held = netns.visit([netns.Netns("/run/netns/pwg-held")], socket.socket)["/run/netns/pwg-held"]
    with open("/run/netns/pwg-open"), held:
        sh(
            f"""
            ip netns delete pwg-open
            ip netns delete pwg-held
            # Both ends of a veth are on the host, and no ADD made it.
            ip link add pwgleft type veth peer name pwgright
            ip link set pwgleft master pwgone0
            # Others have bridges.
            ip link add pwgothers type bridge
            ip link add pwgport type veth peer name pwgpeer
            ip link set pwgport master pwgothers
            ip link add pwgempty type bridge
            # A network is no longer configured.
            rm {work}/net.d/10-pwgfour.conflist
            """
        )
        ran = gc.run("cni_gc", min_age="0", scope=["links"])
        links = {one["id"]: (one["action"], one["reason"]) for one in ran["collected"] if one["kind"] == "link"}
        assert links == {"pwgleft": ("left", "unclear")}
        assert (ran["changed"], ran["kept"]["link"]) == (False, 4)
        # The socket keeps an attachment of the network that is no longer configured.
        assert {"pwgone0", "pwgfour0", "pwgothers", "pwgport", "pwgempty", "pwgleft", "pwgright"} <= link_names()
        assert len(veths()) == 4

        held.close()
        # The kernel ends the namespace.
        wait_until(lambda: len(veths()) == 2)
        ran = collect()
        links = {one["id"]: one["action"] for one in ran["collected"] if one["kind"] == "link"}
        assert links == {"pwgleft": "left", "pwgfour0": "deleted"}
        assert {one["container_id"] for one in ran["collected"]} == {"", "pwg-held"}
        assert (ran["kept"]["attachment"], ran["kept"]["link"]) == (2, 2)

    detach(kept)
    # The plugin bridge leaves rules when a namespace has no name any more.
    gc.run("cni_gc", networks=["pwgone"], scope=["rules"], min_age="0", allow_empty=True)


def link_names():
    return {line.split()[0].partition("@")[0] for line in sh("ip -brief link").splitlines()}


def veths():
    return [name for name in link_names() if name.startswith("veth")]
