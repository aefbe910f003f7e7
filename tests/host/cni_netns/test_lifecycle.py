# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import re
import subprocess

from ansible_collections.podwire.cni.tests.host.host import sh

WEB = {"path": "/run/netns/pwn-web", "is": "namespace"}


def test_namespaces_are_created_and_removed(host, change, state):
    made = change(["pwn-web", "pwn-db.1", "pwn-größe"], "present", ["create"] * 3, ["safe"] * 3, ["created"] * 3)
    lines = [line for line in state("pwn-") if re.match(r"pwn-[^ ]+ nsfs f ", line)]
    assert len(lines) == 3
    assert len({re.search(r" [0-9]+ $", line)[0] for line in lines}) == 3
    # Loopback only, which is down.
    assert re.fullmatch(r"lo +DOWN .*", sh("ip -netns pwn-web -brief link"))
    assert len(made.run["diff"]) == 3
    assert made.run["diff"][0]["before"] == ""
    assert made.run["diff"][0]["after"] == WEB
    assert made.run["diff"][0]["before_header"] == "/run/netns/pwn-web"
    assert made.run["diff"][0]["after_header"] == "create: does not exist"

    sh("ip netns add pwn-ip")
    change(["pwn-ip", "pwn-new", "pwn-web"], "present", ["create"], ["safe"], ["none", "created", "none"])
    sh("ip netns delete pwn-new")

    # One of them is gone already.
    removed = change(
        ["pwn-web", "pwn-new", "pwn-ip", "pwn-größe"],
        "absent",
        ["remove"] * 3,
        ["disruptive"] * 3,
        ["removed", "none", "removed", "removed"],
    )
    (line,) = state("pwn-")
    assert line.startswith("pwn-db.1 nsfs ")
    assert removed.run["diff"][0]["before"] == WEB
    assert removed.run["diff"][0]["after"] == ""
    assert removed.run["diff"][0]["after_header"] == "remove: state is absent"
    host.run("cni_netns", names=["pwn-db.1"], state="absent")


def test_a_name_is_removed_while_a_process_uses_the_namespace(host, change):
    host.run("cni_netns", names=["pwn-used"])
    used = os.stat("/run/netns/pwn-used").st_ino
    command = ["ip", "netns", "exec", "pwn-used", "sh", "-c", "echo; exec sleep 1000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline()
        change(["pwn-used"], "absent", ["remove"], ["disruptive"], ["removed"])
        change(["pwn-used"], "present", ["create"], ["safe"], ["created"])
        # The process is in the namespace in which it was, the new one is another.
        assert os.stat(f"/proc/{process.pid}/ns/net").st_ino == used
        assert os.stat("/run/netns/pwn-used").st_ino != used
    finally:
        process.kill()
        process.communicate()


def test_leftovers_are_replaced_and_removed(change, state):
    """A mount goes with the host's boot if /run is kept, or by umount, and leaves a file."""
    sh(
        """
        touch /run/netns/pwn-file
        ln -s /proc/1073741824/ns/net /run/netns/pwn-broken
        ip netns add pwn-real
        ln -s /run/netns/pwn-real /run/netns/pwn-link
        """
    )
    names = ["pwn-file", "pwn-broken", "pwn-link"]
    made = change(names, "present", ["create"] * 2, ["safe"] * 2, ["created", "created", "none"])
    assert len(state("pwn-file nsfs f ")) == len(state("pwn-broken nsfs f ")) == 1
    (link,) = state("pwn-link ")
    assert link.endswith(" /run/netns/pwn-real")
    assert made.run["diff"][0]["before_header"] == "/run/netns/pwn-file"
    assert made.run["diff"][0]["before"] == {"is": "leftover"}
    assert made.run["diff"][0]["after"] == {"is": "namespace"}
    assert made.run["actions"][0]["reason"] == "the file is there, but its namespace is gone"

    sh(
        """
        umount /run/netns/pwn-file
        ip netns delete pwn-broken
        ln -s /proc/1073741824/ns/net /run/netns/pwn-broken
        """
    )
    # To remove a leftover disconnects nobody, to remove a name of a namespace may.
    change(names, "absent", ["remove"] * 3, ["safe", "safe", "disruptive"], ["removed"] * 3)
    (line,) = state("pwn-")
    assert line.startswith("pwn-real nsfs ")


def test_nothing_is_created_while_another_process_holds_the_lock(host):
    sh("mkdir -p /run/podwire-cni")
    lock = "/run/podwire-cni/lock"
    holder = subprocess.Popen(["flock", "--no-fork", lock, "sh", "-c", "echo; exec sleep 1000"], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline()
        waited = host.fail("cni_netns", names=["pwn-late"], lock_timeout=0.1)
        assert waited["code"] == "lock_timeout"
        assert "lock_timeout" in waited["msg"]
        predicted = host.run("cni_netns", names=["pwn-late"], lock_timeout=0.1, check_mode=True)
        assert predicted["netns"][0]["action"] == "created"
        assert not host.run("cni_netns", names=["pwn-late"], state="absent", lock_timeout=0.1)["changed"]
    finally:
        holder.kill()
        holder.communicate()
