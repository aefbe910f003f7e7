# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What prevents a teardown is named, sorted, with file and runtime."""

from __future__ import annotations

from ansible_collections.podwire.cni.plugins.plugin_utils.teardown import blockers_of, sections_of

BIN = "/opt/cni/bin/"


def network(path, managed_as=None, **used_by):
    """Return a row of cni_info; *used_by* is runtime -> names of the plugins that it runs for the network."""
    users = [{"runtime": runtime, "plugins": [BIN + name for name in names]} for runtime, names in used_by.items()]
    return {"path": path, "managed": managed_as is not None, "managed_as": managed_as, "used_by": users}


def plugin(name, edited=False, original=False):
    return {"path": BIN + name, "name": name, "managed": True, "edited": edited, "original": original}


def attachment(network_name, container_id, *plugins):
    return {"network": network_name, "container_id": container_id, "plugins": list(plugins)}


def test_several_blockers_are_sorted_and_each_is_named_with_file_and_runtime():
    info = {"plugins": [plugin("ptp", edited=True), plugin("bridge", edited=True), plugin("vlan"), plugin("macvlan")]}
    networks = [
        network("/etc/cni/net.d/90-z.conflist", podman=["vlan"], containerd=["macvlan", "vlan"]),
        network("/etc/cni/net.d/10-managed.conflist", "managed", containerd=["vlan"]),
        network("/etc/cni/net.d/87-podman-bridge.conflist", podman=["bridge"]),
        # No runtime takes it from this directory.
        network("/etc/cni/net.d/99-unread.conflist"),
    ]
    unknown = [
        attachment("managed", "web"),
        attachment("managed", "db"),
        attachment("other", "x", "vlan", "ptp", "tap"),
    ]
    assert blockers_of(info, networks, unknown) == [
        "Attached by another tool to managed networks, or in a namespace that no path leads to: db, web",
        "Plugins that another program has replaced since they were installed: /opt/cni/bin/bridge, /opt/cni/bin/ptp",
        (
            "Unmanaged networks that runtimes take, with the plugins that would be removed: "
            "/etc/cni/net.d/87-podman-bridge.conflist (podman) needs bridge, "
            "/etc/cni/net.d/90-z.conflist (containerd, podman) needs macvlan, vlan"
        ),
        "Plugins that unmanaged attachments need: ptp, vlan",
    ]


def test_what_is_restored_is_still_there_for_others():
    info = {"plugins": [plugin("bridge", original=True)]}
    networks = [network("/etc/cni/net.d/87-podman-bridge.conflist", podman=["bridge"])]
    assert blockers_of(info, networks, [attachment("podman", "x", "bridge")]) == []


def test_networks_that_were_written_go_and_files_that_were_there_come_back():
    def file(name, managed=True, original=False):
        return {"managed": managed, "managed_as": name if managed else None, "original": original}

    def aside(path, name, managed=False):
        return {"original_path": f"/etc/cni/net.d/{path}", "network": name, "managed": managed}

    info = {
        "conf": [file("pods"), file("pods"), file("adopted", original=True), file("", managed=False), file("replaces")],
        "aside": [
            aside("87-podman.conflist", "podman"),
            aside("20-old.conflist", "old", managed=True),
            aside("30-pods.conflist", "pods", managed=True),
            aside("5.conf", "replaces"),
        ],
        "attachments": [],
    }
    none = {"conf": [file("", managed=False)], "aside": []}
    sections = sections_of(info, none, [], True, "/pods")
    assert sections.keys() == {"runtime", "networks"}
    assert sections["networks"] == {
        "networks": [
            {"name": "pods", "state": "absent"},
            {"name": "old", "state": "absent"},
            {"name": "adopted", "state": "restored"},
            {"file": "87-podman.conflist", "state": "restored"},
            {"file": "5.conf", "state": "restored"},
        ],
        "force": True,
    }
